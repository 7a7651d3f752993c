#include "rocksdb/adapter/output_guide.h"

#include <cassert>

namespace isozone {
namespace {

thread_local OutputGuide* current = nullptr;

}  // namespace

OutputGuide::OutputGuide(const CompactionPick& pick, const KeyOrder& order, uint64_t t_zone, uint64_t table_bytes)
    : pick_(pick), order_(order), t_zone_(t_zone), table_bytes_(table_bytes) {
  assert(current == nullptr);
  current = this;
  // RocksDB does not ask about the first key. Where that comes after all others of the inputs were dropped, the guess
  // is wrong, and the table is only in a zone that it should not be in.
  FindSpan(pick.smallest);
  (void)Passes(pick.cut_keys, next_cut_, pick.smallest);
  (void)Passes(pick.preferred_cut_keys, next_preferred_, pick.smallest);
}

OutputGuide::~OutputGuide() { current = nullptr; }

OutputGuide* OutputGuide::Current() { return current; }

bool OutputGuide::CutsBefore(std::string_view key, uint64_t bytes) {
  FindSpan(key);
  const bool cut = Passes(pick_.cut_keys, next_cut_, key);
  const bool preferred = Passes(pick_.preferred_cut_keys, next_preferred_, key);
  return cut || (preferred && bytes >= pick_.preferred_cut_bytes);
}

void OutputGuide::Place(CreateOptions& options) const {
  if (!short_lived_ || t_zone_ == 0) return;
  options.together_with = t_zone_;
  options.own_zones = true;
  // It is what is left of a table that was cut: half of one, on average.
  options.expected_size = table_bytes_ / 2;
}

bool OutputGuide::Passes(const std::vector<std::string>& keys, size_t& next, std::string_view key) const {
  bool passes = false;
  for (; next < keys.size() && !order_.Less(key, keys[next]); ++next) passes = true;
  return passes;
}

void OutputGuide::FindSpan(std::string_view key) {
  const auto ends_before = [&](const KeySpan& span) { return span.end && !order_.Less(key, *span.end); };
  while (next_span_ < pick_.short_lived.size() && ends_before(pick_.short_lived[next_span_])) ++next_span_;
  short_lived_ = next_span_ < pick_.short_lived.size() && !order_.Less(key, pick_.short_lived[next_span_].begin);
}

}  // namespace isozone
