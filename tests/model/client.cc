#include "model/client.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/latch.h"

namespace isozone::model {
namespace {

std::span<const std::byte> AsBytes(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string OrRoot(const std::string& path) { return path.empty() ? "/" : path; }

Status Contradiction(std::string text) { return Status::Corruption(std::move(text)); }

}  // namespace

Client::Client(FileSystem& fs, Oracle& oracle, uint64_t seed, ClientOptions options)
    : fs_(fs),
      oracle_(oracle),
      now_(oracle.now()),
      random_(seed),
      options_(std::move(options)),
      choices_(random_, now_, options_.directory, options_.max_append, fs.state().device().geometry().block_size) {}

Client::~Client() = default;

Status Client::Begin() {
  const std::string& directory = options_.directory;
  if (directory.empty() || now_.names.contains(directory)) return Status::Ok();
  ISOZONE_RETURN_IF_ERROR(fs_.CreateDirectory(directory));
  ISOZONE_ASSIGN_OR_RETURN(const Inode inode, InodeOf(directory));
  oracle_.MakeDirectory(directory, inode);
  return Status::Ok();
}

Status Client::Step() {
  struct Operation {
    uint32_t weight;
    Status (Client::*run)();
    bool names = false;  // changes them, and nothing else: without room for its record, nothing at all
  };
  static constexpr std::array<Operation, 25> kOperations = {{{70, &Client::DoCreate, true},
                                                             {30, &Client::DoOpenForAppend, true},
                                                             {300, &Client::DoAppend},
                                                             {30, &Client::DoFlush},
                                                             {70, &Client::DoSync},
                                                             {30, &Client::DoWriteOut},
                                                             {15, &Client::DoTruncateWriter},
                                                             {50, &Client::DoClose},
                                                             {40, &Client::DoOpenReader},
                                                             {120, &Client::DoRead},
                                                             {20, &Client::DoReadAsync},
                                                             {30, &Client::DoCloseReader},
                                                             {20, &Client::DoStat},
                                                             {5, &Client::DoList},
                                                             {8, &Client::DoMakeDirectory, true},
                                                             {6, &Client::DoRemoveDirectory},
                                                             {30, &Client::DoUnlink},
                                                             {40, &Client::DoRename, true},
                                                             {20, &Client::DoLink, true},
                                                             {5, &Client::DoSetModified},
                                                             {10, &Client::DoTruncatePath},
                                                             {10, &Client::DoOverwrite},
                                                             {10, &Client::DoSyncMetadata},
                                                             {1, &Client::DoSettle},
                                                             {4, &Client::DoCollect}}};
  static constexpr uint32_t kTotalWeight = [] {
    uint32_t total = 0;
    for (const Operation& o : kOperations) total += o.weight;
    return total;
  }();
  ++counters_.operations;
  if (random_.Chance(0.2) && now_.bytes() > options_.live_target) return DoUnlink();
  uint64_t draw = random_.Below(kTotalWeight);
  for (const Operation& o : kOperations) {
    if (draw < o.weight) {
      const Status status = (this->*o.run)();
      return o.names && status.Is(StatusCode::kNoSpace) ? MakeRoom() : status;
    }
    draw -= o.weight;
  }
  return Status::Ok();
}

// ---------------------------------------------------------------------------------------------------------------------
// Errors
// ---------------------------------------------------------------------------------------------------------------------

bool Client::HasWriter(Inode inode) const {
  return std::any_of(writers_.begin(), writers_.end(), [&](const OpenWriter& w) { return w.inode == inode; });
}

bool Client::IsOpen(Inode inode) const {
  return HasWriter(inode) ||
         std::any_of(readers_.begin(), readers_.end(), [&](const OpenReader& r) { return r.inode == inode; });
}

Result<Inode> Client::InodeOf(const std::string& path) {
  ISOZONE_ASSIGN_OR_RETURN(const FileAttributes attributes, fs_.Stat(path));
  return attributes.inode;
}

// After a fault, reads may fail; what was lost of a log is reported as corruption.
bool Client::Tolerated(const Status& status) const {
  return options_.expects_faults && (status.Is(StatusCode::kIoError) || status.Is(StatusCode::kCorruption));
}

Status Client::Expect(const Status& status, StatusCode expected, const char* what, const std::string& path) {
  if (status.Is(expected)) return Status::Ok();
  if (status.ok() || expected != StatusCode::kOk) {
    return Contradiction(fmt::format("{} of '{}' should return '{}' and returned '{}'", what, path,
                                     StatusCodeName(expected), status.ToString()));
  }
  if (Tolerated(status)) {
    ++counters_.io_errors;
    return Status::Ok();
  }
  return status.WithContext(fmt::format("{} of '{}'", what, path));
}

void Client::ForgetIfGone(Inode inode) {
  if (IsOpen(inode)) return;
  const auto& names = now_.names;
  if (std::none_of(names.begin(), names.end(), [&](const auto& name) { return name.second == inode; })) {
    oracle_.Forget(inode);
  }
}

Status Client::CloseWriter(size_t index) {
  OpenWriter closing = std::move(writers_[index]);
  writers_.erase(writers_.begin() + static_cast<ptrdiff_t>(index));
  const Status status = closing.writer->Close();
  closing.writer.reset();
  if (status.ok()) {
    oracle_.Close(closing.inode);
  } else if (status.Is(StatusCode::kNoSpace) || Tolerated(status)) {
    ISOZONE_RETURN_IF_ERROR(Learn(closing.inode));
  } else {
    return status.WithContext("closing");
  }
  ForgetIfGone(closing.inode);
  return Status::Ok();
}

Status Client::OnWriterError(size_t index, const Status& error) {
  const Inode inode = writers_[index].inode;
  const uint64_t size = writers_[index].writer->size();
  const uint64_t known = now_.files.at(inode).bytes.size();
  if (size > known) return Contradiction(fmt::format("inode {} has {} bytes and was given {}", inode, size, known));
  const bool full = error.Is(StatusCode::kNoSpace);
  if (!full && !Tolerated(error)) return error.WithContext("writing");
  OpenWriter failed = std::move(writers_[index]);
  writers_.erase(writers_.begin() + static_cast<ptrdiff_t>(index));
  (void)failed.writer->Close();  // the error again
  failed.writer.reset();
  ISOZONE_RETURN_IF_ERROR(Learn(inode));
  if (!full) {
    ++counters_.io_errors;
    return Status::Ok();
  }
  return MakeRoom();
}

Status Client::Learn(Inode inode) {
  // Handles keep what the metadata never learnt of.
  std::erase_if(readers_, [&](const OpenReader& r) { return r.inode == inode; });
  for (const auto& [path, named] : now_.names) {
    if (named != inode) continue;
    ISOZONE_ASSIGN_OR_RETURN(const auto reader, fs_.OpenForRead(path));
    ISOZONE_ASSIGN_OR_RETURN(const FileAttributes attributes, fs_.Stat(path));
    std::byte next{};
    const auto behind = reader->Read(attributes.size, {&next, 1}, IoClass::kOther);
    // How long a log is that cannot be read to its end is not known.
    if (!behind.ok() && Tolerated(behind.status())) return RemoveAllNames(inode);
    ISOZONE_RETURN_IF_ERROR(behind.status());
    const File& file = now_.files.at(inode);
    if (*behind > 0 || attributes.size < file.published || attributes.size > file.bytes.size()) {
      return Contradiction(fmt::format("after a failed write '{}' has {} bytes{}; {} were written and {} published",
                                       path, attributes.size, *behind > 0 ? " and more" : "", file.bytes.size(),
                                       file.published));
    }
    oracle_.Lose(inode, attributes.size);
    return Status::Ok();
  }
  ForgetIfGone(inode);
  return Status::Ok();
}

Status Client::LearnAfter(Inode inode, const std::string& path, const std::string& before, const std::string& after,
                          const Status& error) {
  const bool full = error.Is(StatusCode::kNoSpace);
  if (!full && !Tolerated(error)) return error.WithContext(path);
  if (!full) ++counters_.io_errors;
  ISOZONE_ASSIGN_OR_RETURN(const auto reader, fs_.OpenForRead(path));
  std::string bytes(reader->size() + 1, '\0');  // behind what can be read of a log there is an error
  const auto read = reader->Read(0, std::as_writable_bytes(std::span(bytes)), IoClass::kOther);
  bytes.resize(read.ok() ? *read : reader->size());
  const bool extended_partly = after.starts_with(bytes) && bytes.starts_with(before);
  if (!read.ok() || (bytes != before && bytes != after && !extended_partly)) {
    // What cannot be known, since part of it cannot be read, is removed.
    const bool unreadable = read.ok()
                                ? options_.expects_faults && (before.starts_with(bytes) || after.starts_with(bytes))
                                : Tolerated(read.status());
    if (unreadable) return RemoveAllNames(inode);
    if (!read.ok()) return read.status();
    return Contradiction(
        fmt::format("after a failed change '{}' has {} bytes, neither the {} from before nor the {} wanted", path,
                    bytes.size(), before.size(), after.size()));
  }
  oracle_.Truncate(inode, 0);
  oracle_.Overwrite(inode, 0, bytes);
  return full ? MakeRoom() : Status::Ok();
}

Status Client::RemoveAllNames(Inode inode) {
  std::vector<std::string> paths;
  for (const auto& [path, named] : now_.names) {
    if (named == inode) paths.push_back(path);
  }
  for (const std::string& path : paths) {
    ISOZONE_RETURN_IF_ERROR(fs_.Unlink(path));
    oracle_.Remove(path);
  }
  std::erase_if(readers_, [&](const OpenReader& r) { return r.inode == inode; });
  ForgetIfGone(inode);
  return Status::Ok();
}

void Client::ForgetAllGone() {
  std::vector<Inode> inodes;
  for (const auto& [inode, file] : now_.files) inodes.push_back(inode);
  for (const Inode inode : inodes) ForgetIfGone(inode);
}

Status Client::CloseAll() {
  readers_.clear();
  while (!writers_.empty()) ISOZONE_RETURN_IF_ERROR(CloseWriter(writers_.size() - 1));
  ForgetAllGone();
  return Status::Ok();
}

Status Client::RemoveFiles(double share) {
  std::vector<std::string> paths;
  for (const auto& [path, inode] : now_.names) {
    if (!now_.files.at(inode).is_directory && random_.Chance(share)) paths.push_back(path);
  }
  for (const std::string& path : paths) {
    ISOZONE_RETURN_IF_ERROR(fs_.Unlink(path));
    oracle_.Remove(path);
  }
  ForgetAllGone();
  return Status::Ok();
}

// The device is full. Files are removed; if that is all of them, half a zone must be writable again.
Status Client::MakeRoom() {
  ++counters_.times_full;
  ISOZONE_RETURN_IF_ERROR(CloseAll());
  const bool all = options_.alone && random_.Chance(0.3);
  ISOZONE_RETURN_IF_ERROR(RemoveFiles(all ? 1 : 0.6));
  ISOZONE_RETURN_IF_ERROR(Expect(fs_.state().Settle(), StatusCode::kOk, "settle", "/"));
  if (!all || options_.expects_faults) return Status::Ok();
  const std::string path = options_.directory + "/probe";
  auto created = fs_.Create(path, {});
  Status status = created.status();
  if (status.ok()) {
    ISOZONE_ASSIGN_OR_RETURN(const Inode inode, InodeOf(path));
    const std::string bytes = choices_.Bytes(fs_.state().device().geometry().zone_capacity / 2);
    oracle_.Create(path, inode, FileKind::kData);
    oracle_.Append(inode, bytes);
    status = (*created)->Append(AsBytes(bytes));
    if (status.ok()) status = (*created)->Sync();
    if (status.ok()) status = (*created)->Close();
  }
  if (status.Is(StatusCode::kNoSpace)) {
    return Contradiction("nothing is left, and yet there is no space: " + std::string(status.message()));
  }
  ISOZONE_RETURN_IF_ERROR(status);
  created->reset();
  ISOZONE_RETURN_IF_ERROR(fs_.Unlink(path));
  oracle_.Remove(path);
  ForgetAllGone();
  return fs_.state().Settle();
}

// ---------------------------------------------------------------------------------------------------------------------
// Operations: writers
// ---------------------------------------------------------------------------------------------------------------------

Status Client::DoCreate() {
  if (writers_.size() >= options_.max_writers) return DoAppend();
  const std::string path = choices_.Path();
  StatusCode expected = now_.FileCode(path);
  const bool replaces = expected == StatusCode::kOk;
  const Inode old = replaces ? now_.names.at(path) : 0;
  if (expected == StatusCode::kNotFound) expected = now_.ParentCode(path);
  const CreateOptions options = choices_.Creation();
  auto created = fs_.Create(path, options);
  ISOZONE_RETURN_IF_ERROR(Expect(created.status(), expected, "create", path));
  if (!created.ok()) return Status::Ok();
  ISOZONE_ASSIGN_OR_RETURN(const Inode inode, InodeOf(path));
  oracle_.Create(path, inode, options.kind);
  if (replaces) ForgetIfGone(old);
  writers_.push_back({inode, std::move(*created)});
  return Status::Ok();
}

Status Client::DoOpenForAppend() {
  if (writers_.size() >= options_.max_writers) return DoAppend();
  const std::string path = choices_.ExistingFile();
  StatusCode expected = now_.FileCode(path);
  const File* file = expected == StatusCode::kOk ? now_.Find(path) : nullptr;
  if (expected == StatusCode::kNotFound) expected = now_.ParentCode(path);
  if (file != nullptr && HasWriter(now_.names.at(path))) expected = StatusCode::kBusy;
  const CreateOptions options = choices_.Creation();
  auto opened = fs_.OpenForAppend(path, options);
  ISOZONE_RETURN_IF_ERROR(Expect(opened.status(), expected, "open for append", path));
  if (!opened.ok()) return Status::Ok();
  ISOZONE_ASSIGN_OR_RETURN(const Inode inode, InodeOf(path));
  if (file == nullptr) oracle_.Create(path, inode, options.kind);
  const uint64_t size = (*opened)->size();
  writers_.push_back({inode, std::move(*opened)});
  if (size == now_.files.at(inode).bytes.size()) return Status::Ok();
  return Contradiction(
      fmt::format("'{}' opened for append has {} bytes and not {}", path, size, now_.files.at(inode).bytes.size()));
}

Status Client::DoAppend() {
  if (writers_.empty()) return DoCreate();
  const size_t index = random_.Below(writers_.size());
  OpenWriter& open = writers_[index];
  const std::string bytes = choices_.Bytes(choices_.Size());
  const uint64_t before = open.writer->size();
  const Status status = open.writer->Append(AsBytes(bytes));
  const uint64_t grown = open.writer->size() - before;
  counters_.bytes_appended += grown;
  oracle_.Append(open.inode, std::string_view(bytes).substr(0, grown));
  if (!status.ok()) return OnWriterError(index, status);
  if (grown != bytes.size())
    return Contradiction(fmt::format("inode {} grew by {}, not by {}", open.inode, grown, bytes.size()));
  return Status::Ok();
}

Status Client::DoFlush() {
  if (writers_.empty()) return Status::Ok();
  const size_t index = random_.Below(writers_.size());
  const Status status = writers_[index].writer->Flush();
  return status.ok() ? status : OnWriterError(index, status);
}

Status Client::DoSync() {
  if (writers_.empty()) return DoSyncMetadata();
  const size_t index = random_.Below(writers_.size());
  const Status status = writers_[index].writer->Sync();
  if (!status.ok()) return OnWriterError(index, status);
  oracle_.Sync(writers_[index].inode);
  return Status::Ok();
}

Status Client::DoWriteOut() {
  if (writers_.empty()) return Status::Ok();
  const size_t index = random_.Below(writers_.size());
  const Status status = writers_[index].writer->WriteOut();
  return status.ok() ? status : OnWriterError(index, status);
}

Status Client::DoTruncateWriter() {
  if (writers_.empty()) return Status::Ok();
  const size_t index = random_.Below(writers_.size());
  OpenWriter& open = writers_[index];
  const uint64_t before = open.writer->size();
  const bool extends = random_.Chance(0.3);
  const uint64_t size = extends ? before + random_.Below(3000) : random_.Below(before + 1);
  const Status status = open.writer->Truncate(size);
  const uint64_t after = open.writer->size();
  if (after > before) {
    oracle_.Append(open.inode, std::string(after - before, '\0'));
  } else if (status.ok() && size < before) {
    oracle_.Truncate(open.inode, size);
  }
  if (!status.ok()) return OnWriterError(index, status);
  if (after != size) return Contradiction(fmt::format("inode {} was cut to {} and has {}", open.inode, size, after));
  return Status::Ok();
}

Status Client::DoClose() {
  if (writers_.empty()) return Status::Ok();
  return CloseWriter(random_.Below(writers_.size()));
}

// ---------------------------------------------------------------------------------------------------------------------
// Operations: readers
// ---------------------------------------------------------------------------------------------------------------------

Status Client::DoOpenReader() {
  if (readers_.size() >= 8) return DoCloseReader();
  const std::string path = choices_.ExistingFile();
  auto reader = fs_.OpenForRead(path);
  ISOZONE_RETURN_IF_ERROR(Expect(reader.status(), now_.FileCode(path), "open", path));
  if (!reader.ok()) return Status::Ok();
  const Inode inode = (*reader)->inode();
  if (inode != now_.names.at(path)) return Contradiction(fmt::format("'{}' is another inode", path));
  readers_.push_back({inode, std::move(*reader)});
  return Status::Ok();
}

Status Client::CheckRead(Inode inode, uint64_t offset, std::string_view bytes, uint64_t wanted, const Status& status) {
  if (!status.ok()) {
    if (!Tolerated(status)) return status.WithContext(fmt::format("reading inode {} at {}", inode, offset));
    ++counters_.io_errors;
    return Status::Ok();
  }
  counters_.bytes_read += bytes.size();
  const File& file = now_.files.at(inode);
  const std::string& content = file.bytes;
  const std::string_view expected =
      std::string_view(content).substr(std::min<uint64_t>(offset, content.size()), wanted);
  if (bytes == expected) return Status::Ok();
  const auto [at, other] = std::mismatch(bytes.begin(), bytes.end(), expected.begin(), expected.end());
  return Contradiction(
      fmt::format("reading {} bytes at {} of inode {} (kind {}, {} bytes) gave {}; wrong from byte {} on", wanted,
                  offset, inode, FileKindName(file.kind), content.size(), bytes.size(), offset + (at - bytes.begin())));
}

Status Client::DoRead() {
  if (readers_.empty()) return DoOpenReader();
  const OpenReader& open = readers_[random_.Below(readers_.size())];
  const uint64_t size = open.reader->size();
  const uint64_t offset = random_.Below(size + 100);
  std::string buffer(std::min<uint64_t>(choices_.Size(), size + 100), '\0');
  const auto read = open.reader->Read(offset, std::as_writable_bytes(std::span(buffer)), IoClass::kUserRead);
  return CheckRead(open.inode, offset, std::string_view(buffer).substr(0, read.ok() ? *read : 0), buffer.size(),
                   read.status());
}

Status Client::DoReadAsync() {
  if (readers_.empty()) return DoOpenReader();
  struct Pending {
    Inode inode = 0;
    std::string buffer;
    FileRead read;
  };
  std::vector<Pending> pending(random_.Between(2, 6));
  Latch latch;
  for (Pending& p : pending) {
    const OpenReader& open = readers_[random_.Below(readers_.size())];
    p.inode = open.inode;
    p.buffer.resize(random_.Between(1, 20'000));
    p.read.offset = random_.Below(open.reader->size() + 100);
    p.read.buffer = std::as_writable_bytes(std::span(p.buffer));
    latch.Expect(p.read);
    open.reader->Submit(p.read);
  }
  latch.Wait();
  for (Pending& p : pending) {
    p.read.Take();
    ISOZONE_RETURN_IF_ERROR(CheckRead(p.inode, p.read.offset, std::string_view(p.buffer).substr(0, p.read.bytes_read),
                                      p.buffer.size(), p.read.status));
  }
  return Status::Ok();
}

Status Client::DoCloseReader() {
  if (readers_.empty()) return Status::Ok();
  const auto closing = readers_.begin() + static_cast<ptrdiff_t>(random_.Below(readers_.size()));
  const Inode inode = closing->inode;
  readers_.erase(closing);
  ForgetIfGone(inode);
  return Status::Ok();
}

// ---------------------------------------------------------------------------------------------------------------------
// Operations: names
// ---------------------------------------------------------------------------------------------------------------------

Status Client::DoStat() {
  const std::string path = choices_.ExistingFile();
  const auto attributes = fs_.Stat(path);
  const StatusCode code = now_.FileCode(path);
  ISOZONE_RETURN_IF_ERROR(
      Expect(attributes.status(), code == StatusCode::kIsDirectory ? StatusCode::kOk : code, "stat", path));
  if (!attributes.ok()) return Status::Ok();
  const Inode inode = now_.names.at(path);
  const File& file = now_.files.at(inode);
  const auto links = static_cast<uint32_t>(
      std::count_if(now_.names.begin(), now_.names.end(), [&](const auto& name) { return name.second == inode; }));
  if (attributes->inode == inode && attributes->is_directory == file.is_directory && attributes->links == links &&
      (attributes->size == file.bytes.size() || (options_.expects_faults && file.kind == FileKind::kLog))) {
    return Status::Ok();  // of a log that cannot be read, the size is not known
  }
  return Contradiction(fmt::format("'{}' says inode {}, {} links, {} bytes; it is inode {}, {} links, {} bytes", path,
                                   attributes->inode, attributes->links, attributes->size, inode, links,
                                   file.bytes.size()));
}

Status Client::DoList() {
  const std::string directory = choices_.Directory();
  const auto entries = fs_.List(OrRoot(directory));
  ISOZONE_RETURN_IF_ERROR(Expect(entries.status(), StatusCode::kOk, "list", directory));
  std::map<std::string, Inode> found;
  for (const DirectoryEntry& entry : *entries) found[directory + "/" + entry.name] = entry.attributes.inode;
  std::map<std::string, Inode> wanted;
  for (const auto& [path, inode] : now_.names) {
    if (ParentOf(path) == directory) wanted[path] = inode;
  }
  if (found == wanted) return Status::Ok();
  return Contradiction(
      fmt::format("'{}' lists {} entries and not the {} it has", directory, found.size(), wanted.size()));
}

Status Client::DoMakeDirectory() {
  std::string path = choices_.Directory();
  if (std::count(path.begin(), path.end(), '/') >= 4) path = options_.directory;
  path += fmt::format("/d{}", random_.Below(3));
  const bool parents = random_.Chance(0.3);
  const File* file = now_.Find(path);
  const bool exists = file != nullptr;
  StatusCode expected = exists ? StatusCode::kAlreadyExists : StatusCode::kOk;
  if (parents && exists) expected = file->is_directory ? StatusCode::kOk : StatusCode::kNotDirectory;
  const Status status = parents ? fs_.CreateDirectories(path) : fs_.CreateDirectory(path);
  ISOZONE_RETURN_IF_ERROR(Expect(status, expected, "make directory", path));
  if (exists) return Status::Ok();
  ISOZONE_ASSIGN_OR_RETURN(const Inode inode, InodeOf(path));
  oracle_.MakeDirectory(path, inode);
  return Status::Ok();
}

Status Client::DoRemoveDirectory() {
  const std::string path = choices_.Directory();
  if (path == options_.directory) return Status::Ok();
  const bool empty = now_.IsEmptyDirectory(path);
  const Status status = fs_.RemoveDirectory(path);
  ISOZONE_RETURN_IF_ERROR(Expect(status, empty ? StatusCode::kOk : StatusCode::kNotEmpty, "remove directory", path));
  if (!empty) return Status::Ok();
  oracle_.Remove(path);
  ForgetAllGone();
  return Status::Ok();
}

Status Client::DoUnlink() {
  const std::string path = choices_.ExistingFile();
  const StatusCode expected = now_.FileCode(path);
  const Status status = fs_.Unlink(path);
  ISOZONE_RETURN_IF_ERROR(Expect(status, expected, "unlink", path));
  if (expected != StatusCode::kOk) return Status::Ok();
  const Inode inode = now_.names.at(path);
  oracle_.Remove(path);
  ForgetIfGone(inode);
  return Status::Ok();
}

Status Client::DoRename() {
  const bool of_directory = random_.Chance(0.1);
  const std::string from = of_directory ? choices_.Directory() : choices_.ExistingFile();
  if (from == options_.directory) return Status::Ok();
  const std::string to = of_directory          ? choices_.Directory() + fmt::format("/d{}", random_.Below(3))
                         : random_.Chance(0.5) ? choices_.Path()
                                               : choices_.ExistingFile();
  const File* source = now_.Find(from);
  const File* target = now_.Find(to);
  StatusCode expected = now_.FileCode(from);
  if (expected == StatusCode::kIsDirectory) expected = StatusCode::kOk;
  if (expected == StatusCode::kOk) expected = now_.ParentCode(to);
  if (expected == StatusCode::kOk && target != source) {
    if (target != nullptr && target->is_directory != source->is_directory) {
      expected = target->is_directory ? StatusCode::kIsDirectory : StatusCode::kNotDirectory;
    } else if (source->is_directory && to.starts_with(from + "/")) {
      expected = StatusCode::kInvalidArgument;
    } else if (target != nullptr && target->is_directory && !now_.IsEmptyDirectory(to)) {
      expected = StatusCode::kNotEmpty;
    }
  }
  const Status status = fs_.Rename(from, to);
  ISOZONE_RETURN_IF_ERROR(Expect(status, expected, "rename", fmt::format("{} to {}", from, to)));
  if (expected != StatusCode::kOk || target == source) return Status::Ok();
  oracle_.Rename(from, to);
  if (target != nullptr) ForgetAllGone();
  return Status::Ok();
}

Status Client::DoLink() {
  const std::string from = choices_.ExistingFile();
  const std::string to = choices_.Path();
  StatusCode expected = now_.FileCode(from);
  if (expected == StatusCode::kOk) expected = now_.ParentCode(to);
  if (expected == StatusCode::kOk && now_.Find(to) != nullptr) expected = StatusCode::kAlreadyExists;
  ISOZONE_RETURN_IF_ERROR(Expect(fs_.Link(from, to), expected, "link", fmt::format("{} to {}", from, to)));
  if (expected == StatusCode::kOk) oracle_.Link(from, to);
  return Status::Ok();
}

Status Client::DoSetModified() {
  const std::string path = choices_.ExistingFile();
  if (now_.FileCode(path) != StatusCode::kOk) return Status::Ok();
  const uint64_t modified_s = random_.Below(uint64_t{1} << 32);
  ISOZONE_RETURN_IF_ERROR(fs_.SetModified(path, modified_s));
  ISOZONE_ASSIGN_OR_RETURN(const FileAttributes attributes, fs_.Stat(path));
  if (attributes.modified_s == modified_s) return Status::Ok();
  return Contradiction(fmt::format("'{}' has time {} and not {}", path, attributes.modified_s, modified_s));
}

Status Client::DoTruncatePath() {
  const std::string path = choices_.ExistingFile();
  if (now_.FileCode(path) != StatusCode::kOk || HasWriter(now_.names.at(path))) return Status::Ok();
  const Inode inode = now_.names.at(path);
  const std::string before = now_.files.at(inode).bytes;
  const uint64_t size = random_.Chance(0.3) ? before.size() + random_.Below(3000) : random_.Below(before.size() + 1);
  const Status status = fs_.Truncate(path, size);
  if (size > before.size()) oracle_.Append(inode, std::string(size - before.size(), '\0'));
  if (size < before.size()) oracle_.Truncate(inode, size);
  if (status.ok()) {
    oracle_.Close(inode);
    return status;
  }
  std::string after = before;
  after.resize(size, '\0');
  return LearnAfter(inode, path, before, after, status);
}

Status Client::DoOverwrite() {
  const std::string path = choices_.ExistingFile();
  if (now_.FileCode(path) != StatusCode::kOk) return Status::Ok();
  const Inode inode = now_.names.at(path);
  const File& file = now_.files.at(inode);
  const std::string bytes = choices_.Bytes(choices_.Size());
  const uint64_t offset = random_.Below(file.bytes.size() + 1);
  if (HasWriter(inode)) return Expect(fs_.Overwrite(path, 0, AsBytes(bytes)), StatusCode::kBusy, "overwrite", path);
  if (file.kind == FileKind::kLog) {
    return Expect(fs_.Overwrite(path, 0, AsBytes(bytes)), StatusCode::kNotSupported, "overwrite", path);
  }
  const std::string before = file.bytes;
  const Status status = fs_.Overwrite(path, offset, AsBytes(bytes));
  oracle_.Overwrite(inode, offset, bytes);
  if (status.ok()) {
    oracle_.SyncMetadata();
    return status;
  }
  return LearnAfter(inode, path, before, now_.files.at(inode).bytes, status);
}

Status Client::DoSyncMetadata() {
  ISOZONE_RETURN_IF_ERROR(Expect(fs_.SyncMetadata(), StatusCode::kOk, "sync of metadata", "/"));
  oracle_.SyncMetadata();
  return Status::Ok();
}

// Everything, or some of it, with whatever is open. What files hold must not change.
Status Client::DoCollect() {
  if (random_.Chance(0.2)) {
    constexpr std::array kSchemes = {"none", "zenfs", "full", "zenfs+", "lifetime", "lsm-zgc", "isozone"};
    GcOptions gc = fs_.state().options().gc;
    gc.scheme = kSchemes.at(random_.Below(kSchemes.size()));
    ISOZONE_RETURN_IF_ERROR(Expect(fs_.collection().SetOptions(gc), StatusCode::kOk, "choose a collector", "/"));
  }
  uint64_t windows = random_.Below(20);
  const auto collected = fs_.collection().Run(100, [&](const CopyStats&, uint64_t) { return windows-- > 0; });
  if (!collected.ok()) {
    if (collected.status().Is(StatusCode::kNoSpace)) return Status::Ok();
    return Expect(collected.status(), StatusCode::kOk, "collect", "/");
  }
  counters_.bytes_collected += collected->bytes_copied;
  return Status::Ok();
}

Status Client::DoSettle() {
  ISOZONE_RETURN_IF_ERROR(Expect(fs_.state().Settle(), StatusCode::kOk, "settle", "/"));
  oracle_.SyncMetadata();
  return Status::Ok();
}

}  // namespace isozone::model
