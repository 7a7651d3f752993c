// Isozone's public interface: RocksDB on zoned flash, <isozone/isozone.h>.
//
// Most programs need no function of it: loading libisozone.so (linked, preloaded or dlopened) makes RocksDB accept
// isozone:// URIs wherever it takes a file-system URI:
//
//   rocksdb::Env* env;
//   std::shared_ptr<rocksdb::Env> guard;
//   rocksdb::Env::CreateFromUri(rocksdb::ConfigOptions(), "", "isozone://emu:/data/ssd.img", &env, &guard);
//
// and as `env={id=isozone://emu:/data/ssd.img}` in the text of DBOptions (docs/rocksdb.md). In that form the library
// owns the Env, and its file system stays mounted to the end of the process.
//
// Thread safety: any thread may call any function. No function throws.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <rocksdb/db.h>
#include <rocksdb/file_system.h>
#include <rocksdb/status.h>

#define ISOZONE_EXPORT __attribute__((visibility("default")))

namespace isozone {

// Returns Isozone's version, and that of the RocksDB it was built for: "0.1.0 (RocksDB 7.8.3)".
ISOZONE_EXPORT std::string Version();

// Creates the device of `uri`, if its kind allows that (an emulated SSD in a new image file), and writes an empty file
// system to it, like `isozone mkfs`. Fails if the device has one already, unless `force`: then all its data is lost.
ISOZONE_EXPORT rocksdb::Status CreateFileSystem(const std::string& uri, bool force = false);

// Mounts the device of `uri`, or joins the file system that this process has mounted from it already. Options follow
// the name of the device: "isozone://emu:/data/ssd.img?policy=zenfs&log_dir=/var/log/db". The options of this library
// are:
//
//   read_only=on       mounts beside a writer in another process; for OpenForReadOnly and secondary instances (give
//                      those a secondary_path that exists, for example "/")
//   log_dir=/path      RocksDB's info log goes to this local directory instead of the device
//   stats_file=/path   GetStats() is written here at once, every 10 seconds, and at the end
//
// The file system is unmounted when its last rocksdb::FileSystem, and all its open files, are destroyed. At the end of
// the process, data of file systems that are still mounted is made durable.
ISOZONE_EXPORT rocksdb::Status OpenFileSystem(const std::string& uri, std::shared_ptr<rocksdb::FileSystem>* result);

// Gives the statistics of the mounted file system under `file_system` (from OpenFileSystem, or by URI through RocksDB),
// as the JSON object that `isozone stats --json` writes; docs/statistics.md has all of it. Of the counters:
//   classes                      bytes, requests and latencies (us) for each class of I/O
//   user_bytes_appended          bytes that programs wrote into files, at the end or in place
//   write_amplification          bytes written to the device, those of Isozone's metadata among them, over
//                                user_bytes_appended
//   space, zone_*                what zones are used for
//   device_lifetime              counts since the device was made
//   gc                           what garbage collection did since the mount: "rounds"; victims as "zones" emptied,
//                                "skipped" (nothing to gain) and "failed" (left as they were: "read_errors",
//                                "mismatches"); "bytes_read" from victims, "bytes_copied", "bytes_dropped" (their files
//                                were removed or changed in the meantime), "bytes_reclaimed"; "space_waits" of writers;
//                                and the "urgency" (0 to 1) of the round under way
//   zone_reset_bytes             bytes that had been written to the zones that were reset
//   deletion_delay_us            how long after a file was removed the zones that it lay in were reset, by lifetime
//   pace_wait_us                 waits of users' writes for compaction and GC, as space runs out
//   refused_writes               writes for which the device at first had no active zone, because others held too many
//   mixed_classes                how often data had to go to a zone of data with another lifetime or level
//   mixed_cohorts                how often data had to go to a zone reserved for a cohort it does not belong to, or
//                                data of a cohort to a zone of other data
//   in_place_writes, _bytes      writes over bytes that files had, by programs that are not RocksDB
// InvalidArgument for a file system that is not Isozone's.
ISOZONE_EXPORT rocksdb::Status GetStats(const rocksdb::FileSystem& file_system, std::string* json);

// Collects garbage now, in this thread, whatever the space. Moves live data out of zones in which something has died,
// in the order of the scheme, until `until_free_percent` (0 to 100) of the space is free; 100 reclaims all that can be
// reclaimed. Databases may be in use; their I/O comes first at the device. `progress` (may be empty) is called every
// few MiB with the bytes copied so far and the bytes that may have to be copied in all; if it returns false, the
// round of GC stops, which is no error. Returns OK even if some zones could not be collected: GetStats() counts those.
// InvalidArgument for a file system that is not Isozone's on a zoned device, or for a percentage out of range; Busy if
// `progress` calls this.
using CollectionProgress = std::function<bool(uint64_t bytes_copied, uint64_t bytes_to_copy)>;
ISOZONE_EXPORT rocksdb::Status CollectGarbage(const rocksdb::FileSystem& file_system, double until_free_percent = 100,
                                              const CollectionProgress& progress = {});

// Changes the garbage collection until the file system is unmounted. `options` is the name of a scheme ("lifetime"), or
// options as in a URI ("gc=lifetime&gc_start=20"; docs/rocksdb.md lists them). Options that are not named keep the
// values of the mount. InvalidArgument for unknown names or values; then nothing is changed.
ISOZONE_EXPORT rocksdb::Status SetGarbageCollection(const rocksdb::FileSystem& file_system, const std::string& options);

// How a CompactionDriver works.
struct CompactionDriverOptions {
  // The name of what decides which files are compacted, and where outputs are cut (docs/compaction.md): "leveled",
  // "greedy", "gear", "ll", or "isozone".
  std::string picker = "isozone";
  // How many threads compact each column family, 1 to 64; 0: as many as RocksDB would use, by max_background_jobs.
  uint32_t threads = 0;
  // Whether tables that the picker calls short-lived have zones of their own, which die with the next compactions.
  bool t_zone = true;
  // Whether levels are sized from the last one up, so that little is kept in two versions: what RocksDB calls
  // level_compaction_dynamic_level_bytes, which it turns off with this compaction style.
  bool dynamic_levels = true;
};

// Compacts an open database from outside, so that its tables die zone by zone (docs/steering.md). The database is
// opened with compaction_style=kCompactionStyleNone, listeners={isozone} and sst_partitioner_factory=isozone; levels
// have sizes by max_bytes_for_level_base and max_bytes_for_level_multiplier. RocksDB itself slows down and stops
// writers while there are too many tables in level 0.
//
// Options do the same without a line of code, for the default column family: listeners={id=isozone;compaction=ll}. The
// library then makes the driver when the database is opened, and ends it when it is closed.
class ISOZONE_EXPORT CompactionDriver {
 public:
  // Begins to compact `column_families` of `db`, all of which must outlive the driver. Returns InvalidArgument, with
  // what to change, if a column family was opened otherwise, has fewer than 3 levels, or has a driver already (that of
  // a listener counts), or if an option has no such value.
  static rocksdb::Status Open(rocksdb::DB* db, const std::vector<rocksdb::ColumnFamilyHandle*>& column_families,
                              const CompactionDriverOptions& options, std::unique_ptr<CompactionDriver>* result);
  // Finds the driver that the listener of `db` has made; NotFound if it has made none. What is found ends with the
  // database and must not be used after that; destroying it ends no compaction.
  static rocksdb::Status Find(rocksdb::DB* db, std::unique_ptr<CompactionDriver>* result);
  // Ends the driver: no other compaction begins, and those that run are waited for.
  virtual ~CompactionDriver();

  // Waits until nothing is left to compact. Returns the error of a compaction that failed, or Incomplete while
  // disable_auto_compactions=true pauses the driver.
  virtual rocksdb::Status WaitUntilIdle() = 0;
  // Returns its counters as a JSON object: "compactions"; those that RocksDB "refused", because the tree had changed,
  // and that were picked anew; those that "failed"; "held_flushes", flushes that waited for compactions; "tables_moved"
  // to another level and not written anew; "bytes_read" and "bytes_written", and "short_lived_bytes" of these;
  // "t_zones_most" and "t_zones_mean", the zones that short-lived tables of a column family had for themselves after a
  // compaction of it. With several column families, these two are still those of one, and all others are sums.
  virtual std::string Stats() const = 0;
};

}  // namespace isozone
