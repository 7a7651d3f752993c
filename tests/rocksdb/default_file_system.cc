// Preloaded into RocksDB's test programs, after libisozone.so: makes FileSystem::Default(), and so Env::Default(), the
// file system of $TEST_FS_URI. It works because RocksDB's shared library calls its own functions by name.
//
// For tests that prepare files through Env::Default() and read them through the file system under test, or the other
// way round: on a file system other than the default one they fail whatever that is.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include <rocksdb/file_system.h>

#include "isozone/isozone.h"

namespace {

constexpr int kNoFileSystem = 97;                  // exit code, so that it is not taken for a failed test
constexpr char kTestDirectory[] = "/rocksdbtest";  // what Isozone gives as the directory for tests

std::shared_ptr<rocksdb::FileSystem>* OpenDefault() {
  const char* uri = std::getenv("TEST_FS_URI");
  auto* opened = new std::shared_ptr<rocksdb::FileSystem>;  // never freed: RocksDB uses it until the process has ended
  const rocksdb::Status status = isozone::OpenFileSystem(uri != nullptr ? uri : "", opened);
  if (!status.ok()) {
    std::fprintf(stderr, "default_file_system: TEST_FS_URI cannot be opened: %s\n", status.ToString().c_str());
    _exit(kNoFileSystem);
  }
  return opened;
}

}  // namespace

namespace rocksdb {

std::shared_ptr<FileSystem> FileSystem::Default() {
  static const std::shared_ptr<FileSystem>* const file_system = OpenDefault();
  return *file_system;
}

}  // namespace rocksdb

// ChrootFileSystem asks the host for the real path of a directory that is on the device.
// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): glibc's names are reserved ones
extern "C" char* realpath(const char* path, char* resolved) noexcept {
  if (path != nullptr && std::strncmp(path, kTestDirectory, std::strlen(kTestDirectory)) == 0) {
    return resolved != nullptr ? std::strcpy(resolved, path) : strdup(path);
  }
  using Function = char* (*)(const char*, char*);
  static const auto of_the_host = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "realpath"));
  return of_the_host(path, resolved);
}
