// ZoneIndex: which files have data in which zones. It costs 8 bytes for each file in each zone, and 24 more for each
// further GiB of a file, or where inode numbers have grown beyond 32 bits; what a file has in a zone is looked up in
// its extents. How many extents there are is counted, so that nobody has to look whether the last one has gone.
//
// A file is known to a zone by *window*: the first GiB of the file, the second, and so on. It is in the list of a zone
// for each window in which an extent begins that lies in the zone. So what lies in a zone is found by looking at as
// much of each file as may lie there, however large the file is. A window lies in a few zones together, so this takes
// time by what is found and by how many zones the stripes are wide.
//
// Pure. Thread safety: as a standard container.
#pragma once

#include <compare>
#include <cstdint>
#include <utility>
#include <vector>

#include "device/zoned_device.h"
#include "store/extent_list.h"
#include "store/metadata/inode_id.h"

namespace isozone {

class ZoneIndex {
 public:
  static constexpr uint64_t kWindow = 1 * kGiB;

  explicit ZoneIndex(const DeviceGeometry& geometry) : geometry_(geometry), zones_(geometry.zone_count) {}

  // Adds the extents of `id` that begin in [from, to) of the file. All must lie inside zones of the device. Returns the
  // bytes that they take, each by itself in whole blocks.
  uint64_t Add(InodeId id, const ExtentList& extents, uint64_t from = 0, uint64_t to = UINT64_MAX);
  // Removes these extents, and returns their bytes in the same way. Adds the zones in which nothing lies any more to
  // `emptied`.
  uint64_t Remove(InodeId id, const ExtentList& extents, uint64_t from, uint64_t to, std::vector<ZoneId>& emptied);

  bool contains(ZoneId zone) const { return zone.value() < zones_.size() && !zones_[zone.value()].empty(); }
  // Returns the bytes that the extents in `zone` take, each by itself in whole blocks.
  uint64_t BlocksIn(ZoneId zone) const { return zone.value() < zones_.size() ? zones_[zone.value()].blocks : 0; }
  // A file that lies in a zone, and the window of it that does. In returns those of a zone.
  struct Entry {
    InodeId inode;
    uint64_t window = 0;
    auto operator<=>(const Entry&) const = default;
  };
  std::vector<Entry> In(ZoneId zone) const;
  std::vector<Entry> In(ZoneId zone, InodeId inode) const;
  bool operator==(const ZoneIndex& other) const { return zones_ == other.zones_; }

  // Visits the runs that a file has in `zone` of the window of `entry`, by column (ExtentRun).
  template <typename Visit>
  void VisitRuns(ZoneId zone, const Entry& entry, const ExtentList& extents, Visit visit) const {
    const auto [from, to] = Bounds(entry.window);
    extents.VisitRuns(from, to, [&](const ExtentRun& run) {
      VisitByZone(geometry_, run, [&](ZoneId lies_in, const ExtentRun& part) {
        if (lies_in == zone) visit(part);
      });
    });
  }

 private:
  template <typename Key>
  struct Counted {
    Key key;
    uint32_t extents = 0;  // in the zone; there are no more than bytes of a window
    bool operator==(const Counted&) const = default;
  };
  struct Zone {
    std::vector<Counted<uint32_t>> files;  // inodes of which the first window lies here; rising
    std::vector<Counted<Entry>> others;    // all that do not fit there; rising
    uint64_t blocks = 0;                   // bytes

    bool empty() const { return files.empty() && others.empty(); }
    bool operator==(const Zone&) const = default;
  };
  struct Bound {
    uint64_t from;
    uint64_t to;
  };
  static Bound Bounds(uint64_t window) {
    const uint64_t from = window * kWindow;
    return {from, from > UINT64_MAX - kWindow ? UINT64_MAX : from + kWindow};
  }
  template <typename Key>
  static void Count(std::vector<Counted<Key>>& list, const Key& key, uint64_t added);
  // Adds the extents to the counts, or subtracts them if `sign` is -1.
  uint64_t Count(InodeId id, const ExtentList& extents, uint64_t from, uint64_t to, uint64_t sign,
                 std::vector<ZoneId>* emptied);
  uint64_t BlocksOf(const ExtentRun& run) const;

  DeviceGeometry geometry_;
  std::vector<Zone> zones_;
};

}  // namespace isozone
