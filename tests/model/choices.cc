#include "model/choices.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "base/units.h"

namespace isozone::model {

std::string Choices::Directory() {
  std::vector<const std::string*> directories = {&directory_};
  for (const auto& [path, inode] : now_.names) {
    if (now_.files.at(inode).is_directory) directories.push_back(&path);
  }
  return *directories[random_.Below(directories.size())];
}

std::string Choices::Path() {
  std::string directory = random_.Chance(0.02) ? directory_ + "/nowhere" : Directory();
  if (random_.Chance(0.01)) directory += "/f0";  // often a file
  return directory + fmt::format("/f{}", random_.Below(8));
}

std::string Choices::ExistingFile() {
  std::vector<const std::string*> files;
  for (const auto& [path, inode] : now_.names) {
    if (!now_.files.at(inode).is_directory) files.push_back(&path);
  }
  if (files.empty() || random_.Chance(0.03)) return random_.Chance(0.1) ? Directory() + "/d0" : Path();
  return *files[random_.Below(files.size())];
}

uint64_t Choices::Size() {
  const uint64_t shape = random_.Below(100);
  uint64_t size = 0;
  if (shape < 60) {
    size = random_.Between(1, 300);
  } else if (shape < 80) {
    size = random_.Between(1, 8 * kKiB);
  } else if (shape < 90) {
    size = block_size_ * random_.Between(1, 8);
  } else if (shape < 98) {
    size = random_.Between(1, std::max<uint64_t>(1, max_append_ / 8));
  } else {
    size = random_.Between(1, max_append_);
  }
  return std::min(size, max_append_);
}

std::string Choices::Bytes(uint64_t size) {
  std::string bytes(size, '\0');
  uint64_t word = random_.Next();
  for (uint64_t at = 0; at < size; at += sizeof(word)) {
    std::memcpy(bytes.data() + at, &word, std::min<uint64_t>(sizeof(word), size - at));
    word = word * 6364136223846793005ULL + 1442695040888963407ULL;
  }
  return bytes;
}

CreateOptions Choices::Creation() {
  CreateOptions options;
  const uint64_t kind = random_.Below(10);
  options.kind = kind < 4 ? FileKind::kData : kind < 8 ? FileKind::kLog : FileKind::kSmall;
  options.io_class = static_cast<IoClass>(random_.Below(kIoClassCount));
  options.lifetime = static_cast<Lifetime>(random_.Below(kLifetimeCount));
  return options;
}

}  // namespace isozone::model
