#include "gc_bench/gc_worker.h"

#include <algorithm>
#include <span>
#include <thread>

#include "base/aligned_buffer.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/thread.h"
#include "isozone/bench/run_command.h"

namespace isozone::cli {
namespace {

constexpr uint64_t kWriteSize = 128 * kKiB;

uint64_t ShareOf(const WorkerOptions& options) {
  return RoundUp((options.bytes + options.threads - 1) / options.threads, options.read_size);
}

// The share of one thread.
class Share {
 public:
  Share(ZonedDevice& device, std::span<const ZoneId> zones, const WorkerOptions& options, uint64_t seed)
      : device_(device),
        zones_(zones),
        read_size_(options.read_size),
        reads_(ShareOf(options) / options.read_size),
        per_zone_(device.geometry().zone_capacity / read_size_),
        random_(seed) {}

  Status Run() {
    ISOZONE_RETURN_IF_ERROR(Write());
    return Read();
  }
  uint64_t bytes() const { return 2 * reads_ * read_size_; }

 private:
  // Writes as many units of a read as will be read, zone after zone.
  Status Write() {
    const uint64_t limit = device_.geometry().max_transfer;
    const uint64_t most =
        std::max(read_size_, RoundDown(limit == 0 ? kWriteSize : std::min(limit, kWriteSize), read_size_));
    AlignedBuffer buffer(most);
    for (std::byte& byte : buffer.span()) byte = static_cast<std::byte>(random_.Next());
    uint64_t left = reads_;
    for (const ZoneId zone : zones_) {
      const uint64_t bytes = std::min(left, per_zone_) * read_size_;
      for (uint64_t at = 0; at < bytes; at += most) {
        ISOZONE_RETURN_IF_ERROR(
            RunCommand(device_, DeviceOp::kWrite, At(zone, at), buffer.data(), std::min(most, bytes - at)));
      }
      left -= bytes / read_size_;
    }
    return Status::Ok();
  }

  Status Read() {
    AlignedBuffer buffer(read_size_);
    for (uint64_t i = 0; i < reads_; ++i) {
      const uint64_t unit = random_.Below(reads_);
      const ZoneId zone = zones_[unit / per_zone_];
      ISOZONE_RETURN_IF_ERROR(
          RunCommand(device_, DeviceOp::kRead, At(zone, unit % per_zone_ * read_size_), buffer.data(), read_size_));
    }
    return Status::Ok();
  }

  DeviceOffset At(ZoneId zone, uint64_t offset) const {
    return DeviceOffset(device_.geometry().ZoneStart(zone).value() + offset);
  }

  ZonedDevice& device_;
  const std::span<const ZoneId> zones_;
  const uint64_t read_size_;
  const uint64_t reads_;     // also the number of units of read_size_ that are written
  const uint64_t per_zone_;  // units that a zone holds
  Random random_;
};

uint32_t ZonesOfShare(const DeviceGeometry& geometry, const WorkerOptions& options) {
  const uint64_t per_zone = RoundDown(geometry.zone_capacity, options.read_size);
  return static_cast<uint32_t>((ShareOf(options) + per_zone - 1) / per_zone);
}

}  // namespace

uint32_t WorkerZones(const DeviceGeometry& geometry, const WorkerOptions& options) {
  return ZonesOfShare(geometry, options) * options.threads;
}

Result<WorkerResult> RunWorker(ZonedDevice& device, const std::vector<ZoneId>& zones, const WorkerOptions& options) {
  const uint32_t each = ZonesOfShare(device.geometry(), options);
  std::vector<Share> shares;
  for (uint32_t i = 0; i < options.threads; ++i) {
    shares.emplace_back(device, std::span(zones).subspan(size_t{i} * each, each), options, options.seed + i);
  }
  std::vector<Status> statuses(options.threads);
  WorkerResult result;
  const int64_t start_ns = MonotonicNs();
  std::vector<std::thread> threads;
  Status started;
  for (uint32_t i = 0; i < options.threads && started.ok(); ++i) {
    auto thread = StartThread("the worker", [&, i] { statuses[i] = shares[i].Run(); });
    started = thread.status();
    if (thread.ok()) threads.push_back(std::move(thread).value());
  }
  for (std::thread& thread : threads) thread.join();
  ISOZONE_RETURN_IF_ERROR(started);
  result.seconds = static_cast<double>(MonotonicNs() - start_ns) / kSecondNs;
  for (const Share& share : shares) result.bytes += share.bytes();
  for (const Status& status : statuses) ISOZONE_RETURN_IF_ERROR(status);
  for (const ZoneId zone : zones) {
    ISOZONE_RETURN_IF_ERROR(RunCommand(device, DeviceOp::kReset, device.geometry().ZoneStart(zone), nullptr, 0));
  }
  return result;
}

}  // namespace isozone::cli
