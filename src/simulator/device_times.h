// DeviceTimes: how long a device takes, so coarsely that a device of terabytes can be simulated in minutes. A command
// is a long run of bytes in one zone. It books time at once on all servers on its way, which take their work in the
// order in which it is booked, and ends when the last of them has done it:
//
//   write    host link -> limit of all writes -> channel -> die, in whole program units. It has ended when all of it is
//            in the write buffer of the die, write_buffer_units before it is programmed
//   read     die and channel, page by page -> host link
//   reset    reset_padding and erasing on the die, and reset_time beside it
//   finish   finish_padding and the units that are not full on the die, as a write of the same bytes takes; at
//            finish_bandwidth at most
//
// Where zones span all dies, these are one server that is as fast as all of them. Otherwise each die is one.
//
// A read waits on its die for the reads before it and for the units in the write buffer, but not for the rest of a long
// write. What it takes is added to that.
//
// What TimingModel (device/emulated/nand/timing_model.h) does in addition, and this does not: reads and writes share
// the channel of a die; here each has it for itself. Streams, and reads beside a writer, take the same time within a
// few percent (device_times_test.cc).
//
// Pure. Thread safety: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "device/emulated/nand/command_model.h"
#include "device/emulated/nand/profile.h"
#include "device/emulated/nand/servers.h"
#include "device/izg/group_index.h"
#include "device/zoned_device.h"

namespace isozone {

class DeviceTimes {
 public:
  // `profile` must be valid and zoned.
  explicit DeviceTimes(const Profile& profile);

  // These return the time at which the command ends. `now_ns` never goes back.
  int64_t Write(int64_t now_ns, ZoneId zone, uint64_t bytes);
  int64_t Read(int64_t now_ns, ZoneId zone, uint64_t bytes);
  // `written` is the number of bytes below the write pointer.
  int64_t Reset(int64_t now_ns, ZoneId zone, uint64_t written);
  int64_t Finish(int64_t now_ns, ZoneId zone, uint64_t written);

  // Returns the zones that share hardware, as a measurement of the device would find them.
  std::shared_ptr<const GroupIndex> Groups() const;
  // Returns the bytes that flash has programmed.
  const MediaCounts& media() const { return media_; }

 private:
  // The flash of a unit: programs and erases end in the order in which they are booked. Reads go before what has not
  // reached the write buffer.
  class Array {
   public:
    int64_t Program(int64_t now_ns, int64_t duration_ns) { return free_at_ = std::max(now_ns, free_at_) + duration_ns; }
    // `buffered_ns` is the time in which the units of a full write buffer are programmed.
    int64_t Read(int64_t now_ns, int64_t duration_ns, int64_t buffered_ns) {
      reads_end_ = std::max({now_ns, reads_end_, std::min(free_at_, now_ns + buffered_ns)}) + duration_ns;
      free_at_ = free_at_ > now_ns ? std::max(free_at_ + duration_ns, reads_end_) : reads_end_;
      return reads_end_;
    }

   private:
    int64_t free_at_ = 0;
    int64_t reads_end_ = 0;
  };
  // A die, or all dies where zones span them.
  struct Unit {
    Array array;
    FifoServer channel_in;   // writes
    FifoServer channel_out;  // reads
  };

  uint32_t IndexOf(ZoneId zone) const { return unit_of_zone_.empty() ? 0 : unit_of_zone_[zone.value()]; }
  FifoServer& ChannelIn(uint32_t unit) { return units_[unit % channels_].channel_in; }
  FifoServer& ChannelOut(uint32_t unit) { return units_[unit % channels_].channel_out; }
  // Programs dummy bytes from `written` to `end` and on to the end of a unit. Returns the time at which that has ended.
  int64_t Pad(int64_t now_ns, ZoneId zone, uint64_t written, uint64_t end);
  int64_t BufferTime() const { return static_cast<int64_t>(profile_.write_buffer_units) * profile_.program_ns; }
  int64_t ProgramTime(uint64_t bytes) const;
  int64_t PageTime(uint64_t bytes) const;
  int64_t ChannelTime(uint64_t bytes) const;

  const Profile profile_;
  uint32_t width_ = 1;                  // dies that a zone lies on
  uint32_t channels_ = 1;               // unit u uses the channel of units_[u mod channels_]
  uint64_t unit_bandwidth_ = 0;         // bytes a second of the channels that a unit is on
  std::vector<uint32_t> unit_of_zone_;  // empty: there is one unit
  std::vector<Unit> units_;
  FifoServer link_to_device_;
  FifoServer link_to_host_;
  FifoServer all_writes_;
  MediaCounts media_;
};

}  // namespace isozone
