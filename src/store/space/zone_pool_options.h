// What a pool of zones is made with.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "device/izg/group_index.h"
#include "insight/stats/page_writer.h"
#include "store/zone/allocator/zone_reserves.h"

namespace isozone {

struct ZonePoolOptions {
  std::string policy = "zenfs";                   // a placement policy of store/zone, by name
  std::shared_ptr<const GroupIndex> groups = {};  // of the device's zones; null: all are one group
  bool isolation = true;                          // urgent writers are kept apart from others
  bool keep_away = true;                          // with isolation: nobody widens in another's way
  bool read_only = false;                         // no thread, no lease
  uint32_t metadata_copies = kMetadataCopiesMax;  // says how many of the first zones are reserved for metadata
  Clock* clock = &Clock::Real();                  // outlives the pool; not null
  StatisticsWriter* statistics = nullptr;         // of the page of the mount; null: there is none. Outlives the pool
  // Makes every metadata change so far durable; called before a reset.
  std::function<Status()> make_durable;
  // Asks the journal for a checkpoint, after which the metadata has given back what it took of the reserves; returns a
  // number for it. And whether that checkpoint is still to come or under way. Called without locks held; short. Empty:
  // nothing is given back.
  std::function<uint64_t()> want_checkpoint = {};
  std::function<bool(uint64_t)> checkpoint_pending = {};
  // Somebody waits for space. Short, no call back into the pool. Empty: there is no collector.
  std::function<void()> want_space = {};
  // Which of these zones, in which nothing lives, readers in other processes still read; both in order. Asked when that
  // nothing lives there is durable. `are_short`: somebody has no space but for these, and readers that hold too much
  // are to lose them. May take system calls; called without locks held. Empty: nobody reads.
  std::function<std::vector<ZoneId>(std::span<const ZoneId> zones, bool are_short)> pinned = {};
  // A user is held up until the collector has written more (GcSpace::paced). Short, no call back into the pool.
  std::function<void()> want_pace = {};
};

}  // namespace isozone
