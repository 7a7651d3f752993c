// What a simulation has found. Bytes are those of whole records.
//
// Thread safety: values.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace isozone {

// The number of zones that are not empty, by the share of their capacity that is live, in tenths. The last number
// includes zones in which all of it is.
using UtilisationHistogram = std::array<uint32_t, 10>;

// Why writers waited, in virtual time.
struct SimStalls {
  int64_t memtables_ns = 0;  // every memtable was full
  int64_t slowdown_ns = 0;   // level 0 or the compaction debt slowed them down; what that added
  int64_t level0_ns = 0;     // level 0 had too many files
  int64_t pending_ns = 0;    // too much was to be compacted
  int64_t log_ns = 0;        // no lane or zone was there for the log, or it was waited for (log_writer.h)
  int64_t pace_ns = 0;       // space was short (WritePace)
};

// The zones at a moment.
struct SimSample {
  int64_t time_ns = 0;
  uint64_t put_bytes = 0;
  uint64_t copied_bytes = 0;
  uint64_t compaction_bytes = 0;
  uint32_t zones_in_use = 0;  // not empty
  double free_percent = 0;    // percentage of the space that tables can have
  UtilisationHistogram zones = {};
};

struct SimReport {
  // The load.
  uint64_t puts = 0;  // records
  uint64_t put_bytes = 0;
  uint64_t live_bytes = 0;  // bytes of the records that are there
  int64_t put_ns = 0;       // when the last one was put
  int64_t settled_ns = 0;   // when nothing was left to compact
  SimStalls stalls;
  int64_t space_wait_ns = 0;  // how long flushes and compactions waited for zones

  // Bytes written and read for it.
  uint64_t log_bytes = 0;
  uint64_t flush_bytes = 0;
  uint64_t compaction_bytes = 0;
  uint64_t short_lived_bytes = 0;  // included in compaction_bytes
  uint64_t compaction_read_bytes = 0;
  uint64_t copied_bytes = 0;   // by GC
  uint64_t dropped_bytes = 0;  // copied in vain: their tables were gone by then
  uint64_t gc_read_bytes = 0;
  uint64_t media_bytes = 0;  // programmed
  uint64_t dummy_bytes = 0;  // included in media_bytes: in place of data, where zones are finished or reset

  // Counts.
  uint64_t compactions = 0;  // moves not included
  uint64_t moved_files = 0;  // by trivial moves
  uint64_t largest_compaction_files = 0;
  uint64_t collected_zones = 0;
  uint64_t resets = 0;
  uint64_t finishes = 0;

  // The state at the end.
  uint64_t files = 0;
  uint64_t file_bytes = 0;
  uint32_t zones = 0;  // zones of the device
  uint64_t zone_capacity = 0;
  SimSample end;
  uint32_t zones_in_use_most = 0;  // of all samples
  std::vector<SimSample> samples;  // as puts went on

  // Returns what the database has written.
  uint64_t database_bytes() const { return log_bytes + flush_bytes + compaction_bytes; }
  // Returns what the database and GC have written: all that the device is given.
  uint64_t host_bytes() const { return database_bytes() + copied_bytes + dropped_bytes; }
  // Write amplification is the product of three ratios: what the database writes for each byte that is put, what GC
  // adds to that, and what the device adds to that. 0 of 0 is 0.
  double compaction_amplification() const { return Ratio(database_bytes(), put_bytes); }
  double gc_amplification() const { return Ratio(host_bytes(), database_bytes()); }
  double device_amplification() const { return Ratio(media_bytes, host_bytes()); }
  double write_amplification() const { return Ratio(media_bytes, put_bytes); }
  // How many bytes tables, and zones, take for each byte of live records.
  double table_space_amplification() const { return Ratio(file_bytes, live_bytes); }
  double zone_space_amplification() const { return Ratio(end.zones_in_use * zone_capacity, live_bytes); }

 private:
  static double Ratio(uint64_t part, uint64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
  }
};

}  // namespace isozone
