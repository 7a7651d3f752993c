#include "integration/scratch.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "base/random.h"
#include "isozone/isozone.h"

namespace isozone {

using rocksdb::FileOptions;
using rocksdb::IOOptions;

const char* NamedDevice() { return std::getenv("ISOZONE_TEST_DEVICE"); }

ScratchDirectory::ScratchDirectory() {
  path_ = (std::filesystem::temp_directory_path() / "isozone-XXXXXX").string();
  if (mkdtemp(path_.data()) == nullptr) {
    std::perror(path_.c_str());
    std::abort();
  }
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;  // a directory left over harms no test
  std::filesystem::remove_all(path_, ignored);
}

ScratchDevice::ScratchDevice(const std::string& geometry) : geometry_(geometry) {}

void ScratchDevice::SetUp() {
  const bool named = NamedDevice() != nullptr;
  ISOZONE_ASSERT_OK(CreateFileSystem(named ? Uri() : Uri(geometry_), /*force=*/named));
}

std::string ScratchDevice::Uri(const std::string& options) const {
  if (const char* device = NamedDevice(); device != nullptr) {
    const char* const separator = std::strchr(device, '?') == nullptr ? "?" : "&";
    return std::string("isozone://") + device + (options.empty() ? "" : separator + options);
  }
  return "isozone://emu:" + scratch_.path() + "/ssd.img?timing=off" + (options.empty() ? "" : "&" + options);
}

std::shared_ptr<rocksdb::FileSystem> ScratchDevice::Open(const std::string& options) const {
  std::shared_ptr<rocksdb::FileSystem> fs;
  ISOZONE_EXPECT_OK(OpenFileSystem(Uri(options), &fs));
  return fs;
}

std::unique_ptr<rocksdb::Env> ScratchDevice::OpenEnv(const std::string& options) const {
  return rocksdb::NewCompositeEnv(Open(options));
}

std::string Bytes(size_t length, uint64_t seed) {
  Random random(seed);
  std::string bytes(length, '\0');
  for (size_t i = 0; i < length; i += sizeof(uint64_t)) {
    const uint64_t word = random.Next();
    bytes.replace(i, std::min(sizeof(word), length - i), reinterpret_cast<const char*>(&word),
                  std::min(sizeof(word), length - i));
  }
  return bytes;
}

std::string Key(uint64_t number) {
  std::string digits = std::to_string(number);
  return "key" + std::string(10 - digits.size(), '0') + digits;
}

void WriteFile(rocksdb::FileSystem& fs, const std::string& name, const std::string& content) {
  std::unique_ptr<rocksdb::FSWritableFile> file;
  ISOZONE_ASSERT_OK(fs.NewWritableFile(name, FileOptions(), &file, nullptr));
  ISOZONE_EXPECT_OK(file->Append(content, IOOptions(), nullptr));
  ISOZONE_EXPECT_OK(file->Sync(IOOptions(), nullptr));
  ISOZONE_EXPECT_OK(file->Close(IOOptions(), nullptr));
}

std::string ReadFile(rocksdb::FileSystem& fs, const std::string& name) {
  std::string content;
  ISOZONE_EXPECT_OK(rocksdb::ReadFileToString(&fs, name, &content));
  return content;
}

uint64_t SizeOf(rocksdb::FileSystem& fs, const std::string& name) {
  uint64_t size = 0;
  ISOZONE_EXPECT_OK(fs.GetFileSize(name, IOOptions(), &size, nullptr));
  return size;
}

uint64_t ClassBytes(const rocksdb::FileSystem& fs, const std::string& io_class, const std::string& direction) {
  std::string json;
  ISOZONE_EXPECT_OK(GetStats(fs, &json));
  return nlohmann::json::parse(json).at("classes").at(io_class).at(direction).get<uint64_t>();
}

uint64_t CollectedBytes(const rocksdb::FileSystem& fs) {
  std::string json;
  ISOZONE_EXPECT_OK(GetStats(fs, &json));
  return nlohmann::json::parse(json).at("gc").at("bytes_copied").get<uint64_t>();
}

rocksdb::Status OpenDb(const rocksdb::Options& options, const std::string& path, std::unique_ptr<rocksdb::DB>* db) {
  return OpenInto(db, ISOZONE_OPEN(Open, options, path));
}

}  // namespace isozone
