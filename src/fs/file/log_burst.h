// LogBurst: decides how the frames of a log that is not synced go out while users read.
//
// A read that comes to a die that programs waits for it, twenty times as long as the read itself takes. Written one
// after another, the slices of a large frame hold up a user again and again. Written to as many zones at the same time,
// they hold up each user once, for one program:
//
//   nobody reads   a unit is one frame, in one zone
//   users read     a unit is cut into frames of one slice, which is what flash programs at once. They are held until
//                  each lane of the log has one, or until they are as large as a unit, and are then started together.
//
//   dies     a  b  c  d  e          a  b  c  d  e
//            #                      #  #  #  #  #    time
//            #                                         |
//            #                                         v
//            #
//            #                      #: a slice is programmed
//
// So no more of the log is in memory than otherwise, and a log without further lanes, because no zone can be spared,
// starts every frame at once.
//
// Pure. Thread safety: it has no state.
#pragma once

#include <cstddef>
#include <cstdint>

namespace isozone {

struct LogBurst {
  // How long a frame gets that begins now, in bytes. `unit`: bytes of memory for it; `width`: lanes that the log may
  // have.
  static constexpr uint64_t FrameLimit(uint64_t unit, uint64_t slice, uint32_t width, bool users_read) {
    return users_read && width > 1 && slice < unit ? slice : unit;
  }

  // Whether `held` frames, of `limit` bytes each, wait for one more. `lanes`: which the log has.
  static constexpr bool WaitsForMore(size_t held, uint64_t limit, uint64_t unit, size_t lanes) {
    return held < lanes && (held + 1) * limit <= unit;
  }
};

}  // namespace isozone
