// Scribbler: a program that works with logs and small files, and makes nothing durable.
//
// Thread safety: one thread at a time.
#pragma once

#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/random.h"
#include "base/status.h"
#include "store/file_system.h"

namespace isozone::torture {

// Makes the same steps for the same seed.
class Scribbler {
 public:
  explicit Scribbler(uint64_t seed) : random_(seed) {}

  // One step on the model, and on `fs`, unless that is null.
  Status Step(FileSystem* fs) {
    const uint64_t choice = random_.Below(100);
    if (files_.empty() || choice < 8) return Create(fs);
    auto file = std::next(files_.begin(), static_cast<ptrdiff_t>(random_.Below(files_.size())));
    if (choice < 11 && files_.size() > 3) return Remove(fs, file);
    if (choice < 15) return Rename(fs, file);
    return Append(fs, file);
  }

  // Every file by its name.
  std::map<std::string, std::string> Contents() const {
    std::map<std::string, std::string> contents;
    for (const auto& [name, file] : files_) contents[name] = file.bytes;
    return contents;
  }
  // Without what only the process that writes small files can read.
  std::map<std::string, std::string> SeenBeside(std::map<std::string, std::string> contents) const {
    for (const std::string& name : small_) contents.erase(name);
    return contents;
  }

 private:
  struct File {
    std::string bytes;
    std::unique_ptr<FileWriter> writer;
  };
  using Files = std::map<std::string, File>;

  std::string NewName() { return fmt::format("f{}", ++names_); }

  Status Create(FileSystem* fs) {
    const std::string name = NewName();
    const FileKind kind = random_.Chance(0.7) ? FileKind::kLog : FileKind::kSmall;
    File& file = files_[name];
    if (kind == FileKind::kSmall) small_.insert(name);
    if (fs == nullptr) return Status::Ok();
    ISOZONE_ASSIGN_OR_RETURN(file.writer, fs->Create("/" + name, {kind}));
    return Status::Ok();
  }
  Status Remove(FileSystem* fs, Files::iterator file) {
    const std::string name = file->first;
    files_.erase(file);
    return fs == nullptr ? Status::Ok() : fs->Unlink("/" + name);
  }
  Status Rename(FileSystem* fs, Files::iterator file) {
    const std::string from = file->first;
    const std::string to = NewName();
    if (small_.contains(from)) small_.insert(to);
    files_[to] = std::move(file->second);
    files_.erase(file);
    return fs == nullptr ? Status::Ok() : fs->Rename("/" + from, "/" + to);
  }
  Status Append(FileSystem* fs, Files::iterator file) {
    std::string bytes(random_.Chance(0.02) ? random_.Between(1, 200'000) : random_.Between(1, 3'000), '\0');
    for (char& c : bytes) c = static_cast<char>(random_.Next());
    file->second.bytes += bytes;
    return fs == nullptr ? Status::Ok() : file->second.writer->Append(std::as_bytes(std::span(bytes)));
  }

  Random random_;
  uint64_t names_ = 0;
  Files files_;
  std::set<std::string> small_;  // all names that small files have had
};

}  // namespace isozone::torture
