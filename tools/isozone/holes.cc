#include "isozone/holes.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/uri.h"
#include "isozone/output/console.h"
#include "store/inode_files.h"

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
  std::unique_ptr<SparseWriter> writer(new SparseWriter(file_system, path, options));
  ISOZONE_ASSIGN_OR_RETURN(writer->writer_, file_system.Create(path, options));
  return writer;
}

Result<std::unique_ptr<SparseWriter>> SparseWriter::Continue(FileSystem& file_system, const std::string& path,
                                                             uint64_t size, const CreateOptions& options) {
  std::unique_ptr<SparseWriter> writer(new SparseWriter(file_system, path, options));
  ISOZONE_RETURN_IF_ERROR(writer->EndData());
  ISOZONE_RETURN_IF_ERROR(writer->file_->Truncate(size));
  return writer;
}

Status SparseWriter::Append(std::span<const std::byte> content) {
  if (options_.kind == FileKind::kLog) return AppendData(content);
  return ForEachRun(
      content, [this](std::span<const std::byte> data) { return AppendData(data); },
      [this](uint64_t bytes) { return AppendHole(bytes); });
}

Status SparseWriter::AppendData(std::span<const std::byte> data) {
  if (writer_ == nullptr) {
    ISOZONE_ASSIGN_OR_RETURN(writer_, file_system_.OpenForAppend(path_, options_));
  }
  return writer_->Append(data);
}

Status SparseWriter::AppendHole(uint64_t bytes) {
  if (options_.kind == FileKind::kLog) {
    return ForZeros(bytes, [this](std::span<const std::byte> zeros) { return AppendData(zeros); });
  }
  ISOZONE_RETURN_IF_ERROR(EndData());
  return file_->Truncate(file_->size() + bytes);
}

Status SparseWriter::EndData() {
  if (writer_ != nullptr) ISOZONE_RETURN_IF_ERROR(writer_->Close());
  writer_.reset();
  if (file_ != nullptr) return Status::Ok();
  ISOZONE_ASSIGN_OR_RETURN(file_, OpenWithHoles(file_system_, path_));
  return Status::Ok();
}

Status SparseWriter::Sync() { return writer_ != nullptr ? writer_->Sync() : file_->Sync(); }

Status SparseWriter::Close() {
  const Status status = writer_ != nullptr ? writer_->Close() : file_->Flush();
  writer_.reset();
  file_.reset();
  return status;
}

namespace {

// Bytes that GC can free: those that are dead, but for the rests of the last blocks of files, which
// nothing else can use. Looks at all files.
Result<uint64_t> Collectable(const FileSystemState& state) {
  const SpaceInfo space = state.Space();
  uint64_t allocated = 0;
  ISOZONE_RETURN_IF_ERROR(
      state.VisitFiles([&allocated](const FileDetails& details) { allocated += details.allocated; }));
  const uint64_t rests = allocated - std::min(allocated, space.live);
  return space.dead - std::min(space.dead, rests);
}

}  // namespace

TargetRoom TargetRoom::OnDevice(const FileSystem& file_system) {
  const FileSystemState& state = file_system.state();
  TargetRoom room(state.Space().free_for_data, state.device().geometry().block_size);
  room.collects_ = &file_system;
  return room;
}

Result<TargetRoom> TargetRoom::In(const std::string& directory) {
  struct statvfs found {};
  if (::statvfs(directory.c_str(), &found) != 0) return Status::FromErrno(errno, "cannot look at " + directory);
  return TargetRoom(uint64_t{found.f_bavail} * found.f_frsize, found.f_frsize);
}

void TargetRoom::Need(uint64_t data, uint64_t there) {
  const uint64_t missing = data - std::min(data, there);
  needed_ += (missing / block_size_ + (missing % block_size_ == 0 ? 0 : 1)) * block_size_;
}

Status TargetRoom::Check(const std::string& where) const {
  if (needed_ <= bytes_) return Status::Ok();
  uint64_t room = bytes_;
  if (collects_ != nullptr) {
    ISOZONE_ASSIGN_OR_RETURN(const uint64_t more, Collectable(collects_->state()));
    room += more;
  }
  if (needed_ <= room) return Status::Ok();
  return Status::NoSpace(fmt::format(
      "{} has room for {}, and {} are to be written; nothing was: remove files there, or name another target",
      Printable(where), FormatSize(room), FormatSize(needed_)));
}

}  // namespace isozone::cli
