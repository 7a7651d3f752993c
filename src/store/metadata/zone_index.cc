#include "store/metadata/zone_index.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "store/zone/segment_plan.h"

namespace isozone {
namespace {

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

uint64_t ZoneIndex::Add(InodeId id, const ExtentList& extents, uint64_t from, uint64_t to) {
  return Count(id, extents, from, to, 1, nullptr);
}

uint64_t ZoneIndex::Remove(InodeId id, const ExtentList& extents, uint64_t from, uint64_t to,
                           std::vector<ZoneId>& emptied) {
  return Count(id, extents, from, to, UINT64_MAX, &emptied);
}

uint64_t ZoneIndex::Count(InodeId id, const ExtentList& extents, uint64_t from, uint64_t to, uint64_t sign,
                          std::vector<ZoneId>* emptied) {
  uint64_t blocks = 0;
  extents.VisitRuns(from, to, [&](const ExtentRun& column) {
    VisitByZone(geometry_, column, [&](ZoneId zone, const ExtentRun& run) {
      Zone& in = zones_[zone.value()];
      const uint64_t in_run = BlocksOf(run);
      blocks += in_run;
      in.blocks += sign * in_run;
      VisitByWindow(run, [&](uint64_t window, const ExtentRun& part) {
        const Entry entry{id, window};
        if (IsNarrow(entry)) {
          Count(in.files, static_cast<uint32_t>(id.value()), sign * part.count);
        } else {
          Count(in.others, entry, sign * part.count);
        }
      });
      if (emptied != nullptr && in.empty()) emptied->push_back(zone);
    });
  });
  return blocks;
}

// On a large device, most of the memory is in such lists, so they grow by little at a time.
template <typename Key>
void ZoneIndex::Count(std::vector<Counted<Key>>& list, const Key& key, uint64_t added) {
  const auto at = std::ranges::lower_bound(list, key, {}, &Counted<Key>::key);
  if (at == list.end() || at->key != key) {
    const auto index = at - list.begin();
    if (list.size() == list.capacity()) list.reserve(list.size() + list.size() / 16 + 4);
    list.insert(list.begin() + index, {key, static_cast<uint32_t>(added)});
    return;
  }
  at->extents += static_cast<uint32_t>(added);
  if (at->extents > 0) return;
  list.erase(at);
  if (list.capacity() > 2 * list.size() + 16) list.shrink_to_fit();
}

std::vector<ZoneIndex::Entry> ZoneIndex::In(ZoneId zone) const {
  std::vector<Entry> entries;
  if (!contains(zone)) return entries;
  const Zone& in = zones_[zone.value()];
  entries.reserve(in.files.size() + in.others.size());
  for (const auto& file : in.files) entries.push_back({InodeId(file.key), 0});
  const auto narrow = static_cast<ptrdiff_t>(entries.size());
  for (const auto& other : in.others) entries.push_back(other.key);
  std::inplace_merge(entries.begin(), entries.begin() + narrow, entries.end());
  return entries;
}

std::vector<ZoneIndex::Entry> ZoneIndex::In(ZoneId zone, InodeId inode) const {
  std::vector<Entry> entries;
  if (!contains(zone)) return entries;
  const Zone& in = zones_[zone.value()];
  const auto file = std::ranges::lower_bound(in.files, inode.value(), {}, &Counted<uint32_t>::key);
  if (file != in.files.end() && file->key == inode.value()) entries.push_back({inode, 0});
  for (auto it = std::ranges::lower_bound(in.others, Entry{inode, 0}, {}, &Counted<Entry>::key);
       it != in.others.end() && it->key.inode == inode; ++it) {
    entries.push_back(it->key);
  }
  return entries;
}

}  // namespace isozone
