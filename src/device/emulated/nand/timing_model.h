// TimingModel: the timing of a zoned SSD, as a pure model in virtual time. Commands and their submission times go in,
// completion times come out. It has no thread, no real clock and no data. The emulator runs it against the real clock,
// the simulator and the tests against a virtual one.
//
// The model is a network of first-in-first-out servers. Zones lie on dies (zone_map.h), dies on channels. A command is
// cut into pieces at page boundaries; pieces of one command on different dies proceed in parallel.
//
//   read     read_latency; then, piece by piece: die (page_read, and the die stays held until the page has crossed the
//            channel) -> channel -> host link. Pieces queue on their dies when the command arrives there.
//   write    host link -> write_latency -> write_bandwidth, write_cache -> then, piece by piece: channel -> write
//            buffer of the die. It completes when the last piece is in the buffer.
//   append   as write, with the `append` server, one for the whole device, after write_latency
//   reset    management_latency -> reset_padding -> erase on each die that holds data of the zone; reset_time beside it
//   finish   management_latency -> open units are padded and programmed, and then all that finish_padding says
//   open, close, flush    a fixed latency each
//
// The write buffer of a die: a full program unit waits there for its turn on the die, and leaves the buffer when it is
// programmed. At most write_buffer_units are in this state. A piece that fills another unit waits before the channel,
// and so does everything written to the die behind it. Units that are not full yet are kept apart: they take neither
// room nor flash time until they fill, or until the zone is finished or written to its end, which pads them. So a small
// write is as fast as the controller, and a writer that never stops writing whole units proceeds at the pace of the
// die.
//
// Padding: each die pads its part of the zone unit by unit, and begins a unit when the one before is programmed, so
// other commands for the die take turns with it. finish_bandwidth limits the dies together. The units share
// write_bandwidth with the writes of the host, as those of one more writer at depth 1: that is what was measured on a
// large-zone device (ConfZNS++, SYSTOR'24: beside finishes, four writers have four fifths of the bandwidth; here 75 %).
//
// Consequences for 192 KB I/O at depth 1 on the small-zone profile (timing_model_test.cc holds the numbers):
//   read   491 us alone; 852 us beside a reader of the same die, which never idles; 535 us beside a reader of another
//          die of the channel, where some pages meet on the channel
//   write  one program time, 1.95 ms; two of them beside a writer on the same die
//   read beside a writer on the same die    4.4 ms: it finds one unit being programmed and one waiting, every time
//   write beside a reader on the same die   2.2 ms on average: the die puts one read between two program units
//
// Events: completion times depend on later submissions, since pages take turns on a channel. So the model is a
// simulation of events: AdvanceTo() runs it, and NextCompletionBound() says until when nothing can complete.
//
// Thread safety: none; the owner serialises calls.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "device/emulated/nand/command_model.h"
#include "device/emulated/nand/profile.h"

namespace isozone {

class TimingModel : public CommandModel {
 public:
  // `profile` must be valid and zoned (ValidateProfile). Without timing, every command completes when it is submitted.
  explicit TimingModel(const Profile& profile);
  ~TimingModel() override;
  TimingModel(const TimingModel&) = delete;
  TimingModel& operator=(const TimingModel&) = delete;

  void Submit(int64_t now_ns, const TimingOp& op, uint64_t ticket) override;
  void AdvanceTo(int64_t now_ns, std::vector<TimingCompletion>& completed) override;
  int64_t NextCompletionBound() override;
  MediaCounts Media() const override;

 private:
  class Instant;     // timing = off
  class Simulation;  // timing = on
  std::unique_ptr<CommandModel> impl_;
};

}  // namespace isozone
