#include "insight/advice/space_account.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/units.h"
#include "base/uri.h"

namespace isozone {
namespace {

struct PartEntry {
  SpacePart part;
  std::string_view name;
  SpacePartText text;
};

constexpr std::string_view kCompacted =
    "Freed by compaction, when the rest of the zone dies as well. `isozone gc run DEVICE` copies what lives there "
    "elsewhere now.";

constexpr std::array<PartEntry, kSpacePartCount> kParts = {{
    {SpacePart::kTables,
     "tables",
     {"Tables", "Sorted tables (*.sst): the keys and values of the database, old versions of them included.",
      "Freed by deleting keys and compacting (`ldb compact`). Tables that a compaction has replaced stay while an "
      "iterator or a snapshot needs them: compare RocksDB's properties rocksdb.total-sst-files-size and "
      "live-sst-files-size."}},
    {SpacePart::kBlobs,
     "blobs",
     {"Blobs", "Large values that RocksDB keeps apart from their keys (*.blob).",
      "Freed by deleting keys; enable_blob_garbage_collection=true rewrites blobs of which little is live."}},
    {SpacePart::kLogs,
     "logs",
     {"Logs", "Write-ahead logs, and MANIFESTs, which list the tables.",
      "Freed by flushing memtables. max_total_wal_size bounds the logs; WAL_ttl_seconds and WAL_size_limit_MB keep old "
      "ones."}},
    {SpacePart::kTrash,
     "trash",
     {"Trash", "Files that RocksDB has deleted and removes slowly (*.trash).",
      "Freed by time. A higher rate of the SstFileManager removes them sooner."}},
    {SpacePart::kLinked,
     "linked",
     {"Tables with several names", "Tables and blobs that a checkpoint or a backup on this device shares.",
      "Freed by deleting the checkpoint or backup as well (`isozone rm -r DEVICE PATH`)."}},
    {SpacePart::kOther,
     "other",
     {"Other files", "OPTIONS, info logs, and whatever else was copied here.",
      "Freed by `isozone rm DEVICE PATH`; keep_log_file_num bounds the info logs."}},
    {SpacePart::kUnnamed,
     "unnamed",
     {"Data without a name",
      "Data of files that are being written and not synced yet, and of deleted files that somebody has open.",
      "Freed by the process, when it closes deleted files: close old iterators. What it syncs gets a name."}},
    {SpacePart::kDeadZones,
     "dead-zones",
     {"Dead zones", "Zones in which everything is dead.",
      "Freed by itself: they are written further, or reset in the background while the device is mounted."}},
    {SpacePart::kDeadLogs,
     "dead-logs",
     {"Dead, of logs", "What is dead in zones of logs beside a log that is live.",
      "Freed by the end of the log that is live: flushing memtables, max_total_wal_size."}},
    {SpacePart::kDeadNotSet,
     "dead-not-set",
     {"Dead, lifetime not set", "Dead data in zones that also hold live data of unknown lifetime.", kCompacted}},
    {SpacePart::kDeadNone,
     "dead-none",
     {"Dead, no lifetime", "Dead data in zones that also hold live data whose lifetime does not matter.", kCompacted}},
    {SpacePart::kDeadShort,
     "dead-short",
     {"Dead, short-lived", "Dead data in zones that also hold live data of short life, as of level 0.", kCompacted}},
    {SpacePart::kDeadMedium,
     "dead-medium",
     {"Dead, medium-lived", "Dead data in zones that also hold live data of medium life, as of the upper levels.",
      kCompacted}},
    {SpacePart::kDeadLong,
     "dead-long",
     {"Dead, long-lived", "Dead data in zones that also hold live data of long life.", kCompacted}},
    {SpacePart::kDeadExtreme,
     "dead-extreme",
     {"Dead, of the last levels", "Dead data in zones that also hold live data of extreme life, as of the last level.",
      kCompacted}},
    {SpacePart::kPadding,
     "padding",
     {"Finish padding", "Zones that were closed before they were full, because the device allows few active zones.",
      "Freed when what lives in these zones dies. Fewer writers at once, or a smaller stripe_width, finish fewer "
      "zones."}},
    {SpacePart::kRestWriting,
     "rest-writing",
     {"Rest of zones being written", "Not written yet, in zones that a writer has now.", "Can be written."}},
    {SpacePart::kRestIdle,
     "rest-idle",
     {"Rest of partly written zones", "Not written yet, in zones that nobody writes now.",
      "Can be written: the next data of the same lifetime goes there."}},
    {SpacePart::kRestSealed,
     "rest-sealed",
     {"Rest of sealed zones", "Not written yet, in zones of tables that die together, where no other data is to go.",
      "Written if space runs short; freed when these tables die."}},
    {SpacePart::kFree, "free", {"Free zones", "Empty zones.", "Can be written."}},
    {SpacePart::kReserved,
     "reserved",
     {"Reserve", "Empty zones reserved for metadata, logs and the collector, so that none of them gets stuck.",
      "Cannot be freed. `isozone mkfs --metadata-copies 1` needs fewer, and a lost zone may then be the end of the "
      "file system."}},
    {SpacePart::kMetadata,
     "metadata",
     {"Metadata", "Zones for names, files and where they lie, kept twice.",
      "Cannot be freed. Larger tables and fewer files keep it small."}},
    {SpacePart::kUnusable,
     "unusable",
     {"Unusable", "Zones that the device has lost or lets be read only, and the rest of zones in which a write failed.",
      "Zones with a failed write are freed once dead; lost zones never: replace the device if they become more."}},
}};

// Fewer partly written zones than that are not worth a remark: each kind of data has one.
constexpr uint32_t kManyZones = 8;

constexpr SpacePart Offset(SpacePart first, size_t by) {
  return static_cast<SpacePart>(static_cast<size_t>(first) + by);
}

class Accountant {
 public:
  explicit Accountant(uint32_t block) : block_(block) {}

  void Add(const ZoneSpace& zone) {
    ++account_.zones;
    account_.capacity += zone.capacity;
    const bool lost = zone.phase == ZonePhase::kOffline;
    if (lost || (zone.use == ZoneUse::kMetadata && zone.phase == ZonePhase::kRetired)) {
      return Put(SpacePart::kUnusable, zone.capacity);
    }
    if (zone.use == ZoneUse::kMetadata) return Put(SpacePart::kMetadata, zone.capacity);
    const uint64_t written = std::min(zone.written, zone.capacity);
    uint64_t rest = written;
    AddAlive(zone, rest);
    const uint64_t live = written - rest;
    if (written > 0) ++account_.in_use;
    if (written > 0 && written < zone.capacity) ++account_.partly;
    account_.live_in_use += live;
    AddDead(zone, live, rest);
    AddUnwritten(zone, zone.capacity - written);
  }

  SpaceAccount Finish(uint64_t reserved) {
    SpaceShare& free = account_.parts[static_cast<size_t>(SpacePart::kFree)];
    const uint64_t kept = std::min(reserved, free.bytes);
    if (kept > 0) {
      const uint64_t zone = free.bytes / free.zones;
      const auto zones = static_cast<uint32_t>(std::min<uint64_t>(free.zones, (kept + zone - 1) / zone));
      account_.parts[static_cast<size_t>(SpacePart::kReserved)] = {kept, zones};
      free = {free.bytes - kept, free.zones - zones};
    }
    return account_;
  }

 private:
  void Put(SpacePart part, uint64_t bytes) {
    if (bytes == 0) return;
    SpaceShare& share = account_.parts[static_cast<size_t>(part)];
    share.bytes += bytes;
    ++share.zones;
  }

  // Takes what is live from `rest`.
  void AddAlive(const ZoneSpace& zone, uint64_t& rest) {
    uint64_t named = 0;
    for (size_t group = 0; group < zone.named.size(); ++group) {
      const uint64_t bytes = std::min(zone.named[group], rest);
      Put(Offset(SpacePart::kTables, group), bytes);
      named += bytes;
      rest -= bytes;
    }
    // `live` may be rounded up to blocks, which must not look like data without a name.
    if (zone.live <= RoundUp(named, block_)) return;
    const uint64_t unnamed = std::min(zone.live - named, rest);
    Put(SpacePart::kUnnamed, unnamed);
    rest -= unnamed;
  }

  void AddDead(const ZoneSpace& zone, uint64_t live, uint64_t dead) {
    if (zone.phase == ZonePhase::kRetired) return Put(SpacePart::kUnusable, dead);
    if (live == 0) return Put(SpacePart::kDeadZones, dead);
    if (zone.finished_at) {
      const uint64_t padding = std::min(dead, zone.capacity - std::min(*zone.finished_at, zone.capacity));
      Put(SpacePart::kPadding, padding);
      dead -= padding;
    }
    const bool log = zone.use == ZoneUse::kLog;
    Put(log ? SpacePart::kDeadLogs : Offset(SpacePart::kDeadNotSet, static_cast<size_t>(zone.lifetime)), dead);
  }

  void AddUnwritten(const ZoneSpace& zone, uint64_t bytes) {
    switch (zone.phase) {
      case ZonePhase::kEmpty:
        return Put(SpacePart::kFree, bytes);
      case ZonePhase::kLeased:
        return Put(SpacePart::kRestWriting, bytes);
      case ZonePhase::kIdle:
        return Put(zone.sealed ? SpacePart::kRestSealed : SpacePart::kRestIdle, bytes);
      case ZonePhase::kFinishing:
      case ZonePhase::kFull:
        return Put(SpacePart::kPadding, bytes);
      case ZonePhase::kResetting:
        return Put(SpacePart::kDeadZones, bytes);
      case ZonePhase::kFailed:
      case ZonePhase::kRetired:
      case ZonePhase::kOffline:
        return Put(SpacePart::kUnusable, bytes);
    }
  }

  const uint32_t block_;
  SpaceAccount account_;
};

FileGroup GroupOfName(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (name.ends_with(".trash")) return FileGroup::kTrash;
  if (name.ends_with(".sst") || name.ends_with(".ldb")) return FileGroup::kTables;
  if (name.ends_with(".blob")) return FileGroup::kBlobs;
  if (name.ends_with(".log") || name.starts_with("MANIFEST-")) return FileGroup::kLogs;
  return FileGroup::kOther;
}

uint64_t Sum(const SpaceAccount& account, SpacePart first, SpacePart last) {
  const auto begin = account.parts.begin();
  return std::accumulate(begin + static_cast<int>(first), begin + static_cast<int>(last) + 1, uint64_t{0},
                         [](uint64_t sum, const SpaceShare& share) { return sum + share.bytes; });
}

}  // namespace

FileGroup FileGroupOf(std::span<const std::string> paths) {
  if (paths.empty()) return FileGroup::kOther;
  const FileGroup group = GroupOfName(paths.front());
  const bool data = group == FileGroup::kTables || group == FileGroup::kBlobs;
  return data && paths.size() > 1 ? FileGroup::kLinked : group;
}

std::string_view SpacePartName(SpacePart part) { return kParts[static_cast<size_t>(part)].name; }

const SpacePartText& DescribeSpacePart(SpacePart part) { return kParts[static_cast<size_t>(part)].text; }

uint64_t SpaceAccount::live() const { return Sum(*this, SpacePart::kTables, SpacePart::kUnnamed); }
uint64_t SpaceAccount::dead() const { return Sum(*this, SpacePart::kDeadZones, SpacePart::kPadding); }
uint64_t SpaceAccount::writable() const { return Sum(*this, SpacePart::kRestWriting, SpacePart::kFree); }

SpaceAccount AccountSpace(std::span<const ZoneSpace> zones, uint64_t reserved, uint32_t block) {
  Accountant accountant(block);
  for (const ZoneSpace& zone : zones) accountant.Add(zone);
  return accountant.Finish(reserved);
}

std::vector<std::string> RemarksOn(const SpaceAccount& account, uint32_t max_active) {
  std::vector<std::string> remarks;
  if (account.zones == 0 || account.in_use == 0) return remarks;
  const uint64_t zone = std::max<uint64_t>(1, account.capacity / account.zones);
  const uint64_t enough = (account.live_in_use + zone - 1) / zone;
  remarks.push_back(fmt::format("Files lie in {} of {} zones, {} of them partly written; what is live would fill {}.",
                                account.in_use, account.zones, account.partly, enough));
  // Twice as many zones as needed are what streaming with some dead data looks like.
  if (account.partly > kManyZones && account.in_use > 2 * enough) {
    remarks.emplace_back(
        "Tables that share zones die at different times. In the simulator, compaction that Isozone steers holds fewer "
        "zones with nearly the same bandwidth (`isozone advise DEVICE`); a smaller `stripe_width` in the URI (now 16, "
        "if not given) saves few, and a table is written as much slower.");
  }
  if (max_active > 0 && account.partly + 2 >= max_active) {
    remarks.push_back(fmt::format(
        "Nearly all of the {} zones that the device lets be active are: a new writer finishes one that is partly "
        "written, and its rest becomes padding.",
        max_active));
  }
  if (account.writable() * 10 < account.capacity && account.dead() * 5 > account.capacity) {
    remarks.push_back(fmt::format(
        "Little can be written and {} are dead beside live data: see `isozone gc status --victims DEVICE` for what "
        "collecting would cost.",
        FormatSize(account.dead())));
  }
  return remarks;
}

}  // namespace isozone
