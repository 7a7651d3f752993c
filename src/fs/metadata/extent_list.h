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
// Costs. FindByOffset and FindByIndex are logarithmic: lists of more than kSkipBytes know where elements begin, every
// so many bytes. Parse takes memory by the bytes that it is given, whatever they claim to expand to. Only units of
// kUnitMin and more repeat, so a list expands to at most 256 extents for each element and one for each kUnitMin of
// file.
//
// Thread safety: as a standard container.
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
#include <vector>

#include "fs/extents.h"

namespace isozone {

// Extents of one length, each behind the one before it on the device, but not in the file.
struct ExtentRun {
  uint64_t file_offset = 0;  // of the first
  DeviceOffset device_offset;
  uint64_t length = 0;  // bytes, of each
  uint64_t count = 0;
  uint64_t file_stride = 0;  // bytes of the file from where one begins to where the next one does

  // A run of holes has one.
  bool is_hole() const { return device_offset == FileExtent::kHole; }
  FileExtent extent(uint64_t i) const {
    return {file_offset + i * file_stride, DeviceOffset(device_offset.value() + i * length), length};
  }
};

class ExtentList {
 public:
  static constexpr size_t kColumnsMax = 256;
  static constexpr uint64_t kUnitMin = 4096;  // bytes; units of a multiple of it may repeat in a column
  static constexpr size_t kSkipBytes = 1024;

  // Extents of equal length that go round `starts`.
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
    void Begin(uint64_t device_offset, uint64_t extent_length);
    // False: the extent cannot be the next one.
    bool Add(uint64_t device_offset, uint64_t extent_length);
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
    bool operator==(const Iterator& other) const { return index_ == other.index_; }

   private:
    friend class ExtentList;
    const ExtentList* list_ = nullptr;
    size_t next_ = 0;      // bytes: the element behind this one
    uint64_t index_ = 0;   // of the extent, in the list
    uint64_t in_ = 0;      // and in its element
    uint64_t offset_ = 0;  // of the extent in the file
    Element element_;
  };

  ExtentList() = default;
  // These follow one another in the file. The same list, packed: so the conversion is implicit.
  ExtentList(std::initializer_list<FileExtent> extents) { Append(std::span(extents.begin(), extents.size())); }
  // NOLINTNEXTLINE(google-explicit-constructor)
  ExtentList(const std::vector<FileExtent>& extents) { Append(std::span(extents)); }
  ExtentList(const ExtentList& other) { *this = other; }
  ExtentList& operator=(const ExtentList& other);
  ExtentList(ExtentList&& other) noexcept { *this = std::move(other); }
  ExtentList& operator=(ExtentList&& other) noexcept;
  ~ExtentList() = default;

  // The list that `packed` spells, which begins at `offset` of the file. None: it is not what packed() gives of a list.
  static std::optional<ExtentList> Parse(uint64_t offset, std::span<const std::byte> packed);
  std::span<const std::byte> packed() const { return std::as_bytes(std::span(bytes_)); }

  bool empty() const { return count_ == 0; }
  uint64_t size() const { return count_; }          // extents
  uint64_t begin_offset() const { return begin_; }  // in the file, bytes; 0 where it is empty
  uint64_t end_offset() const { return end_; }
  bool operator==(const ExtentList& other) const { return begin_ == other.begin_ && bytes_ == other.bytes_; }

  Iterator begin() const { return At(0); }
  Iterator end() const;
  Iterator At(uint64_t index) const;  // index <= size()
  FileExtent operator[](uint64_t index) const { return *At(index); }
  FileExtent front() const { return *begin(); }
  FileExtent back() const { return *At(count_ - 1); }
  std::vector<FileExtent> Expand() const { return Expand(0, count_); }
  std::vector<FileExtent> Expand(uint64_t index, uint64_t count) const;
  // The index of the extent that holds `offset`; size() where `offset` lies behind the list.
  uint64_t IndexAt(uint64_t offset) const;

  // Calls `visit` with runs (ExtentRun) that together are the extents which begin in [from, to) of the file. Takes as
  // long as there are columns in that range, not extents.
  template <typename Visit>
  void VisitRuns(uint64_t from, uint64_t to, Visit visit) const {
    if (empty() || to <= begin_ || from >= end_) return;
    Element element;
    Place place = FindByOffset(from);
    while (place.at < bytes_.size() && place.offset < to) {
      place.at = Read(place.at, element);
      VisitElement(element, place.offset, from, to, visit);
      place.offset += element.bytes();
    }
  }
  // All of them, also of a list that no file can have.
  template <typename Visit>
  void VisitRuns(Visit visit) const {
    Element element;
    uint64_t offset = begin_;
    for (size_t at = 0; at < bytes_.size(); offset += element.bytes()) {
      at = Read(at, element);
      VisitPart(element, offset, 0, element.count, visit);
    }
  }

  // Bytes on the device of the extents that begin in [from, to) of the file: all but the holes.
  uint64_t StoredBytes(uint64_t from, uint64_t to) const {
    uint64_t bytes = 0;
    VisitRuns(from, to, [&](const ExtentRun& run) { bytes += run.is_hole() ? 0 : run.count * run.length; });
    return bytes;
  }
  uint64_t StoredBytes() const { return StoredBytes(0, UINT64_MAX); }

  // `extents` follow the last one in the file; the first ones of an empty list say where it begins.
  void Append(std::span<const FileExtent> extents);
  // `more` follows the last extent, or is the whole list.
  void Append(const ExtentList& more);
  void push_back(const FileExtent& extent) { Append(std::span(&extent, 1)); }
  void clear() { *this = ExtentList(); }
  // The `count` extents from `index` on become `now`, of as many bytes together; or they go, if they are the last ones.
  void Replace(uint64_t index, uint64_t count, std::span<const FileExtent> now);

 private:
  // Where an element begins: byte of bytes_, number of its first extent, and where that is in the file.
  struct Place {
    size_t at = 0;
    uint64_t index = 0;
    uint64_t offset = 0;
  };
  class Appender;

  // Decodes the element at `at`; returns where the next one begins.
  size_t Read(size_t at, Element& element) const;
  Place FindByOffset(uint64_t offset) const;
  Place FindByIndex(uint64_t index) const;
  // The last element.
  Place FindLast() const;
  // The last place that is known and for which `is_before` holds.
  template <typename IsBefore>
  Place Skipped(IsBefore is_before) const;
  // Cuts the list before `place`.
  void CutAt(const Place& place);
  // Elements were added.
  void NotePlaces();

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
  // Extents `first` to `end` of an element.
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

  uint64_t begin_ = 0;
  uint64_t end_ = 0;
  uint64_t count_ = 0;
  std::string bytes_;  // the elements, packed
  std::unique_ptr<std::vector<Place>>
      places_;  // of some elements, each kSkipBytes and more behind the one before; rising
};

// Splits what lies in several zones, each extent in one of them, where the zones end. Holes lie in none.
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
