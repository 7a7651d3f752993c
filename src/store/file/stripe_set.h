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
// Failures: a write that its zone did not take is `lost`. Its owner decides what becomes of it: it starts the write
// again in a lane, or writes it with WriteExtents, which goes on from zone to zone. A status other than OK says that no
// other zone would take it.
//
// Durability: is_volatile also covers lanes that were removed.
//
// Thread safety: one thread at a time; writes in flight need none. Writes must be settled before the set is destroyed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "store/file/data_path.h"
#include "store/file/log_pace.h"
#include "store/file/zone_stream.h"
#include "store/zone/lane_choice.h"

namespace isozone {

class StripeSet {
 public:
  struct Options {
    ZoneUse use = ZoneUse::kData;
    uint32_t width = 1;                // lanes at most
    std::optional<LogPace> pace = {};  // how fast the flash of a zone programs; none: that is not considered
    bool keep_retired = false;         // retired lanes stay until Remove
    bool gc = false;                   // the first zone comes out of the collector's reserve
    bool confined = false;             // with gc: see ZoneRequest::confined
    Cohort cohort = {};
    uint64_t expected_size = 0;  // bytes that will be written to all lanes; 0: unknown
    uint64_t unit = 1;           // bytes that go to a lane at a time, as far as that is expected
    bool wakes = false;          // see ZoneStream
  };

  class Lane;

  // The blocks that go into one lane with one write. It stays where it is until it is settled.
  struct Write {
    std::span<std::byte> blocks;  // whole blocks
    uint64_t live = 0;            // bytes of them that count as file data
    bool durable = false;         // see ZoneStream::Start

    // Set by the stripe set:
    DeviceOffset at;       // where it went
    SpaceClaim space;      // the claim on that, once it is settled: whoever makes it part of a file takes it
    Lane* lane = nullptr;  // the lane in which it is in flight; null: it is settled, or was not started
    bool lost = false;     // it is settled, and the zone did not take it
    Status status;         // of a lost write: an error if it need not be tried elsewhere
  };

  StripeSet(DataPath& data_path, const Options& options);
  ~StripeSet();
  StripeSet(const StripeSet&) = delete;
  StripeSet& operator=(const StripeSet&) = delete;

  // Sets the class of the zones that are taken from now on.
  void SetDataClass(DataClass data);
  // Sets the class of all requests from now on.
  void SetIoClass(IoClass io_class);

  // Returns a lane that writes nothing and has room for `bytes`, at least a block. May settle writes. If there is no
  // such lane, waits for a write or for a zone. With keep_retired, returns null if it has just retired full lanes,
  // before it takes another zone: the owner ends what it has in them, and asks again.
  Result<Lane*> Next(uint64_t bytes, LaneWish wish);
  // Opens a lane in a new zone, whatever the width. May wait for the zone.
  Result<Lane*> Open(uint64_t bytes);
  // Starts `write`, at most the room of `lane`, which must write nothing. Returns false if the lane has lost its zone
  // and is retired.
  [[nodiscard]] bool Start(Lane& lane, Write& write);
  // Returns whether Settle would not wait.
  static bool IsDone(const Write& write);
  // Waits for `write`, if it is in flight, and takes note of how it ended.
  void Settle(Write& write);
  // Gives the zone of `lane` back. Nothing may be in flight in it.
  void Remove(Lane& lane);
  // Gives all zones back. Nothing may be in flight.
  void Clear();

  // Returns the number of lanes that are not retired.
  size_t OpenLanes() const;

  // Writes `blocks`, of which a lane has lost some or all, outside the lanes: see ZoneStream::WriteExtents.
  Status WriteExtents(std::span<std::byte> blocks, size_t used, uint64_t file_offset, bool durable,
                      std::vector<FileExtent>& written, SpaceClaim& space);

  // Returns whether a power cut could take something that was written through this set.
  bool is_volatile() const;
  // Makes all that was settled durable.
  Status MakeDurable();

 private:
  std::unique_ptr<Lane> MakeLane() const;
  // Returns how many of the bytes that are still expected go to one more lane; 0: unknown.
  uint64_t ExpectedOfLane() const;
  Lane* Add(std::unique_ptr<Lane> lane);
  // Returns null if there is no zone that nobody else needs.
  Lane* Widen(uint64_t bytes);
  void Retire(Lane& lane);
  void SettleDone();
  // Retires the lanes without room for `bytes`. Returns whether there were any.
  bool RetireFull(uint64_t bytes);
  void SettleOldest();
  LaneDecision Choose(LaneWish wish);
  size_t HeldLanes() const;

  DataPath& data_path_;
  const Options options_;
  DataClass data_;
  IoClass io_class_ = IoClass::kOther;
  std::vector<std::unique_ptr<Lane>> lanes_;  // the ring, in the order in which they were opened
  size_t last_ = 0;                           // index of the lane that was used last
  uint64_t started_ = 0;                      // writes
  uint64_t started_bytes_ = 0;
  WidenGate gate_;
  ZoneStream rescue_;                // used by WriteExtents
  bool volatile_elsewhere_ = false;  // a removed lane has bytes that a power cut could take
  std::vector<LaneView> views_;      // used by Choose, kept for its memory
};

// One zone of the set.
class StripeSet::Lane {
 public:
  Lane(DataPath& data_path, ZoneUse use, bool wakes) : stream_(data_path, use, wakes) {}

  uint64_t room() const { return stream_.room(); }  // bytes
  DeviceOffset next() const { return stream_.next(); }
  bool retired() const { return retired_; }
  bool is_volatile() const { return stream_.is_volatile(); }

 private:
  friend class StripeSet;
  ZoneStream stream_;
  uint32_t group_ = 0;
  Write* write_ = nullptr;  // the write in flight
  uint64_t started_ = 0;    // the number of that write
  bool retired_ = false;
  LogPace::Zone pace_;
  bool unit_ended_ = false;  // by the last write
};

}  // namespace isozone
