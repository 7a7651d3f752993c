#include "fs/metadata/extent_list.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <string_view>
#include <utility>

#include "base/varint.h"

namespace isozone {
namespace {

using Element = ExtentList::Element;

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

bool FitsBehind(uint64_t offset, const Element& element) {
  return element.length == 0 || element.count <= (UINT64_MAX - offset) / element.length;
}

}  // namespace

Element& Element::operator=(const Element& other) {
  length = other.length;
  count = other.count;
  columns = other.columns;
  std::copy_n(other.starts.begin(), columns, starts.begin());
  return *this;
}

void Element::Begin(uint64_t device_offset, uint64_t extent_length) {
  length = extent_length;
  count = 1;
  columns = 1;
  starts[0] = device_offset;
}

bool Element::Add(uint64_t device_offset, uint64_t extent_length) {
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

// Adds extents to a list. It holds the last element of the list unpacked meanwhile.
class ExtentList::Appender {
 public:
  explicit Appender(ExtentList& list) : list_(list) {
    if (list_.empty()) return;
    const Place last = list_.FindLast();
    list_.Read(last.at, open_);
    list_.bytes_.resize(last.at);
  }
  ~Appender() { Finish(); }
  Appender(const Appender&) = delete;
  Appender& operator=(const Appender&) = delete;

  void Add(uint64_t device_offset, uint64_t length) {
    if (Join(device_offset, length)) return;
    Finish();
    open_.Begin(device_offset, length);
    Count(length);
  }
  // Returns false if a new element begins with this extent.
  bool Join(uint64_t device_offset, uint64_t length) {
    if (open_.count == 0 || !open_.Add(device_offset, length)) return false;
    Count(length);
    return true;
  }
  // Adds the extents of `other` from number `first` on, which lies in the element at `place` or behind it.
  void Take(const ExtentList& other, Place place, uint64_t first) {
    Element element;
    while (place.at < other.bytes_.size()) {
      const size_t next = other.Read(place.at, element);
      uint64_t i = std::max(first, place.index) - place.index;
      if (i == 0 && !Join(element.starts[0], element.length)) break;
      for (i = std::max<uint64_t>(i, 1); i < element.count; ++i) Add(element.place(i), element.length);
      place = {next, place.index + element.count, place.offset + element.bytes()};
    }
    // An element begins where one begins in `other`, so the rest of `other` is taken as it is packed.
    Finish();
    TakePlaces(other, place);
    list_.bytes_.append(other.bytes_, place.at);
    list_.count_ += other.count_ - place.index;
    list_.end_ += other.end_ - place.offset;
  }
  // The places that `other` knows behind `from` are known here as well: they need not be looked for again.
  void TakePlaces(const ExtentList& other, const Place& from) {
    if (other.places_ == nullptr || other.places_->back().at < from.at) return;
    if (list_.places_ == nullptr) list_.places_ = std::make_unique<std::vector<Place>>();
    for (const Place& place : *other.places_) {
      if (place.at < from.at) continue;
      list_.places_->push_back({place.at - from.at + list_.bytes_.size(), place.index - from.index + list_.count_,
                                place.offset - from.offset + list_.end_});
    }
  }
  void Finish() {
    if (open_.count == 0) return;
    Spelling spelling;
    Pack(open_, spelling);
    list_.bytes_ += spelling.view();
    open_.count = 0;
  }

 private:
  void Count(uint64_t length) {
    ++list_.count_;
    list_.end_ += length;
  }

  ExtentList& list_;
  Element open_;  // count 0: none
};

ExtentList& ExtentList::operator=(const ExtentList& other) {
  if (this == &other) return *this;
  begin_ = other.begin_;
  end_ = other.end_;
  count_ = other.count_;
  bytes_ = other.bytes_;
  places_ = other.places_ ? std::make_unique<std::vector<Place>>(*other.places_) : nullptr;
  return *this;
}

ExtentList& ExtentList::operator=(ExtentList&& other) noexcept {
  begin_ = std::exchange(other.begin_, 0);
  end_ = std::exchange(other.end_, 0);
  count_ = std::exchange(other.count_, 0);
  bytes_ = std::exchange(other.bytes_, {});
  places_ = std::exchange(other.places_, nullptr);
  return *this;
}

std::optional<ExtentList> ExtentList::Parse(uint64_t offset, std::span<const std::byte> packed) {
  ExtentList list;
  if (packed.empty()) return offset == 0 ? std::optional(std::move(list)) : std::nullopt;
  list.begin_ = list.end_ = offset;
  const std::span<const std::byte> all = packed;
  std::array<Element, 2> elements;
  for (size_t i = 0; !packed.empty(); i ^= 1) {
    Element& element = elements[i];
    Element& before = elements[i ^ 1];
    const std::span<const std::byte> rest = packed;
    if (!Unpack(packed, element)) return std::nullopt;
    if (!IsSpelt(element, rest.first(rest.size() - packed.size()))) return std::nullopt;
    if (!IsMadeByAdding(element) || !FitsBehind(list.end_, element)) return std::nullopt;
    if (!list.empty() && before.Add(element.starts[0], element.length)) return std::nullopt;
    list.end_ += element.bytes();
    list.count_ += element.count;
  }
  list.bytes_.assign(reinterpret_cast<const char*>(all.data()), all.size());
  list.NotePlaces();
  return list;
}

size_t ExtentList::Read(size_t at, Element& element) const {
  std::span<const std::byte> rest = packed().subspan(at);
  const bool whole = Unpack(rest, element);
  assert(whole);
  (void)whole;
  return bytes_.size() - rest.size();
}

template <typename IsBefore>
ExtentList::Place ExtentList::Skipped(IsBefore is_before) const {
  const Place first{0, 0, begin_};
  if (places_ == nullptr) return first;
  const auto behind = std::partition_point(places_->begin(), places_->end(), is_before);
  return behind == places_->begin() ? first : *std::prev(behind);
}

ExtentList::Place ExtentList::FindByOffset(uint64_t offset) const {
  Place place = Skipped([&](const Place& p) { return p.offset <= offset; });
  Element element;
  while (place.at < bytes_.size()) {
    const size_t next = Read(place.at, element);
    if (offset < place.offset + element.bytes()) break;
    place = {next, place.index + element.count, place.offset + element.bytes()};
  }
  return place;
}

ExtentList::Place ExtentList::FindByIndex(uint64_t index) const {
  Place place = Skipped([&](const Place& p) { return p.index <= index; });
  Element element;
  while (place.at < bytes_.size()) {
    const size_t next = Read(place.at, element);
    if (index < place.index + element.count) break;
    place = {next, place.index + element.count, place.offset + element.bytes()};
  }
  return place;
}

ExtentList::Place ExtentList::FindLast() const { return FindByIndex(count_ - 1); }

ExtentList::Iterator ExtentList::end() const {
  Iterator it;
  it.index_ = count_;
  return it;
}

ExtentList::Iterator ExtentList::At(uint64_t index) const {
  if (index == count_) return end();
  const Place place = FindByIndex(index);
  Iterator it;
  it.list_ = this;
  it.next_ = Read(place.at, it.element_);
  it.index_ = index;
  it.in_ = index - place.index;
  it.offset_ = place.offset + it.in_ * it.element_.length;
  return it;
}

FileExtent ExtentList::Iterator::operator*() const {
  return {offset_, DeviceOffset(element_.place(in_)), element_.length};
}

ExtentList::Iterator& ExtentList::Iterator::operator++() {
  ++index_;
  offset_ += element_.length;
  if (++in_ == element_.count && index_ < list_->count_) {
    next_ = list_->Read(next_, element_);
    in_ = 0;
  }
  return *this;
}

std::vector<FileExtent> ExtentList::Expand(uint64_t index, uint64_t count) const {
  std::vector<FileExtent> extents;
  extents.reserve(count);
  for (Iterator it = At(index); count > 0; --count, ++it) extents.push_back(*it);
  return extents;
}

uint64_t ExtentList::IndexAt(uint64_t offset) const {
  const Place place = FindByOffset(offset);
  if (place.at == bytes_.size()) return count_;
  Element element;
  Read(place.at, element);
  return place.index + (offset - place.offset) / element.length;
}

void ExtentList::Append(std::span<const FileExtent> extents) {
  if (extents.empty()) return;
  if (empty()) begin_ = end_ = extents.front().file_offset;
  {
    Appender appender(*this);
    for (const FileExtent& extent : extents) {
      assert(extent.file_offset == end_);
      appender.Add(extent.device_offset.value(), extent.length);
    }
  }
  NotePlaces();
}

void ExtentList::Append(const ExtentList& more) {
  if (more.empty()) return;
  if (empty()) {
    *this = more;
    return;
  }
  assert(more.begin_ == end_);
  Appender(*this).Take(more, {0, 0, more.begin_}, 0);
  NotePlaces();
}

void ExtentList::Replace(uint64_t index, uint64_t count, std::span<const FileExtent> now) {
  const ExtentList old = *this;
  Place place = FindByIndex(index);
  CutAt(place);
  {
    Appender appender(*this);
    Element element;
    // The extents before `index` that lie in the same element are added again.
    if (place.index < index) old.Read(place.at, element);
    for (uint64_t i = 0; place.index + i < index; ++i) appender.Add(element.place(i), element.length);
    for (const FileExtent& extent : now) appender.Add(extent.device_offset.value(), extent.length);
    appender.Take(old, place, index + count);
  }
  if (empty()) clear();
  NotePlaces();
}

void ExtentList::CutAt(const Place& place) {
  bytes_.resize(place.at);
  count_ = place.index;
  end_ = place.offset;
  if (places_ == nullptr) return;
  std::erase_if(*places_, [&](const Place& p) { return p.at >= place.at; });
  if (places_->empty()) places_ = nullptr;
}

void ExtentList::NotePlaces() {
  const auto known_to = [&] { return places_ == nullptr ? size_t{0} : places_->back().at; };
  if (bytes_.size() < known_to() + 2 * kSkipBytes) return;
  if (places_ == nullptr) places_ = std::make_unique<std::vector<Place>>();
  Place place = places_->empty() ? Place{0, 0, begin_} : places_->back();
  size_t last = place.at;
  Element element;
  while (place.at < bytes_.size()) {
    if (place.at >= last + kSkipBytes) {
      places_->push_back(place);
      last = place.at;
    }
    const size_t next = Read(place.at, element);
    place = {next, place.index + element.count, place.offset + element.bytes()};
  }
  if (places_->empty()) places_ = nullptr;
}

}  // namespace isozone
