// Which options of RocksDB fit a device, each with its reason: the decisions of `isozone advise`.
//
//  * Tables. A table is written to several zones at once, a *stripe set*, and a zone is free when the last table in it
//    is gone. So a whole number of tables fills a stripe set, or a table fills a whole number of them. A thirty-second
//    is left for index and filter, which RocksDB writes beyond the size that it aims at.
//  * Memory. First what Isozone's own writers and read-ahead hold; then memtables, by the workload; the rest is block
//    cache, with filters and indexes in it, but for a tenth that is left alone.
//  * Jobs. One for each core, but not more than zones can be written beside metadata and logs.
//  * Room. What waits for compaction is bounded by the device and not by RocksDB's defaults, which are larger than
//    small devices. A database that does not fit is refused.
//  * Steering (docs/steering.md). A database that is written is compacted by Isozone where one or two compactions run
//    at a time, since that is faster and writes less; and with more of them where the device has little room, since
//    writers are held back before it is full. Else, and for a database that is only read, compaction stays RocksDB's
//    own.
//  * Level 1. It is as large as what level 0 gives at once, since both are rewritten together; half as large where
//    several compactions run at a time, since this one is the longest, and writers wait for it.
//
// Whatever is bounded from above or below has this in its reason.
//
// Thread safety: values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/units.h"

namespace isozone {

enum class Workload : uint8_t { kWrite, kRead, kMixed };
std::string_view WorkloadName(Workload workload);
// Parses the name of a workload. kInvalidArgument lists the known names.
Result<Workload> ParseWorkload(std::string_view text);

// The device, the machine, and what is wanted. Sizes are in bytes.
struct AdviceFacts {
  std::string device;  // as people write it
  uint32_t zones = 0;
  uint64_t zone_capacity = 0;
  uint32_t max_active = 0;             // zones, the least of the limits of the device; 0: no limit
  std::optional<uint32_t> groups;      // of zones that share hardware; 0: no zone slows another; none: not measured
  uint32_t stripe_width = 16;          // zones; the mount's option
  uint64_t writer_memory = 16 * kMiB;  // the mount's option
  uint64_t read_ahead_memory = 64 * kMiB;
  uint32_t cores = 1;
  uint64_t memory = 0;    // for RocksDB and Isozone together
  uint64_t database = 0;  // 0: not known
  uint64_t room = 0;      // for files, beside metadata and reserves, under the mount's options; 0: not known
  Workload workload = Workload::kMixed;

  uint64_t capacity() const { return zones * zone_capacity; }
  uint64_t usable() const { return room == 0 ? capacity() : room; }
};

struct OptionSetting {
  std::string_view section;  // "DBOptions", as in an options file
  std::string_view key;
  std::string value;
  std::string reason;  // a sentence
};

struct OptionsAdvice {
  std::string summary;  // the facts in one line
  // The limits of the device and of the advice, one a line.
  std::vector<std::string> notes;
  std::string uri;                      // options to add to the URI, "writer_memory=4M"; empty: none
  std::vector<OptionSetting> settings;  // section by section, in the order of an options file
};

// The least memory for which there is advice.
inline constexpr uint64_t kLeastAdvisedMemory = 32 * kMiB;
// The share of the capacity that a database may take: the rest is for compaction and GC.
inline constexpr uint64_t kMostFilledPercent = 80;

// Returns the advice. kInvalidArgument: Isozone cannot use the device, it is too small for RocksDB, there is too little
// memory, or the database does not fit. The message says what to do.
Result<OptionsAdvice> AdviseOptions(const AdviceFacts& facts);

// Returns the text of an options file that RocksDB 7.8 to 11.8 read, with the reasons as comments.
std::string OptionsFileText(const OptionsAdvice& advice);

}  // namespace isozone
