// DirectoryTable: the names in a directory and the inodes that they lead to, in order of name. It costs some 8 bytes
// for a name, and the name, since directories may have millions of them.
//
// Names lie packed in *chunks* of up to kChunkBytes, each of which has the names from its key on up to the key of the
// next one. A look-up finds its chunk in a tree and reads that from its start.
//
//   "" -> 000001.sst 7 | 000002.sst 8 | 000005.sst 11      "000009.sst" -> 000009.sst 12 | CURRENT 3 | ...
//
// Invariants: no chunk is empty; the first one has the key "".
//
// Thread safety: as a standard container.
#pragma once

#include <compare>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/metadata/inode_id.h"

namespace isozone {

class DirectoryTable {
 public:
  static constexpr size_t kChunkBytes = 512;

  struct Entry {
    std::string_view name;  // valid until the table changes
    InodeId inode;
  };

 private:
  using Chunk = std::vector<char>;  // entries: length of the name (1 byte), name, inode (a varint)
  using Chunks = std::map<std::string, Chunk, std::less<>>;

 public:
  // Goes through the names in order. Ends with the next change of the table.
  class Iterator {
   public:
    Entry operator*() const { return entry_; }
    Iterator& operator++();
    bool operator==(const Iterator& other) const { return chunk_ == other.chunk_ && at_ == other.at_; }

   private:
    friend class DirectoryTable;
    Iterator(const Chunks* chunks, Chunks::const_iterator chunk, size_t at);
    void Read();

    const Chunks* chunks_;
    Chunks::const_iterator chunk_;
    size_t at_;        // where the entry begins in its chunk, in bytes
    size_t next_ = 0;  // where the one behind it begins
    Entry entry_;
  };

  // Adds a name of 1 to 255 bytes. Returns false, and changes nothing, if it is there already.
  bool Insert(std::string_view name, InodeId inode);
  // Removes a name. Does nothing if it is not there.
  void Erase(std::string_view name);
  std::optional<InodeId> Find(std::string_view name) const;
  bool empty() const { return chunks_.empty(); }

  Iterator begin() const { return {&chunks_, chunks_.begin(), 0}; }
  Iterator end() const { return {&chunks_, chunks_.end(), 0}; }
  // Returns the first name behind `name`, which need not be there.
  Iterator Behind(std::string_view name) const;

 private:
  // The slot that `name` has or would get.
  struct Slot {
    Chunks::iterator chunk;
    size_t at = 0;    // bytes
    size_t size = 0;  // bytes of the entry; 0: the name is not there
  };
  static Slot FindIn(Chunks::iterator chunk, std::string_view name);
  // Splits a chunk that has become too long.
  void Split(Chunks::iterator chunk, bool at_its_end);
  // Joins a chunk that has become short with a neighbour.
  void Merge(Chunks::iterator chunk);

  Chunks chunks_;
};

}  // namespace isozone
