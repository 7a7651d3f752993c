#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

#include "isozone/backup/backup_target.h"
#include "isozone/commands/file_tree.h"
#include "isozone/path.h"

namespace isozone::cli {
namespace {

constexpr std::string_view kPrefix = "backup-";
constexpr std::string_view kPartialSuffix = ".partial";
constexpr char kJournalName[] = "journal";
constexpr char kRemovedName[] = "removed";      // what the manifest is called while its backup is being removed
constexpr char kTemporaryName[] = "temporary";  // of a file that is being written
constexpr mode_t kJournalMode = 0666;           // less the umask
constexpr mode_t kFileMode = 0666;              // less the umask
constexpr mode_t kFolderMode = 0777;            // less the umask
constexpr mode_t kBackupMode = 0700;            // what not all may read on the device must not be readable here

// The number of "backup-000007"; empty for other names.
std::optional<uint32_t> BackupNumber(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number;
}

std::string BackupName(uint32_t number) { return fmt::format("{}{:06}", kPrefix, number); }

Status FolderError(const char* what, const std::string& path) {
  return Status::FromErrno(errno, std::string(what) + " " + path);
}

Result<std::string> ReadLocalFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return FolderError("cannot open", path);
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(path, error);
  if (error) return Status::FromErrno(error.value(), "cannot read " + path);
  if (size > kMaxManifest) return Status::Corruption(path + " is too long for a manifest");
  std::ostringstream content;
  content << file.rdbuf();
  if (file.bad()) return Status::IoError("cannot read " + path);
  return std::move(content).str();
}

Status RemoveTree(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  return error ? Status::FromErrno(error.value(), "cannot remove " + path) : Status::Ok();
}

Status SyncDirectory(const std::string& path) {
  const FileDescriptor opened(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.get() < 0 || ::fsync(opened.get()) != 0) return FolderError("cannot sync", path);
  return Status::Ok();
}

Result<bool> IsThere(const std::string& path) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) == 0) return true;
  return errno == ENOENT || errno == ENOTDIR ? Result<bool>(false) : FolderError("cannot look at", path);
}

// Whether `line` is the first line of a journal. It is empty if the power failed before it was on the disk.
bool IsJournalHead(std::string_view line) {
  constexpr size_t kUuidLength = 36;
  return line.empty() ||
         (line.size() == kUuidLength && line.find_first_not_of("0123456789abcdefABCDEF-") == std::string_view::npos);
}

// The first line of the journal in a `.partial` folder; empty if it holds none, so it is not of this program.
std::optional<std::string> JournalHead(const std::string& partial) {
  const std::string path = JoinPath(partial, kJournalName);
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return std::nullopt;
  std::ifstream journal(path);
  if (!journal) return std::nullopt;
  std::string line;
  std::getline(journal, line);
  return IsJournalHead(line) ? std::optional(line) : std::nullopt;
}

// Removes what is left of a backup whose removal was stopped, and an empty folder. Returns false, and removes nothing,
// if there is anything else, which users may have put there.
Result<bool> RemoveRemains(const std::string& backup) {
  ISOZONE_ASSIGN_OR_RETURN(const bool there, IsThere(backup));
  if (!there || ::rmdir(backup.c_str()) == 0) return true;
  ISOZONE_ASSIGN_OR_RETURN(const bool removed, IsThere(JoinPath(backup, kRemovedName)));
  if (!removed) return false;
  ISOZONE_RETURN_IF_ERROR(RemoveTree(FilesFolder(backup)));
  ISOZONE_RETURN_IF_ERROR(RemoveTree(backup));
  return true;
}

class DirectoryTarget final : public BackupTarget {
 public:
  DirectoryTarget(std::string folder, std::string uuid, uint32_t keep, FileDescriptor locked)
      : folder_(std::move(folder)), uuid_(std::move(uuid)), keep_(keep), locked_(std::move(locked)) {}

  // Finds the last backup, and what is left of one that was stopped. kAlreadyExists if the folder holds backups of
  // another file system: `keep` backups of this one would take their place.
  Status Prepare() {
    ISOZONE_ASSIGN_OR_RETURN(const std::vector<std::string> backups, FindBackups(folder_));
    uint32_t last = 0;
    if (!backups.empty()) {
      last_path_ = backups.back();
      last = BackupNumber(BaseName(last_path_)).value_or(0);
      ISOZONE_RETURN_IF_ERROR(ReadLast());
    }
    ISOZONE_RETURN_IF_ERROR(RemovePartials());
    ISOZONE_RETURN_IF_ERROR(ChooseNumber(last));
    tree_ = MakeLocalTree(/*nameless=*/true, JoinPath(partial_, kTemporaryName));
    return ReadJournal();
  }

  Result<TargetRoom> Room() const override { return TargetRoom::In(folder_); }

  Result<bool> Has(BackupFile& file) override {
    if (!file.has_content()) return false;
    const std::string path = FilesFolder(partial_) + file.path();
    const auto kept = kept_.find(file.path());
    if (kept != kept_.end() && file.kind != FileKind::kLog && kept->second.HasContentOf(file, 0) &&
        IsUntouched(path, file)) {
      file.crc32c = kept->second.crc32c;
      return true;
    }
    const auto last = last_.find(file.inode);
    if (last == last_.end() || !last->second.HasContentOf(file, last_began_s_)) return false;
    const std::string there = FilesFolder(last_path_) + last->second.path();
    if (!IsUntouched(there, file)) return false;
    ISOZONE_RETURN_IF_ERROR(RemoveTree(path));
    kept_.erase(file.path());
    // Where the local file system has no hard links, or no more of them, the file is copied.
    if (::link(there.c_str(), path.c_str()) != 0) return false;
    file.crc32c = last->second.crc32c;
    ISOZONE_RETURN_IF_ERROR(AppendToJournal(EncodeBackupFile(file).dump() + "\n"));
    return true;
  }

  Status Begin(const BackupFile& file) override {
    const std::string path = FilesFolder(partial_) + file.path();
    kept_.erase(file.path());
    struct stat found {};
    if (::lstat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode) != file.is_directory) {
      ISOZONE_RETURN_IF_ERROR(RemoveTree(path));
    }
    if (file.is_directory) return tree_->MakeDirectory(path, kFolderMode);
    if (file.is_symlink()) return MakeSymlink(path, file.target);
    ISOZONE_ASSIGN_OR_RETURN(sink_, tree_->Create(path, file.size, kFileMode));
    return Status::Ok();
  }

  Status Append(std::span<const std::byte> data) override { return sink_->Append(data); }
  Status AppendHole(uint64_t bytes) override { return sink_->AppendHole(bytes); }

  Status End(const BackupFile& file) override {
    if (!file.has_content()) return Status::Ok();
    ISOZONE_RETURN_IF_ERROR(sink_->Finish());
    sink_.reset();
    const FileTime& modified = file.attributes.modified;
    const timespec time{static_cast<time_t>(modified.s), modified.ns};
    const timespec times[2] = {time, time};
    const std::string path = FilesFolder(partial_) + file.path();
    if (::utimensat(AT_FDCWD, path.c_str(), times, 0) != 0) return FolderError("cannot set the time of", path);
    return AppendToJournal(EncodeBackupFile(file).dump() + "\n");
  }

  Status Abandon() override {
    sink_.reset();
    return Status::Ok();
  }

  Status Finish(const Manifest& manifest) override {
    const std::string text = manifest.Encode();
    if (text.size() > kMaxManifest) return Status::NotSupported("there are too many files for one backup");
    ISOZONE_RETURN_IF_ERROR(AddLinks(manifest));
    ISOZONE_RETURN_IF_ERROR(RemoveOthers(manifest));
    ISOZONE_RETURN_IF_ERROR(tree_->Sync(partial_));
    ISOZONE_ASSIGN_OR_RETURN(const auto sink, tree_->Create(JoinPath(partial_, kManifestName), 0, kFileMode));
    ISOZONE_RETURN_IF_ERROR(sink->Append(std::as_bytes(std::span(text))));
    ISOZONE_RETURN_IF_ERROR(sink->Finish());
    ISOZONE_RETURN_IF_ERROR(SyncDirectory(partial_));
    // The journal goes last: until the backup has its name, it is what tells that the folder can be continued.
    if (std::rename(partial_.c_str(), complete_.c_str()) != 0) return FolderError("cannot rename", partial_);
    ISOZONE_RETURN_IF_ERROR(SyncDirectory(folder_));
    ISOZONE_RETURN_IF_ERROR(RemoveTree(JoinPath(complete_, kJournalName)));
    return RemoveOld();
  }

 private:
  // Whether the file at `path`, which had the content of `file`, still has its size and time, which every write
  // changes.
  static bool IsUntouched(const std::string& path, const BackupFile& file) {
    struct stat found {};
    const FileTime& modified = file.attributes.modified;
    return ::lstat(path.c_str(), &found) == 0 && S_ISREG(found.st_mode) &&
           static_cast<uint64_t>(found.st_size) == file.size &&
           found.st_mtim.tv_sec == static_cast<time_t>(modified.s) &&
           found.st_mtim.tv_nsec == static_cast<int64_t>(modified.ns);
  }

  Status OtherFileSystem(const std::string& path, const std::string& uuid) const {
    return Status::AlreadyExists(
        fmt::format("{} is a backup of another file system, {}, and this one is {}; name another folder", path,
                    Printable(uuid), uuid_));
  }

  Status ReadLast() {
    ISOZONE_ASSIGN_OR_RETURN(const Manifest last, ReadManifest(last_path_));
    if (last.uuid != uuid_) return OtherFileSystem(last_path_, last.uuid);
    last_began_s_ = last.began_s;
    for (const BackupFile& file : last.files) {
      const bool settled = file.IsSettled(last_began_s_);
      if (file.has_content() && file.kind != FileKind::kLog && settled) last_[file.inode] = file;
    }
    return Status::Ok();
  }

  // Finds the newest backup that was stopped, and removes the others.
  Status RemovePartials() {
    std::error_code error;
    std::map<uint32_t, std::string> partials;
    for (std::filesystem::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
      const std::string path = it->path().string();
      std::string_view name = path;
      if (!name.ends_with(kPartialSuffix)) continue;
      name.remove_suffix(kPartialSuffix.size());
      const auto number = BackupNumber(BaseName(name));
      const auto head = JournalHead(path);
      if (!number || !head) continue;
      if (!head->empty() && *head != uuid_) return OtherFileSystem(path, *head);
      partials[*number] = path;
    }
    if (error) return Status::FromErrno(error.value(), "cannot list " + folder_);
    for (const auto& [number, path] : partials) {
      if (path != partials.rbegin()->second) ISOZONE_RETURN_IF_ERROR(RemoveTree(path));
    }
    if (!partials.empty()) stopped_ = partials.rbegin()->second;
    return Status::Ok();
  }

  // Takes the next number whose names are free, and the backup that was stopped for it.
  Status ChooseNumber(uint32_t last) {
    for (uint32_t number = last; number < std::numeric_limits<uint32_t>::max();) {
      complete_ = JoinPath(folder_, BackupName(++number));
      partial_ = complete_ + std::string(kPartialSuffix);
      ISOZONE_ASSIGN_OR_RETURN(const bool free, RemoveRemains(complete_));
      if (!free) continue;
      if (partial_ == stopped_) return Status::Ok();
      ISOZONE_ASSIGN_OR_RETURN(const bool partial_free, RemoveRemains(partial_));
      if (!partial_free) continue;
      if (!stopped_.empty() && std::rename(stopped_.c_str(), partial_.c_str()) != 0) {
        return FolderError("cannot rename", stopped_);
      }
      return Status::Ok();
    }
    return Status::AlreadyExists(
        fmt::format("{} has the highest number that a backup can have; rename it", last_path_));
  }

  // Reads what the backup that was stopped has, or begins one.
  Status ReadJournal() {
    std::ifstream journal(JoinPath(partial_, kJournalName));
    std::string line;
    if (!journal || !std::getline(journal, line) || line != uuid_) {
      ISOZONE_RETURN_IF_ERROR(RemoveTree(partial_));
      if (::mkdir(partial_.c_str(), kBackupMode) != 0) return FolderError("cannot make", partial_);
      ISOZONE_RETURN_IF_ERROR(AppendToJournal(uuid_ + "\n"));
      return tree_->MakeDirectory(FilesFolder(partial_), kFolderMode);
    }
    ISOZONE_RETURN_IF_ERROR(
        RemoveTree(JoinPath(partial_, kManifestName)));  // it was stopped just before it was complete
    ISOZONE_RETURN_IF_ERROR(RemoveTree(JoinPath(partial_, kTemporaryName)));
    ISOZONE_RETURN_IF_ERROR(tree_->MakeDirectory(FilesFolder(partial_), kFolderMode));
    while (std::getline(journal, line)) {
      const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
      if (json.is_discarded()) continue;  // the line that was being written
      auto file = DecodeBackupFile(json);
      if (!file.ok()) continue;
      const std::string path = file->path();
      kept_[path] = std::move(file).value();
    }
    return AppendToJournal("\n");  // ends a line that was cut off
  }

  static Status MakeSymlink(const std::string& path, const std::string& target) {
    ISOZONE_RETURN_IF_ERROR(RemoveTree(path));
    const bool made = ::symlink(target.c_str(), path.c_str()) == 0;
    const bool unsupported = errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS || errno == ENAMETOOLONG;
    return made || unsupported ? Status::Ok() : FolderError("cannot make the symbolic link", path);
  }

  Status AppendToJournal(const std::string& text) const {
    const std::string path = JoinPath(partial_, kJournalName);
    const FileDescriptor journal(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, kJournalMode));
    if (journal.get() < 0) return FolderError("cannot open", path);
    const ssize_t length = ::write(journal.get(), text.data(), text.size());
    if (length < 0) return FolderError("cannot write", path);
    return static_cast<size_t>(length) == text.size() ? Status::Ok() : Status::NoSpace("cannot write all of " + path);
  }

  Status AddLinks(const Manifest& manifest) const {
    for (const BackupFile& file : manifest.files) {
      for (size_t i = 1; i < file.paths.size(); ++i) {
        const std::string from = FilesFolder(partial_) + file.path();
        const std::string to = FilesFolder(partial_) + file.paths[i];
        ISOZONE_RETURN_IF_ERROR(RemoveTree(to));
        if (::link(from.c_str(), to.c_str()) == 0) continue;
        if (file.is_symlink()) {
          ISOZONE_RETURN_IF_ERROR(MakeSymlink(to, file.target));
          continue;
        }
        std::error_code error;
        std::filesystem::copy_file(from, to, error);
        if (error) return Status::FromErrno(error.value(), "cannot copy " + to);
      }
    }
    return Status::Ok();
  }

  // Removes what files there are that the backup does not have, because they were removed on the device meanwhile.
  Status RemoveOthers(const Manifest& manifest) const {
    const std::string root = FilesFolder(partial_);
    std::set<std::string> wanted;
    for (const BackupFile& file : manifest.files) {
      for (const std::string& path : file.paths) wanted.insert(root + path);
    }
    std::vector<std::string> others;
    std::error_code error;
    for (std::filesystem::recursive_directory_iterator it(root, error), end; !error && it != end; it.increment(error)) {
      if (!wanted.contains(it->path().string())) others.push_back(it->path().string());
    }
    if (error) return Status::FromErrno(error.value(), "cannot list " + root);
    for (const std::string& path : others) ISOZONE_RETURN_IF_ERROR(RemoveTree(path));
    return Status::Ok();
  }

  // The manifest goes first, so that what is left of a backup never looks complete. A backup that is being read stays
  // until the next time.
  Status RemoveOld() const {
    ISOZONE_ASSIGN_OR_RETURN(const std::vector<std::string> backups, FindBackups(folder_));
    for (size_t i = 0; i + keep_ < backups.size(); ++i) {
      const FileDescriptor opened(::open(backups[i].c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      if (opened.get() < 0) return FolderError("cannot open", backups[i]);
      if (::flock(opened.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) continue;
      const std::string manifest = JoinPath(backups[i], kManifestName);
      if (std::rename(manifest.c_str(), JoinPath(backups[i], kRemovedName).c_str()) != 0) {
        return FolderError("cannot rename", manifest);
      }
      ISOZONE_RETURN_IF_ERROR(SyncDirectory(backups[i]));
      ISOZONE_RETURN_IF_ERROR(RemoveRemains(backups[i]).status());
    }
    return Status::Ok();
  }

  const std::string folder_;
  const std::string uuid_;
  const uint32_t keep_;
  const FileDescriptor locked_;
  std::unique_ptr<FileTree> tree_;
  std::string complete_;                    // the path of this backup when it is complete
  std::string partial_;                     // and until then
  std::string stopped_;                     // what `partial_` was called before, if it is continued; else empty
  std::string last_path_;                   // of the last backup; empty: there is none
  uint64_t last_began_s_ = 0;               // when that began, seconds since 1970
  std::map<uint64_t, BackupFile> last_;     // its files, by inode
  std::map<std::string, BackupFile> kept_;  // what is in `partial_` already, by path
  std::unique_ptr<FileSink> sink_;
};

}  // namespace

std::string FilesFolder(const std::string& backup) { return JoinPath(backup, "files"); }

Result<std::vector<std::string>> FindBackups(const std::string& folder) {
  std::vector<std::pair<uint32_t, std::string>> found;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string path = it->path().string();
    const auto number = BackupNumber(BaseName(path));
    if (!number) continue;
    ISOZONE_ASSIGN_OR_RETURN(const bool complete, HasManifest(path));
    if (complete) found.emplace_back(*number, path);
  }
  if (error) return Status::FromErrno(error.value(), "cannot list " + folder);
  std::ranges::sort(found);
  std::vector<std::string> paths;
  for (auto& [number, path] : found) paths.push_back(std::move(path));
  return paths;
}

Result<bool> HasManifest(const std::string& folder) {
  const std::string path = JoinPath(folder, kManifestName);
  struct stat found {};
  if (::stat(path.c_str(), &found) == 0) return S_ISREG(found.st_mode);
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return FolderError("cannot look at", path);
}

Result<std::unique_ptr<BackupTarget>> MakeDirectoryTarget(const std::string& folder, const std::string& uuid,
                                                          uint32_t keep) {
  if (::mkdir(folder.c_str(), kFolderMode) != 0 && errno != EEXIST) return FolderError("cannot make", folder);
  FileDescriptor locked(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (locked.get() < 0) return FolderError("cannot open", folder);
  if (::flock(locked.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return FolderError("cannot lock", folder);
    return Status::Busy(fmt::format("another process writes a backup into {}", folder));
  }
  const std::string plain(WithoutTrailingSlashes(folder));
  auto target = std::make_unique<DirectoryTarget>(plain.empty() ? folder : plain, uuid, keep, std::move(locked));
  ISOZONE_RETURN_IF_ERROR(target->Prepare());
  return std::unique_ptr<BackupTarget>(std::move(target));
}

Result<Manifest> ReadManifest(const std::string& backup) {
  const std::string path = JoinPath(backup, kManifestName);
  ISOZONE_ASSIGN_OR_RETURN(const std::string text, ReadLocalFile(path));
  auto manifest = Manifest::Decode(text);
  if (!manifest.ok()) return manifest.status().WithContext(path);
  return manifest;
}

}  // namespace isozone::cli
