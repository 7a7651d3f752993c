// ZoneMap: which dies hold a zone.
//
// A zone lies on `width` dies, its slots. Its pages go to the slots in turn: page p lies on slot p mod width, in row
// p / width there. Rows fill program units one after another.
//
// Thread safety: immutable.
#pragma once

#include <cstdint>
#include <vector>

#include "device/emulated/nand/profile.h"

namespace isozone {

class ZoneMap {
 public:
  // `profile` must be valid and have timing.
  explicit ZoneMap(const Profile& profile);

  uint32_t width() const { return width_; }
  // Returns the die of a slot below width().
  uint32_t DieOf(uint32_t zone, uint32_t slot) const { return (first_die_[zone] + slot) % dies_; }
  // Returns how many of a zone's first `written` bytes lie on a slot.
  uint64_t BytesOnSlot(uint32_t slot, uint64_t written) const;

 private:
  uint32_t dies_;
  uint32_t width_;
  uint64_t page_size_;
  std::vector<uint32_t> first_die_;  // by zone
};

}  // namespace isozone
