#include "isozone/serve/zone_frames.h"

#include <algorithm>

namespace isozone::cli {
namespace {

void PutWord(uint32_t word, std::string& bytes) {
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(word >> shift & 0xFF);
}

void PutZone(uint32_t zone, const ZoneWords& words, std::string& bytes) {
  PutWord(zone, bytes);
  for (const uint64_t word : words) {
    PutWord(static_cast<uint32_t>(word), bytes);
    PutWord(static_cast<uint32_t>(word >> 32), bytes);
  }
}

}  // namespace

void ZoneFrames::Look(std::span<const PageZone> zones) {
  const uint32_t next = number_ + 1;
  const bool other = number_ == 0 || zones.size() != zones_.size();
  if (other) {
    zones_.assign(zones.size(), {});
    first_ = next;
  }
  bool changed = other;
  for (size_t i = 0; i < zones.size(); ++i) {
    const ZoneWords words = PackZone(zones[i]);
    if (!other && words == zones_[i].words) continue;
    zones_[i] = {words, next};
    changed = true;
  }
  if (changed) number_ = next;
}

std::string ZoneFrames::Encode(uint32_t instance, uint32_t number, std::string_view json) const {
  const bool known = instance == instance_ && number >= first_ && number <= number_ && number > 0;
  const uint32_t base = known ? number : 0;
  const auto has_changed = [base](const Zone& zone) { return base == 0 || zone.changed > base; };
  const auto entries = static_cast<size_t>(std::ranges::count_if(zones_, has_changed));
  std::string bytes;
  bytes.reserve((kHeadWords + entries * kEntryWords) * sizeof(uint32_t) + json.size());
  for (const uint32_t word : {kFormat, instance_, number_, base, static_cast<uint32_t>(zones_.size()),
                              static_cast<uint32_t>(entries), static_cast<uint32_t>(json.size())}) {
    PutWord(word, bytes);
  }
  for (size_t i = 0; i < zones_.size(); ++i) {
    if (has_changed(zones_[i])) PutZone(static_cast<uint32_t>(i), zones_[i].words, bytes);
  }
  return bytes.append(json);
}

}  // namespace isozone::cli
