#include "store/file/unpublished.h"

#include <utility>
#include <vector>

namespace isozone {

void Unpublished::Register() {
  if (serial_) return;
  const MutexLock names(catalog_.namespace_mutex);
  serial_ = catalog_.next_unpublished++;
  catalog_.unpublished.emplace(*serial_, this);
}

void Unpublished::Unregister() {
  if (serial_) catalog_.unpublished.erase(*serial_);
}

Status Unpublished::PublishZone(Catalog& catalog, IoEngine& engine, ZoneId zone) {
  std::vector<std::pair<uint64_t, uint64_t>> found;  // the serial, and how much it had added by then
  {
    const MutexLock names(catalog.namespace_mutex);
    for (const auto& [serial, file] : catalog.unpublished) {
      const MutexLock lock(file->mu_);
      if (file->LiesIn(zone) && catalog.state.Find(file->id_) != nullptr) found.emplace_back(serial, file->added_);
    }
  }
  if (found.empty()) return Status::Ok();
  ISOZONE_RETURN_IF_ERROR(engine.Flush(IoClass::kGc));
  const MutexLock names(catalog.namespace_mutex);
  for (const auto& [serial, flushed] : found) {
    const auto still = catalog.unpublished.find(serial);
    if (still == catalog.unpublished.end() || catalog.state.Find(still->second->id_) == nullptr) continue;
    Unpublished& file = *still->second;
    const MutexLock lock(file.mu_);
    ISOZONE_RETURN_IF_ERROR(file.PublishFlushed(catalog, flushed));
  }
  return Status::Ok();
}

}  // namespace isozone
