// What identification does to a device: bursts of reads, whose latencies it looks at, of zones that it has written
// before. The algorithm (identify.h) sees only this interface, so it runs against the timing model in virtual time as
// well as against a device.
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
  // Bytes from its start that cost time to read (blocks that were never written do not). 0: empty, must be prepared.
  uint64_t readable = 0;
};

struct ProbeRead {
  ZoneId zone;
  uint64_t offset = 0;       // bytes from the start of the zone; whole blocks
  uint64_t length = 0;       // bytes, whole blocks; at most max_read()
  int64_t latency_ns = 0;    // out
  int64_t submitted_ns = 0;  // out; by the clock that all reads of a burst share
  bool failed = false;       // out; the medium could not deliver it
};

// Thread safety: none.
class Prober {
 public:
  virtual ~Prober() = default;

  virtual const DeviceGeometry& geometry() const = 0;
  // Every zone that can be read, or written and then read; in order.
  virtual const std::vector<ProbeZone>& zones() const = 0;
  // How many empty zones may be prepared at a time.
  virtual uint32_t preparable() const = 0;
  // Bytes of the largest read.
  virtual uint64_t max_read() const = 0;
  // Bytes of one write: what the medium programs at once, or more where that is little.
  uint64_t write_unit() const;

  // Writes each of these zones from where it ends up to `bytes` (bounded by its capacity), all at once. Only zones that
  // were empty at the beginning.
  virtual Status Prepare(std::span<const ZoneId> zones, uint64_t bytes) = 0;
  // Writes an empty zone alone up to `bytes` (bounded by its capacity), a whole unit after the other. How long each
  // took, in ns. It is to be released, even after an error.
  virtual Result<std::vector<int64_t>> TimeWrites(ZoneId zone, uint64_t bytes) = 0;
  // Makes them empty again.
  virtual Status Release(std::span<const ZoneId> zones) = 0;
  // Submits the reads in this order without a pause, and waits for all. OK also where some of them `failed`.
  virtual Status Burst(std::span<ProbeRead> reads) = 0;
  // The zone that the last error of a call was about, where the others can still be used.
  virtual std::optional<ZoneId> failed_zone() const { return std::nullopt; }
};

// On a device. Zones that hold data are only read.
class DeviceProber final : public Prober {
 public:
  // Of the empty zones it uses only those in `may_write`, which is in order, of the others what was certainly `written`:
  // bytes from the start of each zone of the device. `device` outlives the prober, and nobody else uses it meanwhile.
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

  // Runs all at once; the first error.
  Status RunAll(std::span<DeviceRequest> requests);
  // Takes note of the zone that the first error is about.
  Status FirstError(std::span<const DeviceRequest> requests);
  // The next `length` bytes of `zone`.
  DeviceRequest NextWrite(ZoneId zone, uint64_t length);

  ZonedDevice& device_;
  std::vector<ProbeZone> zones_;
  std::vector<uint64_t> written_;  // by zone, bytes
  uint32_t preparable_ = 0;
  std::optional<ZoneId> failed_zone_;
  AlignedBuffer buffer_;  // what is read goes here, all of it to the same place; what is written comes from here
};

}  // namespace isozone
