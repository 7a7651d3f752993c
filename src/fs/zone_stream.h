// ZoneStream: bytes into zones, one zone at a time, in whole blocks, with what every writer needs: a new zone when one
// is full or taken away, another zone when a write fails, and knowing what a power cut could still take.
//
// Failures: a failed write ends the zone (ZonePool::EndFailedWrite) and the same bytes go to another, at most
// kMaxAttempts zones; what the failed zone already holds stays valid.
//
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/status.h"
#include "fs/core.h"

namespace isozone {

class ZoneStream {
 public:
  static constexpr int kMaxAttempts = 8;

  ZoneStream(FsCore& core, ZoneUse use) : core_(core), use_(use) {}
  ZoneStream(const ZoneStream&) = delete;
  ZoneStream& operator=(const ZoneStream&) = delete;

  void set_lifetime(Lifetime lifetime) { lifetime_ = lifetime; }
  Lifetime lifetime() const { return lifetime_; }
  void set_io_class(IoClass io_class) { io_class_ = io_class; }

  // A zone with room for at least `bytes` is held after this. `changed` tells that it is not the zone of before.
  Status Reserve(uint64_t bytes, bool& changed);

  // Where the next write goes; only while held().
  ZoneId zone() const { return lease_.zone(); }
  uint64_t write_pointer() const { return lease_.write_pointer(); }
  DeviceOffset next() const { return lease_.next(); }
  uint64_t room() const { return lease_.held() ? lease_.room() : 0; }
  bool held() const { return lease_.held(); }

  enum class Outcome : uint8_t {
    kWritten,
    kLostZone,  // nothing was written: the lease was taken away, or the zone failed; Reserve another and write again
  };
  // Writes whole blocks, at most room(); `live` of these bytes count as file data. `durable`: with all of the zone
  // before it.
  Result<Outcome> Write(std::span<std::byte> blocks, uint64_t live, bool durable);

  // Writes `used` bytes of `buffer`, which belong at `file_offset` of a file, over as many zones as it takes, and
  // appends where they lie to `written`, also when it fails half-way. The buffer is padded with zeros to a whole block.
  Status WriteExtents(AlignedBuffer& buffer, size_t used, uint64_t file_offset, bool durable,
                      std::vector<FileExtent>& written);

  // Everything written through this stream is durable when this returns OK.
  Status MakeDurable();

  // Gives the zone back; what was written keeps its durability.
  void Release();

 private:
  Status WriteBlocks(std::span<std::byte> blocks, bool durable, DeviceStatus& device_status);
  void LeaveZone();

  FsCore& core_;
  const ZoneUse use_;
  Lifetime lifetime_ = Lifetime::kNotSet;
  IoClass io_class_ = IoClass::kOther;
  ZoneLease lease_;
  bool volatile_here_ = false;       // the held zone has bytes that a power cut could take
  bool volatile_elsewhere_ = false;  // a zone left behind has
  int failures_ = 0;                 // in a row
};

}  // namespace isozone
