// ZoneStream: bytes into zones, one zone and one write at a time, in whole blocks, with what every writer needs: a new
// zone when one is full or taken away, another zone when a write fails, and knowing what a power cut could still take.
//
// Failures: a failed write ends the zone (`ZoneLease::CompleteWrite`) and the same bytes go to another, at most
// kMaxAttempts zones; what the failed zone already holds stays valid.
//
// Thread safety: one thread at a time; a write in flight needs none.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/latch.h"
#include "base/status.h"
#include "store/file/mount_context.h"

namespace isozone {

class ZoneStream {
 public:
  static constexpr int kMaxAttempts = 8;

  // `wakes`: the end of each write that nobody waits for wakes the thread of MountContext::writers.
  ZoneStream(MountContext& context, ZoneUse use, bool wakes = false) : context_(context), use_(use), wakes_(wakes) {}
  // Waits for a write in flight, whose outcome nobody wants to know.
  ~ZoneStream();
  ZoneStream(const ZoneStream&) = delete;
  ZoneStream& operator=(const ZoneStream&) = delete;

  void set_data_class(DataClass data) { data_ = data; }
  // The zones come out of the collector's reserve; `confined`: they are partly written already.
  void set_gc(bool confined) {
    gc_ = true;
    confined_ = confined;
  }
  void set_io_class(IoClass io_class) { io_class_ = io_class; }
  // `expected_size`: bytes that are to go into the next zone; 0: unknown.
  void set_cohort(Cohort cohort, uint64_t expected_size) {
    cohort_ = cohort;
    expected_size_ = expected_size;
  }

  // A zone with room for at least `bytes` is held after this.
  Status Reserve(uint64_t bytes);
  // Instead of Reserve, where nothing is held: one more zone for a file that has some, of a group that is not among
  // `taken_groups`. False: there is none that nobody else needs. Never waits.
  bool Widen(uint64_t bytes, std::span<const uint32_t> taken_groups);

  // Where the next write goes; only while held().
  ZoneId zone() const { return lease_.zone(); }
  DeviceOffset next() const { return lease_.next(); }
  uint64_t room() const { return lease_.held() ? lease_.room() : 0; }
  bool held() const { return lease_.held(); }

  enum class Outcome : uint8_t {
    kWritten,
    kLostZone,  // nothing was written: the lease was taken away, or the zone failed; Reserve another and write again
  };
  // Starts to write whole blocks, at most room(); they stay where they are until Finish. `live` of these bytes count as
  // file data, see TakeSpace. `durable`: as a write that is durable when it is done, if that makes durable all that
  // this stream has in the zone; else it is volatile as any other, until MakeDurable. False: the zone is lost.
  [[nodiscard]] bool Start(std::span<std::byte> blocks, uint64_t live, bool durable);
  // Finish would not wait.
  bool done() const { return !in_flight_ || latch_.down(); }
  // Waits for what was started.
  Result<Outcome> Finish();
  // The claim on what the last write has put into its zone, which is a file's now. Nothing where it was not written.
  SpaceClaim TakeSpace() { return std::exchange(space_, {}); }
  Result<Outcome> Write(std::span<std::byte> blocks, uint64_t live, bool durable) {
    return Start(blocks, live, durable) ? Finish() : Outcome::kLostZone;
  }

  // Writes `blocks`, whose first `used` bytes belong at `file_offset` of a file, over as many zones as it takes.
  // Appends where they lie to `written`, and adds the claim on that to `space`, also when it fails half-way.
  Status WriteExtents(std::span<std::byte> blocks, size_t used, uint64_t file_offset, bool durable,
                      std::vector<FileExtent>& written, SpaceClaim& space);

  // A power cut could take something that was written through this stream.
  bool is_volatile() const { return volatile_here_ || volatile_elsewhere_; }
  // The device was flushed since the last write.
  void MarkDurable() { volatile_here_ = volatile_elsewhere_ = false; }
  // Everything written through this stream is durable when this returns OK.
  Status MakeDurable();

  // Gives the zone back; what was written keeps its durability.
  void Release();

 private:
  ZoneRequest RequestFor(uint64_t bytes) const;
  void LeaveZone();

  MountContext& context_;
  const ZoneUse use_;
  const bool wakes_;
  DataClass data_;
  Cohort cohort_;
  uint64_t expected_size_ = 0;  // bytes
  bool gc_ = false;
  bool confined_ = false;
  IoClass io_class_ = IoClass::kOther;
  ZoneLease lease_;
  bool volatile_here_ = false;       // the held zone has bytes that a power cut could take
  bool volatile_elsewhere_ = false;  // a zone left behind has
  int failures_ = 0;                 // in a row

  bool in_flight_ = false;  // request_ is, or is done and waits for Finish
  SpaceClaim space_;        // of the last write, until TakeSpace
  IoRequest request_;
  Latch latch_;  // request_; the last, so that it is waited for first
};

}  // namespace isozone
