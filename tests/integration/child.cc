// The other process of processes_test.cc, stock_tools_test.py and tests/guest/crash.py: integration_child COMMAND
// URI|FILE [NUMBER]. Says what went wrong on standard error and exits with 1.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include <rocksdb/convenience.h>
#include <rocksdb/utilities/options_util.h>

#include "integration/scratch.h"
#include "integration/two_processes.h"
#include "isozone/isozone.h"

namespace isozone {
namespace {

using rocksdb::DB;
using rocksdb::Options;
using rocksdb::ReadOptions;
using rocksdb::WriteOptions;

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::_Exit(1);
}

void Must(const rocksdb::Status& status) {
  if (!status.ok()) Fail(status.ToString());
}

// Never freed, where a command ends without closing.
struct Process {
  std::unique_ptr<rocksdb::Env> env;
  Options options;
  std::unique_ptr<DB> db;

  explicit Process(const std::string& uri) {
    std::shared_ptr<rocksdb::FileSystem> fs;
    Must(rocksdb::FileSystem::CreateFromString(rocksdb::ConfigOptions(), uri, &fs));
    env = rocksdb::NewCompositeEnv(fs);
    options = TwoProcessOptions(env.get());
  }
  void OpenForWriting() { Must(OpenDb(options, kTwoProcessPath, &db)); }
  void Put(uint64_t number, bool sync) { PutAs(number, number, sync); }
  // The value of `number`, under the key of another.
  void PutAs(uint64_t key, uint64_t number, bool sync) {
    WriteOptions write;
    write.sync = sync;
    Must(db->Put(write, Key(key), TwoProcessValue(number)));
  }
  void Verify(uint64_t count) const {
    for (uint64_t i = 0; i < count; ++i) {
      std::string value;
      Must(db->Get(ReadOptions(), Key(i), &value));
      if (value != TwoProcessValue(i)) Fail("wrong value of " + Key(i));
    }
  }
};

void Say(const std::string& line) { std::cout << line << '\n' << std::flush; }
void Await() {
  std::string line;
  std::getline(std::cin, line);
}

void MakeFileSystem(const std::string& uri, uint64_t) { Must(CreateFileSystem(uri)); }

// Writes from key `first` on until it is killed, saying which keys have been synced.
void WriteForever(const std::string& uri, uint64_t first) {
  Process process(uri);
  process.OpenForWriting();
  for (uint64_t i = first;; ++i) {
    const bool sync = i % 10 == 9;
    process.Put(i, sync);
    if (sync) Say(std::to_string(i + 1));
  }
}

// Write `number` overwrites write `number - kOverwrittenKeys`.
constexpr uint64_t kOverwrittenKeys = 10'000;

// Makes writes from number `first` on until it is killed, saying how many have been synced, and how much was collected.
void OverwriteForever(const std::string& uri, uint64_t first) {
  Process process(uri);
  process.OpenForWriting();
  for (uint64_t i = first;; ++i) {
    const bool sync = i % 10 == 9;
    process.PutAs(i % kOverwrittenKeys, i, sync);
    if (sync) Say(std::to_string(i + 1));
    if (i % 500 == 0) Say("collected " + std::to_string(CollectedBytes(*process.env->GetFileSystem())));
  }
}

// Of `count` writes each must be there that no other has overwritten, or the one that has overwritten it before it was
// synced.
void VerifyOverwritten(const std::string& uri, uint64_t count) {
  Process process(uri);
  Must(OpenInto(&process.db, ISOZONE_OPEN(OpenForReadOnly, process.options, kTwoProcessPath)));
  const uint64_t expected = std::min(count, kOverwrittenKeys);
  const std::unique_ptr<rocksdb::Iterator> iterator(process.db->NewIterator(ReadOptions()));
  iterator->SeekToFirst();
  for (uint64_t key = 0; key < expected; ++key, iterator->Next()) {
    if (!iterator->Valid() || iterator->key() != Key(key))
      Fail(Key(key) + " is missing: " + iterator->status().ToString());
    const uint64_t last = key + (count - 1 - key) / kOverwrittenKeys * kOverwrittenKeys;
    if (iterator->value() != TwoProcessValue(last) && iterator->value() != TwoProcessValue(last + kOverwrittenKeys)) {
      Fail("wrong value of " + Key(key));
    }
  }
}

// Keeps `count` keys open for writing, not all of them synced, until it is told to end.
void HoldDatabase(const std::string& uri, uint64_t count) {
  Process process(uri);
  process.OpenForWriting();
  for (uint64_t i = 0; i < count; ++i) process.Put(i, false);
  Must(process.db->SyncWAL());
  Say("ready");
  Await();
}

void ReadOnly(const std::string& uri, uint64_t count) {
  Process process(uri);
  Must(OpenInto(&process.db, ISOZONE_OPEN(OpenForReadOnly, process.options, kTwoProcessPath)));
  process.Verify(count);
}

// Verifies `count` keys, and twice as many when it is told that they have been written.
void Secondary(const std::string& uri, uint64_t count) {
  Process process(uri);
  process.options.max_open_files = -1;
  Must(OpenInto(&process.db, ISOZONE_OPEN(OpenAsSecondary, process.options, kTwoProcessPath, /*secondary_path=*/"/")));
  process.Verify(count);
  Say("ready");
  Await();
  Must(process.db->TryCatchUpWithPrimary());
  process.Verify(2 * count);
}

// Ends with the database open and nothing synced.
void LeakDatabase(const std::string& uri, uint64_t count) {
  auto* process = new Process(uri);
  process->OpenForWriting();
  for (uint64_t i = 0; i < count; ++i) process->Put(i, false);
  std::exit(0);
}

// The same while a listener has the database compacted.
void LeakSteeredDatabase(const std::string& uri, uint64_t count) {
  auto* process = new Process(uri);
  Must(rocksdb::GetOptionsFromString(rocksdb::ConfigOptions(), Options(process->options),
                                     "listeners={id=isozone;compaction=ll};sst_partitioner_factory=isozone;"
                                     "compaction_style=kCompactionStyleNone;max_bytes_for_level_base=262144",
                                     &process->options));
  process->OpenForWriting();
  std::unique_ptr<CompactionDriver> driver;
  Must(CompactionDriver::Find(process->db.get(), &driver));
  for (uint64_t i = 0; i < count; ++i) process->Put(i, false);
  std::exit(0);
}

// Ends with the file system open, but no file of it.
void LeakFileSystem(const std::string& uri, uint64_t count) {
  auto* process = new Process(uri);
  process->OpenForWriting();
  for (uint64_t i = 0; i < count; ++i) process->Put(i, false);
  process->db.reset();
  std::exit(0);
}

// LeakSanitizer cannot look for leaks in a forked child: a thread that only the parent has may hold a lock of the
// sanitizer's allocator in the child's copy, for ever.
std::atomic<bool> in_forked_child = false;

// Forks with the file system mounted and a file open. The forked child drops all it inherited and ends as any process
// does; then the database is written. (It could not be open before: the exit handlers of RocksDB 7 wait for threads
// that a forked child does not have.)
void Fork(const std::string& uri, uint64_t count) {
  Process process(uri);
  Must(process.env->CreateDir("/synced"));  // the threads of the file system have begun, and wait again
  std::unique_ptr<rocksdb::WritableFile> file;
  Must(process.env->NewWritableFile("/file", &file, rocksdb::EnvOptions()));
  Must(file->Append("before "));
  const pid_t child = fork();
  if (child == 0) {
    in_forked_child = true;
    std::string statistics;  // of the parent, which goes on to count
    if (GetStats(*process.env->GetFileSystem(), &statistics).ok()) std::exit(2);
    process.env.reset();
    std::exit(0);
  }
  int status = 1;
  if (waitpid(child, &status, 0) != child || status != 0) Fail("the forked child failed");
  Must(file->Append("and after"));
  Must(file->Close());
  std::string content;
  Must(rocksdb::ReadFileToString(process.env.get(), "/file", &content));
  if (content != "before and after") Fail("the file holds '" + content + "'");
  process.OpenForWriting();
  for (uint64_t i = 0; i < count; ++i) process.Put(i, false);
}

// A program that knows nothing of Isozone: `path` is an options file, and its database has that name with ".db" behind.
void LoadOptionsFile(const std::string& path, uint64_t count) {
  rocksdb::DBOptions options;
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  Must(rocksdb::LoadOptionsFromFile(rocksdb::ConfigOptions(), path, &options, &families));
  std::unique_ptr<DB> db;
  Must(OpenDb(rocksdb::Options(options, families.front().options), path + ".db", &db));
  for (uint64_t i = 0; i < count; ++i) Must(db->Put(WriteOptions(), Key(i), TwoProcessValue(i)));
  Must(db->Flush(rocksdb::FlushOptions()));
  Must(db->Put(WriteOptions(), Key(count), TwoProcessValue(count)));
  db.reset();
}

}  // namespace
}  // namespace isozone

extern "C" __attribute__((visibility("default"))) int __lsan_is_turned_off() {
  return isozone::in_forked_child ? 1 : 0;
}

int main(int argc, char** argv) {
  using isozone::Fail;
  const std::map<std::string, void (*)(const std::string&, uint64_t)> commands = {
      {"mkfs", isozone::MakeFileSystem},
      {"write-forever", isozone::WriteForever},
      {"overwrite-forever", isozone::OverwriteForever},
      {"verify-overwritten", isozone::VerifyOverwritten},
      {"hold-database", isozone::HoldDatabase},
      {"read-only", isozone::ReadOnly},
      {"secondary", isozone::Secondary},
      {"leak-database", isozone::LeakDatabase},
      {"leak-steered-database", isozone::LeakSteeredDatabase},
      {"leak-file-system", isozone::LeakFileSystem},
      {"fork", isozone::Fork},
      {"load-options-file", isozone::LoadOptionsFile}};
  if (argc < 3 || !commands.contains(argv[1])) Fail("usage: integration_child COMMAND URI [NUMBER]");
  commands.at(argv[1])(argv[2], argc > 3 ? std::stoull(argv[3]) : 0);
  return 0;
}
