// Isozone's public interface: RocksDB on zoned flash, <isozone/isozone.h>.
//
// Most programs need none of this: loading libisozone.so (linked, preloaded or dlopened) makes RocksDB know isozone://
// URIs, wherever it takes a file-system URI:
//
//   rocksdb::Env* env;
//   std::shared_ptr<rocksdb::Env> guard;
//   rocksdb::Env::CreateFromUri(rocksdb::ConfigOptions(), "", "isozone://emu:/data/ssd.img", &env, &guard);
//
// and as `env={id=isozone://emu:/data/ssd.img}` in the text of DBOptions (docs/rocksdb.md). The Env is then the library's,
// and its file system stays mounted to the end of the process.
//
// Thread safety: any function from any thread. No function throws.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <rocksdb/file_system.h>
#include <rocksdb/status.h>

#define ISOZONE_EXPORT __attribute__((visibility("default")))

namespace isozone {

// "0.1.0 (RocksDB 7.8.3)": Isozone's version, and the RocksDB it was built for.
ISOZONE_EXPORT std::string Version();

// Makes the device of `uri` where that is something one can make (an emulated SSD in a new image file) and writes an
// empty file system on it, as `isozone mkfs` does. Fails if it carries one already, unless `force`: then all is lost.
ISOZONE_EXPORT rocksdb::Status CreateFileSystem(const std::string& uri, bool force = false);

// Mounts the device of `uri`, or joins the file system that this process has mounted from it already. Options follow
// the device's name: "isozone://emu:/data/ssd.img?policy=zenfs&log_dir=/var/log/db". Those of this library:
//
//   read_only=on       beside a writer in another process; for OpenForReadOnly and secondary instances (give those
//                      a secondary_path that exists: "/" does)
//   log_dir=/path      RocksDB's info log goes to this local directory instead of the device
//   stats_file=/path   GetStats() is written here every stats_interval=N seconds (10; 0: never) and at the end
//
// "isozone://conventional:/dir?size=8G&age=2" is an ordinary file system on an emulated SSD without zones, to compare
// with (docs/rocksdb.md). It needs no CreateFileSystem().
//
// It is unmounted when the last rocksdb::FileSystem of it, and all its open files, are gone; at the end of the process,
// what is still mounted is made durable.
ISOZONE_EXPORT rocksdb::Status OpenFileSystem(const std::string& uri, std::shared_ptr<rocksdb::FileSystem>* result);

// The counters of the mounted file system that `file_system` (from OpenFileSystem or by URI through RocksDB) is on, as
// a JSON object: "classes" has bytes, requests and latencies (us) for each class of I/O, "write_amplification" is
// device bytes over user bytes, "space" and "zone_*" tell what zones are used for, "device_lifetime" counts since the
// device was made. "gc" is what garbage collection did since the mount: "rounds", victims as "zones" emptied, "skipped"
// (nothing to gain) and "failed" (left as they were: "read_errors", "mismatches"), "bytes_read" of them,
// "bytes_copied", "bytes_dropped" (their files went meanwhile), "bytes_reclaimed", "space_waits" of writers, and the
// "urgency" (0 to 1) of the round under way. "reset_zones_written_percent": how much of its capacity had been
// written of each zone that was reset. "pace_wait_us": waits of users' writes for compaction and
// collection, as space runs out. "refused_writes": those for which the device had no active zone at first, as others held
// too many. "mixed_classes": times that data had to go to a zone of data with another lifetime or level. Of a
// conventional SSD: "host_bytes_*", "media_bytes_written", "copied_bytes" by its collection, "superblock_erases" and
// "write_amplification", media bytes over host bytes, since the mount. InvalidArgument for a file system that is not
// Isozone's.
ISOZONE_EXPORT rocksdb::Status GetStats(const rocksdb::FileSystem& file_system, std::string* json);

// Collects garbage now, in this thread, whatever the space: moves what is alive out of zones in which something has
// died, in the order of the scheme, until `until_free_percent` (0 to 100) of the space is free; 100: all there is to
// gain. Databases go on meanwhile; what they do comes first at the device. `progress` (may be empty) is called every
// few MiB with the bytes copied so far and those of all that may have to be copied; false: stop, which is no error. It
// is OK also where some zones could not be collected: GetStats() counts those. InvalidArgument for a file system that
// is not Isozone's on a zoned device, or a percentage out of range.
using CollectionProgress = std::function<bool(uint64_t bytes_copied, uint64_t bytes_to_copy)>;
ISOZONE_EXPORT rocksdb::Status CollectGarbage(const rocksdb::FileSystem& file_system, double until_free_percent = 100,
                                              const CollectionProgress& progress = {});

// Another garbage collection from now on, until it is unmounted: the name of a scheme ("lifetime"), or the options of a
// URI ("gc=lifetime&gc_start=20"; docs/rocksdb.md lists them). What is not named is as it was mounted. InvalidArgument
// for what is not known; nothing is changed then.
ISOZONE_EXPORT rocksdb::Status SetGarbageCollection(const rocksdb::FileSystem& file_system, const std::string& options);

}  // namespace isozone
