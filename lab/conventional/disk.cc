#include "conventional/disk.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/byte_text.h"
#include "base/units.h"
#include "base/uri.h"
#include "rocksdb/adapter/file_class.h"

namespace isozone {
namespace {

using rocksdb::IOOptions;
using rocksdb::IOStatus;

// The size of a journal of mke2fs for devices of this size: at most 128 MiB.
constexpr uint64_t kMostJournal = 128 * kMiB;
constexpr uint64_t kJournalShare = 64;  // the journal takes 1 / kJournalShare of the device
constexpr uint64_t kCommitBlocks = 3;   // descriptor, the inode's block, commit record

struct OpenDisks {
  Mutex mu;
  std::map<std::string, std::weak_ptr<Disk>> disks ISOZONE_GUARDED_BY(mu);  // by directory
};

// Never destroyed: threads of RocksDB may still use it after static objects are destroyed.
OpenDisks& TheDisks() {
  static OpenDisks& open = *new OpenDisks;
  return open;
}

Status MakeDirectories(const std::string& directory, const std::string& below) {
  for (const std::string& path : {directory, below}) {
    std::error_code error;
    std::filesystem::create_directory(path, error);
    if (error) return Status::FromErrno(error.value(), "cannot make the directory " + path);
  }
  return Status::Ok();
}

uint64_t JournalBlocks(const ConventionalOptions& device) {
  return std::min(device.profile.capacity / kJournalShare, kMostJournal) / device.profile.block_size;
}

bool IsBelow(const std::string& path, const std::string& directory) {
  return path.size() > directory.size() && path.starts_with(directory) && path[directory.size()] == '/';
}

}  // namespace

Result<std::shared_ptr<Disk>> Disk::Open(const AdapterUri& uri) {
  ISOZONE_ASSIGN_OR_RETURN(Uri parsed, ParseUri(uri.rest));
  if (parsed.path.empty()) {
    return Status::InvalidArgument("a conventional SSD needs a directory; write isozone-conventional:///dir");
  }
  if (uri.read_only) return Status::NotSupported("read_only=on: a conventional SSD has one process only");
  ISOZONE_ASSIGN_OR_RETURN(const ConventionalOptions device, TakeConventionalOptions(parsed.options));
  ISOZONE_ASSIGN_OR_RETURN(const std::optional<bool> discard, parsed.options.TakeBool("discard"));
  ISOZONE_RETURN_IF_ERROR(parsed.options.RejectUnknown());
  const std::string directory = AbsolutePath(std::filesystem::absolute(parsed.path).string());
  const std::string options = fmt::format("{} discard={}", device.ToString(), discard.value_or(false) ? "on" : "off");

  OpenDisks& open = TheDisks();
  const MutexLock lock(open.mu);
  std::weak_ptr<Disk>& known = open.disks[directory];
  if (std::shared_ptr<Disk> disk = known.lock()) {
    if (disk->options_ == options) return disk;
    return Status::InvalidArgument(
        fmt::format("{} is mounted with {}; it cannot also be with {}", directory, disk->options_, options));
  }
  ISOZONE_RETURN_IF_ERROR(MakeDirectories(directory, directory + "/files"));
  std::shared_ptr<Disk> disk(new Disk(directory, options, discard.value_or(false), device), &Disk::Destroy);
  ISOZONE_RETURN_IF_ERROR(disk->device_.Start());
  ISOZONE_RETURN_IF_ERROR(disk->Lock());
  ISOZONE_RETURN_IF_ERROR(disk->LayOutFiles());
  disk->stats_file_.emplace(uri.stats_file, [disk = disk.get()] { return disk->StatsJson(); });
  known = disk;
  static const int registered = std::atexit(&Disk::WriteAllStats);
  static_cast<void>(registered);
  return disk;
}

Disk::Disk(std::string directory, std::string options, bool discard, const ConventionalOptions& device)
    : directory_(std::move(directory)),
      files_directory_(directory_ + "/files"),
      options_(std::move(options)),
      discard_(discard),
      owner_(getpid()),
      block_size_(device.profile.block_size),
      journal_blocks_(JournalBlocks(device)),
      device_(device),
      space_(journal_blocks_, device.profile.capacity / device.profile.block_size) {}

void Disk::Destroy(Disk* disk) {
  if (getpid() == disk->owner_) delete disk;
}

Disk::~Disk() {
  WriteStats();
  unmounting_ = true;
  if (lock_ == nullptr) return;
  const IOStatus unlocked = host_->UnlockFile(lock_, IOOptions(), nullptr);
  if (!unlocked.ok()) std::fprintf(stderr, "isozone: %s\n", unlocked.ToString().c_str());
}

Status Disk::Lock() {
  const IOStatus locked = host_->LockFile(directory_ + "/lock", IOOptions(), &lock_, nullptr);
  if (locked.ok()) return Status::Ok();
  lock_ = nullptr;
  return Status::Busy(directory_ + " is in use by another process: " + locked.ToString());
}

Status Disk::LayOutFiles() {
  namespace files = std::filesystem;
  std::error_code error;
  std::map<std::string, uint64_t> sizes;  // by path, in order
  for (files::recursive_directory_iterator i(files_directory_, error), end; !error && i != end; i.increment(error)) {
    if (!i->is_regular_file(error) || error) continue;
    sizes[i->path().string().substr(files_directory_.size())] = i->file_size(error);
  }
  if (error) return Status::FromErrno(error.value(), "cannot read " + files_directory_);
  const MutexLock lock(names_mu_);
  std::map<ino_t, std::shared_ptr<DiskFile>> by_inode;  // a file may have several names
  for (const auto& [path, size] : sizes) {
    struct stat info {};
    if (::stat(HostPath(path).c_str(), &info) != 0) return Status::FromErrno(errno, "cannot read " + HostPath(path));
    std::shared_ptr<DiskFile>& file = by_inode[info.st_ino];
    if (file == nullptr) {
      Result<std::shared_ptr<DiskFile>> laid_out = DiskFile::LayOut(*this, size);
      if (!laid_out.ok()) return laid_out.status().WithContext("with the files that are in " + directory_);
      file = std::move(laid_out).value();
    }
    files_[path] = file;
  }
  return Status::Ok();
}

void Disk::WriteAllStats() {
  static auto& disks = *new std::vector<std::shared_ptr<Disk>>;
  {
    OpenDisks& open = TheDisks();
    const MutexLock lock(open.mu);
    for (const auto& [directory, known] : open.disks) {
      if (std::shared_ptr<Disk> disk = known.lock()) disks.push_back(std::move(disk));
    }
  }
  // Threads of RocksDB may still use the disks, so they are kept for ever.
  for (const std::shared_ptr<Disk>& disk : disks) disk->WriteStats();
}

void Disk::WriteStats() {
  if (stats_file_ && getpid() == owner_) stats_file_->Finish();
}

std::string Disk::StatsJson() const {
  const ConventionalStats stats = device_.Stats();
  const nlohmann::ordered_json json = {
      {"device", "conventional:" + directory_},
      {"options", options_},
      {"host_bytes_read", stats.host_bytes_read},
      {"host_bytes_written", stats.host_bytes_written},
      {"host_bytes_trimmed", stats.host_bytes_trimmed},
      {"media_bytes_written", stats.flash_bytes_written},
      {"copied_bytes", stats.ftl.copied_pages * block_size_},
      {"superblock_erases", stats.ftl.erases},
      {"write_amplification", stats.ftl.WriteAmplification()},
      {"space", {{"capacity_bytes", device_.capacity()}, {"free_bytes", free_bytes()}}},
  };
  return JsonText(json, 2) + "\n";
}

// Names.

std::shared_ptr<DiskFile>& Disk::Entry(const std::string& path) {
  std::shared_ptr<DiskFile>& file = files_[path];
  if (file == nullptr) file = std::make_shared<DiskFile>(*this);
  return file;
}

IOStatus Disk::Create(const std::string& path, std::shared_ptr<DiskFile>* file, const HostOperation& operation) {
  const MutexLock lock(names_mu_);
  IOStatus status = operation();
  if (!status.ok()) return status;
  *file = Entry(path);
  (*file)->Truncate(0);
  names_changed_ = true;
  return status;
}

IOStatus Disk::Reuse(const std::string& from, const std::string& to, std::shared_ptr<DiskFile>* file,
                     const HostOperation& operation) {
  const MutexLock lock(names_mu_);
  IOStatus status = operation();
  if (!status.ok()) return status;
  *file = Entry(from);
  files_[to] = *file;
  if (from != to) files_.erase(from);
  names_changed_ = true;
  return status;
}

IOStatus Disk::Find(const std::string& path, std::shared_ptr<DiskFile>* file, const HostOperation& operation) {
  const MutexLock lock(names_mu_);
  IOStatus status = operation();
  if (status.ok()) *file = Entry(path);
  return status;
}

IOStatus Disk::FindOrCreate(const std::string& path, std::shared_ptr<DiskFile>* file, const HostOperation& operation) {
  const IOStatus status = Find(path, file, operation);
  if (status.ok()) names_changed_ = true;
  return status;
}

IOStatus Disk::Link(const std::string& from, const std::string& to, const HostOperation& operation) {
  const MutexLock lock(names_mu_);
  IOStatus status = operation();
  if (!status.ok()) return status;
  files_[to] = Entry(from);
  names_changed_ = true;
  return status;
}

IOStatus Disk::Rename(const std::string& from, const std::string& to, const HostOperation& operation) {
  const MutexLock lock(names_mu_);
  IOStatus status = operation();
  if (!status.ok() || from == to) return status;
  const auto moved = files_.find(from);
  const auto replaced = files_.find(to);
  if (moved != files_.end() && replaced != files_.end() && moved->second == replaced->second) return status;
  std::map<std::string, std::shared_ptr<DiskFile>> renamed;
  for (auto i = files_.begin(); i != files_.end();) {
    if (i->first == from || IsBelow(i->first, from)) {
      renamed[to + i->first.substr(from.size())] = std::move(i->second);
      i = files_.erase(i);
    } else {
      ++i;
    }
  }
  for (auto& [path, file] : renamed) files_[path] = std::move(file);
  names_changed_ = true;
  return status;
}

IOStatus Disk::Remove(const std::string& path, const HostOperation& operation) {
  const MutexLock lock(names_mu_);
  IOStatus status = operation();
  if (!status.ok()) return status;
  files_.erase(path);
  names_changed_ = true;
  return status;
}

// The device.

void Disk::Read(const std::vector<Extent>& extents) {
  if (extents.empty()) return;
  const auto reads = std::make_shared<BytesInFlight>();
  Submit(TimingOpKind::kRead, extents, reads);
  reads->Wait();
}

void Disk::CommitMetadata(bool changed) {
  const auto writes = std::make_shared<BytesInFlight>();
  if (names_changed_.exchange(false) || changed) {
    const uint64_t places = journal_blocks_ / kCommitBlocks;
    const uint64_t place = journal_next_.fetch_add(1) % places;
    Submit(TimingOpKind::kWrite, {{place * kCommitBlocks, kCommitBlocks}}, writes);
    writes->Wait();
  }
  device_.Submit(TimingOpKind::kFlush, 0, 0, writes);
  writes->Wait();
}

void Disk::Submit(TimingOpKind kind, const std::vector<Extent>& extents,
                  const std::shared_ptr<BytesInFlight>& transfers) {
  for (const Extent& e : extents) device_.Submit(kind, e.block * block_size_, e.count * block_size_, transfers);
}

uint64_t Disk::free_bytes() const {
  const MutexLock lock(space_mu_);
  return (space_.free() - reserved_) * block_size_;
}

bool Disk::Reserve(uint64_t blocks) {
  const MutexLock lock(space_mu_);
  if (blocks > space_.free() - reserved_) return false;
  reserved_ += blocks;
  return true;
}

void Disk::Allocate(uint64_t blocks, std::vector<Extent>& extents) {
  const MutexLock lock(space_mu_);
  reserved_ -= blocks;
  space_.Allocate(blocks, extents);
}

void Disk::Release(const std::vector<Extent>& extents, uint64_t reserved) {
  if (unmounting_) return;
  if (discard_) Submit(TimingOpKind::kTrim, extents, trims_);  // before others can have the blocks
  const MutexLock lock(space_mu_);
  reserved_ -= reserved;
  for (const Extent& extent : extents) space_.Free(extent);
}

}  // namespace isozone
