#include "simulator/workload.h"

#include <numeric>
#include <utility>

namespace isozone {
namespace {

// Maps a record to a number that says nothing of its neighbours.
double HashShare(uint32_t record) { return static_cast<double>(FnvHash64(record) >> 10) / 0x1.0p53; }

}  // namespace

Workload::Workload(const SimLoad& load)
    : load_(load),
      records_(static_cast<uint32_t>(load.records())),
      random_(load.seed),
      zipfian_(records_),
      exists_(records_) {
  for (const SimPhase& phase : load_.phases) total_ += RecordsOf(phase);
}

uint64_t Workload::RecordsOf(const SimPhase& phase) const {
  return phase.bytes == 0 ? records_ : (phase.bytes + load_.record_bytes - 1) / load_.record_bytes;
}

bool Workload::Next(ModelRecord& record) {
  while (phase_ < load_.phases.size() && done_in_phase_ == RecordsOf(load_.phases[phase_])) {
    ++phase_;
    done_in_phase_ = 0;
  }
  if (phase_ == load_.phases.size()) return false;
  record.key = NextKey(load_.phases[phase_]);
  record.put = ++puts_;
  record.deletes = phase_ > 0 && load_.delete_percent > 0 && random_.Chance(load_.delete_percent / 100);
  ++done_in_phase_;
  Note(record);
  return true;
}

void Workload::Note(const ModelRecord& record) {
  const bool existed = exists_[record.key];
  if (existed == record.deletes) live_ += record.deletes ? uint64_t{0} - 1 : 1;
  exists_[record.key] = !record.deletes;
}

uint32_t Workload::NextKey(const SimPhase& phase) {
  switch (phase.order) {
    case KeyOrderKind::kSequential:
      break;
    case KeyOrderKind::kShuffled:
      return NextShuffled();
    case KeyOrderKind::kUniform:
      return static_cast<uint32_t>(random_.Below(records_));
    case KeyOrderKind::kZipfian:
      return static_cast<uint32_t>(zipfian_.Next(random_));
    case KeyOrderKind::kSkewed:
      return NextSkewed(phase);
    case KeyOrderKind::kListed:
      return phase.listed[done_in_phase_ % phase.listed.size()];
  }
  return static_cast<uint32_t>(done_in_phase_ % records_);
}

// A permutation as it is drawn: what is left stands behind the position (Fisher and Yates).
uint32_t Workload::NextShuffled() {
  const uint64_t at = done_in_phase_ % records_;
  if (at == 0) {
    permuted_.resize(records_);
    std::iota(permuted_.begin(), permuted_.end(), 0U);
  }
  std::swap(permuted_[at], permuted_[at + random_.Below(records_ - at)]);
  return permuted_[at];
}

uint32_t Workload::NextSkewed(const SimPhase& phase) {
  const bool hot = random_.Chance(phase.hot_percent / 100);
  uint32_t record = 0;
  // Among very few records there may be none that is hot, or that is not.
  for (int tries = 0; tries < 10'000; ++tries) {
    record = static_cast<uint32_t>(random_.Below(records_));
    if ((HashShare(record) < phase.hot_keys_percent / 100) == hot) break;
  }
  return record;
}

}  // namespace isozone
