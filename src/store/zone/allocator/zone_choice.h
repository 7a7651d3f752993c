// ZoneChoice: which zone a request is to get, as the table and the budgets are now. It changes nothing.
//
//   files      PlacementPolicy (data) or PlaceLog (logs) decides among the zones that the request may have: those that
//              are partly written, and, while there is a token and an empty zone that is not reserved for others, a new
//              one
//   metadata   A copy begins in one of the first zones, which is where a mount looks first, and goes on in any other.
//              Each is of another group than the zones of the other copy, where that can be had
//
// Thread safety: none; lives for one decision.
#pragma once

#include <optional>
#include <span>

#include "store/zone/allocator/zone_ledger.h"

namespace isozone {

class ZoneChoice {
 public:
  // Both must outlive it.
  ZoneChoice(const ZoneLedger& ledger, const PlacementPolicy& policy) : ledger_(ledger), policy_(policy) {}

  PlacementQuery QueryFor(const ZoneRequest& request) const;
  Placement Place(const PlacementQuery& query) const;
  // Returns one more zone for a file that has some, of another group. Returns none if that would leave no empty or
  // active zones for others, or if the file has as many as MostZones says.
  std::optional<ZoneId> Wider(const ZoneRequest& request) const;
  // Returns a zone for the collector that is partly written, and in which something is live.
  std::optional<ZoneId> Confined(const ZoneRequest& request) const;

  // Returns the room in partly written zones that no writer holds: in those that `cohort` has begun and that are not
  // sealed, or, if it is 0, in those of class `data` that are not kept from it. Takes time by the number of partly
  // written zones.
  ZoneRoom RoomOf(const DataClass& data, uint64_t cohort) const;

  // Return a zone for a copy of the metadata to begin in, or to go on in. None if there is none now; to begin in, a
  // better one may be about to be reset.
  std::optional<ZoneId> ToBegin(std::span<const ZoneId> apart_from) const;
  std::optional<ZoneId> ToGoOn(std::span<const ZoneId> apart_from) const;

 private:
  // Returns how many zones a file may be striped over. A zone that several files share is empty only when the last of
  // them has died. So the wider files are striped, the more dead data waits in zones that still live, and all the more,
  // the more data there is of the class. A file has its width where there is as much empty space as data of its class,
  // a part of it where there is less, and in the end one zone. The large last levels of a tree become narrow long
  // before the small upper ones, through which as many bytes go.
  uint64_t MostZones(const ZoneRequest& request) const;
  std::optional<ZoneId> HomeZone(std::span<const ZoneId> apart_from, bool apart) const;
  std::optional<ZoneId> OtherZone(std::span<const ZoneId> apart_from, bool apart) const;
  bool IsApart(ZoneId zone, std::span<const ZoneId> others) const;
  bool HomeZoneIsComing() const;

  const ZoneLedger& ledger_;
  const PlacementPolicy& policy_;
};

}  // namespace isozone
