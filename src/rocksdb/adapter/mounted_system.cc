#include "rocksdb/adapter/mounted_system.h"

#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <span>
#include <vector>

#include "base/byte_text.h"
#include "base/crc32c.h"
#include "insight/stats/statistics_json.h"
#include "store/mount/mount_table.h"

namespace isozone {
namespace {

struct Registry {
  Mutex mu;
  std::map<const FileSystem*, std::weak_ptr<MountedSystem>> systems ISOZONE_GUARDED_BY(mu);
};

// Never destroyed: threads of RocksDB may still use it after static objects are destroyed.
Registry& TheRegistry() {
  static Registry& registry = *new Registry;
  return registry;
}

uint32_t IdentityOf(const FileSystem& fs) {
  const std::string uuid = fs.state().uuid();
  return Crc32c(std::as_bytes(std::span(uuid)));
}

}  // namespace

Result<std::shared_ptr<MountedSystem>> MountedSystem::Open(const AdapterUri& uri) {
  static const int counts_forks = ::pthread_atfork(nullptr, nullptr, [] { ++forks_; });
  if (counts_forks != 0) return Status::FromErrno(counts_forks, "forks cannot be noticed");
  ISOZONE_ASSIGN_OR_RETURN(std::shared_ptr<FileSystem> fs, MountShared(uri.rest, uri.read_only));
  Registry& registry = TheRegistry();
  MutexLock lock(registry.mu);
  std::weak_ptr<MountedSystem>& known = registry.systems[fs.get()];
  if (std::shared_ptr<MountedSystem> system = known.lock()) {
    if (system->IsInherited()) return Inherited();
    return system;
  }
  std::shared_ptr<MountedSystem> system(new MountedSystem(std::move(fs), uri), &MountedSystem::Destroy);
  known = system;
  static const int registered = std::atexit(&MountedSystem::EndAll);
  static_cast<void>(registered);
  return system;
}

MountedSystem::MountedSystem(std::shared_ptr<FileSystem> fs, const AdapterUri& uri)
    : fs_(std::move(fs)),
      identity_(IdentityOf(*fs_)),
      owner_(getpid()),
      generation_(forks_),
      stats_file_(uri.stats_file, [this] { return StatisticsText(); }) {}

Result<std::string> MountedSystem::StatisticsText() const {
  if (IsInherited()) return Inherited();  // the page belongs to the process that mounted
  ISOZONE_ASSIGN_OR_RETURN(const Statistics statistics, fs_->Look());
  return JsonText(StatisticsJson(statistics, /*zones=*/false), 2) + "\n";
}

Status MountedSystem::Inherited() {
  return Status::IoError(
      "the process that this one was forked from uses the device; start a program (exec) in the child, or fork before "
      "RocksDB is first used");
}

void MountedSystem::Destroy(MountedSystem* system) {
  if (getpid() == system->owner_) delete system;
}

MountedSystem::~MountedSystem() {
  {
    Registry& registry = TheRegistry();
    MutexLock lock(registry.mu);
    const auto known = registry.systems.find(fs_.get());
    if (known != registry.systems.end() && known->second.expired()) registry.systems.erase(known);
  }
  stats_file_.Finish();
}

void MountedSystem::EndAll() {
  std::vector<std::shared_ptr<MountedSystem>> systems;
  {
    Registry& registry = TheRegistry();
    MutexLock lock(registry.mu);
    for (const auto& [fs, known] : registry.systems) {
      if (std::shared_ptr<MountedSystem> system = known.lock()) systems.push_back(std::move(system));
    }
  }
  for (const auto& system : systems) system->End();
}

void MountedSystem::End() {
  if (getpid() != owner_) return;
  ending_ = true;
  ExclusiveLock lock(gate_);
  const Status status = UnmountOrSync();
  if (!status.ok()) std::fprintf(stderr, "isozone: at the end of the process: %s\n", status.ToString().c_str());
  stats_file_.Finish();
}

Status MountedSystem::UnmountOrSync() {
  MutexLock lock(mu_);
  ended_ = open_files_ == 0;
  if (ended_) return fs_->Unmount();
  for (FileWriter* writer : writers_) ISOZONE_RETURN_IF_ERROR(writer->Sync());
  return fs_->SyncMetadata();
}

Status MountedSystem::CollectGarbage(double free_percent, const GcProgress& progress) {
  const auto step = [&](const CopyStats& done, uint64_t bytes_to_copy) {
    return !ending_ && (!progress || progress(done, bytes_to_copy));
  };
  return With([&](FileSystem& fs) { return fs.collection().Run(free_percent, step).status(); });
}

Status MountedSystem::Lock(const std::string& path) {
  if (IsInherited()) return Inherited();
  MutexLock lock(mu_);
  return locked_.insert(path).second ? Status() : Status::Busy("lock held by this process already");
}

Status MountedSystem::Unlock(const std::string& path) {
  if (IsInherited()) return Inherited();
  MutexLock lock(mu_);
  return locked_.erase(path) == 1 ? Status() : Status::InvalidArgument("not locked");
}

size_t MountedSystem::WriteUniqueId(uint64_t inode, char* id, size_t max_size) const {
  if (max_size < sizeof(identity_) + sizeof(inode)) return 0;
  std::memcpy(id, &identity_, sizeof(identity_));
  std::memcpy(id + sizeof(identity_), &inode, sizeof(inode));
  return sizeof(identity_) + sizeof(inode);
}

MountedSystem::OpenFile::OpenFile(std::shared_ptr<MountedSystem> system, FileWriter* writer)
    : system_(std::move(system)), writer_(writer) {
  MutexLock lock(system_->mu_);
  ++system_->open_files_;
  if (writer_ != nullptr) system_->writers_.insert(writer_);
}

MountedSystem::OpenFile::~OpenFile() {
  if (system_->IsInherited()) return;
  MutexLock lock(system_->mu_);
  --system_->open_files_;
  system_->writers_.erase(writer_);
}

void MountedSystem::OpenFile::ForgetWriter() {
  if (system_->IsInherited()) return;
  MutexLock lock(system_->mu_);
  system_->writers_.erase(writer_);
}

}  // namespace isozone
