// The options of a mount, as they are set in code, and the one table of them as a URI has them: KEY=VALUE. Parsing, the
// comparison of two mounts, `isozone --help` and the test of docs/rocksdb.md follow from the table (mount_options.cc).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "base/uri.h"
#include "insight/stats/page_file.h"
#include "store/gc/gc_round.h"

namespace isozone {

// The options of a mount. The table in mount_options.cc has the range of each option.
struct MountOptions {
  bool read_only = false;
  bool accept_older_metadata = false;  // mounts for writing where newer metadata may be lost (isozone fsck --repair)
  std::string policy = "isozone";      // placement policy, by name
  uint32_t stripe_width = 16;          // zones that a file is written to at once, at most. ZenFS+ IV.B
  uint32_t log_width = 8;              // zones that a log is written to at once, at most
  uint64_t stripe_unit = 384 * kKiB;  // bytes that go to one of these at a time, rounded up to what the device programs
  uint64_t writer_memory = 16 * kMiB;      // bytes that a writer of data holds at most, or two units if these are more
  uint64_t read_ahead_memory = 64 * kMiB;  // bytes that all compaction reads hold ahead of time at most; 0: none
  bool isolation = true;                   // keeps logs and flushes out of the way of compaction; ZenFS+ IV.C
  uint32_t write_gap = 24;           // with isolation: while users read, flushes start to program in a group at most
                                     // once in so many program times, other writes more often; 0: no gap
  uint64_t write_buffer = 1 * kMiB;  // bytes that a writer of logs, or any under `zenfs`, collects before it writes
  GcOptions gc = {.scheme = ""};     // how GC works; an empty scheme stands for that of the policy (GcScheme)
  uint64_t checkpoint_after = 32 * kMiB;  // bytes of journal after which a checkpoint is taken
  uint64_t kept_memory = 32 * kMiB;  // bytes of shared memory for what the device does not have yet, which outlives
                                     // the process (store/kept)
  std::string kept_memory_directory = kPageDirectory;  // where the files of that memory and of readers' pins are
  uint32_t reader_hold = 50;  // percent of the device that readers in other processes may keep from being used again,
                              // where there is no other space (store/pins)

  // Returns gc.scheme, or where that is empty: "none" with `zenfs`, "lifetime" with `lifetime`, else "isozone".
  std::string GcScheme() const;

  // Takes every option of the table out of `options`, and returns them; those that are not there have their default.
  static Result<MountOptions> FromUri(UriOptions& options);

  // Returns all options but read_only, as a URI would have them, in one line: "policy=isozone stripe_width=16 ...".
  // Equal lines mean equal mounts.
  std::string ToString() const;
};

// Returns `gc` changed as `text` says: the name of a scheme ("lifetime"), or options as a URI has them
// ("gc=lifetime&gc_start=20"). The name of a scheme is not checked. kInvalidArgument for any other options.
Result<GcOptions> ParseGcOptions(std::string_view text, GcOptions gc);

// One option of the table, as `isozone --help` shows it.
struct MountOptionHelp {
  std::string example;        // "stripe_width=N"
  std::string default_value;  // "16"
  std::string_view meaning;   // a few words
};
// Returns all options, in the order of the table.
std::vector<MountOptionHelp> ListMountOptions();

}  // namespace isozone
