#include "crash/crash_device.h"

#include <algorithm>
#include <cstring>
#include <set>

#include <fmt/format.h>

namespace isozone::crash {
namespace {

// The table of a device that holds `zones`.
std::vector<ZoneEntry> TableOf(const std::vector<ZoneImage>& zones) {
  std::vector<ZoneEntry> table(zones.size());
  for (size_t i = 0; i < zones.size(); ++i) StoreContent(table[i], {zones[i].state, zones[i].written});
  return table;
}

// What a zone has left where `kept` of its bytes survive, beside what was forced.
ZoneImage Surviving(const ZoneImage& zone, uint64_t kept) {
  ZoneImage left = zone;
  left.forced.clear();
  uint64_t end = std::max(kept, zone.durable);
  for (const auto& [begin, forced_end] : zone.forced) {
    if (begin > end) {
      const bool shared = left.bytes == zone.bytes;
      if (shared) left.bytes = std::make_shared<std::vector<std::byte>>(*zone.bytes);
      std::memset(left.bytes->data() + end, 0, begin - end);
    }
    end = std::max(end, forced_end);
  }
  left.written = left.durable = end;
  return left;
}

uint64_t Kept(const DeviceGeometry& geometry, const Outcome& outcome, ZoneId id, const ZoneImage& zone) {
  switch (outcome.cache) {
    case Outcome::Cache::kKept:
      return zone.written;
    case Outcome::Cache::kLost:
      return zone.durable;
    case Outcome::Cache::kHalf:
      return zone.durable + RoundDown(zone.cached() / 2, geometry.block_size);
    case Outcome::Cache::kZoneLost:
      return id == outcome.zone ? zone.durable : zone.written;
    case Outcome::Cache::kZoneKept:
      return id == outcome.zone ? zone.written : zone.durable;
  }
  return zone.written;
}

// The power goes; `device` is what had been sent to it.
DeviceImage LosePower(DeviceImage device, const Outcome& outcome) {
  std::vector<ZoneEntry> table = TableOf(device.zones);
  ZoneStateMachine machine(device.geometry, table);
  for (uint32_t i = 0; i < device.zones.size(); ++i) {
    const ZoneId id(i);
    ZoneImage& zone = device.zones[i];
    const ZoneState before = zone.state;
    zone = Surviving(zone, Kept(device.geometry, outcome, id, zone));
    machine.LosePower(id, zone.written);
    zone.state = LoadContent(table[i]).state;
    if (before == ZoneState::kFull) continue;  // one that was finished early has no more than was written
    if (zone.written == 0) zone.bytes = nullptr;
  }
  return device;
}

std::vector<Outcome> CachesOf(const std::vector<ZoneImage>& zones, uint64_t blocks) {
  std::vector<Outcome> outcomes = {{blocks, Outcome::Cache::kKept, ZoneId()}};
  std::vector<ZoneId> cached;
  for (uint32_t i = 0; i < zones.size(); ++i) {
    if (zones[i].cached() > 0) cached.emplace_back(i);
  }
  if (cached.empty()) return outcomes;
  outcomes.push_back({blocks, Outcome::Cache::kLost, ZoneId()});
  outcomes.push_back({blocks, Outcome::Cache::kHalf, ZoneId()});
  if (cached.size() == 1) return outcomes;
  for (const ZoneId zone : cached) {
    outcomes.push_back({blocks, Outcome::Cache::kZoneLost, zone});
    outcomes.push_back({blocks, Outcome::Cache::kZoneKept, zone});
  }
  return outcomes;
}

// How many blocks of the request in flight may be stored: none, one, all but one, all.
std::vector<uint64_t> BlocksOf(const Command& command) {
  if (command.op == DeviceOp::kFlush) return {0};
  if (command.op != DeviceOp::kWrite && command.op != DeviceOp::kAppend) return {0, 1};
  const std::set<uint64_t> blocks = {0, 1, command.blocks - 1, command.blocks};
  return {blocks.begin(), blocks.end()};
}

// The device with `blocks` of the request in flight executed.
DeviceImage WithPart(const DeviceImage& device, const Command& command, uint64_t blocks) {
  DeviceImage part{device.geometry, device.fua, command.before};
  if (blocks == 0) return part;
  ZoneImage& zone = part.zones[command.zone.value()];
  if (command.op != DeviceOp::kWrite && command.op != DeviceOp::kAppend) {
    zone = command.after;
    return part;
  }
  const uint64_t end = command.begin + blocks * device.geometry.block_size;
  zone.bytes = command.after.bytes;
  zone.written = end;
  zone.state = end == device.geometry.zone_capacity ? ZoneState::kFull : ZoneState::kImplicitlyOpen;
  return part;
}

void AddOutcomes(const DeviceImage& sent, uint64_t blocks, std::set<std::string>& seen,
                 std::vector<std::pair<Outcome, DeviceImage>>& images) {
  for (const Outcome& outcome : CachesOf(sent.zones, blocks)) {
    DeviceImage left = LosePower(sent, outcome);
    if (seen.insert(Fingerprint(left)).second) images.emplace_back(outcome, std::move(left));
  }
}

}  // namespace

std::string Outcome::ToString() const {
  constexpr std::array kNames = {"kept", "lost", "half", "lost-of", "kept-of"};
  const bool of_zone = cache == Cache::kZoneLost || cache == Cache::kZoneKept;
  const std::string_view name = kNames.at(static_cast<size_t>(cache));
  return of_zone ? fmt::format("{}:{}:{}", blocks, name, zone.value()) : fmt::format("{}:{}", blocks, name);
}

std::optional<Outcome> Outcome::Parse(const std::string& text) {
  for (const Cache cache : {Cache::kKept, Cache::kLost, Cache::kHalf, Cache::kZoneLost, Cache::kZoneKept}) {
    const bool of_zone = cache == Cache::kZoneLost || cache == Cache::kZoneKept;
    const size_t last = text.rfind(':');
    Outcome outcome{std::strtoull(text.c_str(), nullptr, 10), cache, ZoneId()};
    if (of_zone && last != std::string::npos) {
      outcome.zone = ZoneId(static_cast<uint32_t>(std::strtoul(text.c_str() + last + 1, nullptr, 10)));
    }
    if (outcome.ToString() == text) return outcome;
  }
  return std::nullopt;
}

DeviceImage CrashDevice::Blank(const DeviceGeometry& geometry, Fua fua) {
  DeviceGeometry honest = geometry;
  honest.fua_covers_zone = fua == Fua::kZone;
  return {honest, fua, std::vector<ZoneImage>(geometry.zone_count)};
}

CrashDevice::CrashDevice(const DeviceImage& image, bool records)
    : geometry_(image.geometry),
      fua_(image.fua),
      turns_(records ? std::make_unique<Turns>() : nullptr),
      table_(TableOf(image.zones)),
      machine_(geometry_, table_),
      zones_(image.zones),
      owned_(image.zones.size(), false) {}

void CrashDevice::Submit(DeviceRequest& request) {
  const bool records = turns_ != nullptr && request.op != DeviceOp::kRead;
  if (records) turns_->Await();
  {
    const MutexLock lock(mu_);
    std::vector<ZoneImage> before;
    if (records) before = AllNow();
    request.status = Execute(request);
    if (!before.empty() && request.status == DeviceStatus::kSuccess) {
      Command& command = commands_.emplace_back();
      command.op = request.op;
      command.fua = request.fua;
      command.before = std::move(before);
      if (request.op != DeviceOp::kFlush) {
        command.zone = geometry_.ZoneOf(request.offset);
        command.begin = command.before[command.zone.value()].written;
        command.blocks = request.length / geometry_.block_size;
        command.after = Now(command.zone);
      }
    }
  }
  request.done(request);
}

DeviceStatus CrashDevice::Execute(DeviceRequest& request) {
  if (request.op == DeviceOp::kFlush) {
    for (uint32_t i = 0; i < zones_.size(); ++i) {
      zones_[i].durable = Now(ZoneId(i)).written;
      zones_[i].forced.clear();
    }
    return DeviceStatus::kSuccess;
  }
  if (geometry_.ZoneOf(request.offset).value() >= zones_.size()) return DeviceStatus::kLbaOutOfRange;
  const bool transfers =
      request.op == DeviceOp::kRead || request.op == DeviceOp::kWrite || request.op == DeviceOp::kAppend;
  if (!transfers) return ManageZone(request.op, geometry_.ZoneOf(request.offset));
  if (request.length == 0 || !IsAligned(request.length | request.offset.value(), geometry_.block_size)) {
    return DeviceStatus::kInvalidField;
  }
  return request.op == DeviceOp::kRead ? Read(request) : Write(request);
}

DeviceStatus CrashDevice::Read(const DeviceRequest& request) const {
  if (request.length > zones_.size() * geometry_.zone_size - request.offset.value())
    return DeviceStatus::kLbaOutOfRange;
  const uint64_t begin = geometry_.OffsetInZone(request.offset);
  if (begin + request.length > geometry_.zone_size) return DeviceStatus::kZoneBoundaryError;
  const ZoneImage zone = Now(geometry_.ZoneOf(request.offset));
  if (zone.state == ZoneState::kOffline) return DeviceStatus::kZoneIsOffline;
  const uint64_t stored = zone.written > begin ? std::min(request.length, zone.written - begin) : 0;
  if (stored > 0) std::memcpy(request.data, zone.bytes->data() + begin, stored);
  std::memset(request.data + stored, 0, request.length - stored);
  return DeviceStatus::kSuccess;
}

DeviceStatus CrashDevice::Write(DeviceRequest& request) {
  const ZoneId id = geometry_.ZoneOf(request.offset);
  const uint64_t begin = LoadContent(table_[id.value()]).written;
  const DeviceStatus status = request.op == DeviceOp::kAppend
                                  ? machine_.BeginAppend(id, request.length)
                                  : machine_.BeginWrite(id, geometry_.OffsetInZone(request.offset), request.length);
  if (status != DeviceStatus::kSuccess) return status;
  ZoneImage& zone = zones_[id.value()];
  if (!owned_[id.value()] || zone.bytes == nullptr) {
    auto bytes = std::make_shared<std::vector<std::byte>>(geometry_.zone_capacity);
    if (begin > 0) std::memcpy(bytes->data(), zone.bytes->data(), begin);
    zone.bytes = std::move(bytes);
    owned_[id.value()] = true;
  }
  std::memcpy(zone.bytes->data() + begin, request.data, request.length);
  request.written_at = DeviceOffset(geometry_.ZoneStart(id).value() + begin);
  machine_.EndWrite(id, request.length);
  if (request.fua && fua_ != Fua::kNone) Force(zone, begin);
  return status;
}

void CrashDevice::Force(ZoneImage& zone, uint64_t begin) {
  const uint64_t end = LoadContent(table_[static_cast<size_t>(&zone - zones_.data())]).written;
  if (fua_ == Fua::kZone || begin <= zone.durable) {
    zone.durable = end;
    zone.forced.clear();
  } else {
    zone.forced.emplace_back(begin, end);
  }
}

DeviceStatus CrashDevice::ManageZone(DeviceOp op, ZoneId id) {
  ZoneImage& zone = zones_[id.value()];
  switch (op) {
    case DeviceOp::kOpen:
      return machine_.Open(id);
    case DeviceOp::kClose:
      return machine_.Close(id);
    case DeviceOp::kFinish: {
      const DeviceStatus status = machine_.Finish(id);
      if (status == DeviceStatus::kSuccess) zone.durable = LoadContent(table_[id.value()]).written;
      if (status == DeviceStatus::kSuccess) zone.forced.clear();
      return status;
    }
    default: {
      const DeviceStatus status = machine_.Reset(id);
      if (status == DeviceStatus::kSuccess) zone = {};
      return status;
    }
  }
}

ZoneImage CrashDevice::Now(ZoneId id) const {
  ZoneImage zone = zones_[id.value()];
  const ZoneContent content = LoadContent(table_[id.value()]);
  zone.state = content.state;
  zone.written = content.written;
  return zone;
}

std::vector<ZoneImage> CrashDevice::AllNow() const {
  std::vector<ZoneImage> zones;
  zones.reserve(zones_.size());
  for (uint32_t i = 0; i < zones_.size(); ++i) zones.push_back(Now(ZoneId(i)));
  return zones;
}

DeviceImage CrashDevice::Image() const {
  const MutexLock lock(mu_);
  return {geometry_, fua_, AllNow()};
}

std::vector<Command> CrashDevice::TakeCommands() {
  turns_->AwaitIdle();
  const MutexLock lock(mu_);
  return std::exchange(commands_, {});
}

Status CrashDevice::ReportZones(ZoneId first, std::span<ZoneDescriptor> out) const {
  const MutexLock lock(mu_);
  if (first.value() + out.size() > zones_.size()) return Status::InvalidArgument("there are not so many zones");
  ZoneId id = first;
  for (ZoneDescriptor& descriptor : out) {
    const ZoneContent content = LoadContent(table_[id.value()]);
    const bool full = content.state == ZoneState::kFull;
    descriptor = {id, content.state, geometry_.zone_capacity, full ? geometry_.zone_capacity : content.written};
    ++id;
  }
  return Status::Ok();
}

std::vector<std::pair<Outcome, DeviceImage>> CutIn(const DeviceImage& device, const Command& command) {
  std::vector<std::pair<Outcome, DeviceImage>> images;
  std::set<std::string> seen;
  for (const uint64_t blocks : BlocksOf(command)) AddOutcomes(WithPart(device, command, blocks), blocks, seen, images);
  return images;
}

std::vector<std::pair<Outcome, DeviceImage>> CutAfter(const DeviceImage& device) {
  std::vector<std::pair<Outcome, DeviceImage>> images;
  std::set<std::string> seen;
  AddOutcomes(device, 0, seen, images);
  return images;
}

std::string Fingerprint(const DeviceImage& image) {
  std::string print;
  for (const ZoneImage& zone : image.zones) {
    const std::array<uint64_t, 3> words = {reinterpret_cast<uintptr_t>(zone.bytes.get()), zone.written,
                                           static_cast<uint64_t>(zone.state)};
    print.append(reinterpret_cast<const char*>(words.data()), sizeof(words));
  }
  return print;
}

}  // namespace isozone::crash
