#include "fs/metadata/zone_index.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

#include "zone/segment_plan.h"

namespace isozone {
namespace {

// On a large device, most of the memory is in such lists, so they grow by little at a time.
template <typename T>
void InsertSorted(std::vector<T>& list, const T& value) {
  const auto at = std::lower_bound(list.begin(), list.end(), value);
  if (at != list.end() && *at == value) return;
  const auto index = at - list.begin();
  if (list.size() == list.capacity()) list.reserve(list.size() + list.size() / 16 + 4);
  list.insert(list.begin() + index, value);
}

template <typename T>
void EraseSorted(std::vector<T>& list, const T& value) {
  const auto [first, last] = std::equal_range(list.begin(), list.end(), value);
  list.erase(first, last);
  if (list.capacity() > 2 * list.size() + 16) list.shrink_to_fit();
}

bool IsNarrow(const ZoneIndex::Entry& entry) { return entry.window == 0 && entry.inode.value() <= UINT32_MAX; }

// Parts a run by the windows of the file, and calls `visit` with each window and the part of the run in it.
template <typename Visit>
void VisitByWindow(const ExtentRun& run, Visit visit) {
  constexpr uint64_t kWindow = ZoneIndex::kWindow;
  ExtentRun rest = run;
  while (rest.count > 0) {
    const uint64_t window = rest.file_offset / kWindow;
    const uint64_t left = kWindow - rest.file_offset % kWindow;
    ExtentRun here = rest;
    here.count = rest.count == 1 ? 1 : std::min(rest.count, (left - 1) / rest.file_stride + 1);
    visit(window, here);
    const FileExtent next = rest.extent(here.count);
    rest.file_offset = next.file_offset;
    rest.device_offset = next.device_offset;
    rest.count -= here.count;
  }
}

}  // namespace

uint64_t ZoneIndex::BlocksOf(const ExtentRun& run) const {
  const uint64_t all = run.length | run.device_offset.value();
  if (std::has_single_bit(geometry_.block_size) && (all & (geometry_.block_size - 1)) == 0)
    return run.count * run.length;
  const auto in_blocks = [&](uint64_t device_offset) {
    return InBlocks({device_offset, run.length}, geometry_.block_size).length;
  };
  if (IsAligned(run.length, geometry_.block_size)) return run.count * in_blocks(run.device_offset.value());
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < run.count; ++i) bytes += in_blocks(run.extent(i).device_offset.value());
  return bytes;
}

void ZoneIndex::Add(InodeId id, const ExtentList& extents, uint64_t from) {
  extents.VisitRuns(from, UINT64_MAX, [&](const ExtentRun& column) {
    VisitByZone(geometry_, column, [&](ZoneId zone, const ExtentRun& run) {
      zones_[zone.value()].blocks += BlocksOf(run);
      VisitByWindow(run, [&](uint64_t window, const ExtentRun&) { Insert(zone, {id, window}); });
    });
  });
}

std::vector<std::pair<ZoneId, uint64_t>> ZoneIndex::PlacesOf(const ExtentList& extents, uint64_t from,
                                                             uint64_t to) const {
  std::vector<std::pair<ZoneId, uint64_t>> places;
  extents.VisitRuns(from, to, [&](const ExtentRun& column) {
    VisitByZone(geometry_, column, [&](ZoneId zone, const ExtentRun& run) {
      VisitByWindow(run, [&](uint64_t window, const ExtentRun&) { places.emplace_back(zone, window); });
    });
  });
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

void ZoneIndex::Change(InodeId id, const ExtentList& before, const ExtentList& after, uint64_t from, uint64_t to,
                       std::vector<ZoneId>& emptied) {
  const auto add_blocks = [&](const ExtentList& extents, uint64_t sign) {
    extents.VisitRuns(from, to, [&](const ExtentRun& column) {
      VisitByZone(geometry_, column,
                  [&](ZoneId zone, const ExtentRun& run) { zones_[zone.value()].blocks += sign * BlocksOf(run); });
    });
  };
  add_blocks(after, 1);
  add_blocks(before, UINT64_MAX);  // -1
  const auto old_places = PlacesOf(before, from, to);
  const auto new_places = PlacesOf(after, from, to);
  std::vector<std::pair<ZoneId, uint64_t>> changed;
  std::set_difference(new_places.begin(), new_places.end(), old_places.begin(), old_places.end(),
                      std::back_inserter(changed));
  for (const auto& [zone, window] : changed) Insert(zone, {id, window});
  changed.clear();
  std::set_difference(old_places.begin(), old_places.end(), new_places.begin(), new_places.end(),
                      std::back_inserter(changed));
  for (const auto& [zone, window] : changed) {
    // Other extents of the window may still lie in the zone that these have left.
    if (LiesIn(zone, window, after)) continue;
    Erase(zone, {id, window});
    if (zones_[zone.value()].empty()) emptied.push_back(zone);
  }
}

bool ZoneIndex::LiesIn(ZoneId zone, uint64_t window, const ExtentList& extents) const {
  constexpr uint64_t kStep = 4 * kMiB;  // most often there is one near the beginning
  const auto [from, to] = Bounds(window);
  const uint64_t end = std::min(to, extents.end_offset());
  bool found = false;
  for (uint64_t at = from; at < end && !found; at += kStep) {
    extents.VisitRuns(at, std::min(at + kStep, end), [&](const ExtentRun& column) {
      VisitByZone(geometry_, column, [&](ZoneId lies_in, const ExtentRun&) { found |= lies_in == zone; });
    });
  }
  return found;
}

void ZoneIndex::Insert(ZoneId zone, const Entry& entry) {
  Zone& in = zones_[zone.value()];
  if (IsNarrow(entry)) {
    InsertSorted(in.files, static_cast<uint32_t>(entry.inode.value()));
  } else {
    InsertSorted(in.others, entry);
  }
}

void ZoneIndex::Erase(ZoneId zone, const Entry& entry) {
  Zone& in = zones_[zone.value()];
  if (IsNarrow(entry)) {
    EraseSorted(in.files, static_cast<uint32_t>(entry.inode.value()));
  } else {
    EraseSorted(in.others, entry);
  }
}

std::vector<ZoneIndex::Entry> ZoneIndex::In(ZoneId zone) const {
  std::vector<Entry> entries;
  if (!contains(zone)) return entries;
  const Zone& in = zones_[zone.value()];
  entries.reserve(in.files.size() + in.others.size());
  for (const uint32_t id : in.files) entries.push_back({InodeId(id), 0});
  const auto narrow = static_cast<ptrdiff_t>(entries.size());
  entries.insert(entries.end(), in.others.begin(), in.others.end());
  std::inplace_merge(entries.begin(), entries.begin() + narrow, entries.end());
  return entries;
}

std::vector<ZoneIndex::Entry> ZoneIndex::In(ZoneId zone, InodeId inode) const {
  std::vector<Entry> entries;
  if (!contains(zone)) return entries;
  const Zone& in = zones_[zone.value()];
  const bool narrow = inode.value() <= UINT32_MAX;
  if (narrow && std::binary_search(in.files.begin(), in.files.end(), static_cast<uint32_t>(inode.value()))) {
    entries.push_back({inode, 0});
  }
  for (auto it = std::lower_bound(in.others.begin(), in.others.end(), Entry{inode, 0});
       it != in.others.end() && it->inode == inode; ++it) {
    entries.push_back(*it);
  }
  return entries;
}

}  // namespace isozone
