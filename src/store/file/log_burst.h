// LogBurst: decides how the frames of a log that is not synced go out while users read.
//
// A read that comes to a die that programs waits for it, twenty times as long as the read itself takes. Written one
// after another, the slices of a large frame hold up a user again and again. Written to as many zones at the same time,
// they hold up each user once, for one program:
//
//   nobody reads   a unit is one frame, in one zone
//   users read     a unit is cut into frames of one slice, which is what flash programs at once. They wait for each
//                  other until there is one for each lane of the log, or until one more would make them longer than a
//                  unit, and are then started together.
//
//   dies     a  b  c  d  e          a  b  c  d  e
//            #                      #  #  #  #  #    time
//            #                                         |
//            #                                         v
//            #
//            #                      #: a slice is programmed
//
// So frames that wait are no longer than a unit. A log without further lanes, because no zone can be spared, starts
// every frame at once. Only a log of user data is cut, and only while its frames are full: somebody waits for the
// frames of other logs, or there are too few of them to hold up anybody.
//
// Pure. Thread safety: it has no state.
#pragma once

#include <cstddef>
#include <cstdint>

namespace isozone {

struct LogBurst {
  // Returns the length in bytes of a frame that begins now. `unit` is the greatest length, `width` the number of lanes
  // that the log may have.
  static constexpr uint64_t FrameLength(uint64_t unit, uint64_t slice, uint32_t width, bool users_read) {
    return users_read && width > 1 && slice < unit ? slice : unit;
  }

  // Returns whether `waiting` frames of `length` bytes each wait for one more. `lanes` is the number that the log has.
  static constexpr bool WaitForMore(size_t waiting, uint64_t length, uint64_t unit, size_t lanes) {
    return waiting < lanes && (waiting + 1) * length <= unit;
  }
};

}  // namespace isozone
