#include "fs/mount/mount_table.h"

#include <map>
#include <string>

#include <fmt/format.h>

#include "base/mutex.h"
#include "base/uri.h"
#include "device/open_device.h"

namespace isozone {
namespace {

class MountTable {
 public:
  static MountTable& Instance() {
    static auto* table = new MountTable;  // never destroyed: mounts may outlive static destruction
    return *table;
  }

  Result<std::shared_ptr<FileSystem>> Get(std::string_view text, bool read_only) {
    ISOZONE_ASSIGN_OR_RETURN(Uri uri, ParseUri(text));
    ISOZONE_ASSIGN_OR_RETURN(MountOptions options, MountOptions::FromUri(uri.options));
    options.read_only = read_only;
    const std::string device_options = uri.options.Rest();
    const std::string key = fmt::format("{}:{}{}", uri.scheme, uri.path, read_only ? " read-only" : "");
    std::shared_ptr<FileSystem> mounted;  // outlives the lock, which an unmount takes
    // The lock is held while mounting, so that two threads do not mount one device twice.
    const MutexLock lock(mu_);
    for (auto found = mounts_.find(key); found != mounts_.end(); found = mounts_.find(key)) {
      mounted = found->second.fs.lock();
      if (mounted == nullptr) {  // the last user is just unmounting it
        gone_.Wait(mu_);
        continue;
      }
      ISOZONE_RETURN_IF_ERROR(CheckSame(key, mounted->state().options().ToString(), options.ToString()));
      ISOZONE_RETURN_IF_ERROR(CheckSame(key, found->second.device_options, device_options));
      return mounted;
    }
    const OpenMode mode = read_only ? OpenMode::kReadOnly : OpenMode::kReadWrite;
    ISOZONE_ASSIGN_OR_RETURN(auto device, OpenDevice(uri, mode));
    ISOZONE_RETURN_IF_ERROR(uri.options.RejectUnknown());
    ISOZONE_ASSIGN_OR_RETURN(auto made, FileSystem::Mount(std::move(device), options));
    const auto unmount = [this, key](FileSystem* last_use) {
      delete last_use;
      Forget(key);
    };
    mounted = std::shared_ptr<FileSystem>(made.release(), unmount);
    mounts_.emplace(key, Mounted{mounted, device_options});
    return mounted;
  }

 private:
  struct Mounted {
    std::weak_ptr<FileSystem> fs;
    std::string device_options;  // as they were given
  };

  static Status CheckSame(std::string_view device, std::string_view mounted, std::string_view wanted) {
    if (mounted == wanted) return Status::Ok();
    const auto text = [](std::string_view options) { return options.empty() ? "no options of the device" : options; };
    return Status::InvalidArgument(
        fmt::format("{} is mounted with {}; it cannot also be with {}", device, text(mounted), text(wanted)));
  }

  void Forget(const std::string& key) {
    const MutexLock lock(mu_);
    mounts_.erase(key);
    gone_.SignalAll();
  }

  Mutex mu_;
  CondVar gone_;
  std::map<std::string, Mounted> mounts_ ISOZONE_GUARDED_BY(mu_);  // each until it is unmounted
};

}  // namespace

Result<std::shared_ptr<FileSystem>> MountShared(std::string_view uri, bool read_only) {
  return MountTable::Instance().Get(uri, read_only);
}

}  // namespace isozone
