// LaneWriter: writes files to zones in virtual time, as the file system does (store/file/stripe_set.h): in pieces,
// which go to the lanes of a file in turn. ChooseLane decides which one is next (store/zone/lane_choice.h); the zones
// come from the allocator.
//
// A piece is longer than what the file system sends at once, so that terabytes take minutes. The lanes are the same,
// and so is how much of a file lies in each.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "simulator/virtual_zones.h"
#include "store/zone/lane_choice.h"

namespace isozone {

class LaneWriter {
 public:
  // `request` holds what the requests for all of its zones have in common.
  LaneWriter(VirtualZones& zones, EventLoop& loop, const ZoneRequest& request, uint32_t width);
  ~LaneWriter() { Clear(); }
  LaneWriter(const LaneWriter&) = delete;
  LaneWriter& operator=(const LaneWriter&) = delete;

  // Sets the class of the zones that are taken from now on.
  void SetDataClass(DataClass data);
  // What is known of a file of which nothing is written yet. The lanes of the file before must be gone (Clear).
  struct Expected {
    Cohort cohort = {};
    uint64_t bytes = 0;       // that will be written, roughly; 0: unknown
    uint64_t unit_bytes = 1;  // bytes that go to a lane at a time
    uint32_t width = 1;       // lanes at most, within that of the writer
  };
  void Expect(const Expected& expected);

  struct Started {
    uint64_t bytes = 0;  // 0: nothing was started; ask again at `until_ns`
    int64_t until_ns = EventLoop::kNever;
    bool for_zone = false;  // it waits for a zone: ask again when zones have changed, too
    FilePlace place = {};   // where the bytes go
  };
  // Starts to write up to `bytes` of `file`, as much as a lane has room for. Fails with kNoSpace.
  Result<Started> Start(uint64_t file, uint64_t bytes, LaneWish wish);
  // Returns the time at which the last write in flight ends, or now if none is in flight.
  int64_t ends_ns() const;
  // Gives all zones back. No write may be in flight.
  void Clear();

 private:
  struct Lane {
    ZoneGrant grant;
    uint32_t group = 0;
    uint64_t in_flight = 0;  // bytes
    int64_t ends_ns = 0;     // the write in flight, or the last one
  };

  bool MayWiden() const { return lanes_.size() < expected_.width && gate_.MayAsk(lanes_.size()); }
  // Returns how many of the bytes that are still expected go to one more lane; 0: unknown.
  uint64_t ExpectedOfLane() const;
  void Settle();
  Started StartIn(size_t index, uint64_t file, uint64_t bytes);
  void Add(const ZoneGrant& grant);
  void Retire(size_t lane);
  bool Widen();
  // Opens a lane and returns nothing, or returns what to wait for first.
  Result<std::optional<Started>> Open();
  int64_t FirstEnd() const;

  VirtualZones& zones_;
  EventLoop& loop_;
  ZoneRequest request_;
  Expected expected_;        // its bytes are those that are left
  std::vector<Lane> lanes_;  // the ring, in the order in which they were opened
  size_t last_ = 0;
  WidenGate gate_;
  std::unique_ptr<ZoneAllocator::Inquiry> inquiry_;  // while it waits for a zone
  std::vector<LaneView> views_;                      // kept to reuse its memory
  std::vector<uint32_t> groups_;                     // likewise
};

}  // namespace isozone
