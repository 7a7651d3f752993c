// ZoneStream: writes bytes to zones, one zone and one write at a time, in whole blocks. It has what every writer needs:
// a new zone when one is full or taken away, another zone when a write fails, and the knowledge of what a power cut
// could still take.
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
#include "store/file/data_path.h"

namespace isozone {

class ZoneStream {
 public:
  static constexpr int kMaxAttempts = 8;

  // `wakes`: the end of each write that nobody waits for wakes the thread of DataPath::writers.
  ZoneStream(DataPath& data_path, ZoneUse use, bool wakes = false) : data_path_(data_path), use_(use), wakes_(wakes) {}
  // Waits for a write in flight, and ignores how it ends.
  ~ZoneStream();
  ZoneStream(const ZoneStream&) = delete;
  ZoneStream& operator=(const ZoneStream&) = delete;

  void set_data_class(DataClass data) { data_ = data; }
  // Takes the zones out of the collector's reserve; with `confined`, only zones that are partly written already.
  void set_gc(bool confined) {
    gc_ = true;
    confined_ = confined;
  }
  void set_io_class(IoClass io_class) { io_class_ = io_class; }
  // `expected_size` is the number of bytes that are to go into the next zone; 0: unknown.
  void set_cohort(Cohort cohort, uint64_t expected_size) {
    cohort_ = cohort;
    expected_size_ = expected_size;
  }

  // Takes a zone with room for at least `bytes`, unless the one that is held has it.
  Status Reserve(uint64_t bytes);
  // Takes one more zone for a file that has some, of a group that is not among `taken_groups`, and may have `width`
  // where there is room. To be called instead of Reserve, if no zone is held. Never waits. Returns false if there is no
  // zone that nobody else needs.
  bool Widen(uint64_t bytes, std::span<const uint32_t> taken_groups, uint32_t width);

  // The zone and the offset of the next write. Only while held().
  ZoneId zone() const { return lease_.zone(); }
  DeviceOffset next() const { return lease_.next(); }
  uint64_t room() const { return lease_.held() ? lease_.room() : 0; }
  bool held() const { return lease_.held(); }

  enum class Outcome : uint8_t {
    kWritten,
    kLostZone,  // nothing was written: the lease was taken away, or the zone failed; Reserve another and write again
  };
  // Starts to write whole blocks, at most room(); they stay where they are until Finish. `live` of these bytes count as
  // file data, see TakeSpace. `durable`: the write is durable when it is done, if that can make durable all that this
  // stream has in the zone; otherwise it is volatile as any other, until MakeDurable. Returns false if the zone is
  // lost.
  [[nodiscard]] bool Start(std::span<std::byte> blocks, uint64_t live, bool durable);
  // Returns whether Finish would not wait.
  bool done() const { return !in_flight_ || latch_.down(); }
  // Waits for the write that was started.
  Result<Outcome> Finish();
  // Returns the claim on what the last write has put into its zone, for the file that has it now. Empty if it was not
  // written.
  SpaceClaim TakeSpace() { return std::exchange(space_, {}); }
  Result<Outcome> Write(std::span<std::byte> blocks, uint64_t live, bool durable) {
    return Start(blocks, live, durable) ? Finish() : Outcome::kLostZone;
  }

  // Writes `blocks`, whose first `used` bytes belong at `file_offset` of a file, over as many zones as it takes.
  // Appends their extents to `written`, and adds the claim on them to `space`, even if it fails half-way.
  Status WriteExtents(std::span<std::byte> blocks, size_t used, uint64_t file_offset, bool durable,
                      std::vector<FileExtent>& written, SpaceClaim& space);

  // Returns whether a power cut could take something that was written through this stream.
  bool is_volatile() const { return volatile_here_ || volatile_elsewhere_; }
  // Notes that the device was flushed since the last write.
  void MarkDurable() { volatile_here_ = volatile_elsewhere_ = false; }
  // Makes everything durable that was written through this stream.
  Status MakeDurable();

  // Gives the zone back; what was written keeps its durability.
  void Release();

 private:
  ZoneRequest RequestFor(uint64_t bytes) const;
  void LeaveZone();

  DataPath& data_path_;
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
  bool volatile_elsewhere_ = false;  // a zone that was left has such bytes
  int failures_ = 0;                 // writes in a row that failed

  bool in_flight_ = false;  // request_ is in flight, or is done and waits for Finish
  SpaceClaim space_;        // on the last write, until TakeSpace
  IoRequest request_;
  Latch latch_;  // of request_; the last member, so that it is waited for first
};

}  // namespace isozone
