#include "device/emulated/emulated_device.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "device/request_check.h"

namespace isozone {
namespace {

// Bytes that are given back in one step, so that a writer of the zone waits for one step at most.
constexpr uint64_t kReclaimStep = 4 * kMiB;

size_t ThreadIndex() {
  static std::atomic<size_t> next{0};
  thread_local const size_t index = next.fetch_add(1, std::memory_order_relaxed);
  return index;
}

bool IsZoneCommand(DeviceOp op) { return !IsTransfer(op) && op != DeviceOp::kFlush; }

TimingOpKind TimingKind(DeviceOp op) {
  switch (op) {
    case DeviceOp::kRead:
      return TimingOpKind::kRead;
    case DeviceOp::kWrite:
      return TimingOpKind::kWrite;
    case DeviceOp::kAppend:
      return TimingOpKind::kAppend;
    case DeviceOp::kReset:
      return TimingOpKind::kReset;
    case DeviceOp::kFinish:
      return TimingOpKind::kFinish;
    case DeviceOp::kOpen:
      return TimingOpKind::kOpen;
    case DeviceOp::kClose:
      return TimingOpKind::kClose;
    case DeviceOp::kFlush:
      break;
  }
  return TimingOpKind::kFlush;
}

ImageInfo NewImage(const DeviceGeometry& geometry, std::string profile_text) {
  ImageInfo info;
  std::random_device random;
  for (uint8_t& byte : info.uuid) byte = static_cast<uint8_t>(random());
  info.created_s = WallSeconds();
  info.geometry = geometry;
  info.profile_text = std::move(profile_text);
  return info;
}

Result<std::optional<Profile>> ProfileOf(const ImageInfo& image) {
  if (image.profile_text.empty()) return std::optional<Profile>();
  ISOZONE_ASSIGN_OR_RETURN(Profile profile, ParseProfile(image.profile_text, "the image's profile"));
  return std::optional<Profile>(std::move(profile));
}

// The options with what the image remembers in the place of what they leave out.
EmulatedOptions AsMade(EmulatedOptions options, const ImageInfo& image) {
  if (!options.timing && image.timing_off) options.timing = false;
  if (!options.sync && image.sync_disk) options.sync = ImageSync::kDisk;
  return options;
}

// The timing model of the device; null for a device without timing.
Result<std::unique_ptr<TimingModel>> ModelFor(const std::optional<Profile>& profile, const EmulatedOptions& options) {
  std::unique_ptr<TimingModel> none;
  if (!options.timing.value_or(profile.has_value())) return none;
  if (!profile) {
    return Status::InvalidArgument("the image has no timing; open it with timing=off, or create one with a profile");
  }
  if (!profile->timing) {
    if (!options.timing) return none;
    return Status::InvalidArgument(
        fmt::format("profile {} has no timing; open the image with timing=off", profile->name));
  }
  if (options.sync == ImageSync::kDisk) {
    return Status::InvalidArgument("sync=disk would spoil emulated timing; add timing=off");
  }
  return std::make_unique<TimingModel>(*profile);
}

}  // namespace

Status EmulatedDevice::CreateImage(const std::string& path, const Profile& profile, const EmulatedOptions& remembered) {
  ImageInfo info = NewImage(GeometryOf(profile), FormatProfile(profile));
  info.timing_off = !remembered.timing.value_or(true);
  info.sync_disk = remembered.sync == ImageSync::kDisk;
  return ImageFile::Create(path, info);
}

Result<MemoryImage> EmulatedDevice::CreateInMemory(const Profile& profile) {
  return MemoryImage::Create(NewImage(GeometryOf(profile), FormatProfile(profile)));
}

Result<MemoryImage> EmulatedDevice::CreateInMemory(const DeviceGeometry& geometry) {
  return MemoryImage::Create(NewImage(geometry, ""));
}

Result<std::unique_ptr<EmulatedDevice>> EmulatedDevice::Open(const std::string& path, OpenMode mode,
                                                             const EmulatedOptions& options) {
  ISOZONE_ASSIGN_OR_RETURN(std::unique_ptr<ImageFile> image, ImageFile::Open(path, mode));
  const EmulatedOptions as_made = AsMade(options, image->info());
  auto profile = ProfileOf(image->info());
  // Without timing a profile tells only what finishes pad.
  if (!profile.ok() && !as_made.timing.value_or(true)) profile = std::optional<Profile>();
  if (!profile.ok()) return profile.status().WithContext(path);
  auto model = ModelFor(*profile, as_made);
  if (!model.ok()) return model.status().WithContext(path);
  std::unique_ptr<EmulatedDevice> device(
      new EmulatedDevice(path, mode, std::move(image), std::move(*profile), as_made));
  device->SetForeignActive(as_made.foreign_active);
  if (mode == OpenMode::kReadWrite) device->Recover();
  ISOZONE_RETURN_IF_ERROR(device->StartTimer(std::move(*model), as_made.speed, as_made.faults.latency_spike > 0));
  if (as_made.faults.any()) {
    fmt::print(stderr, "isozone: {} has faults injected, replay them with fault_seed={}\n", device->name(),
               device->fault_seed());
  }
  return device;
}

EmulatedDevice::EmulatedDevice(std::string path, OpenMode mode, std::unique_ptr<ImageFile> image,
                               std::optional<Profile> profile, const EmulatedOptions& options)
    : path_(std::move(path)),
      mode_(mode),
      image_(std::move(image)),
      profile_(std::move(profile)),
      sync_(options.sync.value_or(ImageSync::kProcess)),
      faults_(options.faults),
      zones_(new Zone[geometry().zone_count]),
      media_before_{image_->live().media_bytes_written.load(std::memory_order_relaxed),
                    image_->live().dummy_bytes_written.load(std::memory_order_relaxed)},
      machine_(geometry(), image_->table()),
      progress_(geometry().zone_count) {}

EmulatedDevice::~EmulatedDevice() {
  if (timer_) CountMedia(timer_->Stop());
  timer_.reset();
  reclaimer_.reset();
  if (sync_ == ImageSync::kDisk && mode_ == OpenMode::kReadWrite) (void)SyncImage();
}

void EmulatedDevice::Recover() {
  std::vector<std::pair<ZoneId, ZoneRange>> lost;
  for (uint32_t i = 0; i < geometry().zone_count; ++i) {
    const ZoneId zone(i);
    ZoneEntry& entry = Entry(zone);
    {
      const MutexLock lock(state_mu_);
      // A process that was killed between the two stores of a reset leaves too large a durable prefix.
      const uint64_t durable = std::min(entry.durable.load(std::memory_order_relaxed), LoadContent(entry).written);
      entry.durable.store(durable, std::memory_order_relaxed);
      if (image_->host_crashed()) {
        LoseUnflushed(zone, /*all=*/true, lost);
        // An upper bound, since the entry may not have been synced.
        entry.allocated.store(geometry().zone_capacity, std::memory_order_relaxed);
      }
      const uint64_t written = LoadContent(entry).written;
      progress_[i].completed = written;
      if (entry.durable.load(std::memory_order_relaxed) < written) {
        progress_[i].unflushed = true;
        unflushed_.push_back(zone);
      }
    }
    ReclaimBlocks(zone);
  }
  ZeroLost(lost);
}

Status EmulatedDevice::StartTimer(std::unique_ptr<TimingModel> model, double speed, bool spikes) {
  speed_ = speed;
  timing_ = model != nullptr;
  if (!timing_ && !spikes) return Status::Ok();
  reclaimer_ = std::make_unique<BlockReclaimer>([this](ZoneId zone) { ReclaimBlocks(zone); });
  timer_ = std::make_unique<CompletionTimer>(
      std::move(model), speed,
      [this](std::span<const uint64_t> tickets, const MediaCounts& media) { OnTimer(tickets, media); });
  return timer_->Start();
}

void EmulatedDevice::Submit(DeviceRequest& request) {
  const int64_t arrived_ns = timer_ ? MonotonicNs() : 0;
  Command command{.request = &request, .holds_zone = false, .end = {}, .flushed = {}};
  int64_t delay_ns = 0;
  DeviceStatus status = Start(command, delay_ns);
  if (status != DeviceStatus::kSuccess) return Complete(command, status);
  if (!timing_ && delay_ns == 0) return Complete(command, Settle(command));

  const TimingOp timing = TimingOf(request);
  const std::optional<uint64_t> ticket = PutInFlight(command);
  if (!ticket) return Complete(command, DeviceStatus::kPowerLoss);
  timer_->Submit(timing, arrived_ns, delay_ns, *ticket);
}

std::optional<uint64_t> EmulatedDevice::PutInFlight(Command& command) {
  const MutexLock lock(state_mu_);
  if (!powered_.load(std::memory_order_relaxed)) return std::nullopt;
  const uint64_t ticket = next_ticket_++;
  in_flight_.emplace(ticket, std::move(command));
  return ticket;
}

DeviceStatus EmulatedDevice::Start(Command& command, int64_t& delay_ns) {
  const DeviceRequest& request = *command.request;
  if (!powered_.load(std::memory_order_relaxed)) return DeviceStatus::kPowerLoss;
  if (HostFailed()) return DeviceStatus::kInternalError;
  if (request.op != DeviceOp::kRead && sync_failed_.load(std::memory_order_relaxed)) [[unlikely]] {
    return DeviceStatus::kInternalError;
  }
  if (const DeviceStatus status = CheckRequest(geometry(), read_only(), request); status != DeviceStatus::kSuccess)
    return status;
  const FaultInjector::Verdict verdict = faults_.Judge(geometry(), request);
  delay_ns = verdict.delay_ns;
  if (verdict.any()) [[unlikely]] {
    return StartFaulty(command, verdict);
  }
  return StartOp(command, request.length);
}

DeviceStatus EmulatedDevice::StartFaulty(Command& command, const FaultInjector::Verdict& verdict) {
  const DeviceRequest& request = *command.request;
  if (verdict.power_fails) {
    const DeviceStatus status = StartOp(command, request.length);
    LosePower(status == DeviceStatus::kSuccess ? &command : nullptr);
    return DeviceStatus::kPowerLoss;
  }
  if (verdict.zone_turns) {
    SetZoneState(geometry().ZoneOf(request.offset), *verdict.zone_turns);
    return *verdict.zone_turns == ZoneState::kOffline ? DeviceStatus::kZoneIsOffline : DeviceStatus::kZoneIsReadOnly;
  }
  if (verdict.tears_write) {
    // All of it, where only the answer is lost.
    const uint64_t blocks = faults_.Below(request.length / geometry().block_size + 1);
    const DeviceStatus status = StartOp(command, blocks * geometry().block_size);
    return status == DeviceStatus::kSuccess ? verdict.status : status;
  }
  return verdict.status;
}

DeviceStatus EmulatedDevice::StartOp(Command& command, uint64_t length) {
  const DeviceRequest& request = *command.request;
  switch (request.op) {
    case DeviceOp::kRead:
      return Read(request);
    case DeviceOp::kWrite:
    case DeviceOp::kAppend:
      return StartWrite(command, length);
    case DeviceOp::kFlush:
      return StartFlush(command);
    default: {
      const MutexLock lock(state_mu_);
      return machine_.Check(request.op, geometry().ZoneOf(request.offset));
    }
  }
}

DeviceStatus EmulatedDevice::Read(const DeviceRequest& request) {
  const ZoneId zone = geometry().ZoneOf(request.offset);
  const uint64_t offset = geometry().OffsetInZone(request.offset);
  const ZoneContent content = LoadContent(Entry(zone));
  if (content.state == ZoneState::kOffline) return DeviceStatus::kZoneIsOffline;
  const uint64_t stored = content.written > offset ? std::min(request.length, content.written - offset) : 0;
  std::memcpy(request.data, image_->ZoneData(zone) + offset, stored);
  std::memset(request.data + stored, 0, request.length - stored);
  if (HostFailed()) return DeviceStatus::kInternalError;
  if (!read_only()) Traffic().bytes_read.fetch_add(request.length, std::memory_order_relaxed);
  return DeviceStatus::kSuccess;
}

// `length` is the length of the request, or less if a fault tears the write.
DeviceStatus EmulatedDevice::StartWrite(Command& command, uint64_t length) {
  DeviceRequest& request = *command.request;
  const ZoneId zone_id = geometry().ZoneOf(request.offset);
  Zone& zone = zones_[zone_id.value()];
  if (request.op == DeviceOp::kWrite) {
    if (zone.write_in_flight.exchange(true, std::memory_order_acquire)) return DeviceStatus::kZoneInvalidWrite;
    command.holds_zone = true;
  }
  const MutexLock content_lock(zone.content_mu);
  {
    const MutexLock lock(state_mu_);
    if (!powered_.load(std::memory_order_relaxed)) return DeviceStatus::kPowerLoss;
    if (const DeviceStatus status = BeginWrite(request); status != DeviceStatus::kSuccess) return status;
  }
  ZoneEntry& entry = Entry(zone_id);
  const uint64_t at = LoadContent(entry).written;
  if (entry.allocated.load(std::memory_order_relaxed) < at + length) {
    entry.allocated.store(at + length, std::memory_order_relaxed);
  }
  if (const Status stored = image_->WriteData(zone_id, at, {request.data, length}); !stored.ok()) {
    return AbandonWrite(zone_id, at, stored);
  }
  request.written_at = DeviceOffset(geometry().ZoneStart(zone_id).value() + at);
  const DeviceStatus status = EndWrite(command, zone_id, length);
  if (status != DeviceStatus::kSuccess) return status;
  Traffic().bytes_written.fetch_add(length, std::memory_order_relaxed);
  if (!timing_) image_->live().media_bytes_written.fetch_add(length, std::memory_order_relaxed);
  if (request.fua && !SyncImage()) return DeviceStatus::kInternalError;
  return DeviceStatus::kSuccess;
}

DeviceStatus EmulatedDevice::BeginWrite(const DeviceRequest& request) {
  const ZoneId zone = geometry().ZoneOf(request.offset);
  if (request.op == DeviceOp::kAppend) return machine_.BeginAppend(zone, request.length);
  return machine_.BeginWrite(zone, geometry().OffsetInZone(request.offset), request.length);
}

// What was stored of the write before the disk was full is given back: shorter writes, such as those of metadata, find
// room then.
DeviceStatus EmulatedDevice::AbandonWrite(ZoneId zone, uint64_t at, const Status& cause) {
  const bool full = cause.Is(StatusCode::kNoSpace);
  if (!full) LatchHostError(cause);
  ZoneEntry& entry = Entry(zone);
  if (full && image_->DropBlocks(zone, at, entry.allocated.load(std::memory_order_relaxed)).ok()) {
    entry.allocated.store(at, std::memory_order_relaxed);
  }
  const MutexLock lock(state_mu_);
  machine_.AbandonWrite(zone);
  return full ? DeviceStatus::kCapacityExceeded : DeviceStatus::kInternalError;
}

DeviceStatus EmulatedDevice::EndWrite(Command& command, ZoneId zone, uint64_t length) {
  const MutexLock lock(state_mu_);
  if (!powered_.load(std::memory_order_relaxed)) return DeviceStatus::kPowerLoss;
  machine_.EndWrite(zone, length);
  const ZoneEntry& entry = Entry(zone);
  const uint64_t written = LoadContent(entry).written;
  command.end = {zone, entry.resets.load(std::memory_order_relaxed), written};
  if (command.request->fua && !geometry().fua_covers_zone) command.end.begin = written - length;
  if (!progress_[zone.value()].unflushed) {
    progress_[zone.value()].unflushed = true;
    unflushed_.push_back(zone);
  }
  return DeviceStatus::kSuccess;
}

DeviceStatus EmulatedDevice::StartFlush(Command& command) {
  {
    const MutexLock lock(state_mu_);
    for (const ZoneId zone : unflushed_) {
      command.flushed.push_back(
          {zone, Entry(zone).resets.load(std::memory_order_relaxed), progress_[zone.value()].completed, 0});
    }
  }
  return SyncImage() ? DeviceStatus::kSuccess : DeviceStatus::kInternalError;
}

TimingOp EmulatedDevice::TimingOf(const DeviceRequest& request) const {
  TimingOp op;
  op.kind = TimingKind(request.op);
  if (request.op == DeviceOp::kFlush) return op;
  const ZoneId zone = geometry().ZoneOf(request.offset);
  op.zone = zone.value();
  const ZoneContent content = LoadContent(Entry(zone));
  op.written = content.written;
  op.full = content.state == ZoneState::kFull;
  if (!IsTransfer(request.op)) return op;
  op.offset = geometry().OffsetInZone(request.op == DeviceOp::kAppend ? request.written_at : request.offset);
  op.length = request.length;
  if (request.op == DeviceOp::kRead) {
    // What lies behind the write pointer, and behind the capacity, is not on flash.
    op.offset = std::min(op.offset, op.written);
    op.length = std::min(op.length, op.written - op.offset);
  }
  return op;
}

void EmulatedDevice::CountMedia(const MediaCounts& since_open) {
  if (!timing_ || read_only()) return;  // without timing, each command counts itself
  LiveBlock& live = image_->live();
  live.media_bytes_written.store(media_before_.written + since_open.written, std::memory_order_relaxed);
  live.dummy_bytes_written.store(media_before_.dummy + since_open.dummy, std::memory_order_relaxed);
}

void EmulatedDevice::CountPadding(uint64_t written, uint64_t end) {
  if (timing_) return;
  LiveBlock& live = image_->live();
  live.media_bytes_written.fetch_add(end - written, std::memory_order_relaxed);
  live.dummy_bytes_written.fetch_add(end - written, std::memory_order_relaxed);
}

void EmulatedDevice::OnTimer(std::span<const uint64_t> tickets, const MediaCounts& media) {
  CountMedia(media);
  for (const uint64_t ticket : tickets) {
    std::unordered_map<uint64_t, Command>::node_type command;
    {
      const MutexLock lock(state_mu_);
      command = in_flight_.extract(ticket);
    }
    if (command) Complete(command.mapped(), Settle(command.mapped()));  // otherwise a power cut has taken it
  }
}

DeviceStatus EmulatedDevice::Settle(Command& command) {
  const DeviceRequest& request = *command.request;
  switch (request.op) {
    case DeviceOp::kRead:
      return powered_.load(std::memory_order_relaxed) ? DeviceStatus::kSuccess : DeviceStatus::kPowerLoss;
    case DeviceOp::kWrite:
    case DeviceOp::kAppend: {
      {
        const MutexLock lock(state_mu_);
        if (!powered_.load(std::memory_order_relaxed)) return DeviceStatus::kPowerLoss;
        uint64_t& completed = progress_[command.end.zone.value()].completed;
        const bool reset = Entry(command.end.zone).resets.load(std::memory_order_relaxed) != command.end.resets;
        if (!reset) completed = std::max(completed, command.end.bytes);
      }
      return request.fua ? SettleDurable({&command.end, 1}) : DeviceStatus::kSuccess;
    }
    case DeviceOp::kFlush:
      return read_only() ? DeviceStatus::kSuccess : SettleDurable(command.flushed);
    default:
      return SettleZoneCommand(request.op, geometry().ZoneOf(request.offset));
  }
}

DeviceStatus EmulatedDevice::SettleDurable(std::span<const DurablePoint> points) {
  {
    const MutexLock lock(state_mu_);
    if (!powered_.load(std::memory_order_relaxed)) return DeviceStatus::kPowerLoss;
    MakeDurable(points);
  }
  return SyncImage() ? DeviceStatus::kSuccess : DeviceStatus::kInternalError;  // the table; the data was synced before
}

void EmulatedDevice::MakeDurable(std::span<const DurablePoint> points) {
  for (const DurablePoint& point : points) {
    ZoneEntry& entry = Entry(point.zone);
    if (entry.resets.load(std::memory_order_relaxed) != point.resets) continue;
    MakeRangeDurable(entry, geometry().block_size, {point.begin, point.bytes});
  }
  std::erase_if(unflushed_, [&](ZoneId zone) ISOZONE_NO_THREAD_SAFETY_ANALYSIS {
    const ZoneEntry& entry = Entry(zone);
    const bool flushed = entry.durable.load(std::memory_order_relaxed) == LoadContent(entry).written;
    if (flushed) progress_[zone.value()].unflushed = false;
    return flushed;
  });
}

DeviceStatus EmulatedDevice::SettleZoneCommand(DeviceOp op, ZoneId zone) {
  {
    const MutexLock content_lock(zones_[zone.value()].content_mu);
    const MutexLock lock(state_mu_);
    if (!powered_.load(std::memory_order_relaxed)) return DeviceStatus::kPowerLoss;
    const DeviceStatus status = ExecuteZoneCommand(op, zone);
    if (status != DeviceStatus::kSuccess) return status;
  }
  if (!SyncImage()) return DeviceStatus::kInternalError;
  if (op != DeviceOp::kReset) return DeviceStatus::kSuccess;
  faults_.ForgetBadBlocks(zone);
  if (reclaimer_) {
    reclaimer_->Add(zone);
  } else {
    ReclaimBlocks(zone);
  }
  return DeviceStatus::kSuccess;
}

DeviceStatus EmulatedDevice::ExecuteZoneCommand(DeviceOp op, ZoneId zone) {
  ZoneEntry& entry = Entry(zone);
  const ZoneContent before = LoadContent(entry);
  DeviceStatus status = DeviceStatus::kSuccess;
  switch (op) {
    case DeviceOp::kOpen:
      return machine_.Open(zone);
    case DeviceOp::kClose:
      return machine_.Close(zone);
    case DeviceOp::kFinish:
      status = machine_.Finish(zone);
      if (status != DeviceStatus::kSuccess) return status;
      ResetDurable(entry, before.written);
      if (before.state == ZoneState::kFull) return status;
      image_->live().finishes.fetch_add(1, std::memory_order_relaxed);
      if (profile_) CountPadding(before.written, PaddedByFinish(*profile_, before.written));
      return status;
    default:
      status = machine_.Reset(zone);
      if (status != DeviceStatus::kSuccess || before.state == ZoneState::kEmpty) return status;
      ResetDurable(entry, 0);
      entry.resets.fetch_add(1, std::memory_order_relaxed);
      progress_[zone.value()].completed = 0;
      image_->live().resets.fetch_add(1, std::memory_order_relaxed);
      if (profile_ && before.state != ZoneState::kFull) {
        CountPadding(before.written, PaddedByReset(*profile_, before.written));
      }
      return status;
  }
}

void EmulatedDevice::Complete(const Command& command, DeviceStatus status) {
  DeviceRequest& request = *command.request;
  if (command.holds_zone) {
    zones_[geometry().ZoneOf(request.offset).value()].write_in_flight.store(false, std::memory_order_release);
  }
  request.status = status;
  request.done(request);
}

Status EmulatedDevice::ReportZones(ZoneId first, std::span<ZoneDescriptor> out) const {
  if (first.value() > geometry().zone_count || out.size() > geometry().zone_count - first.value()) {
    return Status::InvalidArgument(fmt::format("the device has {} zones, not {} from zone {} on", geometry().zone_count,
                                               out.size(), first.value()));
  }
  ZoneId zone = first;
  for (ZoneDescriptor& descriptor : out) {
    const ZoneContent content = LoadContent(Entry(zone));
    descriptor = {zone, content.state, geometry().zone_capacity, content.written};
    if (content.state == ZoneState::kFull) descriptor.write_pointer = geometry().zone_capacity;
    if (content.state == ZoneState::kOffline) descriptor.write_pointer = 0;
    ++zone;
  }
  return Status::Ok();
}

DeviceCounters EmulatedDevice::counters() const {
  const LiveBlock& live = std::as_const(*image_).live();
  DeviceCounters counters;
  for (const LiveBlock::Traffic& traffic : live.traffic) {
    counters.host_bytes_read += traffic.bytes_read.load(std::memory_order_relaxed);
    counters.host_bytes_written += traffic.bytes_written.load(std::memory_order_relaxed);
  }
  counters.media_bytes_written = live.media_bytes_written.load(std::memory_order_relaxed);
  counters.dummy_bytes_written = live.dummy_bytes_written.load(std::memory_order_relaxed);
  counters.resets = live.resets.load(std::memory_order_relaxed);
  counters.finishes = live.finishes.load(std::memory_order_relaxed);
  return counters;
}

DeviceDescription EmulatedDevice::description() const {
  return {.emulation = EmulationDescription{.profile_text = image_info().profile_text,
                                            .timing = timing_,
                                            .speed = speed_,
                                            .lateness_ns = timer_ ? timer_->lateness() : Histogram::Snapshot()},
          .kernel = {}};
}

Status EmulatedDevice::host_error() const {
  const MutexLock lock(error_mu_);
  return host_error_;
}

void EmulatedDevice::SetZoneState(ZoneId zone, ZoneState state) {
  const MutexLock content_lock(zones_[zone.value()].content_mu);
  const MutexLock lock(state_mu_);
  machine_.Force(zone, state);
}

void EmulatedDevice::SetForeignActive(uint32_t zones) {
  const MutexLock lock(state_mu_);
  machine_.SetForeign(zones);
}

void EmulatedDevice::CutPower() { LosePower(nullptr); }

void EmulatedDevice::LosePower(const Command* torn) {
  std::unordered_map<uint64_t, Command> aborted;
  std::vector<std::pair<ZoneId, ZoneRange>> lost;
  {
    const MutexLock lock(state_mu_);
    if (!powered_.exchange(false, std::memory_order_relaxed)) return;
    aborted.swap(in_flight_);
    if (torn != nullptr) LoseInFlight(*torn);
    for (const auto& [ticket, command] : aborted) LoseInFlight(command);
    for (uint32_t zone = 0; zone < geometry().zone_count; ++zone) LoseUnflushed(ZoneId(zone), /*all=*/false, lost);
    unflushed_.clear();
  }
  ZeroLost(lost);
  for (const auto& [ticket, command] : aborted) Complete(command, DeviceStatus::kPowerLoss);
}

// Decides what a power cut leaves of a command in flight. A flush needs nothing here, since every zone loses data
// anyway; nor does a write, unless it may overtake earlier writes.
void EmulatedDevice::LoseInFlight(const Command& command) {
  const DeviceRequest& request = *command.request;
  if (command.end.begin < command.end.bytes && command.end.begin > 0 && faults_.Below(2) != 0) {
    const uint64_t blocks = (command.end.bytes - command.end.begin) / geometry().block_size;
    DurablePoint survives = command.end;
    survives.bytes = survives.begin + faults_.Below(blocks + 1) * geometry().block_size;
    if (survives.bytes > survives.begin) MakeDurable({&survives, 1});
  }
  if (!IsZoneCommand(request.op) || faults_.Below(2) == 0) return;
  (void)ExecuteZoneCommand(request.op, geometry().ZoneOf(request.offset));  // if refused, it did not happen
}

void EmulatedDevice::LoseUnflushed(ZoneId zone, bool all, std::vector<std::pair<ZoneId, ZoneRange>>& lost) {
  ZoneEntry& entry = Entry(zone);
  const ZoneContent content = LoadContent(entry);
  uint64_t survived = entry.durable.load(std::memory_order_relaxed);
  for (const ZoneRange& range : DurableBeyond(entry, geometry().block_size)) {
    survived += all ? 0 : SurvivorsOf(range.begin - survived);
    if (survived < range.begin) lost.emplace_back(zone, ZoneRange{survived, range.begin});
    survived = range.end;
  }
  survived += all ? 0 : SurvivorsOf(content.written - survived);
  machine_.LosePower(zone, survived);
  ResetDurable(entry, survived);
  progress_[zone.value()] = {.unflushed = false, .completed = survived};
}

uint64_t EmulatedDevice::SurvivorsOf(uint64_t bytes) {
  const uint64_t blocks = bytes / geometry().block_size;
  if (blocks == 0) return 0;
  // Of four cuts, one loses everything that it can, one nothing, and two lose something between.
  const uint64_t choice = faults_.Below(4);
  return (choice == 0 ? 0 : choice == 1 ? blocks : faults_.Below(blocks + 1)) * geometry().block_size;
}

void EmulatedDevice::ZeroLost(std::span<const std::pair<ZoneId, ZoneRange>> lost) {
  if (lost.empty()) return;
  const std::vector<std::byte> zeros(std::min(geometry().zone_capacity, kReclaimStep));
  for (const auto& [zone, range] : lost) {
    const MutexLock content_lock(zones_[zone.value()].content_mu);
    for (uint64_t at = range.begin; at < range.end; at += zeros.size()) {
      const auto piece = std::span(zeros).first(std::min<uint64_t>(zeros.size(), range.end - at));
      if (const Status zeroed = image_->WriteData(zone, at, piece); !zeroed.ok()) return LatchHostError(zeroed);
    }
  }
}

void EmulatedDevice::RestorePower() { powered_.store(true, std::memory_order_relaxed); }

void EmulatedDevice::ReclaimBlocks(ZoneId zone) {
  ZoneEntry& entry = Entry(zone);
  for (;;) {
    const MutexLock content_lock(zones_[zone.value()].content_mu);
    const uint64_t written = LoadContent(entry).written;
    const uint64_t end = entry.allocated.load(std::memory_order_relaxed);
    if (end <= written) return;
    const uint64_t from = std::max(written, end - std::min(end, kReclaimStep));
    if (const Status dropped = image_->DropBlocks(zone, from, end); !dropped.ok()) return LatchHostError(dropped);
    entry.allocated.store(from, std::memory_order_relaxed);
  }
}

bool EmulatedDevice::SyncImage() {
  if (sync_ == ImageSync::kProcess) return true;
  // The host tells of a write that it could not make durable only once, and to whoever syncs next.
  if (sync_failed_.load(std::memory_order_relaxed)) return false;
  const Status synced = image_->Sync();
  if (synced.ok()) return true;
  sync_failed_.store(true, std::memory_order_relaxed);
  LatchHostError(synced);
  return false;
}

bool EmulatedDevice::HostFailed() {
  if (!image_->faulted()) [[likely]] {
    return false;
  }
  LatchHostError(Status::IoError("the host could not read the image: its disk failed, or somebody cut the file off"));
  return true;
}

void EmulatedDevice::LatchHostError(const Status& status) {
  const MutexLock lock(error_mu_);
  if (!host_error_.ok()) return;
  host_error_ = status;
  fmt::print(stderr, "isozone: {}: {}\n", name(), status.message());
}

LiveBlock::Traffic& EmulatedDevice::Traffic() {
  return image_->live().traffic[ThreadIndex() % LiveBlock::kTrafficShards];
}

}  // namespace isozone
