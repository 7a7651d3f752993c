#include "store/extents.h"

#include <algorithm>

namespace isozone {

const FileExtent* FindExtent(std::span<const FileExtent> extents, uint64_t offset) {
  auto it = std::upper_bound(extents.begin(), extents.end(), offset,
                             [](uint64_t o, const FileExtent& e) { return o < e.file_offset; });
  if (it == extents.begin()) return nullptr;
  --it;
  return offset < it->file_offset + it->length ? &*it : nullptr;
}

void SortByPlace(std::vector<FileExtent>& extents) {
  std::sort(extents.begin(), extents.end(),
            [](const FileExtent& a, const FileExtent& b) { return a.device_offset < b.device_offset; });
}

const FileExtent* FindByPlace(std::span<const FileExtent> by_place, DeviceOffset offset) {
  auto it = std::upper_bound(by_place.begin(), by_place.end(), offset,
                             [](DeviceOffset o, const FileExtent& e) { return o < e.device_offset; });
  if (it == by_place.begin()) return nullptr;
  --it;
  return offset.value() < it->device_offset.value() + it->length ? &*it : nullptr;
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

std::vector<FileExtent> ExtentsFrom(std::span<const FileExtent> extents, uint64_t size) {
  std::vector<FileExtent> rest;
  for (const FileExtent& e : extents) {
    if (e.file_offset + e.length <= size) continue;
    const uint64_t skip = size > e.file_offset ? size - e.file_offset : 0;
    rest.push_back({e.file_offset + skip, e.PlaceOf(skip), e.length - skip});
  }
  return rest;
}

namespace {

uint64_t EndOf(const FileExtent& extent) { return extent.file_offset + extent.length; }

// Makes one edit after the other. An edit grows as long as the next placed extent lies in the extent that the edit has
// come to.
class EditPlanner {
 public:
  EditPlanner(std::span<const FileExtent> extents, std::span<const FileExtent> placed, uint64_t zone_size)
      : extents_(extents), placed_(placed), zone_size_(zone_size) {}

  std::vector<ExtentEdit> Plan() {
    std::vector<ExtentEdit> edits;
    while (!placed_.empty()) edits.push_back(NextEdit());
    return edits;
  }

 private:
  ExtentEdit NextEdit() {
    const auto first = static_cast<size_t>(FindExtent(extents_, placed_.front().file_offset) - extents_.data());
    // The extent before may be joined with.
    const bool before = first > behind_;
    ExtentEdit edit;
    edit.index = before ? first - 1 : first;
    if (before) edit.now.push_back(extents_[first - 1]);
    at_ = first;
    offset_ = extents_[first].file_offset;
    while (PlacedHere()) {
      const FileExtent& next = placed_.front();
      Keep(edit, next.file_offset);
      AppendExtent(edit.now, next, zone_size_);
      offset_ = EndOf(next);
      while (at_ < extents_.size() && EndOf(extents_[at_]) <= offset_) ++at_;
      placed_ = placed_.subspan(1);
      if (PlacedHere()) continue;
      if (at_ < extents_.size() && offset_ > extents_[at_].file_offset) Keep(edit, EndOf(extents_[at_]));
      if (!PlacedHere()) JoinNext(edit);
    }
    behind_ = at_;
    edit.count = at_ - edit.index;
    // The extent before was not joined with.
    if (before && edit.now.front() == extents_[first - 1]) {
      edit.now.erase(edit.now.begin());
      ++edit.index;
      --edit.count;
    }
    return edit;
  }

  bool PlacedHere() const {
    return !placed_.empty() && at_ < extents_.size() && placed_.front().file_offset < EndOf(extents_[at_]);
  }

  // Keeps the bytes between offset_ and `end` where they are.
  void Keep(ExtentEdit& edit, uint64_t end) {
    while (offset_ < end) {
      const FileExtent& extent = extents_[at_];
      const uint64_t piece_end = std::min(end, EndOf(extent));
      AppendExtent(edit.now, {offset_, extent.PlaceOf(offset_ - extent.file_offset), piece_end - offset_}, zone_size_);
      offset_ = piece_end;
      if (piece_end == EndOf(extent)) ++at_;
    }
  }

  void JoinNext(ExtentEdit& edit) {
    if (at_ == extents_.size()) return;
    const size_t pieces = edit.now.size();
    AppendExtent(edit.now, extents_[at_], zone_size_);
    if (edit.now.size() > pieces) {
      edit.now.pop_back();
    } else {
      offset_ = EndOf(extents_[at_++]);
    }
  }

  const std::span<const FileExtent> extents_;
  std::span<const FileExtent> placed_;  // not yet planned
  const uint64_t zone_size_;
  size_t at_ = 0;        // the extent that the edit has come to,
  uint64_t offset_ = 0;  // and the place in the file
  size_t behind_ = 0;    // the first extent behind the last edit
};

}  // namespace

std::vector<ExtentEdit> PlanEdits(std::span<const FileExtent> extents, std::span<const FileExtent> placed,
                                  uint64_t zone_size) {
  return EditPlanner(extents, placed, zone_size).Plan();
}

}  // namespace isozone
