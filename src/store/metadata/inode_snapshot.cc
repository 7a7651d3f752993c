#include "store/metadata/inode_snapshot.h"

#include <utility>

namespace isozone {

std::vector<Inode> InodeSnapshot::Next(const std::map<InodeId, Inode>& inodes, size_t max) {
  std::vector<Inode> next;
  while (next.size() < max && !saved_.empty()) {
    next.push_back(std::move(saved_.back()));
    saved_.pop_back();
  }
  for (auto it = inodes.upper_bound(given_); it != inodes.end() && next.size() < max; ++it) {
    given_ = it->first;
    // An inode that has changed since the snapshot began was saved, and is given from there.
    if (changed_.erase(it->first) == 0) next.push_back(it->second);
  }
  return next;
}

}  // namespace isozone
