#include "isozone/isozone.h"

#include <cstring>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <rocksdb/utilities/object_registry.h>
#include <rocksdb/version.h>

#include "base/uri.h"
#include "device/open_device.h"
#include "rocksdb/adapter/mapped_file_system.h"
#include "rocksdb/adapter/register_file_system.h"
#include "rocksdb/adapter/static_env.h"
#include "rocksdb/adapter/status_mapping.h"
#include "rocksdb/adapter/zoned_file_system.h"
#include "rocksdb/steering/steering_partitioner.h"
#include "store/file_system.h"
#include "store/mount/format_device.h"
#include "store/zone/allocator/zone_reserves.h"

namespace isozone {
namespace {

Status MakeFileSystem(const std::string& text, bool force) {
  ISOZONE_ASSIGN_OR_RETURN(Uri uri, ParseUri(text));
  Uri to_create = uri;
  // An image on a block device takes the place of all that is there, and nobody is shown here what that is.
  const auto may_create = [&uri](const DeviceGeometry& geometry) -> Status {
    if (!std::filesystem::is_block_file(uri.path)) return CheckDeviceFits(geometry);
    return Status::NotSupported(
        fmt::format("{} carries no image of an emulated SSD, and may carry other data; make one with 'isozone mkfs "
                    "emu:{}', which shows what is there",
                    uri.path, uri.path));
  };
  ISOZONE_RETURN_IF_ERROR(CreateDevice(to_create, may_create, UnusableImage::kKeep));
  ISOZONE_ASSIGN_OR_RETURN(std::unique_ptr<ZonedDevice> device, OpenDevice(uri, OpenMode::kReadWrite));
  return FormatDevice(*device, {.label = "", .force = force});
}

Result<std::shared_ptr<rocksdb::FileSystem>> OpenShared(const std::string& uri) {
  ISOZONE_ASSIGN_OR_RETURN(std::unique_ptr<ZonedFileSystem> file_system, ZonedFileSystem::Open(uri));
  return std::shared_ptr<rocksdb::FileSystem>(std::move(file_system));
}

// Runs when the library is loaded. librocksdb.so, on which the library depends, is initialised by then.
const bool registered = [] {
  return WithoutExceptions([] {
           RegisterFileSystem<ZonedFileSystem>(*rocksdb::ObjectLibrary::Default());
           RegisterStaticEnvs(*rocksdb::ObjectLibrary::Default(), &OpenShared);
           RegisterSteering(*rocksdb::ObjectLibrary::Default());
           return rocksdb::IOStatus::OK();
         })
      .ok();
}();

Result<MountedSystem*> ZonedSystemOf(const rocksdb::FileSystem& file_system) {
  const ZonedFileSystem* ours = ZonedFileSystem::From(file_system);
  if (ours == nullptr) return Status::InvalidArgument("not an Isozone file system on a zoned device");
  return &ours->system();
}

// Sets a flag for as long as it lives.
class SetWhile {
 public:
  explicit SetWhile(bool& flag) : flag_(flag) { flag_ = true; }
  ~SetWhile() { flag_ = false; }
  SetWhile(const SetWhile&) = delete;
  SetWhile& operator=(const SetWhile&) = delete;

 private:
  bool& flag_;
};

Status Collect(const rocksdb::FileSystem& file_system, double until_free_percent, const CollectionProgress& progress) {
  ISOZONE_ASSIGN_OR_RETURN(MountedSystem* const system, ZonedSystemOf(file_system));
  if (!(until_free_percent >= 0 && until_free_percent <= 100)) {
    return Status::InvalidArgument("the percentage of free space must be from 0 to 100");
  }
  static thread_local bool collecting = false;
  if (collecting) return Status::Busy("this thread collects already: do not collect in a progress callback");
  const SetWhile in_collection(collecting);
  return system->CollectGarbage(until_free_percent, [&](const CopyStats& done, uint64_t bytes_to_copy) {
    return !progress || progress(done.bytes_copied, bytes_to_copy);
  });
}

Status SetCollection(const rocksdb::FileSystem& file_system, const std::string& text) {
  ISOZONE_ASSIGN_OR_RETURN(MountedSystem* const system, ZonedSystemOf(file_system));
  return system->With([&](FileSystem& fs) -> Status {
    GcOptions mounted = fs.state().options().gc;
    mounted.scheme = fs.state().options().GcScheme();
    ISOZONE_ASSIGN_OR_RETURN(const GcOptions options, ParseGcOptions(text, std::move(mounted)));
    return fs.collection().SetOptions(options);
  });
}

}  // namespace

std::string Version() {
  return ISOZONE_VERSION " (RocksDB " + std::to_string(ROCKSDB_MAJOR) + "." + std::to_string(ROCKSDB_MINOR) + "." +
         std::to_string(ROCKSDB_PATCH) + ")";
}

rocksdb::Status CreateFileSystem(const std::string& uri, bool force) {
  return WithoutExceptions([&] { return ToIoStatus(MakeFileSystem(uri, force), ""); });
}

rocksdb::Status OpenFileSystem(const std::string& uri, std::shared_ptr<rocksdb::FileSystem>* result) {
  return WithoutExceptions([&] {
    result->reset();
    Result<std::shared_ptr<rocksdb::FileSystem>> opened = OpenShared(uri);
    if (!opened.ok()) return ToIoStatus(opened.status(), "");
    *result = std::move(opened).value();
    return rocksdb::IOStatus::OK();
  });
}

rocksdb::Status GetStats(const rocksdb::FileSystem& file_system, std::string* json) {
  return WithoutExceptions([&] {
    const ZonedFileSystem* ours = ZonedFileSystem::From(file_system);
    if (ours == nullptr) return rocksdb::IOStatus::InvalidArgument("not an Isozone file system");
    Result<std::string> text = ours->system().StatisticsText();
    if (!text.ok()) return ToIoStatus(text.status(), "");
    *json = std::move(text).value();
    return rocksdb::IOStatus::OK();
  });
}

rocksdb::Status CollectGarbage(const rocksdb::FileSystem& file_system, double until_free_percent,
                               const CollectionProgress& progress) {
  return WithoutExceptions([&] { return ToIoStatus(Collect(file_system, until_free_percent, progress), ""); });
}

rocksdb::Status SetGarbageCollection(const rocksdb::FileSystem& file_system, const std::string& options) {
  return WithoutExceptions([&] { return ToIoStatus(SetCollection(file_system, options), ""); });
}

}  // namespace isozone

// For libisozone_run.so (preload.cc), which does not depend on this library: makes `file_system` one that keeps the
// directories of `lines` on devices, on top of what it was. Returns what is wrong with `lines`, which the caller frees;
// null: nothing.
extern "C" ISOZONE_EXPORT char* isozone_map_default(const char* lines,
                                                    std::shared_ptr<rocksdb::FileSystem>* file_system) {
  const rocksdb::IOStatus status = isozone::WithoutExceptions([&] {
    isozone::Result<std::vector<isozone::DirectoryMapping>> mappings = isozone::DirectoryMapping::Parse(lines);
    if (!mappings.ok()) return isozone::ToIoStatus(mappings.status(), "");
    *file_system = std::make_shared<isozone::MappedFileSystem>(*mappings, *file_system, &isozone::OpenShared);
    return rocksdb::IOStatus::OK();
  });
  return status.ok() ? nullptr : strdup(status.ToString().c_str());
}
