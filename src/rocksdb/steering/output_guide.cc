#include "rocksdb/steering/output_guide.h"

#include <cassert>

#include "rocksdb/adapter/running_job.h"

namespace isozone {

OutputGuide::OutputGuide(const CompactionPick& pick, const KeyOrder& order, uint64_t t_zone, uint64_t table_bytes,
                         std::atomic<uint64_t>& written_bytes)
    : pick_(pick), order_(order), t_zone_(t_zone), table_bytes_(table_bytes), written_bytes_(written_bytes) {
  assert(RunningJob::OfThread().guide == nullptr);
  RunningJob::OfThread().guide = this;
  // RocksDB does not ask about the first key. Where that comes after all others of the inputs were dropped, the guess
  // is wrong, and the table is only in a zone that it should not be in.
  FindSpan(pick.smallest);
  (void)Passes(pick.cut_keys, next_cut_, pick.smallest);
  (void)Passes(pick.preferred_cut_keys, next_preferred_, pick.smallest);
}

OutputGuide::~OutputGuide() {
  RunningJob& job = RunningJob::OfThread();
  job.guide = nullptr;
  job.cohort = 0;
  job.expected_bytes = 0;
}

bool OutputGuide::CutsBefore(std::string_view key, uint64_t bytes) {
  FindSpan(key);
  if (bytes < output_bytes_) closed_bytes_ += output_bytes_;
  output_bytes_ = bytes;
  written_bytes_.store(closed_bytes_ + output_bytes_, std::memory_order_relaxed);
  const bool cut = Passes(pick_.cut_keys, next_cut_, key);
  const bool preferred = Passes(pick_.preferred_cut_keys, next_preferred_, key);
  return cut || (preferred && bytes >= pick_.preferred_cut_bytes);
}

bool OutputGuide::Passes(const std::vector<std::string>& keys, size_t& next, std::string_view key) const {
  bool passes = false;
  for (; next < keys.size() && !order_.Less(key, keys[next]); ++next) passes = true;
  return passes;
}

void OutputGuide::FindSpan(std::string_view key) {
  const auto ends_before = [&](const KeySpan& span) { return span.end && !order_.Less(key, *span.end); };
  while (next_span_ < pick_.short_lived.size() && ends_before(pick_.short_lived[next_span_])) ++next_span_;
  const bool short_lived =
      next_span_ < pick_.short_lived.size() && !order_.Less(key, pick_.short_lived[next_span_].begin);
  RunningJob& job = RunningJob::OfThread();
  job.cohort = short_lived ? t_zone_ : 0;
  // It is what is left of a table that was cut: half of one, on average.
  job.expected_bytes = job.cohort != 0 ? table_bytes_ / 2 : 0;
}

}  // namespace isozone
