#include "store/extent_list.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/varint.h"

namespace isozone {
namespace {

using Element = ExtentList::Element;

thread_local uint64_t steps_taken = 0;

// The first byte of an element: how many low bits are left out, as they are 0 in all of its numbers; and two flags.
constexpr uint8_t kShiftMask = 0x3F;
constexpr uint8_t kStripe = 0x40;   // the count and the number of columns follow; without it, the element is one extent
constexpr uint8_t kCounted = 0x80;  // each distance between columns is followed by how often it occurs in a row

// Calls `visit` with each distance between neighbouring columns, shifted and in zig-zag, and with how often it occurs
// in a row.
template <typename Visit>
void VisitDistances(const Element& element, int shift, Visit visit) {
  for (size_t i = 1; i < element.columns;) {
    const uint64_t distance = element.starts[i] - element.starts[i - 1];
    size_t end = i + 1;
    while (end < element.columns && element.starts[end] - element.starts[end - 1] == distance) ++end;
    visit(ZigZag(static_cast<uint64_t>(static_cast<int64_t>(distance) >> shift)), end - i);
    i = end;
  }
}

int ShiftOf(const Element& element) {
  uint64_t all = element.length;
  for (size_t i = 0; i < element.columns; ++i) all |= element.starts[i];
  return all == 0 ? 0 : std::countr_zero(all);
}

// The bytes of an element while it is being packed.
class Spelling {
 public:
  using value_type = char;

  void push_back(char byte) { bytes_[size_++] = byte; }
  std::string_view view() const { return {bytes_.data(), size_}; }

 private:
  // Head, length, count, number of columns, and the first column; for each further column a distance and its count.
  std::array<char, 1 + (4 + 2 * ExtentList::kColumnsMax) * kVarintMax> bytes_;
  size_t size_ = 0;
};

void Pack(const Element& element, Spelling& out) {
  const int shift = ShiftOf(element);
  size_t one_by_one = 0;
  size_t counted = 0;
  VisitDistances(element, shift, [&](uint64_t distance, uint64_t times) {
    one_by_one += VarintSize(distance) * times;
    counted += VarintSize(distance) + VarintSize(times);
  });
  auto head = static_cast<uint8_t>(shift);
  if (element.count > 1) head |= kStripe;
  if (counted < one_by_one) head |= kCounted;
  out.push_back(static_cast<char>(head));
  PutVarint(element.length >> shift, out);
  if (element.count > 1) {
    PutVarint(element.count, out);
    PutVarint(element.columns, out);
  }
  PutVarint(element.starts[0] >> shift, out);
  VisitDistances(element, shift, [&](uint64_t distance, uint64_t times) {
    for (uint64_t i = 0; i < (counted < one_by_one ? 1 : times); ++i) PutVarint(distance, out);
    if (counted < one_by_one) PutVarint(times, out);
  });
}

// Returns whether these are the bytes that Pack makes of the element.
bool IsSpelt(const Element& element, std::span<const std::byte> bytes) {
  Spelling spelling;
  Pack(element, spelling);
  return std::ranges::equal(std::as_bytes(std::span(spelling.view())), bytes);
}

// Reads the distances between the columns of an element of which the first column is known. Returns false if they are
// not there.
bool UnpackColumns(std::span<const std::byte>& in, int shift, bool counted, Element& element) {
  for (size_t i = 1; i < element.columns;) {
    uint64_t distance = 0;
    uint64_t times = 1;
    if (!TakeVarint(in, distance) || (counted && !TakeVarint(in, times))) return false;
    if (times == 0 || times > element.columns - i) return false;
    for (; times > 0; --times, ++i) element.starts[i] = element.starts[i - 1] + (UnZigZag(distance) << shift);
  }
  return true;
}

// Takes an element from the front. Returns false if there is none. Pack might have packed the element otherwise.
bool Unpack(std::span<const std::byte>& in, Element& element) {
  if (in.empty()) return false;
  const auto head = static_cast<uint8_t>(in.front());
  in = in.subspan(1);
  const int shift = head & kShiftMask;
  uint64_t columns = 1;
  element.count = 1;
  if (!TakeVarint(in, element.length)) return false;
  if ((head & kStripe) != 0 && (!TakeVarint(in, element.count) || !TakeVarint(in, columns))) return false;
  if (columns == 0 || columns > ExtentList::kColumnsMax || element.count < columns) return false;
  element.columns = columns;
  if (!TakeVarint(in, element.starts[0])) return false;
  element.length <<= shift;
  element.starts[0] <<= shift;
  return UnpackColumns(in, shift, (head & kCounted) != 0, element);
}

// Returns whether Element::Add makes this element of its extents.
bool IsMadeByAdding(const Element& element) {
  if (element.count > element.columns && !element.repeats()) return false;
  if (!element.repeats()) return true;
  const auto columns = std::span(element.starts).first(element.columns);
  return std::find(columns.begin() + 1, columns.end(), element.starts[0] + element.length) == columns.end();
}

// The extents of `element` from number `first` on, as an element of which they are the first ones.
Element RestOf(const Element& element, uint64_t first) {
  Element rest;
  rest.length = element.length;
  rest.count = element.count - first;
  rest.columns = std::min<uint64_t>(element.columns, rest.count);
  for (size_t i = 0; i < rest.columns; ++i) rest.starts[i] = element.place(first + i);
  return rest;
}

bool FitsBehind(uint64_t offset, const Element& element) {
  return element.length > 0 && element.count <= (UINT64_MAX - offset) / element.length;
}

}  // namespace

Element& Element::operator=(const Element& other) {
  length = other.length;
  count = other.count;
  columns = other.columns;
  std::copy_n(other.starts.begin(), columns, starts.begin());
  return *this;
}

bool Element::operator==(const Element& other) const {
  return length == other.length && count == other.count && columns == other.columns &&
         std::equal(starts.begin(), starts.begin() + static_cast<ptrdiff_t>(columns), other.starts.begin());
}

void Element::Begin(uint64_t device_offset, uint64_t extent_length) {
  length = extent_length;
  count = 1;
  columns = 1;
  starts[0] = device_offset;
}

void Element::KeepFirst(uint64_t n) {
  count = n;
  columns = std::min<uint64_t>(columns, n);
}

bool Element::Add(uint64_t device_offset, uint64_t extent_length) {
  ++steps_taken;
  if (extent_length != length) return false;
  const bool goes_on = device_offset == place(count);
  if (count == columns && !(goes_on && repeats())) {
    if (columns == kColumnsMax) return false;
    starts[columns++] = device_offset;
  } else if (!goes_on) {
    return false;
  }
  ++count;
  return true;
}

// Makes the part of a list anew that an edit changes:
//
//   stays | from: extents that are added | to: extents that are added again | from here on, all is as it was
//
// The first element that is made goes on with the extents before `from`, and old ones are added again until an element
// begins where one began before.
class ExtentList::Rewriter {
 public:
  // Extents, or the list, begin or end at `from`.
  Rewriter(ExtentList& list, uint64_t from) : list_(list), begin_(list.First()), end_(from) {
    if (list.empty() || from <= list.begin_offset()) return;
    Place next;
    begin_ = list_.Find(from - 1, open_, next);
    open_.KeepFirst((from - begin_.file_offset) / open_.length);
    if (begin_.at == 0) return;
    const Chunk& chunk = *list_.chunks_[begin_.chunk];
    made_.push_back({chunk.file_offset, chunk.bytes.substr(0, begin_.at)});
  }

  void Add(uint64_t device_offset, uint64_t length) {
    if (!Join(device_offset, length)) Begin(device_offset, length);
  }
  // Adds the extents of `element` from number `first` on. Where they repeat, they are not added one by one.
  void AddFrom(const Element& element, uint64_t first) {
    size_t joined = 0;  // in a row
    for (uint64_t i = first; i < element.count; ++i) {
      const bool goes_round = open_.columns == element.columns && open_.count > open_.columns;
      if (joined >= element.columns && goes_round) {
        open_.count += element.count - i;
        end_ += (element.count - i) * element.length;
        return;
      }
      if (Join(element.place(i), element.length)) {
        ++joined;
        continue;
      }
      joined = 0;
      Begin(element.place(i), element.length);
      if (Element rest = RestOf(element, i); IsMadeByAdding(rest)) {
        end_ += rest.bytes() - rest.length;
        open_ = rest;
        return;
      }
    }
  }

  // Goes on with what the list has from `to` on, and ends.
  void GoOnFrom(uint64_t to) {
    Place rest = begin_;
    Element element;
    while (rest.chunk < list_.chunks_.size()) {
      const Place next = list_.Read(rest, element);
      if (rest.file_offset >= to) {
        if (!Join(element.starts[0], element.length)) break;
        AddFrom(element, 1);
      } else if (rest.file_offset + element.bytes() > to) {
        AddFrom(element, (to - rest.file_offset) / element.length);
      }
      list_.count_ -= element.count;
      rest = next;
    }
    Finish();
    Splice(rest);
  }

 private:
  // Returns false if a new element begins with this extent.
  bool Join(uint64_t device_offset, uint64_t length) {
    if (open_.count == 0 || !open_.Add(device_offset, length)) return false;
    end_ += length;
    return true;
  }
  void Begin(uint64_t device_offset, uint64_t length) {
    Finish();
    ++steps_taken;
    open_.Begin(device_offset, length);
    end_ += length;
  }
  void Finish() {
    if (open_.count == 0) return;
    Spelling spelling;
    Pack(open_, spelling);
    Put(made_, end_ - open_.bytes(), spelling.view());
    list_.count_ += open_.count;
    open_.count = 0;
  }
  // What was made takes the place of what lay up to `rest`.
  void Splice(const Place& rest) {
    Chunks& chunks = list_.chunks_;
    if (rest.chunk == chunks.size()) list_.end_ = end_;
    size_t behind = rest.chunk;
    if (rest.at > 0) Put(made_, rest.file_offset, std::string_view(chunks[behind++]->bytes).substr(rest.at));
    const auto first = chunks.begin() + static_cast<ptrdiff_t>(begin_.chunk);
    const auto last = chunks.begin() + static_cast<ptrdiff_t>(behind);
    for (auto it = first; it != last; ++it) list_.packed_size_ -= (*it)->bytes.size();
    for (const Chunk& chunk : made_) list_.packed_size_ += chunk.bytes.size();
    Chunks made = Share(std::move(made_));
    const size_t end = begin_.chunk + made.size();
    const auto in_place = std::min(last - first, static_cast<ptrdiff_t>(made.size()));
    std::move(made.begin(), made.begin() + in_place, first);
    chunks.erase(first + in_place, last);
    chunks.insert(chunks.begin() + static_cast<ptrdiff_t>(begin_.chunk) + in_place,
                  std::make_move_iterator(made.begin() + in_place), std::make_move_iterator(made.end()));
    JoinSmall(end);
  }
  // Joins neighbours that have become small, up to chunk `last`.
  void JoinSmall(size_t last) {
    Chunks& chunks = list_.chunks_;
    for (size_t i = std::max<size_t>(begin_.chunk, 1) - 1; i < last && i + 1 < chunks.size();) {
      const Chunk& behind = *chunks[i + 1];
      if (chunks[i]->bytes.size() + behind.bytes.size() > kChunkBytes / 2) {
        ++i;
        continue;
      }
      Chunk joined = *chunks[i];
      joined.late_at = joined.bytes.size() + behind.late_at;
      joined.late_file_offset = behind.late_file_offset;
      joined.bytes += behind.bytes;
      chunks[i] = std::make_shared<const Chunk>(std::move(joined));
      chunks.erase(chunks.begin() + static_cast<ptrdiff_t>(i) + 1);
    }
  }

  ExtentList& list_;
  Place begin_;              // of the first element that is made anew
  std::vector<Chunk> made_;  // from the beginning of its chunk on
  Element open_;             // the element that is being made; count 0: none
  uint64_t end_;             // of open_, in the file
};

uint64_t ExtentList::steps() { return steps_taken; }

ExtentList& ExtentList::operator=(ExtentList&& other) noexcept {
  end_ = std::exchange(other.end_, 0);
  count_ = std::exchange(other.count_, 0);
  packed_size_ = std::exchange(other.packed_size_, 0);
  chunks_ = std::exchange(other.chunks_, {});
  return *this;
}

std::optional<ExtentList> ExtentList::Parse(uint64_t offset, std::span<const std::byte> packed) {
  ExtentList list;
  if (packed.empty()) return offset == 0 ? std::optional(std::move(list)) : std::nullopt;
  list.end_ = offset;
  list.packed_size_ = packed.size();
  std::vector<Chunk> chunks;
  std::array<Element, 2> elements;
  for (size_t i = 0; !packed.empty(); i ^= 1) {
    Element& element = elements[i];
    Element& before = elements[i ^ 1];
    const std::span<const std::byte> rest = packed;
    if (!Unpack(packed, element)) return std::nullopt;
    const std::span<const std::byte> bytes = rest.first(rest.size() - packed.size());
    if (!IsSpelt(element, bytes)) return std::nullopt;
    if (!IsMadeByAdding(element) || !FitsBehind(list.end_, element)) return std::nullopt;
    if (!chunks.empty() && before.Add(element.starts[0], element.length)) return std::nullopt;
    Put(chunks, list.end_, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    list.end_ += element.bytes();
    list.count_ += element.count;
  }
  list.chunks_ = Share(std::move(chunks));
  return list;
}

std::string ExtentList::Packed() const {
  std::string packed;
  packed.reserve(packed_size_);
  for (const auto& chunk : chunks_) packed += chunk->bytes;
  return packed;
}

void ExtentList::Put(std::vector<Chunk>& chunks, uint64_t file_offset, std::string_view packed) {
  if (chunks.empty() || chunks.back().bytes.size() + packed.size() > kChunkBytes) chunks.push_back({file_offset, {}});
  Chunk& chunk = chunks.back();
  chunk.late_at = chunk.bytes.size();
  chunk.late_file_offset = file_offset;
  chunk.bytes += packed;
}

ExtentList::Chunks ExtentList::Share(std::vector<Chunk> chunks) {
  Chunks shared;
  shared.reserve(chunks.size());
  for (Chunk& chunk : chunks) shared.push_back(std::make_shared<const Chunk>(std::move(chunk)));
  return shared;
}

ExtentList::Place ExtentList::Read(const Place& place, Element& element) const {
  ++steps_taken;
  const std::string& bytes = chunks_[place.chunk]->bytes;
  std::span<const std::byte> rest = std::as_bytes(std::span(bytes)).subspan(place.at);
  const bool whole = Unpack(rest, element);
  assert(whole);
  (void)whole;
  const uint64_t end = place.file_offset + element.bytes();
  if (rest.empty()) return {place.chunk + 1, 0, end};
  return {place.chunk, bytes.size() - rest.size(), end};
}

ExtentList::Place ExtentList::Find(uint64_t offset, Element& element, Place& next) const {
  if (offset >= end_) return next = {chunks_.size(), 0, end_};
  const auto behind = std::partition_point(chunks_.begin(), chunks_.end(),
                                           [&](const auto& chunk) { return chunk->file_offset <= offset; });
  const auto chunk = static_cast<size_t>(std::max<ptrdiff_t>(behind - chunks_.begin(), 1) - 1);
  Place place{chunk, 0, chunks_[chunk]->file_offset};
  if (const Chunk& c = *chunks_[chunk]; c.late_file_offset <= offset) place = {chunk, c.late_at, c.late_file_offset};
  for (next = Read(place, element); next.file_offset <= offset; next = Read(place, element)) place = next;
  return place;
}

ExtentList::Iterator ExtentList::begin() const {
  if (empty()) return end();
  Iterator it;
  it.list_ = this;
  it.place_ = First();
  it.next_ = Read(it.place_, it.element_);
  return it;
}

ExtentList::Iterator ExtentList::end() const {
  Iterator it;
  it.list_ = this;
  it.place_ = {chunks_.size(), 0, end_};
  return it;
}

ExtentList::Iterator ExtentList::At(uint64_t offset) const {
  Iterator it;
  it.list_ = this;
  it.place_ = Find(offset, it.element_, it.next_);
  if (offset < end_) it.in_ = (offset - it.place_.file_offset) / it.element_.length;
  return it;
}

FileExtent ExtentList::Iterator::operator*() const {
  return {place_.file_offset + in_ * element_.length, DeviceOffset(element_.place(in_)), element_.length};
}

ExtentList::Iterator& ExtentList::Iterator::operator++() {
  if (++in_ < element_.count) return *this;
  place_ = next_;
  in_ = 0;
  if (place_.chunk < list_->chunks_.size()) next_ = list_->Read(place_, element_);
  return *this;
}

ExtentList ExtentList::From(uint64_t offset) const {
  ExtentList list;
  Element element;
  Place next;
  const Place place = Find(offset, element, next);
  if (place.chunk == chunks_.size()) return list;
  uint64_t first = (offset - place.file_offset) / element.length;
  const uint64_t skip = (offset - place.file_offset) % element.length;
  Rewriter rewriter(list, offset);
  if (skip > 0) {
    const FileExtent parted{0, DeviceOffset(element.place(first++)), element.length};
    rewriter.Add(parted.PlaceOf(skip).value(), element.length - skip);
  }
  rewriter.AddFrom(element, first);
  while (next.chunk < chunks_.size()) {
    next = Read(next, element);
    rewriter.AddFrom(element, 0);
  }
  rewriter.GoOnFrom(UINT64_MAX);
  return list;
}

std::vector<FileExtent> ExtentList::Expand(uint64_t from, uint64_t to) const {
  std::vector<FileExtent> extents;
  const Iterator behind = end();
  for (Iterator it = from <= begin_offset() ? begin() : At(from); it != behind; ++it) {
    const FileExtent extent = *it;
    if (extent.file_offset >= to) break;
    extents.push_back(extent);
  }
  return extents;
}

bool ExtentList::BeginsWith(const ExtentList& other) const {
  if (other.empty()) return true;
  if (count_ < other.count_ || begin_offset() != other.begin_offset()) return false;
  Element mine;
  Element its;
  // Most often the one was a copy of the other.
  const size_t few = std::min(chunks_.size(), other.chunks_.size());
  size_t shared = 0;
  while (shared < few && chunks_[shared] == other.chunks_[shared]) ++shared;
  if (shared == other.chunks_.size()) return true;
  if (shared == chunks_.size()) return false;
  Place at{shared, 0, chunks_[shared]->file_offset};
  Place other_at{shared, 0, other.chunks_[shared]->file_offset};
  while (other_at.chunk < other.chunks_.size()) {
    at = Read(at, mine);
    other_at = other.Read(other_at, its);
    const bool is_last = other_at.chunk == other.chunks_.size();
    if (is_last && its.count < mine.count) mine.KeepFirst(its.count);
    if (!(mine == its)) return false;
  }
  return true;
}

void ExtentList::Append(std::span<const FileExtent> extents) {
  if (extents.empty()) return;
  assert(empty() || extents.front().file_offset <= end_);
  Rewriter rewriter(*this, extents.front().file_offset);
  for (const FileExtent& extent : extents) rewriter.Add(extent.device_offset.value(), extent.length);
  rewriter.GoOnFrom(UINT64_MAX);
}

void ExtentList::Append(const ExtentList& more) {
  if (more.empty()) return;
  if (empty()) {
    *this = more;
    return;
  }
  assert(more.begin_offset() == end_);
  Rewriter rewriter(*this, end_);
  Element element;
  for (Place place = more.First(); place.chunk < more.chunks_.size();) {
    place = more.Read(place, element);
    rewriter.AddFrom(element, 0);
  }
  rewriter.GoOnFrom(UINT64_MAX);
}

void ExtentList::Replace(std::span<const FileExtent> now) {
  if (now.empty()) return;
  Rewriter rewriter(*this, now.front().file_offset);
  for (const FileExtent& extent : now) rewriter.Add(extent.device_offset.value(), extent.length);
  rewriter.GoOnFrom(now.back().file_offset + now.back().length);
}

ExtentList ExtentList::CutAt(uint64_t offset) {
  if (offset >= end_) return {};
  if (offset <= begin_offset()) return std::exchange(*this, ExtentList());
  ExtentList cut = From(offset);
  const FileExtent last = *At(offset);
  Rewriter rewriter(*this, last.file_offset);
  if (last.file_offset < offset) rewriter.Add(last.device_offset.value(), offset - last.file_offset);
  rewriter.GoOnFrom(UINT64_MAX);
  return cut;
}

namespace {

// The extents around the first of `placed`, and how many of these lie there: nothing that becomes of them depends on
// an extent farther away.
std::vector<FileExtent> Around(const ExtentList& extents, std::span<const FileExtent> placed, size_t& count) {
  std::vector<FileExtent> around;
  const uint64_t first = (*extents.At(placed.front().file_offset)).file_offset;
  uint64_t end = placed.front().file_offset + placed.front().length;
  count = 1;
  int behind = 0;
  const auto list_end = extents.end();
  for (auto it = extents.At(std::max(first, extents.begin_offset() + 1) - 1); it != list_end && behind < 2; ++it) {
    around.push_back(*it);
    const uint64_t around_to = around.back().file_offset + around.back().length;
    for (; count < placed.size() && placed[count].file_offset < around_to; ++count) {
      end = placed[count].file_offset + placed[count].length;
    }
    behind = around.back().file_offset >= end ? behind + 1 : 0;
  }
  return around;
}

}  // namespace

std::vector<ExtentChange> PlanChanges(const ExtentList& extents, std::span<const FileExtent> placed,
                                      uint64_t zone_size) {
  std::vector<ExtentChange> changes;
  while (!placed.empty()) {
    size_t count = 0;
    const std::vector<FileExtent> around = Around(extents, placed, count);
    for (ExtentEdit& edit : PlanEdits(around, placed.first(count), zone_size)) {
      const auto before = std::span(around).subspan(edit.index, edit.count);
      changes.push_back({{before.begin(), before.end()}, std::move(edit.now)});
    }
    placed = placed.subspan(count);
  }
  return changes;
}

}  // namespace isozone
