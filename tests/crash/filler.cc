#include "crash/filler.h"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

namespace isozone::crash {
namespace {

constexpr const char* kLog = "/log";
constexpr uint64_t kLogRecord = 700;  // bytes
constexpr size_t kNameMax = 255;

std::span<const std::byte> BytesOf(const std::string& text) { return std::as_bytes(std::span(text)); }

// Whether there was space.
Result<bool> Took(const Status& status) {
  if (status.ok()) return true;
  if (status.Is(StatusCode::kNoSpace)) return false;
  return status;
}

CreateOptions RandomOptions(Random& random) {
  CreateOptions options;
  const uint64_t kind = random.Below(10);
  options.kind = kind < 5 ? FileKind::kData : kind < 8 ? FileKind::kSmall : FileKind::kLog;
  options.lifetime = static_cast<Lifetime>(random.Below(kLifetimeCount));
  return options;
}

}  // namespace

Filler::Filler(FileSystem& fs, model::Oracle& oracle, uint64_t seed, After after)
    : fs_(fs), oracle_(oracle), seed_(seed), random_(seed + 1), after_(std::move(after)) {}

Result<bool> Filler::Do(const std::string& name, const Operation& operation) {
  if (after_) {
    during_ = oracle_;
    during_.EndDurability();
  }
  const Result<bool> done = operation();
  if (!done.ok()) return done.status().WithContext(name);
  if (after_) ISOZONE_RETURN_IF_ERROR(after_(name, during_));
  return done;
}

Status Filler::Must(const std::string& name, const std::function<Status()>& operation) {
  return Do(name,
            [&]() -> Result<bool> {
              ISOZONE_RETURN_IF_ERROR(operation());
              return true;
            })
      .status();
}

void Filler::Tell(const std::function<void(model::Oracle&)>& change) {
  if (after_) change(during_);
  change(oracle_);
}

// ---------------------------------------------------------------------------------------------------------------------
// Filling
// ---------------------------------------------------------------------------------------------------------------------

Status Filler::Fill() {
  Random random(seed_);
  const DeviceGeometry& geometry = fs_.state().device().geometry();
  if (random.Chance(0.5)) ISOZONE_RETURN_IF_ERROR(OpenLog());
  if (random.Chance(0.15)) ISOZONE_RETURN_IF_ERROR(FillNames(random));
  const uint64_t largest = geometry.zone_capacity * random.Between(1, 3);
  for (uint64_t size = largest; size >= geometry.block_size; size /= 2) {
    ISOZONE_RETURN_IF_ERROR(FillFiles(random, size));
  }
  for (const FileKind kind : {FileKind::kData, FileKind::kSmall, FileKind::kLog}) {
    ISOZONE_RETURN_IF_ERROR(FillWith(random, geometry.block_size, {.kind = kind}));
  }
  return FillNames(random);
}

Status Filler::FillBlocks() {
  Random random(seed_);
  const DeviceGeometry& geometry = fs_.state().device().geometry();
  for (uint64_t size = geometry.zone_capacity; size >= geometry.block_size;
       size = RoundDown(size / 2, geometry.block_size)) {
    ISOZONE_RETURN_IF_ERROR(FillWith(random, size, {}));
  }
  return Status::Ok();
}

Status Filler::FillWith(Random& random, uint64_t size, const CreateOptions& options) {
  for (bool space = true; space;) {
    const std::string path = NewPath(random);
    ISOZONE_ASSIGN_OR_RETURN(space, Do(fmt::format("write and sync {} of {}", FileKindName(options.kind), size),
                                       [&] { return Write(path, size, options, true); }));
  }
  return Status::Ok();
}

Status Filler::FillNames(Random& random) {
  for (bool space = true; space;) {
    const std::string path = NewPath(random);
    ISOZONE_ASSIGN_OR_RETURN(space, Do("name " + path, [&] { return Write(path, 0, RandomOptions(random), false); }));
  }
  return SyncMetadata();
}

Status Filler::FillFiles(Random& random, uint64_t largest) {
  const uint64_t block = fs_.state().device().geometry().block_size;
  for (bool space = true; space;) {
    if (random.Chance(0.1)) ISOZONE_RETURN_IF_ERROR(AppendToLog());
    if (random.Chance(0.05)) ISOZONE_RETURN_IF_ERROR(SyncMetadata());
    const uint64_t size = random.Chance(0.8) ? random.Between(1, std::min(largest, 3 * block)) : largest;
    const std::string path = NewPath(random);
    const CreateOptions options = RandomOptions(random);
    const bool sync = random.Chance(0.6);
    ISOZONE_ASSIGN_OR_RETURN(
        space, Do(fmt::format("{} {} of {}", sync ? "write and sync" : "write", FileKindName(options.kind), size),
                  [&] { return Write(path, size, options, sync); }));
  }
  return Status::Ok();
}

Result<bool> Filler::Write(const std::string& path, uint64_t size, const CreateOptions& options, bool sync) {
  auto writer = fs_.Create(path, options);
  if (!writer.ok()) return Took(writer.status());
  ISOZONE_ASSIGN_OR_RETURN(const model::Inode inode, InodeOf(path));
  Tell([&](model::Oracle& oracle) { oracle.Create(path, inode, options.kind); });
  ISOZONE_ASSIGN_OR_RETURN(const bool space, WriteTo(**writer, inode, size, sync));
  const Status closed = (*writer)->Close();
  writer->reset();
  if (!space || !closed.ok()) return Learn(path, inode, space ? closed : Status::NoSpace(""));
  Tell([&](model::Oracle& oracle) { oracle.Close(inode); });
  written_ += size;
  return true;
}

Result<bool> Filler::WriteTo(FileWriter& writer, model::Inode inode, uint64_t size, bool sync) {
  const std::string bytes = Bytes(size);
  Tell([&](model::Oracle& oracle) { oracle.Append(inode, bytes); });
  Status status = writer.Append(BytesOf(bytes));
  if (status.ok() && sync) {
    status = writer.Sync();
    if (status.ok()) Tell([&](model::Oracle& oracle) { oracle.Sync(inode); });
  }
  return Took(status);
}

Result<bool> Filler::Learn(const std::string& path, model::Inode inode, const Status& error) {
  if (!error.Is(StatusCode::kNoSpace)) return error;
  ISOZONE_ASSIGN_OR_RETURN(const FileAttributes attributes, fs_.Stat(path));
  const model::File& known = oracle_.now().files.at(inode);
  if (attributes.size < known.published || attributes.size > known.bytes.size()) {
    return Status::Corruption(fmt::format("after a failed write '{}' has {} bytes; {} were written and {} published",
                                          path, attributes.size, known.bytes.size(), known.published));
  }
  Tell([&](model::Oracle& oracle) {
    oracle.Lose(inode, attributes.size);
    oracle.Close(inode);
  });
  written_ += attributes.size;
  return false;
}

Status Filler::OpenLog() {
  return Must("open a log", [&]() -> Status {
    ISOZONE_ASSIGN_OR_RETURN(log_, fs_.Create(kLog, {.kind = FileKind::kLog, .io_class = IoClass::kWal}));
    ISOZONE_ASSIGN_OR_RETURN(log_inode_, InodeOf(kLog));
    Tell([&](model::Oracle& oracle) { oracle.Create(kLog, log_inode_, FileKind::kLog); });
    return Status::Ok();
  });
}

Status Filler::AppendToLog() {
  if (log_ == nullptr) return Status::Ok();
  ISOZONE_ASSIGN_OR_RETURN(const bool space,
                           Do("append to the log", [&] { return WriteTo(*log_, log_inode_, kLogRecord, true); }));
  return space ? Status::Ok() : CloseLog();
}

Status Filler::CloseLog() {
  if (log_ == nullptr) return Status::Ok();
  return Do("close the log",
            [&]() -> Result<bool> {
              const Status closed = std::exchange(log_, nullptr)->Close();
              if (!oracle_.now().names.contains(kLog)) {
                oracle_.Forget(log_inode_);
                return Took(closed);
              }
              if (!closed.ok()) return Learn(kLog, log_inode_, closed);
              Tell([&](model::Oracle& oracle) { oracle.Close(log_inode_); });
              return true;
            })
      .status();
}

// ---------------------------------------------------------------------------------------------------------------------
// Changing
// ---------------------------------------------------------------------------------------------------------------------

Status Filler::Change(uint64_t operations) {
  for (; operations > 0; --operations) ISOZONE_RETURN_IF_ERROR(ChangeOnce());
  return Status::Ok();
}

Status Filler::ChangeOnce() {
  const std::vector<std::string> files = Files();
  if (files.empty()) return SyncMetadata();
  const std::string& path = files[random_.Below(files.size())];
  const std::string& other = files[random_.Below(files.size())];
  const std::string fresh = NewPath(random_);
  switch (random_.Below(10)) {
    case 0:
    case 1:
      return Rename(path, fresh);
    case 2:
      return oracle_.now().names.at(path) == oracle_.now().names.at(other) ? Status::Ok() : Rename(path, other);
    case 3:
      return Do("link",
                [&]() -> Result<bool> {
                  const Status status = fs_.Link(path, fresh);
                  if (status.ok()) Tell([&](model::Oracle& oracle) { oracle.Link(path, fresh); });
                  return Took(status);
                })
          .status();
    case 4:
      return Truncate(path);
    case 5:
      return AppendToLog();
    case 6:
      return Unlink(path);
    case 7:
    case 8: {
      const uint64_t size = random_.Between(1, fs_.state().device().geometry().zone_capacity / 4);
      return Do("write", [&] { return Write(fresh, size, RandomOptions(random_), true); }).status();
    }
    default:
      return random_.Chance(0.2) ? Collect() : SyncMetadata();
  }
}

Status Filler::Rename(const std::string& from, const std::string& to) {
  const auto rename = [&]() -> Result<bool> {
    const Status status = fs_.Rename(from, to);
    const bool may_be_refused = to.size() > from.size() && !oracle_.now().names.contains(to);
    if (!status.ok()) return may_be_refused ? Took(status) : status;
    const auto replaced = oracle_.now().names.find(to);
    const bool replaces = replaced != oracle_.now().names.end();
    const model::Inode gone = replaces ? replaced->second : 0;
    Tell([&](model::Oracle& oracle) { oracle.Rename(from, to); });
    const auto& names = oracle_.now().names;
    if (replaces && std::none_of(names.begin(), names.end(), [&](const auto& n) { return n.second == gone; })) {
      oracle_.Forget(gone);
    }
    return true;
  };
  return Do("rename", rename).status();
}

Status Filler::Truncate(const std::string& path) {
  return Must("truncate", [&] {
    const model::Inode inode = oracle_.now().names.at(path);
    const uint64_t size = random_.Below(oracle_.now().files.at(inode).bytes.size() + 1);
    Tell([&](model::Oracle& oracle) { oracle.Truncate(inode, size); });
    const Status status = fs_.Truncate(path, size);
    Tell([&](model::Oracle& oracle) { oracle.Close(inode); });
    return status;
  });
}

Status Filler::Unlink(const std::string& path) {
  return Must("unlink", [&] {
    const model::Inode inode = oracle_.now().names.at(path);
    Tell([&](model::Oracle& oracle) { oracle.Remove(path); });
    const auto& names = oracle_.now().names;
    const bool open = log_ != nullptr && inode == log_inode_;
    if (!open && std::none_of(names.begin(), names.end(), [&](const auto& n) { return n.second == inode; })) {
      oracle_.Forget(inode);
    }
    return fs_.Unlink(path);
  });
}

Status Filler::SyncMetadata() {
  return Must("sync", [&] {
    ISOZONE_RETURN_IF_ERROR(fs_.SyncMetadata());
    Tell([](model::Oracle& oracle) { oracle.SyncMetadata(); });
    return Status::Ok();
  });
}

Status Filler::Collect() {
  return Do("collect",
            [&]() -> Result<bool> {
              const auto collected = fs_.collection().Run(100, [](const CopyStats&, uint64_t) { return true; });
              return Took(collected.status());
            })
      .status();
}

Status Filler::Empty() {
  std::vector<std::string> files = Files();
  for (size_t i = files.size(); i > 1; --i) std::swap(files[i - 1], files[random_.Below(i)]);
  const bool close_first = random_.Chance(0.5);
  if (close_first) ISOZONE_RETURN_IF_ERROR(CloseLog());
  for (const std::string& path : files) {
    ISOZONE_RETURN_IF_ERROR(Unlink(path));
    if (random_.Chance(0.02)) ISOZONE_RETURN_IF_ERROR(SyncMetadata());
  }
  if (oracle_.now().names.contains(kLog)) ISOZONE_RETURN_IF_ERROR(Unlink(kLog));
  ISOZONE_RETURN_IF_ERROR(CloseLog());
  ISOZONE_RETURN_IF_ERROR(SyncMetadata());
  return Must("settle", [&] { return fs_.state().Settle(); });
}

// ---------------------------------------------------------------------------------------------------------------------

std::string Filler::NewPath(Random& random) {
  std::string path;
  do {  // another filler may have used the same names, before a power cut
    path = fmt::format("/{}-{}", seed_ % 1000, names_++);
    const uint64_t length = random.Chance(0.2) ? path.size() : random.Between(100, kNameMax);
    path.resize(std::max<uint64_t>(path.size(), length), 'n');
  } while (oracle_.now().names.contains(path));
  return path;
}

std::vector<std::string> Filler::Files() const {
  std::vector<std::string> files;
  for (const auto& [path, inode] : oracle_.now().names) {
    if (path != kLog) files.push_back(path);
  }
  return files;
}

Result<model::Inode> Filler::InodeOf(const std::string& path) {
  ISOZONE_ASSIGN_OR_RETURN(const FileAttributes attributes, fs_.Stat(path));
  return attributes.inode;
}

std::string Filler::Bytes(uint64_t size) {
  std::string bytes(size, static_cast<char>('a' + written_ % 26));
  if (size > 0) bytes.back() = static_cast<char>(random_.Next());
  return bytes;
}

}  // namespace isozone::crash
