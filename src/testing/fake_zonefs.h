// FakeZonefs: a mounted zonefs, for tests of ZonefsKernel on machines without one. Its zones are the files of a folder;
// what zonefs adds to those, this checks:
//
//   * a write that does not begin at the end of its file, or is not whole blocks, is EINVAL; beyond the zone, EFBIG;
//   * a file is truncated to 0 or to its capacity, or else it is EPERM;
//   * a zone that is not written yet can be written only if the device may have another active zone (EOVERFLOW);
//   * with explicit-open, a file is opened for writing only if the device may have another open zone (EBUSY), and the
//     zone is active from then on;
//   * a zone that died is immutable: every write, truncation and fsync is EPERM, of an offline one also every read;
//   * after an error, a mount with errors=remount-ro is read-only (EROFS).
//
// Transfers complete on threads. A test can hold them back and fail them.
//
// Thread safety: any thread may call any method.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "device/linux/queue_facts.h"
#include "device/linux/task_threads.h"
#include "device/zoned_device.h"
#include "device/zonefs/zonefs_kernel.h"

namespace isozone {

struct FakeZonefsShape {
  DeviceGeometry zones;
  bool explicit_open = false;
  bool remount_read_only = false;  // errors=remount-ro; otherwise errors=repair
  DurableWrites durable = DurableWrites::kForced;
};

class FakeZonefs {
 public:
  explicit FakeZonefs(const FakeZonefsShape& shape)
      : shape_(shape), folder_(NewFolder()), zones_(shape.zones.zone_count) {
    for (uint32_t zone = 0; zone < zones_.size(); ++zone) {
      const FileDescriptor file(::open(PathOf(zone).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
      struct stat status {};
      EXPECT_EQ(::fstat(file.get(), &status), 0);
      zone_of_[status.st_ino] = zone;
      device_ = status.st_dev;
    }
  }
  ~FakeZonefs() { std::filesystem::remove_all(folder_); }
  FakeZonefs(const FakeZonefs&) = delete;
  FakeZonefs& operator=(const FakeZonefs&) = delete;

  // Returns what sysfs would say of the device below.
  QueueFacts facts() const {
    QueueFacts facts;
    facts.model = "host-managed";
    facts.scheduler = "none";
    facts.zone_size = shape_.zones.zone_size;
    facts.size = shape_.zones.zone_count * facts.zone_size;
    facts.logical_block = 512;
    facts.write_granularity = shape_.zones.block_size;
    facts.max_transfer = shape_.zones.max_transfer;
    facts.max_open_zones = shape_.zones.max_open_zones;
    facts.max_active_zones = shape_.zones.max_active_zones;
    facts.durable = shape_.durable;
    return facts;
  }

  // Returns the kernel, as a program that opens the mount sees it. ZonefsKernel::Limits says what `max_files` (open for
  // reading at a time) and `max_waits` are.
  std::unique_ptr<ZonefsKernel> Open(size_t max_files = 64, uint32_t max_waits = 5000) {
    const ZonefsKernel::Limits limits{shape_.zones.zone_size, shape_.zones.max_open_zones,
                                      shape_.zones.max_active_zones, max_files, max_waits};
    return std::make_unique<ZonefsKernel>(std::make_unique<Files>(*this), std::make_unique<Threads>(*this), limits);
  }

  // Makes a zone read-only or offline on the device. zonefs notices it when a request to the zone fails.
  void Die(uint32_t zone, bool offline) {
    const MutexLock lock(mu_);
    zones_[zone].dying = offline ? 0 : kReadable;
  }
  // Makes a zone read-only or offline, and zonefs notice it at once.
  void ShowDeath(uint32_t zone, bool offline) {
    Die(zone, offline);
    const MutexLock lock(mu_);
    NoticeDeath(zone);
  }
  // Makes the next transfer of this kind end with `error`; of a write, the first `bytes` are stored.
  void FailNext(KernelTransfer::Kind kind, int error, uint64_t bytes = 0) {
    const MutexLock lock(mu_);
    failure_ = Failure{kind, error, bytes};
  }
  // Refuses the next file that is to be opened.
  void FailNextOpen(int error) {
    const MutexLock lock(mu_);
    open_error_ = error;
  }
  // Refuses every file that is to be opened from now on; with error 0, none.
  void FailOpens(int error) {
    const MutexLock lock(mu_);
    opens_error_ = error;
    refused_opens_ = 0;
  }
  // Waits until FailOpens has refused `count` files.
  void AwaitRefusedOpens(uint64_t count) {
    const MutexLock lock(mu_);
    while (refused_opens_ < count) changed_.Wait(mu_);
  }
  void Remove() {
    const MutexLock lock(mu_);
    removed_ = true;
  }
  // Waits until `count` transfers are held.
  void AwaitHeld(size_t count) {
    const MutexLock lock(mu_);
    while (held_.size() < count) changed_.Wait(mu_);
  }
  // Makes transfers wait until Release.
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
    }
    for (KernelTransfer* transfer : held) Enqueue(*transfer);
  }

  // Returns how many files are open now with this access, O_RDONLY or O_WRONLY.
  size_t OpenFor(int access) const {
    size_t count = 0;
    for (const auto& [zone, flags] : OpenNow()) count += (flags & O_ACCMODE) == access ? 1 : 0;
    return count;
  }

  struct Asked {
    uint64_t writer_opens = 0;
    uint64_t durable_writes = 0;
    uint64_t flushes = 0;
  };
  Asked asked() const {
    const MutexLock lock(mu_);
    return asked_;
  }

 private:
  static constexpr uint32_t kReadable = 0444;

  struct Zone {
    uint32_t mode = 0600;
    std::optional<uint32_t> dying;  // the mode that it will have
    bool is_immutable = false;
  };
  struct Failure {
    KernelTransfer::Kind kind;
    int error;
    uint64_t bytes;
  };

  class Files final : public ZoneFiles {
   public:
    explicit Files(FakeZonefs& fake) : fake_(fake) {}
    uint32_t count() const override { return fake_.shape_.zones.zone_count; }
    int Look(uint32_t file, ZoneFileStatus& status) const override { return fake_.Look(file, status); }
    int Open(uint32_t file, bool writes, FileDescriptor& opened) override {
      return fake_.OpenFile(file, writes, opened);
    }
    int Truncate(uint32_t file, uint64_t size) override { return fake_.Truncate(file, size); }
    bool IsGone() const override {
      const MutexLock lock(fake_.mu_);
      return fake_.removed_;
    }
    std::string Text() const override { return "a fake"; }

   private:
    FakeZonefs& fake_;
  };

  class Threads final : public Transfers {
   public:
    explicit Threads(FakeZonefs& fake) : fake_(fake) {}
    void Start(KernelTransfer& transfer) override { fake_.Start(transfer); }
    std::string name() const override { return "threads"; }
    bool asynchronous() const override { return false; }

   private:
    FakeZonefs& fake_;
  };

  static std::string NewFolder() {
    std::string name = testing::TempDir() + "zonefs-XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    return name;
  }
  std::string PathOf(uint32_t zone) const { return folder_ + "/" + std::to_string(zone); }
  uint64_t SizeOf(uint32_t zone) const { return std::filesystem::file_size(PathOf(zone)); }

  // Returns how many zones hold an active resource: those that are written in part, or open.
  uint64_t Active() const ISOZONE_REQUIRES(mu_) {
    uint64_t active = 0;
    for (uint32_t zone = 0; zone < zones_.size(); ++zone) active += IsActive(zone) ? 1 : 0;
    return active;
  }
  bool IsActive(uint32_t zone) const ISOZONE_REQUIRES(mu_) {
    if (zones_[zone].is_immutable || SizeOf(zone) == shape_.zones.zone_capacity) return false;
    return SizeOf(zone) > 0 || (shape_.explicit_open && IsOpenForWriting(zone));
  }
  bool MayActivate(uint32_t zone) const ISOZONE_REQUIRES(mu_) {
    const uint32_t most = shape_.zones.max_active_zones;
    return most == 0 || IsActive(zone) || Active() < most;
  }
  bool IsOpenForWriting(uint32_t zone) const {
    for (const auto& [open, flags] : OpenNow()) {
      if (open == zone && (flags & O_ACCMODE) == O_WRONLY) return true;
    }
    return false;
  }
  // Returns the zones whose files this process has open, and how, as /proc/self/fd has them.
  std::vector<std::pair<uint32_t, int>> OpenNow() const {
    std::vector<std::pair<uint32_t, int>> open;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      const int fd = static_cast<int>(std::strtol(entry.path().filename().c_str(), nullptr, 10));
      struct stat status {};
      if (::fstat(fd, &status) != 0 || status.st_dev != device_) continue;
      const auto found = zone_of_.find(status.st_ino);
      if (found != zone_of_.end()) open.emplace_back(found->second, ::fcntl(fd, F_GETFL));
    }
    return open;
  }

  void NoticeDeath(uint32_t zone) ISOZONE_REQUIRES(mu_) {
    if (!zones_[zone].dying) return;
    zones_[zone].mode = *std::exchange(zones_[zone].dying, std::nullopt);
    zones_[zone].is_immutable = true;
    if (zones_[zone].mode != 0) return;
    EXPECT_EQ(::truncate(PathOf(zone).c_str(), 0), 0);
  }

  int Look(uint32_t zone, ZoneFileStatus& status) const {
    const MutexLock lock(mu_);
    status = {SizeOf(zone), shape_.zones.zone_capacity, zones_[zone].mode};
    return 0;
  }

  int OpenFile(uint32_t zone, bool writes, FileDescriptor& opened) {
    const MutexLock lock(mu_);
    if (open_error_ != 0) return std::exchange(open_error_, 0);
    if (opens_error_ != 0) {
      ++refused_opens_;
      changed_.SignalAll();
      return opens_error_;
    }
    if (writes && zones_[zone].is_immutable) return EPERM;
    if (zones_[zone].mode == 0) return EACCES;
    if (writes && read_only_) return EROFS;
    if (writes && shape_.explicit_open && !IsOpenForWriting(zone)) {
      if (shape_.zones.max_open_zones != 0 && OpenFor(O_WRONLY) >= shape_.zones.max_open_zones) return EBUSY;
      if (!MayActivate(zone)) return EOVERFLOW;
    }
    asked_.writer_opens += writes ? 1 : 0;
    opened = FileDescriptor(::open(PathOf(zone).c_str(), (writes ? O_WRONLY : O_RDONLY) | O_CLOEXEC));
    return opened.get() < 0 ? errno : 0;
  }

  int Truncate(uint32_t zone, uint64_t size) {
    const MutexLock lock(mu_);
    if (removed_) return EIO;
    if (zones_[zone].is_immutable) return EPERM;
    if (size != 0 && size != shape_.zones.zone_capacity) return EPERM;
    if (size == SizeOf(zone)) return 0;
    if (zones_[zone].dying) {
      NoticeDeath(zone);
      return EIO;
    }
    return ::truncate(PathOf(zone).c_str(), static_cast<off_t>(size)) == 0 ? 0 : errno;
  }

  void Start(KernelTransfer& transfer) {
    {
      const MutexLock lock(mu_);
      if (holding_) {
        held_.push_back(&transfer);
        changed_.SignalAll();
        return;
      }
    }
    Enqueue(transfer);
  }
  void Enqueue(KernelTransfer& transfer) {
    threads_.Add([this, &transfer] {
      transfer.result = Run(transfer);
      transfer.done(transfer);
    });
  }

  int64_t Run(const KernelTransfer& transfer) {
    struct stat status {};
    EXPECT_EQ(::fstat(transfer.file, &status), 0);
    const uint32_t zone = zone_of_.at(status.st_ino);
    const MutexLock lock(mu_);
    if (removed_) return -EIO;
    uint64_t length = transfer.length;
    std::optional<Failure> failure;
    if (failure_ && failure_->kind == transfer.kind) failure = std::exchange(failure_, std::nullopt);
    if (failure) length = failure->bytes;
    const int64_t result = Move(transfer, zone, length);
    if (result == -EIO || failure) {
      NoticeDeath(zone);
      read_only_ = read_only_ || (shape_.remount_read_only && transfer.kind == KernelTransfer::Kind::kWrite);
    }
    return failure ? -failure->error : result;
  }

  int64_t Move(const KernelTransfer& transfer, uint32_t zone, uint64_t length) ISOZONE_REQUIRES(mu_) {
    const Zone& state = zones_[zone];
    if (transfer.kind == KernelTransfer::Kind::kFlush) {
      if (state.is_immutable) return -EPERM;
      ++asked_.flushes;
      return ::fsync(transfer.file) == 0 ? 0 : -errno;
    }
    if (transfer.kind == KernelTransfer::Kind::kRead) {
      if (state.is_immutable && state.mode == 0) return -EPERM;
      if (state.dying && *state.dying == 0) return -EIO;
      return ::pread(transfer.file, transfer.data, length, static_cast<off_t>(transfer.position));
    }
    if (state.is_immutable) return -EPERM;
    if (read_only_) return -EROFS;
    if (transfer.position >= shape_.zones.zone_capacity) return -EFBIG;
    length = std::min(length, shape_.zones.zone_capacity - transfer.position);
    if (transfer.position != SizeOf(zone) || length % shape_.zones.block_size != 0) return -EINVAL;
    if (state.dying) return -EIO;
    if (!MayActivate(zone)) return -EOVERFLOW;
    asked_.durable_writes += transfer.durable ? 1 : 0;
    return ::pwrite(transfer.file, transfer.data, length, static_cast<off_t>(transfer.position));
  }

  const FakeZonefsShape shape_;
  const std::string folder_;
  dev_t device_ = 0;
  std::map<ino_t, uint32_t> zone_of_;

  mutable Mutex mu_;
  CondVar changed_;  // signalled when a transfer is held, or an open refused
  std::vector<Zone> zones_ ISOZONE_GUARDED_BY(mu_);
  bool holding_ ISOZONE_GUARDED_BY(mu_) = false;
  bool removed_ ISOZONE_GUARDED_BY(mu_) = false;
  bool read_only_ ISOZONE_GUARDED_BY(mu_) = false;
  int open_error_ ISOZONE_GUARDED_BY(mu_) = 0;
  int opens_error_ ISOZONE_GUARDED_BY(mu_) = 0;
  uint64_t refused_opens_ ISOZONE_GUARDED_BY(mu_) = 0;
  std::optional<Failure> failure_ ISOZONE_GUARDED_BY(mu_);
  std::vector<KernelTransfer*> held_ ISOZONE_GUARDED_BY(mu_);
  Asked asked_ ISOZONE_GUARDED_BY(mu_);
  TaskThreads threads_{"fake-zonefs", 4};  // last: it ends before what its tasks use
};

}  // namespace isozone
