// ExtentList: the extents of a file, packed: in memory as in a checkpoint (docs/format.md, "Extents").
//
// To everybody outside it is a sequence of FileExtents that follow one another in the file. Inside it is a sequence of
// *elements*. An element is a run of extents of equal length that go round a list of places, its *columns*; what comes
// later in a column lies behind what came before it. So a file that was striped over zones is one element for as long
// as its zones last:
//
//   units in file order   0 1 2 | 3 4 5 | 6 7 8 | 9       length: of a unit; count: 10; columns: where 0, 1 and 2 are
//   column                a b c | a b c | a b c | a
//
// One sequence has one packed form: extents are taken in file order, and the element that is being made takes an extent
// whenever it can (Element::Add). So the form of what lies before an extent does not depend on what comes behind it; an
// append changes the last element, and an edit in the middle the elements from there up to the next that begins where
// one began before. Bytes that spell a sequence in another form are refused (Parse).
//
// Elements lie in *chunks* of about kChunkBytes, each of which says where in the file it begins. No chunk ever changes:
// an edit puts others in the place of those that it touches, so nothing that look-ups need can be lost or become old.
// Chunks that have become small are joined with their neighbours. A copy of a list shares its chunks, so it costs a
// pointer for each of them, and bytes only where one of the two is edited later.
//
// Costs, in elements that are read and extents that are added to one (steps). A look-up reads what lies in one chunk.
// An edit costs as much, the extents that it brings, and what it packs anew behind them: most often this ends at the
// next element. Only if all extents behind are of one length and none of them repeats, an edit that changes their
// number shifts the bounds of all elements up to the end of these. Nothing costs as many steps as an element has
// extents. Parse takes memory by the bytes that it is given, whatever they claim to expand to.
//
// Thread safety: as a standard container; lists that share chunks may be used at the same time.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/extents.h"

namespace isozone {

// Extents of one length, each behind the one before it on the device, but not in the file.
struct ExtentRun {
  uint64_t file_offset = 0;  // of the first extent
  DeviceOffset device_offset;
  uint64_t length = 0;  // bytes of each extent
  uint64_t count = 0;
  uint64_t file_stride = 0;  // bytes of the file from the beginning of one extent to that of the next

  // Returns whether this is a hole; such a run has one extent.
  bool is_hole() const { return device_offset == FileExtent::kHole; }
  FileExtent extent(uint64_t i) const {
    return {file_offset + i * file_stride, DeviceOffset(device_offset.value() + i * length), length};
  }
};

class ExtentList {
 public:
  static constexpr size_t kColumnsMax = 256;
  static constexpr uint64_t kUnitMin = 4096;  // bytes; units of a multiple of it may repeat in a column
  static constexpr size_t kChunkBytes = 512;  // a chunk of several elements has no more

  // Extents of equal length that go round the columns.
  struct Element {
    uint64_t length = 0;  // bytes of each extent
    uint64_t count = 0;   // extents; at least one for each column
    size_t columns = 0;
    std::array<uint64_t, kColumnsMax> starts;  // device offsets of the first extent of each column

    Element() = default;
    Element(const Element& other) { *this = other; }
    Element& operator=(const Element& other);
    uint64_t bytes() const { return length * count; }
    uint64_t place(uint64_t i) const { return starts[i % columns] + i / columns * length; }
    bool repeats() const { return length > 0 && IsAligned(length, kUnitMin); }
    bool operator==(const Element& other) const;
    void Begin(uint64_t device_offset, uint64_t extent_length);
    // Makes this what Add makes of its first `n` extents; n > 0.
    void KeepFirst(uint64_t n);
    // Adds the next extent. Returns false if it does not fit into this element.
    bool Add(uint64_t device_offset, uint64_t extent_length);
  };

  // The place where an element begins.
  struct Place {
    size_t chunk = 0;
    size_t at = 0;  // bytes in the chunk
    uint64_t file_offset = 0;
    bool operator==(const Place& other) const { return chunk == other.chunk && at == other.at; }
  };

  // Goes through the extents in file order. Ends with the list, which must not change meanwhile.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = FileExtent;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = FileExtent;

    FileExtent operator*() const;
    Iterator& operator++();
    bool operator==(const Iterator& other) const { return place_ == other.place_ && in_ == other.in_; }

   private:
    friend class ExtentList;
    const ExtentList* list_ = nullptr;
    Place place_;      // of the element
    uint64_t in_ = 0;  // the extent in it
    Place next_;       // of the element behind it
    Element element_;
  };

  ExtentList() = default;
  // Packs extents that follow one another in the file. It is the same list in another form, so the conversion is
  // implicit.
  ExtentList(std::initializer_list<FileExtent> extents) { Append(std::span(extents.begin(), extents.size())); }
  // NOLINTNEXTLINE(google-explicit-constructor)
  ExtentList(const std::vector<FileExtent>& extents) { Append(std::span(extents)); }
  ExtentList(const ExtentList& other) = default;
  ExtentList& operator=(const ExtentList& other) = default;
  ExtentList(ExtentList&& other) noexcept { *this = std::move(other); }
  ExtentList& operator=(ExtentList&& other) noexcept;
  ~ExtentList() = default;

  // Returns the list that `packed` spells, which begins at `offset` of the file. None if no list has this Packed().
  static std::optional<ExtentList> Parse(uint64_t offset, std::span<const std::byte> packed);
  std::string Packed() const;
  uint64_t packed_size() const { return packed_size_; }

  bool empty() const { return chunks_.empty(); }
  uint64_t size() const { return count_; }  // extents
  // Offsets in the file, in bytes; 0 if the list is empty.
  uint64_t begin_offset() const { return empty() ? 0 : chunks_.front()->file_offset; }
  uint64_t end_offset() const { return end_; }
  bool operator==(const ExtentList& other) const { return size() == other.size() && BeginsWith(other); }
  // Returns whether the first extents of this list are those of `other`.
  bool BeginsWith(const ExtentList& other) const;

  Iterator begin() const;
  Iterator end() const;
  // Returns the extent that holds `offset` of the file, which must not lie before the list; end() if it lies behind it.
  Iterator At(uint64_t offset) const;
  FileExtent front() const { return *begin(); }
  FileExtent back() const { return *At(end_ - 1); }
  // Returns the extents that [from, to) of the file touches.
  std::vector<FileExtent> Expand(uint64_t from = 0, uint64_t to = UINT64_MAX) const;

  // Calls `visit` with runs (ExtentRun) that together are the extents which begin in [from, to) of the file. Takes as
  // long as there are columns in that range, not extents.
  template <typename Visit>
  void VisitRuns(uint64_t from, uint64_t to, Visit visit) const {
    if (empty() || to <= begin_offset() || from >= end_) return;
    Element element;
    Place next;
    for (Place place = Find(from, element, next);; next = Read(place, element)) {
      VisitElement(element, place.file_offset, from, to, visit);
      place = next;
      if (place.chunk == chunks_.size() || place.file_offset >= to) return;
    }
  }
  // Visits all extents, even of a list that no file can have.
  template <typename Visit>
  void VisitRuns(Visit visit) const {
    Element element;
    Place next;
    for (Place place = First(); place.chunk < chunks_.size(); place = next) {
      next = Read(place, element);
      VisitPart(element, place.file_offset, 0, element.count, visit);
    }
  }

  // Returns the bytes on the device of the extents that begin in [from, to) of the file: all but the holes.
  uint64_t StoredBytes(uint64_t from, uint64_t to) const {
    uint64_t bytes = 0;
    VisitRuns(from, to, [&](const ExtentRun& run) { bytes += run.is_hole() ? 0 : run.count * run.length; });
    return bytes;
  }
  uint64_t StoredBytes() const { return StoredBytes(0, UINT64_MAX); }

  // Adds `extents`, which follow the last one in the file; or they begin where an extent of the list does, and replace
  // all from there on. The first ones of an empty list say where it begins.
  void Append(std::span<const FileExtent> extents);
  // Adds `more`, which follows the last extent, or is the whole list.
  void Append(const ExtentList& more);
  void push_back(const FileExtent& extent) { Append(std::span(&extent, 1)); }
  // Replaces the extents in the range of `now` by `now`. Extents of the list must begin and end where the range does.
  void Replace(std::span<const FileExtent> now);
  // Removes and returns what lies behind `offset` of the file. Parts an extent that goes on behind it.
  ExtentList CutAt(uint64_t offset);

  // Returns the number of steps ever taken on this thread: what look-ups and edits cost.
  static uint64_t steps();

 private:
  struct Chunk {
    uint64_t file_offset = 0;
    std::string bytes;  // elements, packed
    // An element from which a search for an offset at or behind it may begin. Most often it is the last one, so that an
    // append need not read all before it.
    size_t late_at = 0;
    uint64_t late_file_offset = file_offset;
  };
  using Chunks = std::vector<std::shared_ptr<const Chunk>>;
  class Rewriter;

  // Returns what lies behind `offset` of the file, which must not lie before the list.
  ExtentList From(uint64_t offset) const;
  Place First() const { return {0, 0, begin_offset()}; }
  // Decodes the element at `place`, and returns where the next one begins.
  Place Read(const Place& place, Element& element) const;
  // Decodes the element that holds `offset` of the file, or the first one if `offset` lies before the list, and returns
  // its place; `next` is where the next one begins. If `offset` lies behind the list, returns the place behind the last
  // element.
  Place Find(uint64_t offset, Element& element, Place& next) const;
  // Adds an element behind the last of `chunks`, which nobody shares yet.
  static void Put(std::vector<Chunk>& chunks, uint64_t file_offset, std::string_view packed);
  static Chunks Share(std::vector<Chunk> chunks);

  template <typename Visit>
  static void VisitElement(const Element& element, uint64_t offset, uint64_t from, uint64_t to, Visit& visit) {
    const auto extents_before = [&](uint64_t end) {
      if (end <= offset) return uint64_t{0};
      const uint64_t length = std::max<uint64_t>(element.length, 1);
      const uint64_t bytes = end - offset;
      return std::min(element.count, bytes / length + (bytes % length == 0 ? 0 : 1));
    };
    VisitPart(element, offset, extents_before(from), extents_before(to), visit);
  }
  // Visits the extents `first` to `end` of an element.
  template <typename Visit>
  static void VisitPart(const Element& element, uint64_t offset, uint64_t first, uint64_t end, Visit& visit) {
    if (first >= end) return;
    const uint64_t whole_rounds = (end - first) / element.columns;
    const uint64_t rest = (end - first) % element.columns;
    uint64_t column = first % element.columns;
    uint64_t skip = first / element.columns * element.length;
    for (uint64_t i = 0; i < element.columns && first + i < end; ++i) {
      visit(ExtentRun{offset + (first + i) * element.length, DeviceOffset(element.starts[column] + skip),
                      element.length, whole_rounds + (i < rest ? 1 : 0), element.columns * element.length});
      if (++column < element.columns) continue;
      column = 0;
      skip += element.length;
    }
  }

  uint64_t end_ = 0;
  uint64_t count_ = 0;
  uint64_t packed_size_ = 0;  // bytes of all chunks
  Chunks chunks_;             // in file order, none of them empty
};

// A part of a list that becomes another one of as many bytes, by ExtentList::Replace(now).
struct ExtentChange {
  std::vector<FileExtent> before;
  std::vector<FileExtent> now;
};

// Does what PlanEdits does, for a packed list. Costs placed.size() look-ups, and what they touch. The changes do not
// overlap and are in file order.
std::vector<ExtentChange> PlanChanges(const ExtentList& extents, std::span<const FileExtent> placed,
                                      uint64_t zone_size);

// Splits a run at the ends of zones, and calls `visit` for each zone. No extent may cross such an end. Holes lie in no
// zone.
template <typename Visit>
void VisitByZone(const DeviceGeometry& geometry, ExtentRun run, Visit visit) {
  if (run.is_hole()) return;
  while (run.count > 0) {
    const ZoneId zone = geometry.ZoneOf(run.device_offset);
    const uint64_t left = geometry.zone_size - geometry.OffsetInZone(run.device_offset);
    const bool all = run.count == 1 || run.length * run.count <= left;
    const uint64_t here = all ? run.count : std::max<uint64_t>(left / run.length, 1);
    ExtentRun in_zone = run;
    in_zone.count = here;
    visit(zone, in_zone);
    const FileExtent next = run.extent(here);
    run.file_offset = next.file_offset;
    run.device_offset = next.device_offset;
    run.count -= here;
  }
}

}  // namespace isozone
