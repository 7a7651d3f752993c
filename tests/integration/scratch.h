// The base of every integration test: a temporary directory, and in it an emulated SSD, small and as fast as memory,
// with an empty file system. If the environment has ISOZONE_TEST_DEVICE with the URI of a device that exists, it takes
// the place of the SSD, and is formatted by each test: all that is on it is lost.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include "testing/assert_ok.h"

namespace isozone {

// A local directory, which is removed with its content at the end.
class ScratchDirectory {
 public:
  ScratchDirectory();
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline constexpr char kSmallDevice[] = "zones=128&zone_size=8MiB&zone_capacity=6MiB&max_open=32&max_active=32";

// The URI in ISOZONE_TEST_DEVICE; null if the environment has none.
const char* NamedDevice();

// A test with its own SSD. `geometry` has the options with which the image is created.
class ScratchDevice : public ::testing::Test {
 protected:
  explicit ScratchDevice(const std::string& geometry = kSmallDevice);
  void SetUp() override;

  // isozone://emu:..., or the device of ISOZONE_TEST_DEVICE, with `options` ("a=b&c=d") added.
  std::string Uri(const std::string& options = "") const;
  // Opens a FileSystem on the SSD; fails the test if that is not possible.
  std::shared_ptr<rocksdb::FileSystem> Open(const std::string& options = "") const;
  // Like Open, with an Env around the file system.
  std::unique_ptr<rocksdb::Env> OpenEnv(const std::string& options = "") const;

  const ScratchDirectory scratch_;

 private:
  const std::string geometry_;
};

// Deterministic content, which depends only on `length` and `seed`.
std::string Bytes(size_t length, uint64_t seed);
std::string Key(uint64_t number);

// Whole-file helpers on any FileSystem; errors fail the test.
void WriteFile(rocksdb::FileSystem& fs, const std::string& name, const std::string& content);
std::string ReadFile(rocksdb::FileSystem& fs, const std::string& name);
uint64_t SizeOf(rocksdb::FileSystem& fs, const std::string& name);

// Bytes by class of I/O from GetStats. `io_class` is "wal", "flush", ...; direction is "bytes_read" or "bytes_written".
uint64_t ClassBytes(const rocksdb::FileSystem& fs, const std::string& io_class, const std::string& direction);

// Bytes that the collector has copied, from GetStats.
uint64_t CollectedBytes(const rocksdb::FileSystem& fs);

// Opens a database in the way of this version of RocksDB: open(DB**) before version 11, open(unique_ptr<DB>*) since.
template <typename OpenFunction>
rocksdb::Status OpenInto(std::unique_ptr<rocksdb::DB>* db, const OpenFunction& open) {
  if constexpr (requires { open(db); }) {
    return open(db);
  } else {
    rocksdb::DB* raw = nullptr;
    const rocksdb::Status status = open(&raw);
    db->reset(raw);
    return status;
  }
}
// OpenInto(&db, ISOZONE_OPEN(OpenForReadOnly, options, path)).
#define ISOZONE_OPEN(function, ...)                                     \
  [&](auto* out) -> decltype(rocksdb::DB::function(__VA_ARGS__, out)) { \
    return rocksdb::DB::function(__VA_ARGS__, out);                     \
  }

rocksdb::Status OpenDb(const rocksdb::Options& options, const std::string& path, std::unique_ptr<rocksdb::DB>* db);

}  // namespace isozone
