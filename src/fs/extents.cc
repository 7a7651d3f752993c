#include "fs/extents.h"

#include <algorithm>

namespace isozone {

const FileExtent* FindExtent(std::span<const FileExtent> extents, uint64_t offset) {
  auto it = std::upper_bound(extents.begin(), extents.end(), offset,
                             [](uint64_t o, const FileExtent& e) { return o < e.file_offset; });
  if (it == extents.begin()) return nullptr;
  --it;
  return offset < it->file_offset + it->length ? &*it : nullptr;
}

void AppendExtent(std::vector<FileExtent>& extents, const FileExtent& extent, uint64_t zone_size) {
  const bool begins_zone = extent.device_offset.value() % zone_size == 0;
  if (!extents.empty() && !begins_zone) {
    FileExtent& last = extents.back();
    if (last.device_offset.value() + last.length == extent.device_offset.value()) {
      last.length += extent.length;
      return;
    }
  }
  extents.push_back(extent);
}

std::vector<FileExtent> CutExtents(std::span<const FileExtent> extents, uint64_t size) {
  std::vector<FileExtent> kept;
  for (const FileExtent& e : extents) {
    if (e.file_offset >= size) break;
    kept.push_back(e);
    kept.back().length = std::min(e.length, size - e.file_offset);
  }
  return kept;
}

std::vector<FileExtent> SpliceExtents(std::span<const FileExtent> extents, std::span<const FileExtent> replacement) {
  const uint64_t begin = replacement.front().file_offset;
  const uint64_t end = replacement.back().file_offset + replacement.back().length;
  std::vector<FileExtent> spliced = CutExtents(extents, begin);
  spliced.insert(spliced.end(), replacement.begin(), replacement.end());
  for (const FileExtent& e : extents) {
    if (e.file_offset + e.length <= end) continue;
    const uint64_t skip = end > e.file_offset ? end - e.file_offset : 0;
    spliced.push_back({e.file_offset + skip, DeviceOffset(e.device_offset.value() + skip), e.length - skip});
  }
  return spliced;
}

std::optional<std::vector<FileExtent>> MoveRuns(std::span<const FileExtent> extents, std::span<const ExtentMove> moves,
                                                uint64_t zone_size) {
  std::vector<ExtentMove> sorted(moves.begin(), moves.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.from < b.from; });
  size_t moved = 0;
  std::vector<FileExtent> result;
  for (const FileExtent& extent : extents) {
    const uint64_t begin = extent.device_offset.value();
    const uint64_t end = begin + extent.length;
    uint64_t at = begin;
    const auto keep = [&](uint64_t up_to, uint64_t where) {
      if (up_to == at) return;
      AppendExtent(result, {extent.file_offset + (at - begin), DeviceOffset(where), up_to - at}, zone_size);
      at = up_to;
    };
    auto move = std::lower_bound(sorted.begin(), sorted.end(), begin,
                                 [](const ExtentMove& m, uint64_t offset) { return m.from.value() < offset; });
    for (; move != sorted.end() && move->from.value() < end; ++move) {
      const uint64_t from = move->from.value();
      if (from < at || move->length == 0 || move->length > end - from) return std::nullopt;
      keep(from, at);
      keep(from + move->length, move->to.value());
      ++moved;
    }
    keep(end, at);
  }
  if (moved != sorted.size()) return std::nullopt;
  return result;
}

}  // namespace isozone
