#include "device/zonefs/zonefs_kernel.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "device/zoned_device.h"

namespace isozone {
namespace {

constexpr uint32_t kNoPermission = 0777;
constexpr uint32_t kMayWrite = 0222;
// The kernel closes a file shortly after the last use of it has ended.
constexpr int kOpenAttempts = 20;
constexpr std::chrono::milliseconds kOpenPause(1);

std::vector<uint64_t> CapacitiesOf(const ZoneFiles& files) {
  std::vector<uint64_t> capacities(files.count());
  for (uint32_t zone = 0; zone < capacities.size(); ++zone) {
    ZoneFileStatus status;
    if (files.Look(zone, status) == 0) capacities[zone] = status.capacity;
  }
  return capacities;
}

bool IsOfOpenZones(int error) { return error == EBUSY || error == ETOOMANYREFS; }
bool IsOfOpenFiles(int error) { return error == EMFILE || error == ENFILE; }

}  // namespace

ZonefsKernel::ZonefsKernel(std::unique_ptr<ZoneFiles> files, std::unique_ptr<Transfers> transfers, const Limits& limits)
    : limits_(limits),
      files_(std::move(files)),
      transfers_(std::move(transfers)),
      capacities_(CapacitiesOf(*files_)),
      readers_(limits.max_files),
      writers_(limits.max_open_zones == 0 ? limits.max_files : limits.max_open_zones) {}

std::string ZonefsKernel::transfer_path() const { return fmt::format("{} and {}", transfers_->name(), files_->Text()); }

void ZonefsKernel::Complete(KernelTransfer& asked, int64_t result) {
  asked.result = result;
  asked.done(asked);
}

void ZonefsKernel::Start(KernelTransfer& transfer) {
  if (transfer.kind == KernelTransfer::Kind::kFlush) return StartFlush(transfer, 0);
  const uint32_t zone = ZoneAt(transfer.position);
  if (transfer.kind == KernelTransfer::Kind::kRead) {
    return OpenAndSend(transfer, zone,
                       [this](uint32_t& of, OpenFiles::File& file) { return OpenZone(of, /*writes=*/false, file); });
  }
  if (OpenFiles::File file = writers_.Find(zone); file != nullptr) return Send(transfer, zone, std::move(file));
  tasks_.Add([this, &transfer, zone] {
    WaitAndSend(transfer, zone, [this](uint32_t& of, OpenFiles::File& file) { return OpenForWrite(of, file); });
  });
}

void ZonefsKernel::StartFlush(KernelTransfer& asked, uint32_t zone) {
  OpenAndSend(asked, zone, [this](uint32_t& of, OpenFiles::File& file) { return OpenForFlush(of, file); });
}

void ZonefsKernel::OpenAndSend(KernelTransfer& asked, uint32_t zone, const Open& open) {
  OpenFiles::File file;
  uint32_t opened = zone;
  const int error = open(opened, file);
  if (error == 0) return Send(asked, opened, std::move(file));
  if (!IsOfOpenFiles(error)) return Complete(asked, -error);
  tasks_.Add([this, &asked, zone, open] { WaitAndSend(asked, zone, open); });
}

void ZonefsKernel::WaitAndSend(KernelTransfer& asked, uint32_t zone, const Open& open) {
  for (uint32_t waits = 0;; ++waits) {
    OpenFiles::File file;
    uint32_t opened = zone;
    int error = open(opened, file);
    if (error == 0) return Send(asked, opened, std::move(file));
    if (!IsOfOpenFiles(error) || waits == limits_.max_waits) {
      if (error == EROFS) NoticeReadOnly();
      if (IsOfOpenFiles(error) && asked.kind == KernelTransfer::Kind::kWrite) error = ETOOMANYREFS;
      return Complete(asked, -error);
    }
    std::this_thread::sleep_for(kOpenPause);
  }
}

int ZonefsKernel::OpenForWrite(uint32_t zone, OpenFiles::File& file) {
  uint32_t flushed_by = 0;
  OpenFiles::File flushed;
  if (const int error = OpenForFlush(flushed_by, flushed); error != 0) return error;
  return OpenZone(zone, /*writes=*/true, file);
}

int ZonefsKernel::OpenForFlush(uint32_t& zone, OpenFiles::File& file) {
  int error = EIO;
  for (; zone < capacities_.size(); ++zone) {
    error = OpenZone(zone, /*writes=*/false, file);
    if (error == 0) readers_.Keep(zone);
    if (error == 0 || IsOfOpenFiles(error)) return error;
  }
  return error;
}

int ZonefsKernel::OpenZone(uint32_t zone, bool writes, OpenFiles::File& file) {
  OpenFiles& files = writes ? writers_ : readers_;
  for (int attempt = 1;; ++attempt) {
    file = files.Find(zone);
    if (file != nullptr) return 0;
    if (!files.Reserve()) return writes && limits_.max_open_zones != 0 ? ETOOMANYREFS : EMFILE;
    FileDescriptor opened;
    const int error = files_->Open(zone, writes, opened);
    if (error == 0) {
      file = files.Add(zone, std::make_shared<const FileDescriptor>(std::move(opened)));
      return 0;
    }
    files.Unreserve();
    if (IsOfOpenFiles(error)) {
      if (readers_.CloseIdle() || writers_.CloseIdle()) continue;
      NoticeNoFiles(error);
      return error;
    }
    if (!writes || !IsOfOpenZones(error)) return error;
    if (attempt >= kOpenAttempts) return ETOOMANYREFS;
    if (!files.CloseIdle()) std::this_thread::sleep_for(kOpenPause);
  }
}

void ZonefsKernel::Send(KernelTransfer& asked, uint32_t zone, OpenFiles::File file) {
  auto* const job =
      new Job{this, &asked, zone, std::move(file), asked};  // owned by the transfer until it has completed
  KernelTransfer& transfer = job->transfer;
  // A write or flush is not always sent by the thread that asked for it. (And see MakeTransfers for writes that block.)
  transfer.may_block = asked.may_block && asked.kind == KernelTransfer::Kind::kRead;
  transfer.position = asked.position % limits_.zone_size;
  transfer.file = job->file->get();
  transfer.context = job;
  transfer.done = [](KernelTransfer& done) {
    std::unique_ptr<Job> owned(static_cast<Job*>(done.context));
    ZonefsKernel& kernel = *owned->kernel;
    kernel.OnTransferred(std::move(owned));
  };
  transfers_->Start(transfer);
}

void ZonefsKernel::OnTransferred(std::unique_ptr<Job> job) {
  KernelTransfer& asked = *job->asked;
  const int64_t result = job->transfer.result;
  if (asked.kind == KernelTransfer::Kind::kWrite) EndWrite(*job);
  // The zone has died.
  if (asked.kind == KernelTransfer::Kind::kFlush && result == -EPERM) return StartFlush(asked, job->zone + 1);
  if (result == -EROFS) NoticeReadOnly();
  job.reset();
  Complete(asked, result);
}

void ZonefsKernel::EndWrite(Job& job) {
  const KernelTransfer& transfer = job.transfer;
  const bool failed = transfer.result != static_cast<int64_t>(transfer.length);
  const bool fills = transfer.position + transfer.length >= capacities_[job.zone];
  OpenFiles::File last = failed || fills ? writers_.Take(job.zone) : nullptr;
  if (last == nullptr && job.file.use_count() > 1) return;
  tasks_.Add([file = std::exchange(job.file, nullptr), last = std::move(last)] {});
}

void ZonefsKernel::NoticeReadOnly() {
  if (said_read_only_.exchange(true)) return;
  Log().error(
      "{} is mounted read-only now, as it is after an error unless it is mounted with errors=repair: remount it so, "
      "then "
      "open the device again",
      files_->Text());
}

void ZonefsKernel::NoticeNoFiles(int error) {
  if (said_no_files_.exchange(true)) return;
  Log().warn("{}: requests wait, because no file can be opened: {}; raise the limit of open files ({})", files_->Text(),
             std::strerror(error), error == EMFILE ? "ulimit -n" : "fs.file-max");
}

int ZonefsKernel::ReportZones(uint64_t position, std::span<KernelZone> out) const {
  if (files_->IsGone()) return ENODEV;
  uint32_t zone = ZoneAt(position);
  for (KernelZone& reported : out) {
    if (zone >= capacities_.size()) return ENODEV;
    ZoneFileStatus status;
    if (const int error = files_->Look(zone, status); error != 0) return error;
    reported = Describe(zone, status);
    ++zone;
  }
  return 0;
}

KernelZone ZonefsKernel::Describe(uint32_t zone, const ZoneFileStatus& status) const {
  const OpenFiles::Use use = writers_.UseOf(zone);
  KernelZone described{zone * limits_.zone_size,   limits_.zone_size,   status.capacity, status.size,
                       BLK_ZONE_TYPE_SEQWRITE_REQ, BLK_ZONE_COND_CLOSED};
  if (status.size == 0 && (status.mode & kNoPermission) == 0) {
    described.condition = BLK_ZONE_COND_OFFLINE;
  } else if ((status.mode & kMayWrite) == 0) {
    described.condition = BLK_ZONE_COND_READONLY;
  } else if (status.size >= status.capacity) {
    described.condition = BLK_ZONE_COND_FULL;
  } else if (use == OpenFiles::Use::kKept) {
    described.condition = BLK_ZONE_COND_EXP_OPEN;
  } else if (status.size == 0) {
    described.condition = BLK_ZONE_COND_EMPTY;
  } else if (use == OpenFiles::Use::kOpen) {
    described.condition = BLK_ZONE_COND_IMP_OPEN;
  }
  return described;
}

int ZonefsKernel::Manage(ZoneCommand command, uint64_t position, uint64_t length) {
  for (uint64_t at = position; at < position + length; at += limits_.zone_size) {
    if (ZoneAt(at) >= capacities_.size()) return ENODEV;
    if (const int error = Manage(command, ZoneAt(at)); error != 0) return error;
  }
  return 0;
}

int ZonefsKernel::Manage(ZoneCommand command, uint32_t zone) {
  if (command == ZoneCommand::kOpen) return KeepOpen(zone);
  writers_.Take(zone);  // and closes it, so that the zone holds nothing when it is empty or full
  if (command == ZoneCommand::kClose) return 0;
  return files_->Truncate(zone, command == ZoneCommand::kReset ? 0 : capacities_[zone]);
}

int ZonefsKernel::KeepOpen(uint32_t zone) {
  if (limits_.max_active_zones != 0) {
    std::vector<KernelZone> zones(capacities_.size());
    if (const int error = ReportZones(0, zones); error != 0) return error;
    const auto is_active = [](const KernelZone& each) { return IsActive(static_cast<ZoneState>(each.condition)); };
    const auto active = std::count_if(zones.begin(), zones.end(), is_active);
    if (!is_active(zones[zone]) && active >= limits_.max_active_zones) return EOVERFLOW;
  }
  OpenFiles::File file;
  if (const int error = OpenZone(zone, /*writes=*/true, file); error != 0) return error;
  writers_.Keep(zone);
  return 0;
}

}  // namespace isozone
