#include "store/space/deletion_delays.h"

namespace isozone {

void DeletionDelays::Deleted(Lifetime lifetime, std::span<const ZoneId> zones, int64_t now_ns) {
  const MutexLock lock(mu_);
  ++calls_;
  for (const ZoneId zone : zones) {
    std::vector<Note>& notes = notes_[zone];
    // Most zones have files of one lifetime, so it is enough to look at the last note.
    if (notes.empty() || notes.back().lifetime != lifetime || now_ns - notes.back().at_ns > kMergeNs) {
      notes.push_back({lifetime, now_ns, 0, 0});
    }
    Note& note = notes.back();
    if (note.call == calls_) continue;
    note.call = calls_;
    ++note.count;
  }
}

void DeletionDelays::Reset(ZoneId zone, int64_t now_ns) {
  const MutexLock lock(mu_);
  const auto notes = notes_.extract(zone);
  if (notes.empty()) return;
  for (const Note& note : notes.mapped()) {
    const int64_t delay_ns = now_ns - note.at_ns;
    Histogram& delays = delays_ns_[static_cast<size_t>(note.lifetime)];
    for (uint64_t i = 0; i < note.count; ++i) delays.Add(delay_ns > 0 ? static_cast<uint64_t>(delay_ns) : 0);
  }
}

}  // namespace isozone
