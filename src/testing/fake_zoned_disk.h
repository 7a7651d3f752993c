// FakeZonedDisk: a zoned block device and the kernel in front of it, for tests of LinuxDevice on machines that have
// neither. An emulated SSD in memory keeps the data, the states and the limits of the sequential zones; this adds what
// disks and the kernel add, in the strictest form of each:
//
//   * conventional zones in front, a shorter zone at the end, zones of more or less capacity than the others;
//   * every read that goes beyond the write pointer fails, as on SMR disks that forbid it;
//   * every error of a zone is EIO, as NVMe has it in Linux; those of limits are EOVERFLOW and ETOOMANYREFS;
//   * an open or close that the state of the zone forbids does nothing and succeeds, as in scsi_debug;
//   * positions, lengths and memory that are not aligned, and a write longer than the limit, are refused: such a write
//     would be split;
//   * a write without RWF_DSYNC, or a flush, is volatile until the next flush; `volatile_bytes` counts it.
//
// Requests complete on threads of the disk. A test can hold them back, fail them, and take the disk away.
//
// Thread safety: any thread may call any method.
#pragma once

#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "device/emulated/emulated_device.h"
#include "device/linux/block_kernel.h"
#include "device/linux/queue_facts.h"
#include "device/linux/task_threads.h"

namespace isozone {

struct FakeDiskShape {
  DeviceGeometry zones;                     // the sequential zones; their usual capacity
  uint32_t conventional = 0;                // zones in front of them
  uint64_t last_zone = 0;                   // bytes of one more zone at the end, shorter than the others; 0: none
  std::map<uint32_t, uint64_t> capacities;  // bytes, of sequential zones that differ
  uint32_t logical_block = 512;
  DurableWrites durable = DurableWrites::kForced;
  bool errs_about_pointers = true;  // BlockKernel::may_err_about_pointers
};

class FakeZonedDisk {
 public:
  explicit FakeZonedDisk(const FakeDiskShape& shape) : shape_(shape), image_(NewImage(shape)) {
    auto opened = EmulatedDevice::Open(image_.path(), OpenMode::kReadWrite, {});
    EXPECT_TRUE(opened.ok()) << opened.status().ToString();
    ssd_ = std::move(*opened);
  }

  // Returns what sysfs would say of the disk.
  QueueFacts facts() const {
    QueueFacts facts;
    facts.model = "host-managed";
    facts.scheduler = "none";
    facts.zone_size = shape_.zones.zone_size;
    facts.size = zone_count() * facts.zone_size - (shape_.last_zone == 0 ? 0 : facts.zone_size - shape_.last_zone);
    facts.logical_block = shape_.logical_block;
    facts.memory_alignment = memory_alignment();
    facts.write_granularity = shape_.zones.block_size;
    facts.max_transfer = shape_.zones.max_transfer;
    facts.max_open_zones = shape_.zones.max_open_zones;
    facts.max_active_zones = shape_.zones.max_active_zones;
    facts.durable = shape_.durable;
    return facts;
  }

  // Returns the kernel, as a program that opens the disk sees it.
  std::unique_ptr<BlockKernel> Open() { return std::make_unique<Kernel>(*this); }

  // The emulated SSD, for faults of its zones. It does not count the conventional zones.
  EmulatedDevice& ssd() { return *ssd_; }

  // Makes transfers wait until Release; one that may block keeps the thread that starts it until then.
  void Hold() {
    const MutexLock lock(mu_);
    holding_ = true;
  }
  void Release() {
    std::vector<KernelTransfer*> held;
    {
      const MutexLock lock(mu_);
      holding_ = false;
      held.swap(held_);
      released_.SignalAll();
    }
    for (KernelTransfer* transfer : held) Enqueue(*transfer);
  }
  size_t held() const {
    const MutexLock lock(mu_);
    return held_.size();
  }
  // Makes the next transfer of this kind end with `error`; of a write, the first `bytes` are stored.
  void FailNext(KernelTransfer::Kind kind, int error, uint64_t bytes = 0) {
    const MutexLock lock(mu_);
    failures_.push_back({kind, error, bytes});
  }
  // Makes the next zone command or report end with `error`.
  void FailNextCommand(int error) {
    const MutexLock lock(mu_);
    command_error_ = error;
  }
  void FailReports(int error) { FailReports(UINT64_MAX, error); }
  // Makes the next `count` reports end with `error`.
  void FailReports(uint64_t count, int error) {
    const MutexLock lock(mu_);
    failing_reports_ = error == 0 ? 0 : count;
    report_error_ = error;
  }
  // Runs `action` when the next report has been taken, before its caller gets it.
  void AfterNextReport(std::function<void()> action) {
    const MutexLock lock(mu_);
    actions_[Moment::kReport] = std::move(action);
  }
  // Runs `action` when the next zone command has been carried out, before its caller gets the result.
  void AfterNextCommand(std::function<void()> action) {
    const MutexLock lock(mu_);
    actions_[Moment::kCommand] = std::move(action);
  }
  // Takes the disk away.
  void Remove() {
    const MutexLock lock(mu_);
    removed_ = true;
  }

  // Counts of what the kernel was asked since the beginning.
  struct Asked {
    uint64_t reads = 0;
    uint64_t writes = 0;
    uint64_t durable_writes = 0;
    uint64_t blocking_writes = 0;  // that may block
    uint64_t flushes = 0;
    uint64_t resent = 0;  // reads and flushes that say that they are
    uint64_t zone_commands = 0;
    uint64_t most_writes_of_a_zone = 0;  // in flight at the same time
    uint64_t volatile_bytes = 0;         // written, and not durable yet
  };
  Asked asked() const {
    const MutexLock lock(mu_);
    return asked_;
  }

 private:
  enum class Moment : uint8_t {
    kReport,
    kCommand
  };  // each is after the request was carried out and before it is answered
  struct Failure {
    KernelTransfer::Kind kind;
    int error;
    uint64_t bytes;
  };

  class Kernel final : public BlockKernel {
   public:
    explicit Kernel(FakeZonedDisk& disk) : disk_(disk) {}
    void Start(KernelTransfer& transfer) override { disk_.Start(transfer); }
    int ReportZones(uint64_t position, std::span<KernelZone> out) const override { return disk_.Report(position, out); }
    int Manage(ZoneCommand command, uint64_t position, uint64_t length) override {
      return disk_.Manage(command, position, length);
    }
    std::string path() const override { return ""; }
    bool may_err_about_pointers() const override { return disk_.shape_.errs_about_pointers; }
    std::string transfer_path() const override { return "a fake"; }

   private:
    FakeZonedDisk& disk_;
  };

  static MemoryImage NewImage(const FakeDiskShape& shape) {
    DeviceGeometry geometry = shape.zones;
    for (const auto& [zone, capacity] : shape.capacities) {
      geometry.zone_capacity = std::max(geometry.zone_capacity, capacity);
    }
    geometry.max_transfer = geometry.max_append = 0;
    geometry.buffer_alignment = 1;
    auto image = EmulatedDevice::CreateInMemory(geometry);
    EXPECT_TRUE(image.ok()) << image.status().ToString();
    return std::move(*image);
  }

  uint64_t zone_count() const {
    return uint64_t{shape_.conventional} + shape_.zones.zone_count + (shape_.last_zone == 0 ? 0 : 1);
  }
  // Returns what kernels do that know blocks larger than a page.
  uint32_t memory_alignment() const { return shape_.logical_block > 4096 ? 512 : shape_.logical_block; }
  uint64_t CapacityOf(uint32_t zone) const {
    const auto found = shape_.capacities.find(zone);
    return found == shape_.capacities.end() ? shape_.zones.zone_capacity : found->second;
  }
  // Returns the emulated zone at a position of the disk, if a sequential zone of full length is there.
  std::optional<ZoneId> ZoneAt(uint64_t position) const {
    const uint64_t zone = position / shape_.zones.zone_size;
    if (zone < shape_.conventional || zone >= shape_.conventional + shape_.zones.zone_count) return std::nullopt;
    return ZoneId(static_cast<uint32_t>(zone - shape_.conventional));
  }
  DeviceOffset OffsetAt(uint64_t position) const {
    return DeviceOffset(position - shape_.conventional * shape_.zones.zone_size);
  }

  static int ErrorOf(DeviceStatus status) {
    switch (status) {
      case DeviceStatus::kSuccess:
        return 0;
      case DeviceStatus::kTooManyActiveZones:
        return EOVERFLOW;
      case DeviceStatus::kTooManyOpenZones:
        return ETOOMANYREFS;
      case DeviceStatus::kUnrecoveredReadError:
      case DeviceStatus::kWriteFault:
        return ENODATA;
      default:
        return EIO;
    }
  }

  void Start(KernelTransfer& transfer) {
    {
      const MutexLock lock(mu_);
      Count(transfer, 1);
      if (holding_) {
        const bool blocks = transfer.may_block;  // it may be done, and gone, before this thread wakes
        held_.push_back(&transfer);
        while (blocks && holding_) released_.Wait(mu_);
        return;
      }
    }
    Enqueue(transfer);
  }

  void Enqueue(KernelTransfer& transfer) {
    threads_.Add([this, &transfer] {
      transfer.result = Run(transfer);
      {
        const MutexLock lock(mu_);
        Count(transfer, -1);
      }
      transfer.done(transfer);
    });
  }

  // Counts a transfer that starts (1) or ends (-1).
  void Count(const KernelTransfer& transfer, int64_t change) ISOZONE_REQUIRES(mu_) {
    const bool starts = change > 0;
    asked_.resent += starts && transfer.resent ? 1 : 0;
    switch (transfer.kind) {
      case KernelTransfer::Kind::kRead:
        asked_.reads += starts ? 1 : 0;
        break;
      case KernelTransfer::Kind::kFlush:
        asked_.flushes += starts ? 1 : 0;
        if (!starts) asked_.volatile_bytes = 0;
        break;
      case KernelTransfer::Kind::kWrite: {
        asked_.writes += starts ? 1 : 0;
        asked_.durable_writes += starts && transfer.durable ? 1 : 0;
        asked_.blocking_writes += starts && transfer.may_block ? 1 : 0;
        uint64_t& writing = writing_[transfer.position / shape_.zones.zone_size];
        writing += static_cast<uint64_t>(change);
        asked_.most_writes_of_a_zone = std::max(asked_.most_writes_of_a_zone, writing);
        if (!starts && !transfer.durable && shape_.durable != DurableWrites::kAlways) {
          asked_.volatile_bytes += transfer.length;
        }
        break;
      }
    }
  }

  std::optional<Failure> TakeFailure(KernelTransfer::Kind kind) {
    const MutexLock lock(mu_);
    if (removed_) return Failure{kind, ENODEV, 0};
    for (auto failure = failures_.begin(); failure != failures_.end(); ++failure) {
      if (failure->kind != kind) continue;
      const Failure taken = *failure;
      failures_.erase(failure);
      return taken;
    }
    return std::nullopt;
  }

  int64_t Run(const KernelTransfer& transfer) {
    const std::optional<Failure> failure = TakeFailure(transfer.kind);
    if (transfer.kind == KernelTransfer::Kind::kFlush) return failure ? -failure->error : 0;
    if (failure) {
      if (failure->bytes > 0) (void)Move(transfer, failure->bytes);
      return -failure->error;
    }
    return Move(transfer, transfer.length);
  }

  int64_t Move(const KernelTransfer& transfer, uint64_t length) {
    const std::optional<ZoneId> zone = ZoneAt(transfer.position);
    const bool is_write = transfer.kind == KernelTransfer::Kind::kWrite;
    const uint64_t limit = shape_.zones.max_transfer;
    if (!IsAligned(reinterpret_cast<uintptr_t>(transfer.data), memory_alignment()) ||
        !IsAligned(transfer.position | length, shape_.logical_block) || (limit != 0 && length > limit)) {
      return -EINVAL;
    }
    if (!zone) return -EIO;  // a test has no business in conventional zones
    const uint64_t end = transfer.position % shape_.zones.zone_size + length;
    ZoneDescriptor before;
    EXPECT_TRUE(ssd_->ReportZones(*zone, {&before, 1}).ok());
    if (end > (is_write ? CapacityOf(zone->value()) : before.write_pointer)) return -EIO;
    DeviceRequest request;
    request.op = is_write ? DeviceOp::kWrite : DeviceOp::kRead;
    request.offset = OffsetAt(transfer.position);
    request.data = transfer.data;
    request.length = length;
    if (const int error = ErrorOf(SubmitAndWait(*ssd_, request)); error != 0) return -error;
    if (is_write && end == CapacityOf(zone->value())) (void)Command(DeviceOp::kFinish, *zone);
    return static_cast<int64_t>(length);
  }

  void RunOnce(Moment moment) const {
    std::function<void()> action;
    {
      const MutexLock lock(mu_);
      action.swap(actions_[moment]);
    }
    if (action) action();
  }

  DeviceStatus Command(DeviceOp op, ZoneId zone) {
    DeviceRequest request;
    request.op = op;
    request.offset = ssd_->geometry().ZoneStart(zone);
    return SubmitAndWait(*ssd_, request);
  }

  int Report(uint64_t position, std::span<KernelZone> out) const {
    {
      const MutexLock lock(mu_);
      if (removed_) return ENODEV;
      if (failing_reports_ > 0) {
        --failing_reports_;
        return report_error_;
      }
    }
    uint64_t index = position / shape_.zones.zone_size;
    for (KernelZone& zone : out) {
      if (index >= zone_count()) return ENODEV;
      zone = {};
      zone.start = index * shape_.zones.zone_size;
      zone.length = zone.capacity = shape_.zones.zone_size;
      if (const std::optional<ZoneId> id = ZoneAt(zone.start)) {
        ZoneDescriptor descriptor;
        EXPECT_TRUE(ssd_->ReportZones(*id, {&descriptor, 1}).ok());
        zone.capacity = CapacityOf(id->value());
        zone.write_pointer = descriptor.state == ZoneState::kReadOnly ? ~uint64_t{0} : descriptor.write_pointer;
        zone.type = BLK_ZONE_TYPE_SEQWRITE_REQ;
        zone.condition = static_cast<blk_zone_cond>(descriptor.state);
      } else if (index >= shape_.conventional) {
        zone.length = zone.capacity = shape_.last_zone;
        zone.type = BLK_ZONE_TYPE_SEQWRITE_REQ;
        zone.condition = BLK_ZONE_COND_EMPTY;
      }
      ++index;
    }
    RunOnce(Moment::kReport);
    return 0;
  }

  int Manage(ZoneCommand command, uint64_t position, uint64_t length) {
    {
      const MutexLock lock(mu_);
      ++asked_.zone_commands;
      if (removed_) return ENODEV;
      if (command_error_ != 0) return std::exchange(command_error_, 0);
    }
    for (uint64_t at = position; at < position + length; at += shape_.zones.zone_size) {
      const std::optional<ZoneId> zone = ZoneAt(at);
      if (!zone) return EIO;
      const DeviceOp op = command == ZoneCommand::kReset    ? DeviceOp::kReset
                          : command == ZoneCommand::kFinish ? DeviceOp::kFinish
                          : command == ZoneCommand::kOpen   ? DeviceOp::kOpen
                                                            : DeviceOp::kClose;
      const DeviceStatus status = Command(op, *zone);
      const bool lenient =
          (op == DeviceOp::kOpen || op == DeviceOp::kClose) && status == DeviceStatus::kInvalidZoneStateTransition;
      if (status != DeviceStatus::kSuccess && !lenient) return ErrorOf(status);
    }
    RunOnce(Moment::kCommand);
    return 0;
  }

  const FakeDiskShape shape_;
  MemoryImage image_;
  std::unique_ptr<EmulatedDevice> ssd_;

  mutable Mutex mu_;
  CondVar released_;  // signalled when holding_ turns false
  bool holding_ ISOZONE_GUARDED_BY(mu_) = false;
  bool removed_ ISOZONE_GUARDED_BY(mu_) = false;
  int command_error_ ISOZONE_GUARDED_BY(mu_) = 0;
  int report_error_ ISOZONE_GUARDED_BY(mu_) = 0;
  mutable uint64_t failing_reports_ ISOZONE_GUARDED_BY(mu_) = 0;
  mutable std::map<Moment, std::function<void()>> actions_ ISOZONE_GUARDED_BY(mu_);  // that a test wants to run
  std::vector<KernelTransfer*> held_ ISOZONE_GUARDED_BY(mu_);
  std::vector<Failure> failures_ ISOZONE_GUARDED_BY(mu_);
  std::map<uint64_t, uint64_t> writing_ ISOZONE_GUARDED_BY(mu_);  // writes in flight, by zone of the disk
  Asked asked_ ISOZONE_GUARDED_BY(mu_);
  TaskThreads threads_{"fake-disk", 4};  // last: it ends before what its tasks use
};

}  // namespace isozone
