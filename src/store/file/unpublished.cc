#include "store/file/unpublished.h"

#include <utility>
#include <vector>

namespace isozone {

void Unpublished::Register() {
  if (serial_) return;
  const MutexLock names(context_.namespace_mutex);
  serial_ = context_.next_unpublished++;
  context_.unpublished.emplace(*serial_, this);
}

void Unpublished::Unregister() {
  if (serial_) context_.unpublished.erase(*serial_);
}

Status Unpublished::PublishZone(MountContext& context, ZoneId zone) {
  std::vector<std::pair<uint64_t, uint64_t>> found;  // the serial, and how much it had added by then
  {
    const MutexLock names(context.namespace_mutex);
    for (const auto& [serial, file] : context.unpublished) {
      const MutexLock lock(file->mu_);
      if (file->LiesIn(zone) && context.state.Find(file->id_) != nullptr) found.emplace_back(serial, file->added_);
    }
  }
  if (found.empty()) return Status::Ok();
  ISOZONE_RETURN_IF_ERROR(context.engine.Flush(IoClass::kGc));
  const MutexLock names(context.namespace_mutex);
  for (const auto& [serial, flushed] : found) {
    const auto still = context.unpublished.find(serial);
    if (still == context.unpublished.end() || context.state.Find(still->second->id_) == nullptr) continue;
    Unpublished& file = *still->second;
    const MutexLock lock(file.mu_);
    ISOZONE_RETURN_IF_ERROR(file.PublishFlushed(context, flushed));
  }
  return Status::Ok();
}

}  // namespace isozone
