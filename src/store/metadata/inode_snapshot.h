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
  // Inode `id` is about to change, to be removed or, where `before` is null, to be created.
  void SetAside(InodeId id, const Inode* before) {
    if (id <= given_ || !changed_.insert(id).second) return;
    if (before != nullptr) aside_.push_back(*before);
  }

  // Up to `max` of those that were in `inodes` when this object came to be, in any order, each once; empty when all
  // were given.
  std::vector<Inode> Next(const std::map<InodeId, Inode>& inodes, size_t max);

 private:
  InodeId given_{0};                     // of those that did not change, all up to here were given
  std::unordered_set<InodeId> changed_;  // changed, created or removed before they were given
  std::vector<Inode> aside_;             // as they were
};

}  // namespace isozone
