#include "store/mount/mount_table.h"

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
    ISOZONE_ASSIGN_OR_RETURN(std::shared_ptr<FileSystem> mounted, Join(key, options, device_options));
    return mounted != nullptr ? mounted : Mount(key, uri, options);
  }

 private:
  struct Mounted {
    std::weak_ptr<FileSystem> fs;
    std::string device_options;  // as they were given
  };
  // A mount, which is forgotten unless it comes to its end.
  struct Begun {
    MountTable& table;
    const std::string& key;
    bool ended = false;
    ~Begun() {
      if (!ended) table.Forget(key);
    }
  };

  // Null: nobody has mounted it. The others wait for the caller to do that, or to Forget it.
  Result<std::shared_ptr<FileSystem>> Join(const std::string& key, const MountOptions& options,
                                           const std::string& device_options) {
    std::shared_ptr<FileSystem> mounted;  // outlives the lock, which an unmount takes
    const MutexLock lock(mu_);
    for (auto found = mounts_.find(key); found != mounts_.end(); found = mounts_.find(key)) {
      mounted = found->second.fs.lock();
      if (mounted == nullptr) {  // it is just being mounted, or its last user is unmounting it
        changed_.Wait(mu_);
        continue;
      }
      ISOZONE_RETURN_IF_ERROR(CheckSame(key, mounted->state().options().ToString(), options.ToString()));
      ISOZONE_RETURN_IF_ERROR(CheckSame(key, found->second.device_options, device_options));
      return mounted;
    }
    mounts_.emplace(key, Mounted{{}, device_options});
    return mounted;
  }

  // No lock is held meanwhile: other devices do not wait for this one.
  Result<std::shared_ptr<FileSystem>> Mount(const std::string& key, Uri& uri, const MountOptions& options) {
    Begun begun{*this, key};
    const OpenMode mode = options.read_only ? OpenMode::kReadOnly : OpenMode::kReadWrite;
    ISOZONE_ASSIGN_OR_RETURN(auto device, OpenDevice(uri, mode));
    ISOZONE_RETURN_IF_ERROR(uri.options.RejectUnknown());
    ISOZONE_ASSIGN_OR_RETURN(auto made, FileSystem::Mount(std::move(device), options));
    const auto unmount = [this, key](FileSystem* last_use) {
      delete last_use;
      Forget(key);
    };
    std::shared_ptr<FileSystem> mounted(made.release(), unmount);
    begun.ended = true;
    const MutexLock lock(mu_);
    mounts_.at(key).fs = mounted;
    changed_.SignalAll();
    return mounted;
  }

  static Status CheckSame(std::string_view device, std::string_view mounted, std::string_view wanted) {
    if (mounted == wanted) return Status::Ok();
    const auto text = [](std::string_view options) { return options.empty() ? "no options of the device" : options; };
    return Status::InvalidArgument(
        fmt::format("{} is mounted with {}; it cannot also be with {}", device, text(mounted), text(wanted)));
  }

  void Forget(const std::string& key) {
    const MutexLock lock(mu_);
    mounts_.erase(key);
    changed_.SignalAll();
  }

  Mutex mu_;
  CondVar changed_;
  std::map<std::string, Mounted> mounts_ ISOZONE_GUARDED_BY(mu_);  // each from when its mount begins until it has ended
};

}  // namespace

Result<std::shared_ptr<FileSystem>> MountShared(std::string_view uri, bool read_only) {
  return MountTable::Instance().Get(uri, read_only);
}

}  // namespace isozone
