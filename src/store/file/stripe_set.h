// StripeSet: the lanes of one writer, which are zones of different groups that it writes to at the same time.
//
//   writes   0   1   2   3   4   5   ...    each whole in one zone
//   lanes    a   b   c   a   b   c          each takes one write at a time; store/zone/lane_choice.h says which one is
//                                           next, and when the set asks for one more
//
// A lane goes through these steps:
//
//   opened    Next takes a zone for it: the first one of the pool's choice (Reserve, which may wait), each further one
//             of a group that the set is not in, if nobody else needs it (Widen).
//   used      Start, then Settle of each write. A write is settled by whoever comes first: its owner, or the set when
//             it looks for a free lane.
//   retired   Its zone is full, was taken away, or has failed. It takes no more writes.
//   removed   At once when it is retired; with Options::keep_retired, by Remove. The zone is given back.
//
// Failures: the write that a zone did not take is `lost`. What becomes of it is up to its owner: it starts it again in
// a lane, or writes it with WriteExtents, which goes on from zone to zone. A status other than OK says that no other
// zone would take it.
//
// Durability: what is_volatile says holds of removed lanes, too.
//
// Thread safety: one thread at a time; writes in flight need none. Writes must be settled before the set is destroyed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "store/file/log_pace.h"
#include "store/file/mount_context.h"
#include "store/file/zone_stream.h"
#include "store/zone/lane_choice.h"

namespace isozone {

class StripeSet {
 public:
  struct Options {
    ZoneUse use = ZoneUse::kData;
    uint32_t width = 1;                // lanes at most
    std::optional<LogPace> pace = {};  // of the flash of a zone; none: it is not looked at
    bool keep_retired = false;         // until Remove
    bool gc = false;                   // the first zone comes out of the collector's reserve
    bool confined = false;             // with gc: see ZoneRequest::confined
    Cohort cohort = {};
    uint64_t expected_size = 0;  // bytes that will be written to all lanes; 0: unknown
    uint64_t unit = 1;           // bytes, of what goes to a lane at a time, as far as that is expected
    bool wakes = false;          // see ZoneStream
  };

  class Lane;

  // What goes into one lane with one write. It stays where it is until it is settled.
  struct Write {
    std::span<std::byte> blocks;  // whole blocks
    uint64_t live = 0;            // bytes of them that count as file data
    bool durable = false;         // see ZoneStream::Start

    // The set's.
    DeviceOffset at;       // where it went
    SpaceClaim space;      // on that, once it is settled: whoever makes it part of a file takes it
    Lane* lane = nullptr;  // in which it is in flight; null: it is settled, or was not started
    bool lost = false;     // settled, and the zone did not take it
    Status status;         // of a lost one: why it need not be tried elsewhere
  };

  StripeSet(MountContext& context, const Options& options);
  ~StripeSet();
  StripeSet(const StripeSet&) = delete;
  StripeSet& operator=(const StripeSet&) = delete;

  // For the zones that are taken from now on.
  void SetDataClass(DataClass data);
  // For all requests from now on.
  void SetIoClass(IoClass io_class);

  // A lane that writes nothing and has room for `bytes`, at least a block. May settle writes; waits for one of them, or
  // for a zone, where there is no such lane. With keep_retired it returns null where it has retired lanes, before it
  // takes another zone: the owner ends what it has in them, and asks again.
  Result<Lane*> Next(uint64_t bytes, LaneWish wish);
  // A lane in a new zone, whatever the width. May wait for the zone.
  Result<Lane*> Open(uint64_t bytes);
  // Starts `write`, at most the room of `lane`, which writes nothing. False: the lane has lost its zone and is retired.
  [[nodiscard]] bool Start(Lane& lane, Write& write);
  // Settle would not wait.
  static bool IsDone(const Write& write);
  // Waits for `write`, if it is in flight, and takes note of how it ended.
  void Settle(Write& write);
  // Gives the zone of `lane` back, in which nothing is in flight.
  void Remove(Lane& lane);
  // Gives all zones back; nothing is in flight.
  void Clear();

  // The lanes that are not retired.
  size_t OpenLanes() const;

  // Writes, outside the lanes, `blocks`, of which a lane has lost some or all: see ZoneStream::WriteExtents.
  Status WriteExtents(std::span<std::byte> blocks, size_t used, uint64_t file_offset, bool durable,
                      std::vector<FileExtent>& written, SpaceClaim& space);

  // A power cut could take something that was written through this set.
  bool is_volatile() const;
  // All that was settled is durable when this returns OK.
  Status MakeDurable();

 private:
  std::unique_ptr<Lane> MakeLane() const;
  // What of all that is expected goes to one more lane, in bytes; 0: unknown.
  uint64_t ExpectedOfLane() const;
  Lane* Add(std::unique_ptr<Lane> lane);
  // Null: there is no zone that nobody else needs.
  Lane* Widen(uint64_t bytes);
  void Retire(Lane& lane);
  void SettleDone();
  // Whether there was one.
  bool RetireFull(uint64_t bytes);
  void SettleOldest();
  LaneDecision Choose(LaneWish wish);
  size_t HeldLanes() const;

  MountContext& context_;
  const Options options_;
  DataClass data_;
  IoClass io_class_ = IoClass::kOther;
  std::vector<std::unique_ptr<Lane>> lanes_;  // the ring, in the order in which they were opened
  size_t last_ = 0;                           // index of the one that was used last
  uint64_t started_ = 0;                      // writes
  uint64_t started_bytes_ = 0;
  WidenGate gate_;
  ZoneStream rescue_;                // of WriteExtents
  bool volatile_elsewhere_ = false;  // a removed lane has bytes that a power cut could take
  std::vector<LaneView> views_;      // of Choose, kept for its memory
};

// One zone of the set.
class StripeSet::Lane {
 public:
  Lane(MountContext& context, ZoneUse use, bool wakes) : stream_(context, use, wakes) {}

  uint64_t room() const { return stream_.room(); }  // bytes
  DeviceOffset next() const { return stream_.next(); }
  bool retired() const { return retired_; }
  bool is_volatile() const { return stream_.is_volatile(); }

 private:
  friend class StripeSet;
  ZoneStream stream_;
  uint32_t group_ = 0;
  Write* write_ = nullptr;  // in flight
  uint64_t started_ = 0;    // the number of that write
  bool retired_ = false;
  LogPace::Zone pace_;
  bool unit_ended_ = false;  // with the last write
};

}  // namespace isozone
