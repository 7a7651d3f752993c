// One of the processes of beside_writer_test.py: beside_writer ROLE URI SECONDS [LOCAL_DIRECTORY]. A URI "posix:DIR" is
// a database in a local directory, to compare with.
//
//   writer      overwrites keys at random in a small database, makes and drops column families, and opens it anew every
//               now and then
//   secondary   catches up with it, again and again, and reads
//   read-only   opens it, reads, waits while the writer goes on, reads again, and closes it
//
// Every value says which key and generation it is of, and what has to follow. Prints, as JSON, how often something went
// well or wrong. What a reader cannot open because the writer has removed it meanwhile is no error: that is the same
// everywhere. What it has open must be there.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>

#include <nlohmann/json.hpp>

#include "base/random.h"
#include "integration/scratch.h"
#include "isozone/isozone.h"

namespace isozone {
namespace {

using rocksdb::DB;
using rocksdb::ReadOptions;
using rocksdb::Status;
using Clock = std::chrono::steady_clock;

constexpr uint64_t kKeys = 20'000;
constexpr char kPosix[] = "posix:";

std::string ValueOf(uint64_t key, uint64_t generation) {
  return Key(key) + " " + std::to_string(generation) + " " +
         Bytes(300 + generation % 100, key * 1000 + generation % 997);
}

// Whether `value` is what some generation of `key` was given.
bool IsValueOf(const rocksdb::Slice& key, const rocksdb::Slice& value) {
  const std::string text = value.ToString();
  const std::string begin = key.ToString() + " ";
  if (!text.starts_with(begin)) return false;
  const std::string digits = key.ToString().substr(key.ToString().find_first_of("0123456789"));
  const uint64_t generation = std::strtoull(text.c_str() + begin.size(), nullptr, 10);
  return text == ValueOf(std::strtoull(digits.c_str(), nullptr, 10), generation);
}

class Process {
 public:
  Process(const std::string& uri, double seconds)
      : end_(Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))) {
    if (uri.starts_with(kPosix)) {
      path_ = uri.substr(sizeof(kPosix) - 1) + path_;
    } else {
      std::shared_ptr<rocksdb::FileSystem> fs;
      const Status opened = OpenFileSystem(uri, &fs);
      if (!opened.ok()) {
        std::fprintf(stderr, "%s\n", opened.ToString().c_str());
        std::_Exit(2);
      }
      env_ = rocksdb::NewCompositeEnv(fs);
      options_.env = env_.get();
    }
    options_.create_if_missing = true;
    options_.write_buffer_size = 512 << 10;
    options_.target_file_size_base = 512 << 10;
    options_.max_bytes_for_level_base = 2 << 20;
    options_.compression = rocksdb::kNoCompression;
    options_.max_open_files = -1;
  }

  bool goes_on() const { return Clock::now() < end_; }
  uint64_t& operator[](const std::string& what) { return counts_[what]; }
  // Counts how `what` ended, and keeps the last failure. True: well.
  bool Went(const std::string& what, const Status& status) {
    ++counts_[status.ok() ? what : "failed " + what];
    if (!status.ok()) last_failure_ = what + ": " + status.ToString();
    return status.ok();
  }
  // Counts an error of a read, and keeps the first.
  void Wrong(const std::string& what, const std::string& details) {
    ++counts_["errors"];
    if (first_.empty()) first_ = what + ": " + details;
  }
  int Report() {
    nlohmann::json json = counts_;
    json["first error"] = first_;
    json["last failure"] = last_failure_;
    std::printf("%s\n", json.dump().c_str());
    return counts_["errors"] == 0 ? 0 : 1;
  }

  void Check(const rocksdb::Slice& key, const rocksdb::Slice& value) {
    ++counts_["values"];
    if (!IsValueOf(key, value)) Wrong(key.ToString() + " has", value.ToString().substr(0, 40));
  }
  void Get(DB& db) {
    const std::string key = Key(random_.Below(kKeys));
    std::string value;
    const Status status = db.Get(ReadOptions(), key, &value);
    if (status.ok()) return Check(key, value);
    if (!status.IsNotFound()) return Wrong("get", status.ToString());
    ++counts_["missing"];
  }
  void Scan(DB& db) {
    ReadOptions read;
    read.fill_cache = false;
    const std::unique_ptr<rocksdb::Iterator> iterator(db.NewIterator(read));
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) Check(iterator->key(), iterator->value());
    if (!iterator->status().ok()) Wrong("scan", iterator->status().ToString());
    ++counts_["scans"];
  }

  Random random_{static_cast<uint64_t>(::getpid())};
  std::unique_ptr<rocksdb::Env> env_;
  rocksdb::Options options_;
  std::string path_ = "/db";

 private:
  const Clock::time_point end_;
  std::map<std::string, uint64_t> counts_ = {{"errors", 0}, {"values", 0}};
  std::string first_;
  std::string last_failure_;
};

// Makes a column family, fills and drops it.
Status ComeAndGo(Process& process, DB& db) {
  rocksdb::ColumnFamilyHandle* family = nullptr;
  Status status = db.CreateColumnFamily(process.options_, "family" + std::to_string(process["families"]++), &family);
  if (!status.ok()) return status;
  for (uint64_t i = 0; i < 500 && status.ok(); ++i) status = db.Put({}, family, Key(i), ValueOf(i, 0));
  if (status.ok()) status = db.Flush({}, family);
  if (status.ok()) status = db.DropColumnFamily(family);
  const Status destroyed = db.DestroyColumnFamilyHandle(family);
  return status.ok() ? destroyed : status;
}

Status WriteUntil(Process& process, DB& db, Clock::time_point end) {
  Status status;
  while (status.ok() && process.goes_on() && Clock::now() < end) {
    for (int i = 0; i < 2000 && status.ok(); ++i) {
      const uint64_t key = process.random_.Below(kKeys);
      status = db.Put({}, Key(key), ValueOf(key, process["puts"]++));
    }
    if (status.ok() && process.random_.Below(10) == 0) status = ComeAndGo(process, db);
  }
  return status;
}

int Write(Process& process, double seconds) {
  const auto stays_open = std::chrono::milliseconds(static_cast<int64_t>(std::min(seconds / 5, 30.0) * 1000));
  while (process.goes_on()) {
    std::unique_ptr<DB> db;
    Status status;
    if (process["opens"]++ == 0) {
      status = OpenDb(process.options_, process.path_, &db);
      for (uint64_t key = 0; key < kKeys && status.ok(); ++key) status = db->Put({}, Key(key), ValueOf(key, 0));
      if (status.ok()) status = db->Flush({});
      std::printf("ready\n");
      std::fflush(stdout);
    } else {
      status = OpenDb(process.options_, process.path_, &db);
    }
    if (status.ok()) status = WriteUntil(process, *db, Clock::now() + stays_open);
    if (!status.ok()) process.Wrong("write", status.ToString());
    if (process.env_ != nullptr) process["collected"] = CollectedBytes(*process.env_->GetFileSystem());
  }
  return process.Report();
}

int FollowAsSecondary(Process& process, const std::string& local) {
  process.options_.max_log_file_size = 64 << 10;  // its log is rolled, too
  std::unique_ptr<DB> db;
  while (process.goes_on()) {
    if (db == nullptr) {
      if (!process.Went("opens",
                        OpenInto(&db, ISOZONE_OPEN(OpenAsSecondary, process.options_, process.path_, local)))) {
        continue;
      }
    }
    // Some versions of RocksDB never catch up again once a column family has gone.
    const bool follows = process.Went("catches up", db->TryCatchUpWithPrimary());
    for (int i = 0; i < 1000; ++i) process.Get(*db);
    if (process.random_.Below(4) == 0) process.Scan(*db);
    if (!follows) db.reset();
  }
  return process.Report();
}

int OpenAgainAndAgain(Process& process) {
  while (process.goes_on()) {
    std::unique_ptr<DB> db;
    if (!process.Went("opens", OpenInto(&db, ISOZONE_OPEN(OpenForReadOnly, process.options_, process.path_)))) continue;
    process.Scan(*db);
    std::this_thread::sleep_for(std::chrono::milliseconds(process.random_.Below(500)));
    for (int i = 0; i < 1000; ++i) process.Get(*db);
    process.Scan(*db);
  }
  return process.Report();
}

}  // namespace
}  // namespace isozone

int main(int argc, char** argv) {
  const std::string role = argc < 4 ? "" : argv[1];
  if (role != "writer" && role != "read-only" && !(role == "secondary" && argc > 4)) {
    std::fprintf(stderr, "usage: beside_writer writer|secondary|read-only URI SECONDS [LOCAL_DIRECTORY]\n");
    return 2;
  }
  const double seconds = std::strtod(argv[3], nullptr);
  isozone::Process process(argv[2], seconds);
  if (role == "writer") return isozone::Write(process, seconds);
  return role == "secondary" ? isozone::FollowAsSecondary(process, argv[4]) : isozone::OpenAgainAndAgain(process);
}
