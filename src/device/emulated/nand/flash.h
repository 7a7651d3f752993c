// Flash: dies, their write buffers and the channels, as timing_model.h describes them. Commands come as parts, each for
// one die. A die handles its parts in the order in which they were started, in each of two queues:
//
//   the array   reads, programs and erases, one at a time. A read keeps the die until it has crossed the channel.
//   intake      writes, one at a time: a part waits for room in the buffer if it fills a program unit, then for the
//               channel. A full unit queues for the array at once, and frees its room when it is programmed.
//
// Flash schedules its own events. The owner of the queue hands them back to Handle(), in order.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "device/emulated/nand/command_model.h"
#include "device/emulated/nand/event_queue.h"
#include "device/emulated/nand/profile.h"
#include "device/emulated/nand/servers.h"

namespace isozone {

enum class PartKind : uint8_t {
  kRead,     // of at most one page
  kWrite,    // of at most one page
  kProgram,  // of a unit that is padded
  kErase,
};

// A part of a command for one die. It must stay in place from Start to its end. One that has ended may be started anew.
struct Part {
  PartKind kind = PartKind::kRead;
  uint32_t command = 0;  // the command that it belongs to
  uint32_t die = 0;
  uint32_t bytes = 0;       // kRead, kWrite; kProgram: dummy bytes
  bool fills_unit = false;  // kWrite: it ends a program unit
  uint64_t units_left = 0;  // kProgram: units that were not started; each is a start of this part

  // Used by Flash only.
  enum class State : uint8_t { kNotStarted, kQueued, kOnChannel, kEnded } state = State::kNotStarted;
  int64_t mark = 0;          // in the work queue that it is in
  uint64_t unit_number = 0;  // if it fills a unit: the number of that unit, counted over all units of the die's intake
};

class Flash {
 public:
  // `profile` and `events` must outlive this object.
  Flash(const Profile& profile, EventQueue& events);

  void Start(int64_t now, Part& part);
  // Programs a padded unit for which no command waits. `dummy` is the number of its bytes that hold no data.
  void ProgramPadded(int64_t now, uint32_t die, uint32_t dummy);
  // Handles an event of the flash; returns the part that ended with it, if one did.
  Part* Handle(const Event& event);

  // Returns the earliest time at which `part`, started and not ended, can end.
  int64_t EarliestEnd(const Part& part) const;
  // Returns the earliest time at which the last part of `chain` can end, if all are started at `start` or later. The
  // parts are for one die, of one kind, and lie `stride` apart.
  int64_t EarliestEndOfChain(std::span<const Part> chain, size_t stride, int64_t start) const;

  const MediaCounts& media() const { return media_; }

 private:
  // Work for the array of a die: a part, or the program of a unit that came through the intake (null).
  struct Job {
    PartKind kind = PartKind::kRead;
    Part* part = nullptr;
    uint32_t dummy = 0;  // bytes of a program
  };
  struct Die {
    WorkQueue<Job> array;
    WorkQueue<Part*> intake;
    bool intake_busy = false;      // the front of `intake` is on the channel
    std::deque<int64_t> programs;  // marks of the programs in `array`
    uint64_t units_in_buffer = 0;  // full units, including those for which room is reserved
    uint64_t units_arrived = 0;    // parts that fill a unit and ever entered `intake`
    uint64_t units_admitted = 0;   // of these, the parts for which room was reserved
  };

  void AddJob(uint32_t die, Job job, int64_t least_duration);
  void AddProgram(uint32_t die, Part* part, uint32_t dummy);
  void PadUnit(uint32_t die, Part* part, uint32_t dummy);
  void StartFront(uint32_t die);
  void SendPage(uint32_t die);
  Part* EndFront(uint32_t die);
  void AddWrite(Part& part);
  void AdmitWrites(uint32_t die);
  Part* EndWrite(uint32_t die);

  int64_t ArrayNs(const Part& part) const;
  int64_t ChannelNs(const Part& part) const;
  int64_t LeastDuration(const Part& part) const;
  FifoServer& ChannelOf(uint32_t die) { return channels_[die % channels_.size()]; }
  const FifoServer& ChannelOf(uint32_t die) const { return channels_[die % channels_.size()]; }
  int64_t EarliestRoom(const Die& die, uint64_t units_ahead) const;
  int64_t EarliestEndOfIntake(const Die& die, int64_t mark) const;

  const Profile& profile_;
  EventQueue& events_;
  std::vector<Die> dies_;
  std::vector<FifoServer> channels_;
  int64_t now_ = 0;  // time of the last call of Start, ProgramPadded or Handle
  MediaCounts media_;
};

}  // namespace isozone
