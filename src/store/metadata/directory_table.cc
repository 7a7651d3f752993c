#include "store/metadata/directory_table.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <span>
#include <utility>

#include "base/varint.h"

namespace isozone {
namespace {

using Entry = DirectoryTable::Entry;

// Reads the entry at `at`, and returns where the next one begins.
size_t ReadEntry(const std::vector<char>& chunk, size_t at, Entry& entry) {
  const auto length = static_cast<unsigned char>(chunk[at]);
  entry.name = std::string_view(&chunk[at + 1], length);
  std::span<const std::byte> rest = std::as_bytes(std::span(chunk)).subspan(at + 1 + length);
  uint64_t inode = 0;
  const bool whole = TakeVarint(rest, inode);
  assert(whole);
  (void)whole;
  entry.inode = InodeId(inode);
  return chunk.size() - rest.size();
}

}  // namespace

DirectoryTable::Iterator::Iterator(const Chunks* chunks, Chunks::const_iterator chunk, size_t at)
    : chunks_(chunks), chunk_(chunk), at_(at) {
  Read();
}

void DirectoryTable::Iterator::Read() {
  if (chunk_ != chunks_->end() && at_ == chunk_->second.size()) {
    ++chunk_;
    at_ = 0;
  }
  if (chunk_ != chunks_->end()) next_ = ReadEntry(chunk_->second, at_, entry_);
}

DirectoryTable::Iterator& DirectoryTable::Iterator::operator++() {
  at_ = next_;
  Read();
  return *this;
}

DirectoryTable::Slot DirectoryTable::FindIn(Chunks::iterator chunk, std::string_view name) {
  Entry entry;
  for (size_t at = 0; at < chunk->second.size();) {
    const size_t next = ReadEntry(chunk->second, at, entry);
    if (entry.name == name) return {chunk, at, next - at};
    if (entry.name > name) return {chunk, at, 0};
    at = next;
  }
  return {chunk, chunk->second.size(), 0};
}

bool DirectoryTable::Insert(std::string_view name, InodeId inode) {
  assert(!name.empty() && name.size() <= 255);
  if (chunks_.empty()) chunks_.emplace("", Chunk());
  const Slot slot = FindIn(std::prev(chunks_.upper_bound(name)), name);
  if (slot.size > 0) return false;
  std::string entry(1, static_cast<char>(name.size()));
  entry += name;
  PutVarint(inode.value(), entry);
  Chunk& chunk = slot.chunk->second;
  const bool at_its_end = slot.at == chunk.size();
  if (chunk.capacity() < chunk.size() + entry.size()) chunk.reserve(chunk.size() + std::max<size_t>(entry.size(), 64));
  chunk.insert(chunk.begin() + static_cast<ptrdiff_t>(slot.at), entry.begin(), entry.end());
  if (chunk.size() > kChunkBytes) Split(slot.chunk, at_its_end);
  return true;
}

void DirectoryTable::Split(Chunks::iterator chunk, bool at_its_end) {
  Chunk& bytes = chunk->second;
  Entry entry;
  size_t middle = 0;
  // Names that come in rising order, as those of new tables do, leave full chunks behind.
  for (size_t next = 0; next < bytes.size();) {
    middle = next;
    next = ReadEntry(bytes, next, entry);
    if (!at_its_end && next > bytes.size() / 2) break;
  }
  if (middle == 0) middle = ReadEntry(bytes, 0, entry);
  ReadEntry(bytes, middle, entry);
  chunks_.emplace_hint(std::next(chunk), std::string(entry.name),
                       Chunk(bytes.begin() + static_cast<ptrdiff_t>(middle), bytes.end()));
  bytes.resize(middle);
  bytes.shrink_to_fit();
}

void DirectoryTable::Erase(std::string_view name) {
  if (chunks_.empty()) return;
  const Slot slot = FindIn(std::prev(chunks_.upper_bound(name)), name);
  if (slot.size == 0) return;
  const auto first = slot.chunk->second.begin() + static_cast<ptrdiff_t>(slot.at);
  slot.chunk->second.erase(first, first + static_cast<ptrdiff_t>(slot.size));
  if (slot.chunk->second.size() < kChunkBytes / 4) Merge(slot.chunk);
}

void DirectoryTable::Merge(Chunks::iterator chunk) {
  const auto take_next = [this](Chunks::iterator into) {
    const auto next = std::next(into);
    if (next == chunks_.end()) return false;
    if (!into->second.empty() && into->second.size() + next->second.size() > kChunkBytes / 2) return false;
    into->second.insert(into->second.end(), next->second.begin(), next->second.end());
    into->second.shrink_to_fit();
    chunks_.erase(next);
    return true;
  };
  if (take_next(chunk)) return;
  if (chunk != chunks_.begin() && take_next(std::prev(chunk))) return;
  if (chunk->second.empty()) chunks_.erase(chunk);
}

std::optional<InodeId> DirectoryTable::Find(std::string_view name) const {
  if (chunks_.empty()) return std::nullopt;
  const auto chunk = std::prev(chunks_.upper_bound(name));
  Entry entry;
  for (size_t at = 0; at < chunk->second.size();) {
    at = ReadEntry(chunk->second, at, entry);
    if (entry.name == name) return entry.inode;
    if (entry.name > name) break;
  }
  return std::nullopt;
}

DirectoryTable::Iterator DirectoryTable::Behind(std::string_view name) const {
  if (chunks_.empty()) return end();
  const auto chunk = std::prev(chunks_.upper_bound(name));
  Entry entry;
  size_t at = 0;
  while (at < chunk->second.size()) {
    const size_t next = ReadEntry(chunk->second, at, entry);
    if (entry.name > name) break;
    at = next;
  }
  return {&chunks_, chunk, at};
}

}  // namespace isozone
