// libisozone_run.so: what `isozone run` preloads into a program. It takes the place of rocksdb::FileSystem::Default(),
// on which Env::Default() is made, with a file system that keeps mapped directories on devices (mapped_file_system.h).
// $ISOZONE_MAP says which: lines of the form DIRECTORY=isozone://DEVICE.
//
// It works because RocksDB's shared library calls its own functions by name. It needs no RocksDB itself, so that the
// shells and tools that a program starts load nothing more than this. When RocksDB is first asked for the default file
// system, it
//   1. finds the RocksDB that asks: the next one in the order of the dynamic linker, or that of the caller, if it was
//      loaded later and for its user alone, as by interpreters;
//   2. ends the process with one line and kExitCode, if that is not the release that Isozone was built for, or is part
//      of another file: two copies of RocksDB in one process would not know each other's files;
//   3. loads libisozone.so, which lies beside it, and has it make the file system.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include <rocksdb/file_system.h>
#include <rocksdb/version.h>

namespace {

using FileSystemPointer = std::shared_ptr<rocksdb::FileSystem>;
using DefaultFunction = FileSystemPointer (*)();
// isozone_map_default in isozone.cc: returns what is wrong, to be freed, or null.
using MapFunction = char* (*)(const char* lines, FileSystemPointer* file_system);

constexpr char kDefaultName[] = "_ZN7rocksdb10FileSystem7DefaultEv";
constexpr int kExitCode = 125;  // as env(1) and nohup(1) use it: they have failed themselves, not the program

[[noreturn]] void Fail(const std::string& what) {
  const std::string line = "isozone run: " + what + "\n";
  (void)!::write(STDERR_FILENO, line.data(), line.size());
  ::_exit(kExitCode);
}

// The file that `address` was loaded from; empty: none.
std::filesystem::path FileOf(const void* address) {
  Dl_info found{};
  if (::dladdr(address, &found) == 0 || found.dli_fname == nullptr) return {};
  std::error_code ignored;
  const std::filesystem::path real = std::filesystem::canonical(found.dli_fname, ignored);
  return ignored ? std::filesystem::path(found.dli_fname) : real;
}

// RocksDB's own function. `caller` is an address in the code that asks.
DefaultFunction FindOriginal(const void* caller) {
  void* found = ::dlsym(RTLD_NEXT, kDefaultName);
  if (found == nullptr) {
    if (void* handle = ::dlopen(FileOf(caller).c_str(), RTLD_LAZY | RTLD_NOLOAD)) {
      found = ::dlsym(handle, kDefaultName);
      ::dlclose(handle);
    }
  }
  if (found == nullptr) Fail("RocksDB's default file system is not found in " + FileOf(caller).string());
  return reinterpret_cast<DefaultFunction>(found);
}

void CheckRelease(DefaultFunction original) {
  const std::filesystem::path file = FileOf(reinterpret_cast<const void*>(original));
  const std::string name = file.filename().string();
  const std::string ours = "librocksdb.so." + std::to_string(ROCKSDB_MAJOR) + "." + std::to_string(ROCKSDB_MINOR);
  if (name == ours || name.starts_with(ours + ".")) return;
  if (name.starts_with("librocksdb.so")) {
    Fail("the program uses " + file.string() + ", but this Isozone is built for " + ours +
         "; build Isozone for that release, or put the directory on the device with 'isozone mount'");
  }
  Fail("RocksDB is part of " + file.string() +
       ", where Isozone cannot be loaded into it; put the directory on the "
       "device with 'isozone mount'");
}

FileSystemPointer Mapped(const void* caller) {
  const DefaultFunction original = FindOriginal(caller);
  const char* const lines = std::getenv("ISOZONE_MAP");
  if (lines == nullptr) return original();
  CheckRelease(original);
  const std::string library = (FileOf(reinterpret_cast<const void*>(&Mapped)).parent_path() / ISOZONE_LIBRARY).string();
  void* const loaded = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) Fail(std::string("Isozone's library cannot be loaded: ") + ::dlerror());
  const auto map = reinterpret_cast<MapFunction>(::dlsym(loaded, "isozone_map_default"));
  if (map == nullptr) Fail(library + " is of another version of Isozone");
  FileSystemPointer file_system = original();
  if (const char* const error = map(lines, &file_system)) Fail(error);
  return file_system;
}

}  // namespace

namespace rocksdb {

std::shared_ptr<FileSystem> FileSystem::Default() {
  // Never freed: RocksDB uses it until the process has ended.
  static const auto* const file_system = new FileSystemPointer(Mapped(__builtin_return_address(0)));
  return *file_system;
}

}  // namespace rocksdb
