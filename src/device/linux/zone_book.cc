#include "device/linux/zone_book.h"

#include <utility>

namespace isozone {

ZoneBook::ZoneBook(const DeviceGeometry& geometry) : geometry_(geometry), zones_(new Zone[geometry.zone_count]) {}

void ZoneBook::Store(Zone& zone, const ZoneDescriptor& descriptor) const {
  zone.state = descriptor.state;
  zone.written.store(descriptor.write_pointer, std::memory_order_release);
}

uint64_t ZoneBook::VersionOf(ZoneId id) const {
  const Zone& zone = Of(id);
  const MutexLock lock(zone.mu);
  return zone.version;
}

bool ZoneBook::Learn(const ZoneDescriptor& descriptor, uint64_t version) {
  Zone& zone = Of(descriptor.zone);
  const MutexLock lock(zone.mu);
  if (zone.writing) return true;
  if (zone.version != version) return false;
  ++zone.version;
  Store(zone, descriptor);
  zone.in_doubt = false;
  return true;
}

DeviceStatus ZoneBook::Check(const Zone& zone, uint64_t offset, uint64_t length) const {
  switch (zone.state.load(std::memory_order_relaxed)) {
    case ZoneState::kFull:
      return DeviceStatus::kZoneIsFull;
    case ZoneState::kReadOnly:
      return DeviceStatus::kZoneIsReadOnly;
    case ZoneState::kOffline:
      return DeviceStatus::kZoneIsOffline;
    default:
      break;
  }
  if (offset != zone.written.load(std::memory_order_relaxed)) return DeviceStatus::kZoneInvalidWrite;
  return length > geometry_.zone_capacity - offset ? DeviceStatus::kZoneBoundaryError : DeviceStatus::kSuccess;
}

DeviceStatus ZoneBook::BeginWrite(ZoneId id, uint64_t offset, uint64_t length) {
  Zone& zone = Of(id);
  const MutexLock lock(zone.mu);
  if (zone.writing) return DeviceStatus::kZoneInvalidWrite;
  const DeviceStatus status = Check(zone, offset, length);
  zone.writing = status == DeviceStatus::kSuccess;
  if (zone.writing) ++zone.version;
  return status;
}

DeviceStatus ZoneBook::TakeAppend(DeviceRequest& request, bool& waits) {
  Zone& zone = Of(geometry_.ZoneOf(request.offset));
  const MutexLock lock(zone.mu);
  waits = zone.writing || (zone.appends != nullptr && !zone.appends->empty());
  if (waits) {
    if (zone.appends == nullptr) zone.appends = std::make_unique<std::deque<DeviceRequest*>>();
    zone.appends->push_back(&request);
    return DeviceStatus::kSuccess;
  }
  const uint64_t written = zone.written.load(std::memory_order_relaxed);
  request.written_at = DeviceOffset(request.offset.value() + written);
  const DeviceStatus status = Check(zone, written, request.length);
  zone.writing = status == DeviceStatus::kSuccess;
  if (zone.writing) ++zone.version;
  return status;
}

DeviceRequest* ZoneBook::NextAppend(ZoneId id, DeviceStatus& status) {
  Zone& zone = Of(id);
  const MutexLock lock(zone.mu);
  if (zone.writing || zone.appends == nullptr || zone.appends->empty()) return nullptr;
  DeviceRequest* const next = zone.appends->front();
  zone.appends->pop_front();
  const uint64_t written = zone.written.load(std::memory_order_relaxed);
  next->written_at = DeviceOffset(next->offset.value() + written);
  status = Check(zone, written, next->length);
  zone.writing = status == DeviceStatus::kSuccess;
  if (zone.writing) ++zone.version;
  return next;
}

bool ZoneBook::EndWrite(ZoneId id, uint64_t length) {
  Zone& zone = Of(id);
  const MutexLock lock(zone.mu);
  if (zone.in_doubt) return false;
  ++zone.version;
  const uint64_t written = zone.written.load(std::memory_order_relaxed) + length;
  zone.state = written == geometry_.zone_capacity ? ZoneState::kFull : ZoneState::kImplicitlyOpen;
  zone.written.store(written, std::memory_order_release);
  zone.writing = false;
  return true;
}

bool ZoneBook::Relearn(const ZoneDescriptor& descriptor, uint64_t version) {
  Zone& zone = Of(descriptor.zone);
  const MutexLock lock(zone.mu);
  if (zone.version != version) return false;
  ++zone.version;
  Store(zone, descriptor);
  zone.writing = false;
  zone.in_doubt = false;
  return true;
}

void ZoneBook::Forget(ZoneId id) {
  Zone& zone = Of(id);
  const MutexLock lock(zone.mu);
  ++zone.version;
  zone.writing = false;
  zone.in_doubt = true;
}

bool ZoneBook::Note(ZoneId id, ZoneState state, uint64_t written, uint64_t version) {
  Zone& zone = Of(id);
  const MutexLock lock(zone.mu);
  // Whatever ended before the command began came before it.
  const bool overtaken = zone.version != version;
  ++zone.version;
  zone.in_doubt = overtaken || zone.writing;
  if (!overtaken) {
    zone.state = state;
    zone.written.store(written, std::memory_order_release);
  }
  return !zone.in_doubt;
}

bool ZoneBook::NoteReset(ZoneId zone, uint64_t version) { return Note(zone, ZoneState::kEmpty, 0, version); }

bool ZoneBook::NoteFinish(ZoneId zone, uint64_t version) {
  return Note(zone, ZoneState::kFull, geometry_.zone_capacity, version);
}

}  // namespace isozone
