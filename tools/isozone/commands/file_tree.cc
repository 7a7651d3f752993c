#include "isozone/commands/file_tree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/crc32c.h"
#include "isozone/path.h"
#include "store/inode_files.h"

namespace isozone::cli {
namespace {

// A file smaller than this shares a zone with others on the device; a larger one gets its own while it is written.
constexpr uint64_t kSmallFile = 64 * kKiB;
constexpr mode_t kModeMask = 0777;
constexpr int64_t kStatBlock = 512;              // bytes, of st_blocks
constexpr uint32_t kDeviceFileMode = 0644;       // of a file on the device without another
constexpr uint32_t kDeviceDirectoryMode = 0755;  // of a directory
const std::string kDescriptors = "/proc/self/fd/";

Status LocalError(const char* what, const std::string& path) {
  return Status::FromErrno(errno, std::string(what) + " " + path);
}

class LocalFile {
 public:
  LocalFile(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}
  LocalFile(const LocalFile&) = delete;
  LocalFile& operator=(const LocalFile&) = delete;
  ~LocalFile() { ::close(descriptor_); }

  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }

 private:
  const int descriptor_;
  const std::string path_;
};

class LocalSource final : public FileSource, LocalFile {
 public:
  using LocalFile::LocalFile;
  Result<ContentRun> Read(uint64_t offset, std::span<std::byte> buffer) override {
    const uint64_t hole = HoleAt(offset);
    if (hole >= buffer.size()) return ContentRun{hole, true};
    const ssize_t length = ::pread(descriptor(), buffer.data(), buffer.size(), static_cast<off_t>(offset));
    if (length < 0) return LocalError("cannot read", path());
    return ContentRun{static_cast<uint64_t>(length), false};
  }

 private:
  // The length of the hole at `offset`; 0 also where the local file system does not tell.
  uint64_t HoleAt(uint64_t offset) const {
    const off_t data = ::lseek(descriptor(), static_cast<off_t>(offset), SEEK_DATA);
    if (data >= 0) return static_cast<uint64_t>(data) - offset;
    struct stat found {};
    if (errno != ENXIO || ::fstat(descriptor(), &found) != 0) return 0;
    const auto size = static_cast<uint64_t>(found.st_size);
    return size - std::min(size, offset);
  }
};

class LocalSink final : public FileSink, LocalFile {
 public:
  // `temporary`: its name until Finish, which it has only then if it is `nameless` (O_TMPFILE). `stays`: also if Finish
  // is not called. `mode`: what it gets in Finish, if any.
  LocalSink(int descriptor, std::string path, std::string temporary, bool nameless, bool stays,
            std::optional<mode_t> mode)
      : LocalFile(descriptor, std::move(path)),
        temporary_(std::move(temporary)),
        nameless_(nameless),
        stays_(stays),
        mode_(mode) {}
  ~LocalSink() override {
    if (!nameless_ && !stays_) ::unlink(temporary_.c_str());
  }

  Status Append(std::span<const std::byte> content) override {
    return ForEachRun(
        content, [this](std::span<const std::byte> data) { return Write(data); },
        [this](uint64_t bytes) { return AppendHole(bytes); });
  }

  Status AppendHole(uint64_t bytes) override {
    ends_in_hole_ = true;
    const off_t end = ::lseek(descriptor(), static_cast<off_t>(bytes), SEEK_CUR);
    return end >= 0 ? Status::Ok() : LocalError("cannot write", path());
  }

  Status Sync() override {
    if (ends_in_hole_ && ::ftruncate(descriptor(), ::lseek(descriptor(), 0, SEEK_CUR)) != 0) {
      return LocalError("cannot write", path());
    }
    ends_in_hole_ = false;
    return ::fsync(descriptor()) == 0 ? Status::Ok() : LocalError("cannot sync", path());
  }

  Status Finish() override {
    if (mode_ && ::fchmod(descriptor(), *mode_) != 0) return LocalError("cannot set the permissions of", temporary_);
    ISOZONE_RETURN_IF_ERROR(Sync());
    if (nameless_) {
      if (Link(path())) return Status::Ok();
      if (errno != EEXIST) return LocalError("cannot write", path());
      // Only a file with a name can replace another one.
      ::unlink(temporary_.c_str());
      if (!Link(temporary_)) return LocalError("cannot write", temporary_);
      nameless_ = false;
    }
    if (std::rename(temporary_.c_str(), path().c_str()) != 0) return LocalError("cannot write", path());
    stays_ = true;
    return Status::Ok();
  }

 private:
  Status Write(std::span<const std::byte> data) {
    ends_in_hole_ = false;
    while (!data.empty()) {
      const ssize_t length = ::write(descriptor(), data.data(), data.size());
      if (length < 0) return LocalError("cannot write", path());
      data = data.subspan(static_cast<size_t>(length));
    }
    return Status::Ok();
  }
  // Gives the nameless file a name that does not exist yet.
  bool Link(const std::string& name) const {
    const std::string self = kDescriptors + std::to_string(descriptor());
    return ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
  }

  const std::string temporary_;
  bool nameless_;
  bool stays_;
  const std::optional<mode_t> mode_;
  bool ends_in_hole_ = false;  // which lies behind the end that the file has
};

// Bytes of a local file that are in no hole. Its blocks would count what the local file system keeps for itself, too.
uint64_t DataIn(const std::string& path, const struct stat& found) {
  const LocalFile opened(::open(path.c_str(), O_RDONLY | O_CLOEXEC), path);
  uint64_t data = 0;
  for (off_t end = 0; end < found.st_size;) {
    const off_t begin = ::lseek(opened.descriptor(), end, SEEK_DATA);
    if (begin < 0 && errno == ENXIO) break;
    end = begin < 0 ? -1 : ::lseek(opened.descriptor(), begin, SEEK_HOLE);
    // It cannot be read, or the local file system does not tell.
    if (end <= begin) return static_cast<uint64_t>(std::min(found.st_size, found.st_blocks * kStatBlock));
    data += static_cast<uint64_t>(end - begin);
  }
  return data;
}

class LocalTree final : public FileTree {
 public:
  LocalTree(bool nameless, std::string temporary)
      : nameless_(nameless && ::access(kDescriptors.c_str(), X_OK) == 0), temporary_(std::move(temporary)) {}

  Result<TreeEntry> Stat(const std::string& path, bool itself) override {
    struct stat found {};
    const int result = itself ? ::lstat(path.c_str(), &found) : ::stat(path.c_str(), &found);
    if (result != 0) return LocalError("cannot find", path);
    if (S_ISLNK(found.st_mode)) {
      std::error_code error;
      std::string target = std::filesystem::read_symlink(path, error).string();
      if (error) return Status::FromErrno(error.value(), "cannot read " + path);
      return TreeEntry{.mode = kModeMask, .target = std::move(target)};
    }
    if (!S_ISDIR(found.st_mode) && !S_ISREG(found.st_mode)) {
      return Status::InvalidArgument(path + " is no file, directory or symbolic link and cannot be copied");
    }
    const uint64_t data = S_ISREG(found.st_mode) ? DataIn(path, found) : 0;
    return TreeEntry{S_ISDIR(found.st_mode), static_cast<uint64_t>(found.st_size), data, found.st_mode & kModeMask, {}};
  }

  Result<std::vector<std::string>> List(const std::string& directory) override {
    std::vector<std::string> names;
    std::error_code error;
    for (std::filesystem::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
      names.push_back(it->path().filename().string());
    }
    if (error) return Status::FromErrno(error.value(), "cannot list " + directory);
    std::ranges::sort(names);
    return names;
  }

  Status MakeDirectory(const std::string& path, uint32_t mode) override {
    if (::mkdir(path.c_str(), mode | S_IRWXU) == 0) return Status::Ok();
    if (errno != EEXIST) return LocalError("cannot make", path);
    struct stat found {};
    if (::lstat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode)) return Status::Ok();
    return Status::NotDirectory(path + " is no directory and cannot be replaced by one");
  }

  std::string TemporaryName(const std::string& path) const override {
    return temporary_.empty() ? FileTree::TemporaryName(path) : temporary_;
  }

  Status MakeSymlink(const std::string& path, const std::string& target) override {
    const std::string temporary = TemporaryName(path);
    ::unlink(temporary.c_str());
    if (::symlink(target.c_str(), temporary.c_str()) != 0) return LocalError("cannot make the symbolic link", path);
    if (std::rename(temporary.c_str(), path.c_str()) == 0) return Status::Ok();
    const Status failed = LocalError("cannot make the symbolic link", path);
    ::unlink(temporary.c_str());
    return failed;
  }

  Result<std::unique_ptr<FileSource>> Open(const std::string& path) override {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return LocalError("cannot open", path);
    return std::unique_ptr<FileSource>(std::make_unique<LocalSource>(descriptor, path));
  }

  Result<std::unique_ptr<FileSink>> Create(const std::string& path, uint64_t /*expected_size*/,
                                           uint32_t mode) override {
    const std::string temporary = TemporaryName(path);
    int descriptor = nameless_ ? OpenNameless(path, mode) : -1;
    const bool nameless = descriptor >= 0;
    if (!nameless) descriptor = OpenNew(temporary, mode);
    if (descriptor < 0) return LocalError("cannot write", path);
    return std::unique_ptr<FileSink>(
        std::make_unique<LocalSink>(descriptor, path, temporary, nameless, /*stays=*/false, std::nullopt));
  }

  Result<std::unique_ptr<FileSink>> Resume(const std::string& path, uint64_t size, uint64_t /*expected_size*/,
                                           uint32_t mode) override {
    const std::string temporary = TemporaryName(path);
    std::optional<mode_t> final_mode;
    int descriptor = -1;
    if (size == 0) {
      descriptor = OpenNew(temporary, mode);
    } else {
      ISOZONE_ASSIGN_OR_RETURN(const mode_t found, MakeWritable(temporary));
      final_mode = found & mode;
      descriptor = ::open(temporary.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    }
    if (descriptor < 0) return LocalError("cannot write", temporary);
    auto sink =
        std::make_unique<LocalSink>(descriptor, path, temporary, /*nameless=*/false, /*stays=*/true, final_mode);
    if (::ftruncate(descriptor, static_cast<off_t>(size)) != 0 || ::lseek(descriptor, 0, SEEK_END) < 0) {
      return LocalError("cannot write", temporary);
    }
    return std::unique_ptr<FileSink>(std::move(sink));
  }

  Result<TargetRoom> Room(const std::string& directory) override { return TargetRoom::In(directory); }
  Status Sync(const std::string& directory) override {
    const LocalFile opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), directory);
    return ::syncfs(opened.descriptor()) == 0 ? Status::Ok() : LocalError("cannot sync", directory);
  }

 private:
  // Opens a nameless file in the directory of `path`; -1 if its file system does not support that.
  static int OpenNameless(const std::string& path, uint32_t mode) {
    return ::open(ParentPath(path).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
  }

  // Opens a new file, in place of whatever has its name. It never follows a symbolic link, nor writes into a file that
  // has another name.
  static int OpenNew(const std::string& path, uint32_t mode) {
    ::unlink(path.c_str());
    return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  }
  // Lets the owner write into a file that is to be continued; returns its permission bits before that. They are those
  // of its source, less the umask, and, if it was continued before, the owner's to write.
  static Result<mode_t> MakeWritable(const std::string& path) {
    struct stat found {};
    if (::lstat(path.c_str(), &found) != 0) return LocalError("cannot find", path);
    if (!S_ISREG(found.st_mode) || found.st_nlink != 1) {
      return Status::AlreadyExists(path + " is not the file that a copy left when it was stopped; remove it first");
    }
    if ((found.st_mode & S_IWUSR) == 0 && ::chmod(path.c_str(), (found.st_mode & kModeMask) | S_IWUSR) != 0) {
      return LocalError("cannot write", path);
    }
    return static_cast<mode_t>(found.st_mode & kModeMask);
  }

  const bool nameless_;
  const std::string temporary_;  // empty: one for each file
};

class DeviceSource final : public FileSource {
 public:
  explicit DeviceSource(std::shared_ptr<PositionalFile> file) : file_(std::move(file)) {}
  Result<ContentRun> Read(uint64_t offset, std::span<std::byte> buffer) override {
    return ReadRun(*file_, offset, buffer);
  }

 private:
  const std::shared_ptr<PositionalFile> file_;
};

class DeviceSink final : public FileSink {
 public:
  // `stays`: the file stays under its temporary name if Finish is not called.
  DeviceSink(FileSystem& file_system, std::unique_ptr<SparseWriter> writer, std::string path, std::string temporary,
             bool stays)
      : file_system_(file_system),
        writer_(std::move(writer)),
        path_(std::move(path)),
        temporary_(std::move(temporary)),
        stays_(stays) {}
  ~DeviceSink() override {
    writer_.reset();
    // Best effort: an earlier error is the one to report.
    if (!temporary_.empty() && !stays_) static_cast<void>(file_system_.Unlink(temporary_).ok());
  }

  Status Append(std::span<const std::byte> data) override { return writer_->Append(data); }
  Status AppendHole(uint64_t bytes) override { return writer_->AppendHole(bytes); }
  Status Sync() override { return writer_->Sync(); }
  Status Finish() override {
    ISOZONE_RETURN_IF_ERROR(writer_->Sync());
    ISOZONE_RETURN_IF_ERROR(writer_->Close());
    ISOZONE_RETURN_IF_ERROR(file_system_.Rename(temporary_, path_));
    temporary_.clear();
    return Status::Ok();
  }

 private:
  FileSystem& file_system_;
  std::unique_ptr<SparseWriter> writer_;
  const std::string path_;
  std::string temporary_;  // empty once it was renamed
  const bool stays_;
};

class DeviceTree final : public FileTree {
 public:
  explicit DeviceTree(FileSystem& file_system) : file_system_(file_system) {}

  Result<TreeEntry> Stat(const std::string& path, bool /*itself*/) override {
    ISOZONE_ASSIGN_OR_RETURN(const FileAttributes attributes, file_system_.Stat(path));
    TreeEntry entry{attributes.is_directory, attributes.size, attributes.size, attributes.mode & kModeMask, {}};
    if (attributes.type == InodeType::kSymlink) {
      ISOZONE_ASSIGN_OR_RETURN(entry.target, file_system_.inodes().ReadLink(attributes.inode));
      entry.size = entry.data = 0;
    } else if (attributes.type == InodeType::kRegular) {
      ISOZONE_ASSIGN_OR_RETURN(const uint64_t allocated, file_system_.inodes().AllocatedBytes(attributes.inode));
      entry.data = std::min(entry.size, allocated);
    }
    return entry;
  }

  Result<std::vector<std::string>> List(const std::string& directory) override {
    ISOZONE_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, file_system_.List(directory));
    std::vector<std::string> names;
    for (const DirectoryEntry& entry : entries) names.push_back(entry.name);
    std::ranges::sort(names);
    return names;
  }

  Status MakeDirectory(const std::string& path, uint32_t mode) override {
    const Status status = file_system_.CreateDirectory(path);
    if (status.Is(StatusCode::kAlreadyExists)) return Status::Ok();
    ISOZONE_RETURN_IF_ERROR(status);
    return mode == kDeviceDirectoryMode ? Status::Ok() : SetMode(path, mode);
  }

  Status MakeSymlink(const std::string& path, const std::string& target) override {
    const std::string temporary = TemporaryName(path);
    const Status removed = file_system_.Unlink(temporary);
    if (!removed.ok() && !removed.Is(StatusCode::kNotFound)) return removed;
    ISOZONE_ASSIGN_OR_RETURN(const FileAttributes parent, file_system_.Stat(ParentPath(path)));
    ISOZONE_RETURN_IF_ERROR(
        file_system_.inodes().MakeSymlink(parent.inode, BaseName(temporary), target, {.mode = kModeMask}).status());
    return file_system_.Rename(temporary, path);
  }

  Result<std::unique_ptr<FileSource>> Open(const std::string& path) override {
    ISOZONE_ASSIGN_OR_RETURN(auto file, OpenWithHoles(file_system_, path));
    return std::unique_ptr<FileSource>(std::make_unique<DeviceSource>(std::move(file)));
  }

  Result<std::unique_ptr<FileSink>> Create(const std::string& path, uint64_t expected_size, uint32_t mode) override {
    const std::string temporary = TemporaryName(path);
    ISOZONE_ASSIGN_OR_RETURN(auto writer, SparseWriter::Create(file_system_, temporary, OptionsFor(expected_size)));
    auto sink = std::make_unique<DeviceSink>(file_system_, std::move(writer), path, temporary, false);
    if (mode != kDeviceFileMode) ISOZONE_RETURN_IF_ERROR(SetMode(temporary, mode));
    return std::unique_ptr<FileSink>(std::move(sink));
  }

  Result<std::unique_ptr<FileSink>> Resume(const std::string& path, uint64_t size, uint64_t expected_size,
                                           uint32_t mode) override {
    const std::string temporary = TemporaryName(path);
    const CreateOptions options = OptionsFor(expected_size);
    ISOZONE_ASSIGN_OR_RETURN(auto writer, size == 0 ? SparseWriter::Create(file_system_, temporary, options)
                                                    : SparseWriter::Continue(file_system_, temporary, size, options));
    auto sink = std::make_unique<DeviceSink>(file_system_, std::move(writer), path, temporary, true);
    ISOZONE_ASSIGN_OR_RETURN(const TreeEntry there, Stat(temporary, /*itself=*/true));
    if (there.mode != mode) ISOZONE_RETURN_IF_ERROR(SetMode(temporary, mode));
    return std::unique_ptr<FileSink>(std::move(sink));
  }

  Result<TargetRoom> Room(const std::string& /*directory*/) override { return TargetRoom::OnDevice(file_system_); }
  Status Sync(const std::string& /*directory*/) override { return file_system_.SyncMetadata(); }

 private:
  static CreateOptions OptionsFor(uint64_t expected_size) {
    CreateOptions options;
    options.kind = expected_size < kSmallFile ? FileKind::kSmall : FileKind::kData;
    return options;
  }
  Status SetMode(const std::string& path, uint32_t mode) {
    ISOZONE_ASSIGN_OR_RETURN(const FileAttributes attributes, file_system_.Stat(path));
    return file_system_.inodes().SetAttributes(attributes.inode, {.mode = mode}).status();
  }

  FileSystem& file_system_;
};

}  // namespace

std::string FileTree::TemporaryName(const std::string& path) const {
  constexpr size_t kNameMax = 255;  // bytes, of any file system
  const std::string name = BaseName(path);
  if (name.size() + std::string_view(kTemporarySuffix).size() <= kNameMax) return path + kTemporarySuffix;
  return JoinPath(ParentPath(path), fmt::format("{:08x}{}", Crc32c(name.data(), name.size()), kTemporarySuffix));
}

std::unique_ptr<FileTree> MakeLocalTree(bool nameless, const std::string& temporary) {
  return std::make_unique<LocalTree>(nameless, temporary);
}

std::unique_ptr<FileTree> MakeDeviceTree(FileSystem& file_system) { return std::make_unique<DeviceTree>(file_system); }

}  // namespace isozone::cli
