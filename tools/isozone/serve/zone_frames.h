// ZoneFrames: the zones of a device for somebody who looks again and again, so that each look costs only what has
// changed.
//
// A frame, in little-endian words of 32 bits:
//
//   format : kFormat | instance | number | base | zones | entries | bytes of JSON
//   entries times: zone | the four halves of the two words of the zone (PackZone in page_layout.h), low halves first
//   JSON, in UTF-8
//
// `number` rises with every look at which something has changed. A frame with a `base` holds the zones that have
// changed since that frame; one without (0) holds all. `instance` is another one for each object: a base of another
// instance is of no use, and gets a whole frame.
//
// Thread safety: none; the owner locks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "insight/stats/page_layout.h"

namespace isozone::cli {

class ZoneFrames {
 public:
  static constexpr uint32_t kFormat = 1;
  static constexpr size_t kHeadWords = 7;
  static constexpr size_t kEntryWords = 5;

  explicit ZoneFrames(uint32_t instance) : instance_(instance) {}

  // Takes the zones as they are now. If their number is another one, all have changed.
  void Look(std::span<const PageZone> zones);
  // Returns the last look as a frame. If `instance` is this object's, it holds what has changed since frame `number`.
  std::string Encode(uint32_t instance, uint32_t number, std::string_view json) const;

  uint32_t number() const { return number_; }

 private:
  struct Zone {
    ZoneWords words{};
    uint32_t changed = 0;  // number of the frame
  };

  const uint32_t instance_;
  uint32_t number_ = 0;
  uint32_t first_ = 0;  // the first frame with as many zones as now
  std::vector<Zone> zones_;
};

}  // namespace isozone::cli
