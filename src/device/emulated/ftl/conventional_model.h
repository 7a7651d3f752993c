// ConventionalModel: the timing of a conventional SSD, pure and in virtual time. PageMap decides where pages go and
// what is collected; Flash (the same dies, channels and write buffers as in TimingModel) says how long that takes.
//
//   read    read_latency; then each flash page that holds some of the range: die -> channel -> host link. Blocks that
//           were never written, or were trimmed, take no flash time.
//   write   host link -> write_latency -> piece by piece: channel -> write buffer of the die. It completes when the
//           last piece is in the buffer. Units go to the dies in turn, so a write uses as many dies as it has units.
//   trim    management_latency
//   flush   flush_latency: the controller protects its buffers against power cuts
//
// GC runs at the same time on the same dies. For each flash page with valid content there is a read (die,
// channel), then writes into the buffers of other dies; when all of a victim is copied, every die is erased. All of
// these queue with the commands of the host, in order of arrival.
//
// The map changes at once when a command is submitted; the flash follows. To keep them together, pieces for a
// superblock wait until it has been erased. So the host can be ahead of GC by no more than the superblocks kept
// free. A page that was moved is read at its new place, even while it is still in flight to it.
//
// Without GC, latencies and bandwidths are those of TimingModel on the same flash (conventional_model_test.cc).
// There is no GC while the device is idle: it is as fast after a pause as before.
//
// Thread safety: none; the owner serialises calls.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "device/emulated/ftl/page_map.h"
#include "device/emulated/nand/command_model.h"
#include "device/emulated/nand/profile.h"

namespace isozone {

class ConventionalModel : public CommandModel {
 public:
  // `profile` must be valid and conventional. Without `timing`, every command completes when it is submitted.
  ConventionalModel(const Profile& profile, bool timing);
  ~ConventionalModel() override;
  ConventionalModel(const ConventionalModel&) = delete;
  ConventionalModel& operator=(const ConventionalModel&) = delete;

  // Turns the device into one that was written to its end, and then overwritten randomly, block by block, `times` times
  // its capacity. Takes no time, and does not count. Must be called before the first Submit.
  void Age(double times, uint64_t seed);

  // Writes `length` bytes at `offset`, whole blocks, in no time and without counting. Only before the first Submit.
  void Fill(uint64_t offset, uint64_t length);

  // Accepts kRead, kWrite, kTrim and kFlush, with ranges of whole blocks.
  void Submit(int64_t now_ns, const TimingOp& op, uint64_t ticket) override;
  void AdvanceTo(int64_t now_ns, std::vector<TimingCompletion>& completed) override;
  int64_t NextCompletionBound() override;
  MediaCounts Media() const override;

  const FtlCounters& counters() const;
  // Returns the bytes of a page, the unit of the counters.
  uint32_t block_size() const;

 private:
  class Simulation;
  std::unique_ptr<Simulation> impl_;
};

}  // namespace isozone
