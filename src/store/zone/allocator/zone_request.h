// What a writer asks the ZoneAllocator for, and what it gets.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "store/zone/allocator/active_budget.h"
#include "store/zone/allocator/lease_state.h"
#include "store/zone/cohort.h"
#include "store/zone/data_class.h"
#include "store/zone/heat.h"
#include "store/zone/lifetime.h"
#include "store/zone/zone_use.h"

namespace isozone {

struct ZoneRequest {
  ZoneUse use = ZoneUse::kData;  // kData or kLog
  Lifetime lifetime = Lifetime::kNotSet;
  uint64_t min_room = 0;                        // bytes that must still fit; at least one block
  bool urgent = false;                          // a flush: kept apart from what is not (logs are urgent by themselves)
  std::span<const uint32_t> taken_groups = {};  // to widen: groups in which the file has zones already
  uint32_t width = 1;                           // to widen: zones that the file may have where there is room
  int8_t level = DataClass::kNoLevel;
  ZoneHeat heat = kNewDataHeat;
  uint64_t expected_size = 0;  // bytes that are to go into the zone, as far as is known; 0: unknown
  Cohort cohort = {};
  bool compaction = false;  // makes space sooner or later, so that users may have to wait for it
  bool gc = false;          // it is the collector's: comes out of its reserve, and never waits for itself
  bool confined = false;    // with gc: only a zone that is partly written and not dead, or none; it does not wait

  DataClass data_class() const { return {lifetime, level, heat}; }
  // Returns whether what it writes gives back more than it takes, in the end.
  bool makes_space() const { return compaction || gc; }
};

// A zone that one writer has for itself.
struct ZoneGrant {
  ZoneId zone;
  std::shared_ptr<LeaseState> state;  // tells this lease from a later one of the same zone; null: it is only reserved
  uint64_t write_pointer = 0;         // bytes from the start of the zone
  uint64_t capacity = 0;              // bytes
};

// Why no zone can be given.
enum class Lack : uint8_t {
  kOpenZone,    // as many zones are leased as may be open
  kActiveZone,  // a zone has to stop being active
  kSpace,       // a zone has to be reset
};

// Returns by how much `wanted` exceeds `have`.
constexpr uint32_t Shortage(uint32_t wanted, uint32_t have) { return wanted > have ? wanted - have : 0; }

// Returns the class from whose reserve a zone of this use is held.
constexpr BudgetClass BudgetClassOf(ZoneUse use) {
  if (use == ZoneUse::kLog) return BudgetClass::kLog;
  return use == ZoneUse::kMetadata ? BudgetClass::kMetadata : BudgetClass::kData;
}
constexpr BudgetClass BudgetClassOf(const ZoneRequest& request) {
  return request.gc ? BudgetClass::kGc : BudgetClassOf(request.use);
}
// Returns who a zone is leased to.
constexpr ZoneWriter WriterOf(const ZoneRequest& request) {
  if (request.gc) return ZoneWriter::kGc;
  if (request.use == ZoneUse::kLog) return ZoneWriter::kLog;
  if (request.compaction) return ZoneWriter::kCompaction;
  return request.urgent ? ZoneWriter::kFlush : ZoneWriter::kOther;
}
constexpr bool IsOfFiles(BudgetClass c) { return c == BudgetClass::kData || c == BudgetClass::kLog; }

}  // namespace isozone
