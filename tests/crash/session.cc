#include "crash/session.h"

#include <algorithm>
#include <span>

namespace isozone::crash {
namespace {

constexpr size_t kAppendSize = 10'000;    // bytes: two blocks and a half, more than a writer's unit
constexpr size_t kExtendSize = 6'000;     // bytes
constexpr size_t kOverwriteSize = 5'000;  // bytes

std::span<const std::byte> AsBytes(const std::string& text) { return std::as_bytes(std::span(text)); }

}  // namespace

Status Session::Do(const Operation& operation) {
  during_ = oracle_;
  during_.EndDurability();
  Status status = Execute(operation);
  if (status.ok() && closes_) status = CloseAll();
  return status.WithContext(operation.ToString());
}

Status Session::Close() {
  during_ = oracle_;
  during_.EndDurability();
  return CloseAll();
}

Status Session::CloseAll() {
  for (const auto& [inode, writer] : writers_) {
    ISOZONE_RETURN_IF_ERROR(writer->Close());
    Tell([inode = inode](model::Oracle& oracle) { oracle.Close(inode); });
  }
  writers_.clear();
  return Status::Ok();
}

void Session::Tell(const Change& change) {
  change(during_);
  change(oracle_);
}

Status Session::Execute(const Operation& operation) {
  switch (operation.action) {
    case Action::kCreate:
      return Create(operation);
    case Action::kAppend:
      return Append(operation);
    case Action::kSync:
      return Sync(operation);
    case Action::kRename:
      Tell([&](model::Oracle& oracle) { oracle.Rename(operation.path, operation.to); });
      return fs_.Rename(operation.path, operation.to);
    case Action::kLink:
      Tell([&](model::Oracle& oracle) { oracle.Link(operation.path, operation.to); });
      return fs_.Link(operation.path, operation.to);
    case Action::kUnlink:
      Tell([&](model::Oracle& oracle) { oracle.Remove(operation.path); });
      return fs_.Unlink(operation.path);
    case Action::kTruncate:
    case Action::kExtend:
      return Resize(operation);
    case Action::kOverwrite:
      return Overwrite(operation);
    case Action::kMakeDirectory:
      return MakeDirectory(operation);
    case Action::kRemoveDirectory:
      Tell([&](model::Oracle& oracle) { oracle.Remove(operation.path); });
      return fs_.RemoveDirectory(operation.path);
    case Action::kSyncDirectory:
      ISOZONE_RETURN_IF_ERROR(fs_.SyncMetadata());
      Tell([](model::Oracle& oracle) { oracle.SyncMetadata(); });
      return Status::Ok();
  }
  return Status::InvalidArgument("no such operation");
}

Status Session::Create(const Operation& operation) {
  ISOZONE_ASSIGN_OR_RETURN(auto writer, fs_.Create(operation.path, {.kind = operation.kind}));
  ISOZONE_ASSIGN_OR_RETURN(const model::Inode inode, InodeOf(operation.path));
  writers_[inode] = std::move(writer);
  Tell([&](model::Oracle& oracle) { oracle.Create(operation.path, inode, operation.kind); });
  return Status::Ok();
}

Status Session::Append(const Operation& operation) {
  ISOZONE_ASSIGN_OR_RETURN(const model::Inode inode, InodeOf(operation.path));
  ISOZONE_ASSIGN_OR_RETURN(FileWriter * writer, WriterOf(operation.path, inode));
  const std::string bytes = NewBytes(kAppendSize);
  Tell([&](model::Oracle& oracle) { oracle.Append(inode, bytes); });
  return writer->Append(AsBytes(bytes));
}

Status Session::Sync(const Operation& operation) {
  ISOZONE_ASSIGN_OR_RETURN(const model::Inode inode, InodeOf(operation.path));
  ISOZONE_ASSIGN_OR_RETURN(FileWriter * writer, WriterOf(operation.path, inode));
  ISOZONE_RETURN_IF_ERROR(writer->Sync());
  Tell([&](model::Oracle& oracle) { oracle.Sync(inode); });
  return Status::Ok();
}

// Through the writer where one is open.
Status Session::Resize(const Operation& operation) {
  ISOZONE_ASSIGN_OR_RETURN(const model::Inode inode, InodeOf(operation.path));
  const uint64_t before = oracle_.now().files.at(inode).bytes.size();
  const bool grows = operation.action == Action::kExtend;
  const uint64_t size = grows ? before + kExtendSize : before / 2;
  const bool open = writers_.contains(inode);
  ISOZONE_RETURN_IF_ERROR(open ? writers_[inode]->Truncate(size) : fs_.Truncate(operation.path, size));
  Tell([&](model::Oracle& oracle) {
    if (grows) oracle.Append(inode, std::string(kExtendSize, '\0'));
    if (!grows) oracle.Truncate(inode, size);
    if (!open) oracle.Close(inode);
  });
  return Status::Ok();
}

Status Session::Overwrite(const Operation& operation) {
  ISOZONE_ASSIGN_OR_RETURN(const model::Inode inode, InodeOf(operation.path));
  if (const auto open = writers_.extract(inode)) {
    ISOZONE_RETURN_IF_ERROR(open.mapped()->Close());
    Tell([&](model::Oracle& oracle) { oracle.Close(inode); });
  }
  const uint64_t offset = oracle_.now().files.at(inode).bytes.size() / 4;
  const std::string bytes = NewBytes(kOverwriteSize);
  Tell([&](model::Oracle& oracle) { oracle.Overwrite(inode, offset, bytes); });
  ISOZONE_RETURN_IF_ERROR(fs_.Overwrite(operation.path, offset, AsBytes(bytes)));
  Tell([](model::Oracle& oracle) { oracle.SyncMetadata(); });
  return Status::Ok();
}

Status Session::MakeDirectory(const Operation& operation) {
  ISOZONE_RETURN_IF_ERROR(fs_.CreateDirectory(operation.path));
  ISOZONE_ASSIGN_OR_RETURN(const model::Inode inode, InodeOf(operation.path));
  Tell([&](model::Oracle& oracle) { oracle.MakeDirectory(operation.path, inode); });
  return Status::Ok();
}

Result<model::Inode> Session::InodeOf(const std::string& path) {
  ISOZONE_ASSIGN_OR_RETURN(const FileAttributes attributes, fs_.Stat(path));
  return attributes.inode;
}

Result<FileWriter*> Session::WriterOf(const std::string& path, model::Inode inode) {
  std::unique_ptr<FileWriter>& writer = writers_[inode];
  if (writer == nullptr) {
    ISOZONE_ASSIGN_OR_RETURN(writer, fs_.OpenForAppend(path, {}));
  }
  return writer.get();
}

std::string Session::NewBytes(size_t size) {
  std::string bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>(random_.Next());
  return bytes;
}

}  // namespace isozone::crash
