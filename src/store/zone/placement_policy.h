// PlacementPolicy: where new data goes. Each policy is one small class, chosen by name. A policy looks at the zone
// table and decides; it keeps no state between decisions, so the file system, the simulator and the tests use the same
// one. `isozone` is the default (isozone_placement.h). Those of the papers, for comparison, are in published/: zenfs,
// level, lifetime.
//
// Thread safety: immutable; any thread may call any method. The caller locks the table.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "store/zone/cohort.h"
#include "store/zone/lifetime.h"
#include "store/zone/zone_table.h"
#include "store/zone/zone_use.h"

namespace isozone {

// The number of zones of an independent zone group that writers hold now.
struct GroupLoad {
  uint32_t urgent = 0;  // of logs and flushes
  uint32_t others = 0;
  bool idle() const { return urgent == 0 && others == 0; }
};

// The needs of a writer, and what is known of the device at the moment.
struct PlacementQuery {
  ZoneUse use = ZoneUse::kData;  // kData or kLog
  Lifetime lifetime = Lifetime::kNotSet;
  int8_t level = DataClass::kNoLevel;
  ZoneHeat heat = kNewDataHeat;  // for GC: the heat of the survivors
  uint64_t min_room = 0;         // bytes
  bool live_only = false;        // for GC: its survivors must not go to a dead zone, and so keep it from a reset
  bool token_available = false;  // another zone may become active
  bool empty_available = false;  // there is an empty zone beyond the reserves

  // Used by policies that heed cohorts; in queries to the others they are not set.
  uint64_t expected_size = 0;  // bytes that the writer expects to put into the zone; 0: unknown
  Cohort cohort = {};

  // Used by policies that know groups; the others ignore all of this.
  bool urgent = false;                     // a flush, or a log
  bool isolate = true;                     // urgent writers are kept apart from others
  bool widen = false;                      // the file has a zone, and asks for another one beside it
  bool keep_away = true;                   // with `isolate`: it widens only where it disturbs no other writer
  std::span<const uint32_t> taken_groups;  // the groups in which the file has zones already
  std::span<const GroupLoad> loads;        // by group of the table; empty: not known
  uint32_t turn = 0;                       // among equally good groups, the first from this one on is taken

  DataClass data_class() const { return {lifetime, level, heat}; }
  // Returns whether an empty zone can be opened now.
  bool can_open() const { return token_available && empty_available; }
};

// The place for the data, or what must be done first.
struct Placement {
  enum class Action : uint8_t {
    kUseIdle,    // write to `zone`, which is idle
    kOpenEmpty,  // open `zone`
    kNeedToken,  // a new zone is best, but another one must stop being active first; `zone`, if any, serves until then
    kNeedSpace,  // no zone has room: one must be reset first
  };
  Action action = Action::kNeedSpace;
  std::optional<ZoneId> zone;  // kUseIdle, kOpenEmpty, kNeedToken
  bool operator==(const Placement&) const = default;
};

class PlacementPolicy {
 public:
  virtual ~PlacementPolicy() = default;
  virtual std::string_view name() const = 0;
  // Returns whether files are written to several zones of different groups in parallel, and writers do not wait for the
  // device. If not, a file is written to one zone at a time, and every write is waited for.
  virtual bool parallel() const = 0;
  // Returns whether the policy looks at cohorts and at the expected size of files (cohort.h). Isozone's own policy
  // does. The baselines stand for systems that know neither, so they place data as if nothing had been said.
  virtual bool heeds_cohorts() const { return false; }
  // Returns the percentage of its capacity that may stay unwritten in a zone that is finished only so that data need
  // not go where it does not belong. That part is lost until the reset, and many devices fill it with dummy bytes
  // (finish_padding). A zone that somebody waits for is made room for in any case. Below 100, logs rather take over
  // zones of other logs.
  virtual uint32_t most_lost_percent() const { return 100; }
  // Chooses the zone for data (query.use is kData).
  virtual Placement PlaceData(const ZoneTable& table, const PlacementQuery& query) const = 0;
};

// Chooses the zone for a log, whatever the policy. Logs share zones only with logs, because zones of data die later. A
// log never waits for a finish while any zone of logs has room. A new zone is in the group with the least activity; an
// additional zone for a log is in another group than its others, in one without logs and flushes.
Placement PlaceLog(const ZoneTable& table, const PlacementQuery& query);

// Returns the idle zone of data with at least `min_room` bytes of room whose data lives longest: the place for a file
// that fits no zone.
std::optional<ZoneId> LongestLivedIdle(const ZoneTable& table, uint64_t min_room);

// Returns an idle zone of data by its expected death: of the zones that live at least as long as the query's data, the
// one that dies first, where the data leaves a hole, but does not keep the zone from dying. If there is none, the zone
// that dies last. Among equals the same heat is best, then the coldest, then the fullest zone. A zone that is sealed,
// or reserved for another cohort, is taken only if there is no other.
std::optional<ZoneId> ClosestDeathIdle(const ZoneTable& table, const PlacementQuery& query);

// Makes the policy "isozone", "level", "lifetime" or "zenfs". kInvalidArgument, with these names, for any other.
Result<std::unique_ptr<PlacementPolicy>> MakePlacementPolicy(std::string_view name);
std::vector<std::string_view> PlacementPolicyNames();

}  // namespace isozone
