// UnsyncedLogs: writes logs one after another, as a database writes its WALs, and never syncs one. While the newest is
// appended to, older ones are there, and the one before it may still be open. It knows what it has appended; so it can
// tell whether what a power cut has left is a prefix of that, over all logs.
//
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/random.h"
#include "base/status.h"
#include "store/file_system.h"

namespace isozone::torture {

class UnsyncedLogs {
 public:
  // The logs are in `directory` (empty: the root), which has nothing else of that name.
  UnsyncedLogs(std::string directory, uint64_t seed) : directory_(std::move(directory)), random_(seed) {}

  // Removes what is there, which is not looked at again.
  Status Begin(FileSystem& fs);
  // Appends a record to the newest log, in most cases, or begins one, writes it out, or closes or removes an old one.
  // Where there is no space, the writer knows that something is lost: nothing happens any more, until Begin.
  Status Step(FileSystem& fs);
  // The process ends: so do all handles.
  void Abandon();
  // How many bytes there are of each log that was not removed, by its number; kCorruption if that is no prefix of what
  // was appended.
  Result<std::map<uint64_t, uint64_t>> Left(FileSystem& fs) const;

 private:
  struct Log {
    std::string bytes;
    std::unique_ptr<FileWriter> writer;  // null: closed
  };

  std::string PathOf(uint64_t number) const;
  Status AnyStep(FileSystem& fs);
  Status Create(FileSystem& fs);
  Status Append();
  Status CloseOld();
  Status RemoveOldest(FileSystem& fs);
  Status CheckOrder(const std::map<uint64_t, uint64_t>& left) const;

  const std::string directory_;
  Random random_;
  uint64_t last_number_ = 0;
  std::map<uint64_t, Log> logs_;  // those made since Begin, without the removed ones
  bool is_full_ = false;          // there was no space
};

}  // namespace isozone::torture
