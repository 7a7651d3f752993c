#include "model/oracle.h"

#include <algorithm>

#include <fmt/format.h>

namespace isozone::model {
namespace {

std::string DescribeNames(const std::map<std::string, Inode>& found, const std::map<std::string, Inode>& wanted) {
  std::string text;
  for (const auto& [path, inode] : wanted) {
    const auto it = found.find(path);
    if (it == found.end()) {
      text += fmt::format("; '{}' (inode {}) is missing", path, inode);
    } else if (it->second != inode) {
      text += fmt::format("; '{}' is inode {} and not {}", path, it->second, inode);
    }
  }
  for (const auto& [path, inode] : found) {
    if (!wanted.contains(path)) text += fmt::format("; '{}' (inode {}) should not be there", path, inode);
  }
  return text.empty() ? text : text.substr(2);
}

Status ReadWhole(FileSystem& fs, const std::string& path, std::string& bytes) {
  ISOZONE_ASSIGN_OR_RETURN(const auto reader, fs.OpenForRead(path));
  bytes.resize(reader->size());
  ISOZONE_ASSIGN_OR_RETURN(const size_t read,
                           reader->Read(0, std::as_writable_bytes(std::span(bytes)), IoClass::kOther));
  if (read == bytes.size()) return Status::Ok();
  return Status::Corruption(fmt::format("'{}' has {} bytes, but {} can be read", path, bytes.size(), read));
}

class Collector {
 public:
  Collector(FileSystem& fs, bool tolerate_unreadable) : fs_(fs), tolerate_unreadable_(tolerate_unreadable) {}

  Status Walk(const std::string& directory) {
    ISOZONE_ASSIGN_OR_RETURN(const auto entries, fs_.List(directory.empty() ? "/" : directory));
    for (const DirectoryEntry& entry : entries) {
      ISOZONE_RETURN_IF_ERROR(Add(directory + "/" + entry.name, entry.attributes));
    }
    return Status::Ok();
  }

  Status Add(const std::string& path, const FileAttributes& attributes) {
    found_.names[path] = attributes.inode;
    links_[attributes.inode] = attributes.links;
    const auto [it, is_new] = found_.files.try_emplace(attributes.inode);
    if (!is_new) return Status::Ok();
    it->second = {attributes.is_directory, attributes.kind, {}, attributes.size};
    if (attributes.is_directory) return Walk(path);
    std::string& bytes = it->second.bytes;
    const Status status = ReadWhole(fs_, path, bytes);
    const bool cut_off =
        !attributes.is_directory && attributes.kind == FileKind::kLog && bytes.size() < attributes.size;
    if ((!status.ok() || cut_off) && tolerate_unreadable_) {
      found_.unreadable.push_back(attributes.inode);
      return Status::Ok();
    }
    if (status.ok() && bytes.size() != attributes.size) {
      return Status::Corruption(fmt::format("'{}' says {} bytes and has {}", path, attributes.size, bytes.size()));
    }
    return status.WithContext(path);
  }

  Result<Found> Finish() {
    std::map<Inode, uint32_t> names;
    for (const auto& [path, inode] : found_.names) ++names[inode];
    for (const auto& [inode, count] : names) {
      if (links_[inode] == count) continue;
      return Status::Corruption(fmt::format("inode {} says {} links and has {} names", inode, links_[inode], count));
    }
    return std::move(found_);
  }

 private:
  FileSystem& fs_;
  const bool tolerate_unreadable_;
  Found found_;
  std::map<Inode, uint32_t> links_;
};

}  // namespace

std::string ParentOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

const File* State::Find(const std::string& path) const {
  const auto name = names.find(path);
  return name == names.end() ? nullptr : &files.at(name->second);
}

bool State::IsDirectory(const std::string& path) const {
  if (path.empty()) return true;
  const File* file = Find(path);
  return file != nullptr && file->is_directory;
}

StatusCode State::ParentCode(const std::string& path) const {
  const std::string parent = ParentOf(path);
  if (IsDirectory(parent)) return StatusCode::kOk;
  if (Find(parent) != nullptr) return StatusCode::kNotDirectory;
  return ParentCode(parent) == StatusCode::kNotDirectory ? StatusCode::kNotDirectory : StatusCode::kNotFound;
}

StatusCode State::FileCode(const std::string& path) const {
  if (const StatusCode code = ParentCode(path); code != StatusCode::kOk) return code;
  const File* file = Find(path);
  if (file == nullptr) return StatusCode::kNotFound;
  return file->is_directory ? StatusCode::kIsDirectory : StatusCode::kOk;
}

bool State::IsEmptyDirectory(const std::string& path) const {
  const std::string inside = path + "/";
  return std::none_of(names.begin(), names.end(), [&](const auto& name) { return name.first.starts_with(inside); });
}

uint64_t State::bytes() const {
  uint64_t sum = 0;
  for (const auto& [inode, file] : files) sum += file.bytes.size();
  return sum;
}

Result<Found> Collect(FileSystem& fs, const std::string& directory, bool tolerate_unreadable) {
  Collector collector(fs, tolerate_unreadable);
  if (directory.empty()) {
    ISOZONE_RETURN_IF_ERROR(collector.Walk(""));
    return collector.Finish();
  }
  const auto attributes = fs.Stat(directory);
  if (attributes.status().Is(StatusCode::kNotFound)) return Found();
  ISOZONE_RETURN_IF_ERROR(attributes.status());
  ISOZONE_RETURN_IF_ERROR(collector.Add(directory, *attributes));
  return collector.Finish();
}

Status CheckPrefix(Inode inode, std::string_view found, std::string_view wanted) {
  if (wanted.starts_with(found)) return Status::Ok();
  if (found.size() > wanted.size()) {
    return Status::Corruption(fmt::format("inode {} has {} bytes, which is more than the {} it was given", inode,
                                          found.size(), wanted.size()));
  }
  const auto at = std::mismatch(found.begin(), found.end(), wanted.begin()).first - found.begin();
  return Status::Corruption(fmt::format("inode {} has a wrong byte at {} of {}", inode, at, found.size()));
}

void Oracle::MakeDirectory(const std::string& path, Inode inode) { Tell({Kind::kMakeDirectory, path, {}, inode}); }
void Oracle::Create(const std::string& path, Inode inode, FileKind kind) {
  Tell({Kind::kCreate, path, {}, inode, kind});
}
void Oracle::Link(const std::string& from, const std::string& to) { Tell({Kind::kLink, from, to}); }
void Oracle::Remove(const std::string& path) { Tell({Kind::kRemove, path}); }
void Oracle::Rename(const std::string& from, const std::string& to) { Tell({Kind::kRename, from, to}); }
void Oracle::Append(Inode inode, std::string_view bytes) {
  Tell({Kind::kAppend, {}, {}, inode, {}, 0, std::string(bytes)});
}
void Oracle::Truncate(Inode inode, uint64_t size) { Tell({Kind::kTruncate, {}, {}, inode, {}, size}); }
void Oracle::Overwrite(Inode inode, uint64_t offset, std::string_view bytes) {
  Tell({Kind::kOverwrite, {}, {}, inode, {}, offset, std::string(bytes)});
}
void Oracle::Close(Inode inode) { Tell({Kind::kClose, {}, {}, inode}); }
void Oracle::Lose(Inode inode, uint64_t size) { Tell({Kind::kLose, {}, {}, inode, {}, size}); }

void Oracle::Tell(Change change) {
  Apply(now_, change);
  changes_.push_back(std::move(change));
}

void Oracle::Sync(Inode inode) {
  if (durability_ended_) return;
  Tell({Kind::kSync, {}, {}, inode});
  // A log may have been synced with older metadata: with the record that names its zone, which follows only its
  // creation and truncation. All others take every change before along; so do files without a name, for their removal.
  const bool has_name =
      std::any_of(now_.names.begin(), now_.names.end(), [&](const auto& name) { return name.second == inode; });
  if (!has_name || now_.files.at(inode).kind != FileKind::kLog) {
    SyncMetadata();
    return;
  }
  for (size_t i = changes_.size(); i-- > 0;) {
    const bool precedes = changes_[i].kind == Kind::kCreate || changes_[i].kind == Kind::kTruncate;
    if (!precedes || changes_[i].inode != inode) continue;
    for (size_t k = 0; k <= i; ++k) Apply(base_, changes_[k]);
    changes_.erase(changes_.begin(), changes_.begin() + static_cast<ptrdiff_t>(i) + 1);
    break;
  }
}

void Oracle::SyncMetadata() {
  if (durability_ended_) return;
  for (const Change& change : changes_) Apply(base_, change);
  changes_.clear();
  std::erase_if(base_.files, [this](const auto& file) { return !now_.files.contains(file.first); });
}

void Oracle::Apply(State& state, const Change& change) {
  const auto file = state.files.find(change.inode);
  switch (change.kind) {
    case Kind::kMakeDirectory:
      state.names[change.path] = change.inode;
      state.files[change.inode] = {true, FileKind::kData, {}, 0};
      return;
    case Kind::kCreate:
      state.names[change.path] = change.inode;
      state.files[change.inode] = {false, change.file_kind, {}, 0};
      return;
    case Kind::kLink:
      state.names[change.to] = state.names.at(change.path);
      return;
    case Kind::kRemove:
      state.names.erase(change.path);
      return;
    case Kind::kRename: {
      // Of a directory, all that is in it.
      std::map<std::string, Inode> moved;
      const std::string inside = change.path + "/";
      for (const auto& [path, inode] : state.names) {
        if (path == change.path || path.starts_with(inside)) moved[path] = inode;
      }
      for (const auto& [path, inode] : moved) state.names.erase(path);
      for (const auto& [path, inode] : moved) state.names[change.to + path.substr(change.path.size())] = inode;
      return;
    }
    case Kind::kAppend:
      if (file != state.files.end()) file->second.bytes += change.bytes;
      return;
    case Kind::kTruncate:
    case Kind::kLose:
      if (file == state.files.end()) return;
      file->second.bytes.resize(change.size);
      file->second.published =
          change.kind == Kind::kTruncate ? change.size : std::min(file->second.published, change.size);
      return;
    case Kind::kOverwrite: {
      if (file == state.files.end()) return;
      std::string& bytes = file->second.bytes;
      bytes.resize(std::max(bytes.size(), change.size + change.bytes.size()));
      bytes.replace(change.size, change.bytes.size(), change.bytes);
      file->second.published = bytes.size();
      return;
    }
    case Kind::kClose:
    case Kind::kSync:
      if (file != state.files.end()) file->second.published = file->second.bytes.size();
      return;
  }
}

Status Oracle::CheckAfterPowerCut(const Found& found) const {
  State state = base_;
  Status best = Status::Corruption("no moment after the last durable point has these names: as of that point, " +
                                   DescribeNames(found.names, base_.names));
  for (size_t k = 0;; ++k) {
    if (state.names == found.names) {
      Status status = CheckAt(state, k, found);
      if (status.ok()) return status;
      best = std::move(status);
    }
    if (k == changes_.size()) return best;
    Apply(state, changes_[k]);
  }
}

Status Oracle::CheckAt(const State& state, size_t k, const Found& found) const {
  for (const auto& [inode, file] : found.files) {
    const File& wanted = state.files.at(inode);
    if (file.is_directory != wanted.is_directory || (!file.is_directory && file.kind != wanted.kind)) {
      return Status::Corruption(fmt::format("inode {} is of another kind", inode));
    }
    if (std::find(found.unreadable.begin(), found.unreadable.end(), inode) != found.unreadable.end()) continue;
    ISOZONE_RETURN_IF_ERROR(CheckFile(inode, wanted, k, file));
  }
  return Status::Ok();
}

Status Oracle::CheckFile(Inode inode, const File& file, size_t k, const File& found) const {
  std::string bytes = file.bytes;
  uint64_t least = file.published;
  for (; k < changes_.size(); ++k) {
    const Change& change = changes_[k];
    if (change.inode != inode) continue;
    if (change.kind == Kind::kAppend) {
      bytes += change.bytes;
    } else if (change.kind == Kind::kSync) {
      least = bytes.size();
    } else if (change.kind != Kind::kClose) {
      break;
    }
  }
  if (found.bytes.size() < least) {
    return Status::Corruption(
        fmt::format("inode {} has {} bytes, but {} of them were durable", inode, found.bytes.size(), least));
  }
  return CheckPrefix(inode, found.bytes, bytes);
}

Status Oracle::CheckExactly(const Found& found) const {
  if (found.names != now_.names) {
    return Status::Corruption("the names differ: " + DescribeNames(found.names, now_.names));
  }
  for (const auto& [inode, file] : found.files) {
    if (std::find(found.unreadable.begin(), found.unreadable.end(), inode) != found.unreadable.end()) continue;
    const File& wanted = now_.files.at(inode);
    ISOZONE_RETURN_IF_ERROR(CheckPrefix(inode, file.bytes, wanted.bytes));
    if (file.bytes.size() == wanted.bytes.size()) continue;
    return Status::Corruption(
        fmt::format("inode {} has {} bytes and not {}", inode, file.bytes.size(), wanted.bytes.size()));
  }
  return Status::Ok();
}

void Oracle::Adopt(const Found& found) {
  State state{found.names, found.files};
  for (const Inode inode : found.unreadable) state.files[inode].bytes = now_.files[inode].bytes;
  for (auto& [inode, file] : state.files) file.published = file.bytes.size();
  base_ = state;
  now_ = std::move(state);
  changes_.clear();
}

}  // namespace isozone::model
