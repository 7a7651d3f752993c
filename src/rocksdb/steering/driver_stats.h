// ColumnFamilyDriverStats counts what a ColumnFamilyDriver has done. Thread safety: a value.
#pragma once

#include <algorithm>
#include <cstdint>

namespace isozone {

struct ColumnFamilyDriverStats {
  uint64_t compactions = 0;
  uint64_t refused = 0;  // compactions picked from an older view of the tree, and picked anew
  uint64_t failed = 0;
  uint64_t tables_moved = 0;       // to another level, and not written anew
  uint64_t bytes_read = 0;         // of inputs
  uint64_t bytes_written = 0;      // of outputs
  uint64_t short_lived_bytes = 0;  // those of bytes_written that the picker called short-lived
  uint64_t t_zones_most = 0;       // most zones that short-lived tables of one column family had after a compaction
  uint64_t t_zones_sum = 0;        // sum of these zones over all compactions: by their number, the mean of one family
  uint64_t held_flushes = 0;       // flushes that had to wait for compactions

  ColumnFamilyDriverStats& operator+=(const ColumnFamilyDriverStats& other) {
    compactions += other.compactions;
    refused += other.refused;
    failed += other.failed;
    tables_moved += other.tables_moved;
    bytes_read += other.bytes_read;
    bytes_written += other.bytes_written;
    short_lived_bytes += other.short_lived_bytes;
    t_zones_most = std::max(t_zones_most, other.t_zones_most);
    t_zones_sum += other.t_zones_sum;
    held_flushes += other.held_flushes;
    return *this;
  }
};

}  // namespace isozone
