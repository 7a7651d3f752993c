// The timing of a conventional SSD: PageMap decides where pages go and what is collected, Flash (the same dies, channels
// and write buffers as under TimingModel) says how long that takes. Pure and in virtual time.
//
//   read    read_latency; then the flash pages that hold its range, each: die -> channel -> host link. What was never
//           written, or was trimmed, takes no flash time.
//   write   host link -> write_latency -> piece by piece: channel -> write buffer of the die. It completes when the last
//           piece is in the buffer. Units go round the dies, so a write has as many dies as it has units.
//   trim    management_latency
//   flush   flush_latency: the controller protects its buffers against power cuts
//
// Collection goes on beside that, on the same dies: for each flash page with valid content a read (die, channel), then
// writes into the buffers of other dies; when all of a victim is copied, an erase on every die. All queue with the
// commands of the host, in order of arrival.
//
// The map changes when a command is submitted, at once; the flash follows. What keeps the two together: pieces for a
// superblock wait until it has been erased, so the host can be ahead of collection by no more than the superblocks kept
// free. A page that was moved is read where it now belongs, also while it is still on its way there.
//
// Without collection, latencies and bandwidths are those of TimingModel on the same flash (conventional_model_test.cc).
// There is no collection in idle times: a device is as fast after a pause as before.
//
// Thread safety: none; the owner serialises.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "conventional/model/page_map.h"
#include "nand/command_model.h"
#include "nand/profile.h"

namespace isozone {

class ConventionalModel : public CommandModel {
 public:
  // `profile` is valid and conventional. Without `timing` every command completes when it is submitted.
  ConventionalModel(const Profile& profile, bool timing);
  ~ConventionalModel() override;
  ConventionalModel(const ConventionalModel&) = delete;
  ConventionalModel& operator=(const ConventionalModel&) = delete;

  // Before the first Submit, in no time: makes it a device that was written to its end, and then randomly, block by
  // block, `times` x as much. Nothing of that is counted.
  void Age(double times, uint64_t seed);

  // Before the first Submit, in no time and not counted: writes `length` bytes at `offset`, whole blocks.
  void Fill(uint64_t offset, uint64_t length);

  // Ranges are of whole blocks. kRead, kWrite, kTrim and kFlush only.
  void Submit(int64_t now_ns, const TimingOp& op, uint64_t ticket) override;
  void AdvanceTo(int64_t now_ns, std::vector<TimingCompletion>& completed) override;
  int64_t NextCompletionBound() override;
  uint64_t MediaBytesWritten() const override;

  const FtlCounters& counters() const;
  // Bytes of a page that the counters count.
  uint32_t block_size() const;

 private:
  class Simulation;
  std::unique_ptr<Simulation> impl_;
};

}  // namespace isozone
