// Where new data goes: one small class per policy, chosen by name. A policy looks at the zone table and decides; it
// has no state of its own that outlives a decision, so the file system, the simulator and the tests drive the same one.
//
// Thread safety: const, any thread; the caller locks the table.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "base/status.h"
#include "zone/lifetime.h"
#include "zone/zone_table.h"
#include "zone/zone_use.h"

namespace isozone {

struct PlacementQuery {
  ZoneUse use = ZoneUse::kData;  // kData or kLog
  Lifetime lifetime = Lifetime::kNotSet;
  uint64_t min_room = 0;         // bytes
  bool token_available = false;  // another zone may become active
  bool empty_available = false;  // there is an empty zone beyond the reserves
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
  // The zone for data (query.use is kData).
  virtual Placement PlaceData(const ZoneTable& table, const PlacementQuery& query) const = 0;
};

// The zone for a log, whatever the policy: logs share zones with logs only, since zones of data die later, and a log
// never waits for a finish while it can go on in any zone of logs.
Placement PlaceLog(const ZoneTable& table, const PlacementQuery& query);

// kInvalidArgument names the known policies: "zenfs".
Result<std::unique_ptr<PlacementPolicy>> MakePlacementPolicy(std::string_view name);

}  // namespace isozone
