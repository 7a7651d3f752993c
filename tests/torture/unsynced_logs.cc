#include "torture/unsynced_logs.h"

#include <cstdlib>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "model/oracle.h"

namespace isozone::torture {

std::string UnsyncedLogs::PathOf(uint64_t number) const { return fmt::format("{}/{:06}.log", directory_, number); }

Status UnsyncedLogs::Begin(FileSystem& fs) {
  logs_.clear();
  is_full_ = false;
  const std::string path = directory_.empty() ? "/" : directory_;
  ISOZONE_RETURN_IF_ERROR(fs.CreateDirectories(path));
  ISOZONE_ASSIGN_OR_RETURN(const auto entries, fs.List(path));
  for (const DirectoryEntry& entry : entries) {
    if (entry.name.ends_with(".log")) ISOZONE_RETURN_IF_ERROR(fs.Unlink(directory_ + "/" + entry.name));
  }
  return Status::Ok();
}

Status UnsyncedLogs::Step(FileSystem& fs) {
  if (is_full_) return Status::Ok();
  Status status = AnyStep(fs);
  if (!status.Is(StatusCode::kNoSpace)) return status;
  is_full_ = true;
  logs_.clear();
  return Status::Ok();
}

Status UnsyncedLogs::AnyStep(FileSystem& fs) {
  const uint64_t choice = random_.Below(100);
  if (logs_.empty() || choice < 3) return Create(fs);
  if (choice < 6) return CloseOld();
  if (choice < 8) return RemoveOldest(fs);
  if (choice < 12) return logs_.rbegin()->second.writer->WriteOut();  // as wal_bytes_per_sync does
  return Append();
}

Status UnsyncedLogs::Create(FileSystem& fs) {
  const uint64_t number = ++last_number_;
  ISOZONE_ASSIGN_OR_RETURN(logs_[number].writer,
                           fs.Create(PathOf(number), {FileKind::kLog, IoClass::kWal, Lifetime::kShort}));
  return Status::Ok();
}

Status UnsyncedLogs::Append() {
  Log& log = logs_.rbegin()->second;
  std::string record(random_.Between(1, random_.Chance(0.1) ? 8'000 : 500), '\0');
  for (char& c : record) c = static_cast<char>(random_.Next());
  log.bytes += record;  // some of it may be there although the append fails
  return log.writer->Append(std::as_bytes(std::span(record)));
}

// All but the newest.
Status UnsyncedLogs::CloseOld() {
  for (auto log = logs_.begin(); log != std::prev(logs_.end()); ++log) {
    if (log->second.writer == nullptr) continue;
    ISOZONE_RETURN_IF_ERROR(log->second.writer->Close());
    log->second.writer.reset();
  }
  return Status::Ok();
}

Status UnsyncedLogs::RemoveOldest(FileSystem& fs) {
  const auto oldest = logs_.begin();
  if (oldest->second.writer != nullptr) return Status::Ok();
  const uint64_t number = oldest->first;
  logs_.erase(oldest);
  return fs.Unlink(PathOf(number));
}

void UnsyncedLogs::Abandon() {
  for (auto& [number, log] : logs_) log.writer.reset();
}

Result<std::map<uint64_t, uint64_t>> UnsyncedLogs::Left(FileSystem& fs) const {
  ISOZONE_ASSIGN_OR_RETURN(const model::Found found, model::Collect(fs, directory_));
  std::map<uint64_t, uint64_t> left;
  for (const auto& [number, log] : logs_) {
    const auto name = found.names.find(PathOf(number));
    if (name == found.names.end()) continue;
    const std::string& bytes = found.files.at(name->second).bytes;
    ISOZONE_RETURN_IF_ERROR(model::CheckPrefix(name->second, bytes, log.bytes).WithContext(name->first));
    left[number] = bytes.size();
  }
  ISOZONE_RETURN_IF_ERROR(CheckOrder(left));
  return left;
}

Status UnsyncedLogs::CheckOrder(const std::map<uint64_t, uint64_t>& left) const {
  uint64_t lost = 0;  // the first log of which something is missing; 0: none
  bool is_missing = false;
  for (const auto& [number, log] : logs_) {
    const auto found = left.find(number);
    const bool is_there = found != left.end();
    const uint64_t size = is_there ? found->second : 0;
    if ((lost != 0 && size > 0) || (is_missing && is_there)) {
      return Status::Corruption(
          fmt::format("log {} has {} bytes, but log {} before it has lost its end", number, size, lost));
    }
    if (lost == 0 && (!is_there || size < log.bytes.size())) lost = number;
    is_missing |= !is_there;
  }
  return Status::Ok();
}

}  // namespace isozone::torture
