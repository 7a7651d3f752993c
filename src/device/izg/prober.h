// Prober: what identification does to a device. It writes empty zones, reads zones in bursts, and measures the latency
// of each read. The algorithm (identify.h) uses only this interface, so it also runs against the timing model, in
// virtual time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/status.h"
#include "device/zoned_device.h"

namespace isozone {

struct ProbeZone {
  ZoneId zone;
  // Bytes from the start of the zone that take time to read (blocks that were never written take none). 0: the zone is
  // empty and must be prepared.
  uint64_t readable = 0;
};

struct ProbeRead {
  ZoneId zone;
  uint64_t offset = 0;       // bytes from the start of the zone; whole blocks
  uint64_t length = 0;       // bytes, whole blocks; at most max_read()
  int64_t latency_ns = 0;    // out
  int64_t submitted_ns = 0;  // out; by a clock that all reads of a burst share
  bool failed = false;       // out; the medium could not deliver the data
};

// Thread safety: none.
class Prober {
 public:
  virtual ~Prober() = default;

  virtual const DeviceGeometry& geometry() const = 0;
  // Returns every zone that can be read, or written and then read, by rising id.
  virtual const std::vector<ProbeZone>& zones() const = 0;
  // Returns how many empty zones may be prepared at a time.
  virtual uint32_t preparable() const = 0;
  // Returns the bytes of the largest read.
  virtual uint64_t max_read() const = 0;
  // Returns the bytes of one write: what the medium programs at once, or more if that is little.
  uint64_t write_unit() const;

  // Fills each of these zones from its write pointer up to `bytes` (bounded by its capacity), all of them in parallel.
  // Only zones that were empty at the beginning may be prepared.
  virtual Status Prepare(std::span<const ZoneId> zones, uint64_t bytes) = 0;
  // Fills an empty zone alone up to `bytes` (bounded by its capacity), one write_unit() after the other, and returns
  // how long each write took, in ns. The zone must be released afterwards, even after an error.
  virtual Result<std::vector<int64_t>> TimeWrites(ZoneId zone, uint64_t bytes) = 0;
  // Makes these zones empty again.
  virtual Status Release(std::span<const ZoneId> zones) = 0;
  // Submits the reads in this order without a pause, and waits for all of them. Returns OK even if some of them
  // `failed`.
  virtual Status Burst(std::span<ProbeRead> reads) = 0;
  // Returns the zone that the last error was about, if the other zones can still be used.
  virtual std::optional<ZoneId> failed_zone() const { return std::nullopt; }
};

// A prober on a device. Zones that hold data are only read.
class DeviceProber final : public Prober {
 public:
  // The prober writes only those empty zones that are in `may_write`, sorted by id. In the other zones it reads only
  // what was certainly written: `written` has the bytes from the start of each zone of the device. `device` must
  // outlive the prober, and nothing else may use it meanwhile.
  static Result<std::unique_ptr<DeviceProber>> Create(ZonedDevice& device, std::span<const ZoneId> may_write,
                                                      std::span<const uint64_t> written);

  const DeviceGeometry& geometry() const override { return device_.geometry(); }
  const std::vector<ProbeZone>& zones() const override { return zones_; }
  uint32_t preparable() const override { return preparable_; }
  uint64_t max_read() const override;
  Status Prepare(std::span<const ZoneId> zones, uint64_t bytes) override;
  Result<std::vector<int64_t>> TimeWrites(ZoneId zone, uint64_t bytes) override;
  Status Release(std::span<const ZoneId> zones) override;
  Status Burst(std::span<ProbeRead> reads) override;
  std::optional<ZoneId> failed_zone() const override { return failed_zone_; }

 private:
  explicit DeviceProber(ZonedDevice& device) : device_(device) {}

  // Runs all requests in parallel, and returns the first error.
  Status RunAll(std::span<DeviceRequest> requests);
  // Returns the first error of `requests`, and records the zone that it is about.
  Status FirstError(std::span<const DeviceRequest> requests);
  // Returns a write of the next `length` bytes of `zone`.
  DeviceRequest NextWrite(ZoneId zone, uint64_t length);

  ZonedDevice& device_;
  std::vector<ProbeZone> zones_;
  std::vector<uint64_t> written_;  // by zone, bytes
  uint32_t preparable_ = 0;
  std::optional<ZoneId> failed_zone_;
  AlignedBuffer buffer_;  // the source of all writes, and the destination of all reads, which overwrite one another
};

}  // namespace isozone
