// InodeSnapshot: the inodes as they are at one moment, given out bit by bit while they go on changing. Nothing is
// copied in advance: an inode is saved before its first change, unless it was given already.
//
// Invariant: each inode of that moment was given, is saved, or is unchanged and has a higher id than those given.
//
// Thread safety: as a standard container, together with the inodes.
#pragma once

#include <cstddef>
#include <map>
#include <unordered_set>
#include <vector>

#include "store/metadata/metadata.h"

namespace isozone {

class InodeSnapshot {
 public:
  // Saves inode `id` before it is changed, removed or, if `before` is null, created.
  void Save(InodeId id, const Inode* before) {
    if (id <= given_ || !changed_.insert(id).second) return;
    if (before != nullptr) saved_.push_back(*before);
  }

  // Returns up to `max` of the inodes that were in `inodes` when this object was made, in any order, each once. Returns
  // none when all were given. `inodes` is the map as it is now.
  std::vector<Inode> Next(const std::map<InodeId, Inode>& inodes, size_t max);

 private:
  InodeId given_{0};                     // of the inodes that did not change, those up to here were given
  std::unordered_set<InodeId> changed_;  // changed, created or removed before they were given
  std::vector<Inode> saved_;             // changed or removed inodes, as they were
};

}  // namespace isozone
