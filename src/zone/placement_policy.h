// Where new data goes: one small class per policy, chosen by name. A policy looks at the zone table and decides; it
// has no state of its own that outlives a decision, so the file system, the simulator and the tests drive the same one.
//
// Thread safety: const, any thread; the caller locks the table.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "zone/lifetime.h"
#include "zone/zone_table.h"
#include "zone/zone_use.h"

namespace isozone {

// The zones of an independent zone group that are held by writers now.
struct GroupLoad {
  uint32_t urgent = 0;  // of logs and flushes
  uint32_t others = 0;
  bool idle() const { return urgent == 0 && others == 0; }
};

struct PlacementQuery {
  ZoneUse use = ZoneUse::kData;  // kData or kLog
  Lifetime lifetime = Lifetime::kNotSet;
  int8_t level = DataClass::kNoLevel;
  ZoneHeat heat = kNewDataHeat;  // of a collection: what the survivors have become
  uint64_t min_room = 0;         // bytes
  bool live_only = false;        // a collection: its survivors do not lock up what is dead in a zone
  bool token_available = false;  // another zone may become active
  bool empty_available = false;  // there is an empty zone beyond the reserves

  // For policies that know groups; the others leave all of it aside.
  bool urgent = false;                     // a flush, or a log
  bool isolate = true;                     // urgent writers are kept apart from others
  bool widen = false;                      // the file has a zone, and would have another one beside it
  bool keep_away = true;                   // with `isolate`: widens only where that is in nobody's way
  std::span<const uint32_t> taken_groups;  // in which the file has zones already
  std::span<const GroupLoad> loads;        // by group of the table; empty: nothing is known of it
  uint32_t turn = 0;                       // of equally good groups, the first from this one on is taken

  DataClass data_class() const { return {lifetime, level, heat}; }
  // An empty zone can be opened now.
  bool can_open() const { return token_available && empty_available; }
};

struct Placement {
  enum class Action : uint8_t {
    kUseIdle,    // go on in `zone`
    kOpenEmpty,  // open `zone`
    kNeedToken,  // a new zone would be right, but one has to stop being active first; `zone`, if any, serves till then
    kNeedSpace,  // no zone has room: one has to be reset first
  };
  Action action = Action::kNeedSpace;
  std::optional<ZoneId> zone;  // kUseIdle, kOpenEmpty, kNeedToken
  bool operator==(const Placement&) const = default;
};

class PlacementPolicy {
 public:
  virtual ~PlacementPolicy() = default;
  virtual std::string_view name() const = 0;
  // Files are written to several zones of different groups at once, and writers do not wait for the device; else one
  // zone at a time, and every write is waited for.
  virtual bool parallel() const = 0;
  // The zone for data (query.use is kData).
  virtual Placement PlaceData(const ZoneTable& table, const PlacementQuery& query) const = 0;
};

// The zone for a log, whatever the policy: logs share zones with logs only, since zones of data die later, and a log
// never waits for a finish while it can go on in any zone of logs. A new zone is of the group where least is going on;
// one more zone beside others is of another group than theirs, without logs and flushes.
Placement PlaceLog(const ZoneTable& table, const PlacementQuery& query);

// Of the idle zones of data with at least `min_room` bytes, one whose data lives longest: where a file goes that no zone
// is right for.
std::optional<ZoneId> LongestLivedIdle(const ZoneTable& table, uint64_t min_room);

// The same, by expected death: of the zones that live at least as long as the query's data the one that dies first (the
// data leaves a hole there, but does not keep the zone), else the one that dies last. Of equals, the same heat, then the
// coldest; then the fullest.
std::optional<ZoneId> ClosestDeathIdle(const ZoneTable& table, const PlacementQuery& query);

// kInvalidArgument names the known policies: "isozone", "level", "lifetime", "zenfs".
Result<std::unique_ptr<PlacementPolicy>> MakePlacementPolicy(std::string_view name);
// All that it knows.
std::vector<std::string_view> PlacementPolicyNames();

}  // namespace isozone
