#include "device/export/write_ledger.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include <fmt/format.h>

namespace isozone {
namespace {

// The other side of these is a process that comes later, so that only the order of stores matters.
uint64_t Load(const uint64_t& word) {
  return std::atomic_ref<uint64_t>(const_cast<uint64_t&>(word)).load(std::memory_order_acquire);
}
// A path that is relative to a folder means another device elsewhere.
std::string IdentityOf(const ZonedDevice& device) {
  const std::string name = device.name();
  const size_t colon = name.find(':');
  if (colon == std::string::npos) return name;
  std::error_code error;
  const auto path = std::filesystem::weakly_canonical(name.substr(colon + 1), error);
  return error ? name : name.substr(0, colon + 1) + path.string();
}

void Store(uint64_t& word, uint64_t value) { std::atomic_ref<uint64_t>(word).store(value, std::memory_order_release); }

}  // namespace

size_t WriteLedger::MemorySize(uint32_t slots) { return sizeof(Header) + (1 + kGenerations) * slots * sizeof(Entry); }

Result<std::unique_ptr<WriteLedger>> WriteLedger::Create(ZonedDevice& device, uint32_t slots,
                                                         std::span<std::byte> memory) {
  assert(memory.size() >= MemorySize(slots));
  static_assert(sizeof(Header) == 512 && sizeof(Entry) == 32);
  auto* const header = reinterpret_cast<Header*>(memory.data());
  std::string name = IdentityOf(device);
  name.resize(std::min(name.size(), sizeof(header->device) - 1));
  if (Load(header->magic) == kMagic) {
    if (header->slots != slots || std::memcmp(header->device, name.c_str(), name.size() + 1) != 0) {
      const std::string other(header->device, ::strnlen(header->device, sizeof(header->device)));
      return Status::InvalidArgument(fmt::format("the server that died had {}, and not {}", other, name));
    }
  } else {
    std::memset(memory.data(), 0, memory.size());
    header->slots = slots;
    std::memcpy(header->device, name.c_str(), name.size() + 1);
    Store(header->magic, kMagic);
  }
  auto* const entries = reinterpret_cast<Entry*>(memory.data() + sizeof(Header));
  return std::unique_ptr<WriteLedger>(
      new WriteLedger(device, {entries, slots}, {entries + slots, size_t{kGenerations} * slots}));
}

WriteLedger::WriteLedger(ZonedDevice& device, std::span<Entry> slots, std::span<Entry> leftovers)
    : device_(device), slots_(slots), leftovers_(leftovers), zones_(device.geometry().zone_count) {
  const MutexLock lock(mu_);
  TakeOver();
}

void WriteLedger::TakeOver() {
  for (Entry& entry : slots_) {
    const State state = StateOf(entry);
    if (state == State::kFree) continue;
    const auto same = [&](const Entry& other) {
      return other.state == entry.state && other.place == entry.place && other.zone == entry.zone &&
             other.length == entry.length;
    };
    const auto is_free = [](const Entry& other) { return StateOf(other) == State::kFree; };
    // If the last server died while it took over, the entry may be there already.
    if (entry.place != kUnknown && !IsLost(entry) && std::none_of(leftovers_.begin(), leftovers_.end(), same)) {
      const auto place = std::find_if(leftovers_.begin(), leftovers_.end(), is_free);
      if (place != leftovers_.end()) Write(*place, state, entry.zone, entry.place, entry.length);
    }
    Free(entry);
  }
  has_leftovers_ = std::any_of(leftovers_.begin(), leftovers_.end(),
                               [](const Entry& entry) { return StateOf(entry) != State::kFree; });
}

// An append that the device did not get is done anew, and another one may come to lie in its place.
bool WriteLedger::IsLost(const Entry& entry) const {
  if (StateOf(entry) != State::kAppend) return false;
  ZoneDescriptor zone;
  if (!device_.ReportZones(ZoneId(static_cast<uint32_t>(entry.zone)), {&zone, 1}).ok()) return false;
  return entry.place + entry.length > device_.geometry().ZoneStart(zone.zone).value() + zone.write_pointer;
}

void WriteLedger::Write(Entry& entry, State state, uint64_t zone, uint64_t place, uint64_t length) {
  entry.zone = zone;
  entry.length = length;
  Store(entry.place, place);
  Store(entry.state, static_cast<uint64_t>(state));
}

WriteLedger::State WriteLedger::StateOf(const Entry& entry) { return static_cast<State>(Load(entry.state)); }

void WriteLedger::Free(Entry& entry) { Store(entry.state, static_cast<uint64_t>(State::kFree)); }

uint64_t WriteLedger::NextPlace(ZoneId zone) {
  Zone& known = zones_[zone.value()];
  if (known.next == kUnknown && known.appends == 0) {
    ZoneDescriptor descriptor;
    if (device_.ReportZones(zone, {&descriptor, 1}).ok()) {
      known.next = device_.geometry().ZoneStart(zone).value() + descriptor.write_pointer;
    }
  }
  return known.next;
}

void WriteLedger::Submit(uint32_t slot, DeviceRequest& request) {
  const ZoneId zone = device_.geometry().ZoneOf(request.offset);
  if (request.op == DeviceOp::kWrite) {
    {
      const MutexLock lock(mu_);
      zones_[zone.value()].next = request.offset.value() + request.length;
      Write(slots_[slot], State::kWrite, zone.value(), request.offset.value(), request.length);
    }
    device_.Submit(request);
    return;
  }
  const MutexLock lock(mu_);
  const uint64_t place = NextPlace(zone);
  Write(slots_[slot], State::kAppend, zone.value(), place, request.length);
  if (place != kUnknown) zones_[zone.value()].next = place + request.length;
  ++zones_[zone.value()].appends;
  device_.Submit(request);
}

void WriteLedger::Ended(const DeviceRequest& request) {
  const ZoneId zone = device_.geometry().ZoneOf(request.offset);
  const MutexLock lock(mu_);
  Zone& known = zones_[zone.value()];
  if (request.op == DeviceOp::kAppend) --known.appends;
  if (request.status == DeviceStatus::kSuccess) return;
  known.next = kUnknown;
  for (Entry& entry : slots_) {
    if (StateOf(entry) == State::kAppend && entry.zone == zone.value()) Store(entry.place, kUnknown);
  }
}

void WriteLedger::Answer(uint32_t slot) {
  const MutexLock lock(mu_);
  Free(slots_[slot]);
}

void WriteLedger::ZoneWasReset(ZoneId zone) {
  const MutexLock lock(mu_);
  zones_[zone.value()].next = kUnknown;
  if (!has_leftovers_) return;
  for (Entry& entry : leftovers_) {
    if (StateOf(entry) != State::kFree && entry.zone == zone.value()) Free(entry);
  }
}

std::vector<WriteLedger::Leftover> WriteLedger::Find(const DeviceRequest& request) const {
  std::vector<Leftover> found;
  const State state = request.op == DeviceOp::kWrite ? State::kWrite : State::kAppend;
  const uint64_t zone = device_.geometry().ZoneOf(request.offset).value();
  const MutexLock lock(mu_);
  if (!has_leftovers_) return found;
  for (size_t i = 0; i < leftovers_.size(); ++i) {
    const Entry& entry = leftovers_[i];
    if (StateOf(entry) != state || entry.zone != zone || entry.length != request.length) continue;
    if (state == State::kWrite && entry.place != request.offset.value()) continue;
    found.push_back({request.op, DeviceOffset(entry.place), entry.length, i});
  }
  return found;
}

void WriteLedger::Adopt(uint32_t slot, const Leftover& leftover) {
  const MutexLock lock(mu_);
  Entry& entry = leftovers_[leftover.index];
  Write(slots_[slot], leftover.op == DeviceOp::kWrite ? State::kWrite : State::kAppend, entry.zone,
        leftover.place.value(), leftover.length);
  Free(entry);
  has_leftovers_ = std::any_of(leftovers_.begin(), leftovers_.end(),
                               [](const Entry& other) { return StateOf(other) != State::kFree; });
}

}  // namespace isozone
