// Which files share zones, as RocksDB's files are told apart by their names: those that live long keep none from those
// that do not.
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "integration/scratch.h"
#include "isozone/isozone.h"

namespace isozone {
namespace {

using rocksdb::FileOptions;
using rocksdb::IOOptions;

constexpr char kTinyDevice[] = "zones=48&zone_size=1MiB&zone_capacity=1MiB&max_open=14&max_active=14";

class FileZonesTest : public ScratchDevice {
 protected:
  FileZonesTest() : ScratchDevice(kTinyDevice) {}

  void SetUp() override {
    ScratchDevice::SetUp();
    fs_ = Open();
    ASSERT_NE(fs_, nullptr);
    ISOZONE_ASSERT_OK(fs_->CreateDirIfMissing("/db", IOOptions(), nullptr));
  }
  static std::string Name(const char* extension, int n) { return "/db/" + std::to_string(100'000 + n) + extension; }
  std::unique_ptr<rocksdb::FSWritableFile> Create(const std::string& name) {
    std::unique_ptr<rocksdb::FSWritableFile> file;
    ISOZONE_EXPECT_OK(fs_->NewWritableFile(name, FileOptions(), &file, nullptr));
    return file;
  }

  std::shared_ptr<rocksdb::FileSystem> fs_;
};

// Through a wrapper that drops the hint, as several of RocksDB's own do. The device is written many times over.
TEST_F(FileZonesTest, LogsWithoutAHintDoNotWaitForTheManifestToDie) {
  const auto manifest = Create("/db/MANIFEST-000001");
  const std::string piece = Bytes(64 << 10, 1);
  constexpr int kAlive = 8;
  for (int n = 1; n <= 800; ++n) {
    SCOPED_TRACE(n);
    const auto wal = Create(Name(".log", n));
    for (int i = 0; i < 8; ++i) {
      ISOZONE_ASSERT_OK(wal->Append(piece, IOOptions(), nullptr));
      ISOZONE_ASSERT_OK(wal->Sync(IOOptions(), nullptr));
    }
    ISOZONE_ASSERT_OK(wal->Close(IOOptions(), nullptr));
    ISOZONE_ASSERT_OK(manifest->Append("an edit", IOOptions(), nullptr));
    ISOZONE_ASSERT_OK(manifest->Sync(IOOptions(), nullptr));
    if (n > kAlive) ISOZONE_ASSERT_OK(fs_->DeleteFile(Name(".log", n - kAlive), IOOptions(), nullptr));
  }
}

// Nor tables for small files, whoever writes them without a hint.
TEST_F(FileZonesTest, TablesWithoutAHintDoNotWaitForSmallFilesToDie) {
  constexpr int kAlive = 20;
  for (int n = 1; n <= 120; ++n) {
    SCOPED_TRACE(n);
    WriteFile(*fs_, "/db/OPTIONS-" + std::to_string(n), "options");
    WriteFile(*fs_, Name(".sst", n), Bytes(700 << 10, 1));
    if (n > kAlive) ISOZONE_ASSERT_OK(fs_->DeleteFile(Name(".sst", n - kAlive), IOOptions(), nullptr));
  }
  std::string json;
  ISOZONE_ASSERT_OK(GetStats(*fs_, &json));
  EXPECT_EQ(nlohmann::json::parse(json).at("gc").at("bytes_copied"), 0) << "zones of tables die by themselves";
}

}  // namespace
}  // namespace isozone
