// Device profiles: geometry and timing of an emulated SSD, as text that users can copy and change. Each line is
// `key = value`; '#' starts a comment, and the comment behind a number says where the number comes from. The built-in
// profiles are the files in profiles/, compiled in.
//
// The keys are the names of the fields below without their unit. The values carry the unit: sizes as 64K or 72MiB
// (powers of 1024), durations as 25.5us or 3ms, rates as 800MB/s or 3.94GB/s (powers of 1000, as in data sheets).
//
// A profile with `over_provisioning` describes a conventional SSD: the same flash and controller under a page-mapped
// FTL (device/emulated/ftl). It has a capacity and erase blocks instead of zones, and always has timing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace isozone {

// The rule by which dies hold a zone.
enum class ZoneMapping : uint8_t {
  kRoundRobin,   // zone i on die i mod dies
  kInterleaved,  // every zone over all dies, page by page
  kRandom,       // each zone on one die drawn from mapping_seed; some dies get up to four times as many as others
};

// The duration of a reset of a zone that is filled to one degree. Interpolation is linear; beyond the points it is
// constant.
struct ResetPoint {
  uint32_t fill_permille = 0;  // bytes below the write pointer, in thousandths of the capacity
  int64_t duration_ns = 0;
  bool operator==(const ResetPoint&) const = default;
};

struct Profile {
  std::string name;

  // Geometry. Limits of 0 mean: none.
  uint32_t zone_count = 0;
  uint64_t zone_size = 0;      // bytes; the distance between zone starts
  uint64_t zone_capacity = 0;  // bytes that can be written
  uint32_t block_size = 4096;  // bytes; a power of two, 512..65536
  uint32_t max_open_zones = 0;
  uint32_t max_active_zones = 0;
  uint64_t max_transfer = 0;  // bytes of one read or write
  uint64_t max_append = 0;    // bytes of one zone append
  // A write with Force Unit Access makes all of its zone before it durable. If off, only its own bytes, as NVMe says.
  bool fua_covers_zone = false;

  // Dummy bytes: what the device programs in place of data when a partly written zone is finished or reset, so that no
  // erase block stays open. It pads the zone from the write pointer to the next multiple of so many bytes from the
  // start of the zone, at most to its capacity; an empty zone not at all. They count without timing, too.
  // 0: finish pads the whole zone if there is a finish_bandwidth, else only the program units that are not full.
  uint64_t finish_padding = 0;
  uint64_t reset_padding = 0;  // padded before it is erased; 0: not at all

  // Only for a conventional SSD, which of the fields above has only block_size: its FTL maps blocks of that size, which
  // must not exceed page_size.
  uint32_t over_provisioning_permille = 0;  // flash beyond the capacity, in thousandths of the capacity; 0: zoned
  uint64_t capacity = 0;                    // bytes
  uint64_t erase_block = 0;                 // bytes that a die erases at once: whole program units

  // If false, all commands complete at once, and the fields below are not needed (0) and ignored.
  bool timing = true;

  // Flash: `dies` on `channels`, die d on channel d mod channels.
  uint32_t channels = 0;
  uint32_t dies = 0;
  ZoneMapping mapping = ZoneMapping::kRoundRobin;
  uint64_t mapping_seed = 0;       // of ZoneMapping::kRandom
  uint64_t page_size = 0;          // bytes a die reads at once, over all its planes
  uint64_t program_unit = 0;       // bytes a die programs at once: whole pages
  int64_t page_read_ns = 0;        // array time of a page
  uint64_t small_read_size = 0;    // bytes; a read of at most this much of a page takes small_read_ns; 0: no such limit
  int64_t small_read_ns = 0;       // array time of a small read
  int64_t program_ns = 0;          // array time of a program unit
  int64_t erase_ns = 0;            // array time that a reset takes on each die that holds data of the zone; may be 0
  uint64_t channel_bandwidth = 0;  // bytes/s

  // Controller.
  uint32_t write_buffer_units = 0;  // full program units a die's write buffer holds, the one being programmed included
  uint64_t link_bandwidth = 0;      // host link, bytes/s in each direction
  int64_t read_latency_ns = 0;      // time of a read in firmware and queues, in addition to flash, channel and link
  int64_t write_latency_ns = 0;     // likewise, of a write or append
  int64_t management_latency_ns = 0;  // likewise, of a reset or finish; open and close take only this
  // The whole duration of a flush. It takes no flash time: the controller protects its buffer against power cuts
  // (capacitors), so units that are not full stay there.
  int64_t flush_latency_ns = 0;

  // Limits of a whole device that large-zone devices show; 0 (or empty): none.
  uint64_t write_bandwidth = 0;        // bytes/s of all writes and appends together
  uint64_t write_cache = 0;            // bytes that are accepted ahead of write_bandwidth
  int64_t append_ns = 0;               // appends are served one after another, each for this long
  uint64_t finish_bandwidth = 0;       // bytes/s at which a zone is padded; at most write_bandwidth, which it shares
  std::vector<ResetPoint> reset_time;  // by rising fill; the duration of a reset in addition to management_latency

  bool zoned() const { return over_provisioning_permille == 0; }
  bool operator==(const Profile&) const = default;
};

// Parses and checks a profile; messages call its source `where`. kInvalidArgument with the line that is wrong,
// "small-zone.profile:12: ...": unknown key, bad value, repeated key; or, without a line, a value that is missing or
// contradicts another.
Result<Profile> ParseProfile(std::string_view text, std::string_view where);

// Makes the checks of ParseProfile that concern several values, for profiles whose fields were changed after parsing.
// Fails with kInvalidArgument, which names the keys.
Status ValidateProfile(const Profile& profile);

// Returns `profile`, which must be conventional, with another capacity. If that leaves fewer than 256 erase blocks on a
// die, the erase blocks become smaller, in whole program units, and erasing takes proportionally less time. So
// GC chooses among as many blocks, and costs the same share of the time, as on a large device. kInvalidArgument
// if the capacity is too small for that.
Result<Profile> ScaleConventional(Profile profile, uint64_t capacity);

// Loads a built-in profile by name, or a file if `name` contains a '/'. kNotFound lists the built-in names.
Result<Profile> LoadProfile(const std::string& name);
// Returns the names of the built-in profiles, sorted.
std::vector<std::string> BuiltinProfileNames();

// Return up to which byte of the zone a finish, or a reset, pads a zone with `written` bytes: `written` if it does not
// pad. Program units that are not full are padded besides, by a finish always, by a reset if it pads at all.
uint64_t PaddedByFinish(const Profile& profile, uint64_t written);
uint64_t PaddedByReset(const Profile& profile, uint64_t written);

// Returns how long a reset of a zone with `written` bytes takes, in ns, in addition to management_latency and erasing.
int64_t ResetDuration(const Profile& profile, uint64_t written);

// Returns the profile as text that ParseProfile reads back to the same values.
std::string FormatProfile(const Profile& profile);

}  // namespace isozone
