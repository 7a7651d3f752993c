#include "isozone/holes.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/uri.h"
#include "fs/inode_files.h"
#include "isozone/output/console.h"

namespace isozone::cli {
namespace {

bool IsHole(std::span<const std::byte> block) {
  return block.size() == kHoleBlock && block[0] == std::byte{0} &&
         std::memcmp(block.data(), block.data() + 1, block.size() - 1) == 0;
}

}  // namespace

ContentRun FirstRunOf(std::span<const std::byte> content) {
  ContentRun run;
  while (run.length < content.size()) {
    const auto block = content.subspan(run.length, std::min(kHoleBlock, content.size() - run.length));
    const bool hole = IsHole(block);
    if (run.length > 0 && hole != run.is_hole) break;
    run = {run.length + block.size(), hole};
  }
  return run;
}

Result<std::shared_ptr<PositionalFile>> OpenWithHoles(FileSystem& file_system, const std::string& path) {
  for (;;) {
    ISOZONE_ASSIGN_OR_RETURN(const auto reader, file_system.OpenForRead(path));
    auto file = file_system.inodes().Open(reader->inode());
    // Another file may have taken the name meanwhile.
    if (!file.status().Is(StatusCode::kNotFound)) return file;
  }
}

Result<ContentRun> ReadRun(PositionalFile& file, uint64_t offset, std::span<std::byte> buffer) {
  if (const uint64_t size = file.size(); offset < size) {
    const auto data = file.FindData(offset);
    if (!data.ok() && !data.status().Is(StatusCode::kNotFound)) return data.status();
    const uint64_t length = (data.ok() ? *data : size) - offset;
    if (length >= buffer.size()) return ContentRun{length, true};
  }
  ISOZONE_ASSIGN_OR_RETURN(const size_t length, file.Read(offset, buffer, IoClass::kOther));
  return ContentRun{length, false};
}

Result<std::unique_ptr<SparseWriter>> SparseWriter::Create(FileSystem& file_system, const std::string& path,
                                                           const CreateOptions& options) {
  std::unique_ptr<SparseWriter> writer(new SparseWriter(file_system, path, options.kind != FileKind::kLog));
  ISOZONE_ASSIGN_OR_RETURN(writer->writer_, file_system.Create(path, options));
  return writer;
}

Result<std::unique_ptr<SparseWriter>> SparseWriter::Continue(FileSystem& file_system, const std::string& path,
                                                             uint64_t size) {
  std::unique_ptr<SparseWriter> writer(new SparseWriter(file_system, path, true));
  ISOZONE_RETURN_IF_ERROR(writer->OpenForHoles());
  ISOZONE_RETURN_IF_ERROR(writer->file_->Truncate(size));
  return writer;
}

Status SparseWriter::OpenForHoles() {
  if (writer_ != nullptr) ISOZONE_RETURN_IF_ERROR(writer_->Close());
  writer_.reset();
  ISOZONE_ASSIGN_OR_RETURN(const FileAttributes attributes, file_system_.Stat(path_));
  ISOZONE_ASSIGN_OR_RETURN(file_, file_system_.inodes().Open(attributes.inode));
  return Status::Ok();
}

Status SparseWriter::Append(std::span<const std::byte> content) {
  if (!may_have_holes_) return writer_->Append(content);
  return ForEachRun(
      content,
      [this](std::span<const std::byte> data) {
        return file_ == nullptr ? writer_->Append(data) : file_->Append(data).status();
      },
      [this](uint64_t bytes) { return AppendHole(bytes); });
}

Status SparseWriter::AppendHole(uint64_t bytes) {
  if (!may_have_holes_) {
    return ForZeros(bytes, [this](std::span<const std::byte> zeros) { return writer_->Append(zeros); });
  }
  if (file_ == nullptr) ISOZONE_RETURN_IF_ERROR(OpenForHoles());
  return file_->Truncate(file_->size() + bytes);
}

Status SparseWriter::Sync() { return file_ == nullptr ? writer_->Sync() : file_->Sync(); }

Status SparseWriter::Close() {
  const Status status = file_ == nullptr ? writer_->Close() : file_->Flush();
  writer_.reset();
  file_.reset();
  return status;
}

uint64_t RoomOnDevice(const FileSystem& file_system) {
  const SpaceInfo space = file_system.state().Space();
  return space.free_for_data + space.dead;
}

Result<uint64_t> RoomIn(const std::string& directory) {
  struct statvfs found {};
  if (::statvfs(directory.c_str(), &found) != 0) return Status::FromErrno(errno, "cannot look at " + directory);
  return uint64_t{found.f_bavail} * found.f_frsize;
}

Status CheckRoom(uint64_t needed, uint64_t room, const std::string& where) {
  if (needed <= room) return Status::Ok();
  return Status::NoSpace(fmt::format(
      "{} has room for {}, and {} are to be written; nothing was: remove files there, or name another target",
      Printable(where), FormatSize(room), FormatSize(needed)));
}

}  // namespace isozone::cli
