// RocksDB's features, each on an Isozone device.

#include <algorithm>
#include <tuple>

#include <rocksdb/convenience.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/backup_engine.h>
#include <rocksdb/utilities/checkpoint.h>
#include <rocksdb/utilities/transaction.h>
#include <rocksdb/utilities/transaction_db.h>

#include "integration/scratch.h"
#include "isozone/isozone.h"

namespace isozone {
namespace {

using rocksdb::ColumnFamilyHandle;
using rocksdb::DB;
using rocksdb::FlushOptions;
using rocksdb::Options;
using rocksdb::ReadOptions;
using rocksdb::Slice;
using rocksdb::WriteOptions;

constexpr char kPath[] = "/db";

class DatabaseTest : public ScratchDevice {
 protected:
  void SetUp() override {
    ScratchDevice::SetUp();
    env_ = OpenEnv();
    options_.env = env_.get();
    options_.create_if_missing = true;
    options_.write_buffer_size = 256 << 10;
    options_.target_file_size_base = 256 << 10;
    options_.max_bytes_for_level_base = 1 << 20;
    options_.compression = rocksdb::kNoCompression;
  }
  void TearDown() override { db_.reset(); }

  void OpenIt(const std::string& path = kPath) { ISOZONE_ASSERT_OK(OpenDb(options_, path, &db_)); }
  void Reopen() {
    db_.reset();
    OpenIt();
  }
  // Writes keys [first, last), each with a value of its number and `generation`.
  void Fill(uint64_t first, uint64_t last, uint64_t generation = 0) {
    for (uint64_t i = first; i < last; ++i) {
      ISOZONE_ASSERT_OK(db_->Put(WriteOptions(), Key(i), Value(i, generation)));
    }
  }
  static std::string Value(uint64_t number, uint64_t generation = 0) { return Bytes(400, number * 131 + generation); }
  static std::string Get(DB& db, uint64_t number) {
    std::string value;
    ISOZONE_EXPECT_OK(db.Get(ReadOptions(), Key(number), &value));
    return value;
  }
  static void Verify(DB& db, uint64_t first, uint64_t last, uint64_t generation = 0) {
    for (uint64_t i = first; i < last; ++i) ASSERT_EQ(Slice(Get(db, i)), Slice(Value(i, generation))) << Key(i);
  }
  // That a full scan finds exactly keys [0, last).
  static void VerifyScan(DB& db, uint64_t last, const ReadOptions& options = ReadOptions()) {
    const std::unique_ptr<rocksdb::Iterator> iterator(db.NewIterator(options));
    uint64_t i = 0;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++i) {
      ASSERT_EQ(iterator->key(), Slice(Key(i)));
      ASSERT_EQ(iterator->value(), Slice(Value(i)));
    }
    ISOZONE_EXPECT_OK(iterator->status());
    EXPECT_EQ(i, last);
  }
  // Rewrites everything, also what could just be moved down.
  void Compact() {
    rocksdb::CompactRangeOptions options;
    options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
    ISOZONE_ASSERT_OK(db_->CompactRange(options, nullptr, nullptr));
  }
  rocksdb::FileSystem& fs() { return *env_->GetFileSystem(); }

  std::unique_ptr<rocksdb::Env> env_;
  Options options_;
  std::unique_ptr<DB> db_;
};

TEST_F(DatabaseTest, KeepsItsContentOverReopenAndRemount) {
  OpenIt();
  Fill(0, 5000);
  Fill(0, 2000, 1);
  Reopen();
  Verify(*db_, 0, 2000, 1);
  Verify(*db_, 2000, 5000);
  ISOZONE_EXPECT_OK(db_->VerifyChecksum());

  db_.reset();
  env_.reset();
  env_ = OpenEnv();
  options_.env = env_.get();
  OpenIt();
  Verify(*db_, 0, 2000, 1);
  Verify(*db_, 2000, 5000);
}

TEST_F(DatabaseTest, CountsItsBytesByClass) {
  OpenIt();
  Fill(0, 5000);
  ISOZONE_ASSERT_OK(db_->Flush(FlushOptions()));
  Compact();
  Verify(*db_, 0, 5000);
  const uint64_t data = 5000 * 400;
  EXPECT_GE(ClassBytes(fs(), "wal", "bytes_written"), data);
  EXPECT_GE(ClassBytes(fs(), "flush", "bytes_written"), data);
  EXPECT_GE(ClassBytes(fs(), "compaction-read", "bytes_read"), data);
  EXPECT_GE(ClassBytes(fs(), "compaction-write", "bytes_written"), data);
  EXPECT_GT(ClassBytes(fs(), "user-read", "bytes_read"), 0U);
  EXPECT_GT(ClassBytes(fs(), "metadata", "bytes_written"), 0U);
}

// RocksDB says of no write what it is for while it slows writers down, and hints no lifetime with this compaction
// style.
TEST_F(DatabaseTest, TablesOfAStallAreOfTheirJobsClass) {
  options_.compaction_style = rocksdb::kCompactionStyleNone;
  options_.level0_slowdown_writes_trigger = 1;
  ISOZONE_ASSERT_OK(
      GetOptionsFromString(rocksdb::ConfigOptions(), Options(options_), "listeners={isozone}", &options_));
  OpenIt();
  FlushOptions flush;
  flush.allow_write_stall = true;
  for (int round = 0; round < 3; ++round) {
    Fill(0, 1000);
    ISOZONE_ASSERT_OK(db_->Flush(flush));
  }
  std::vector<std::string> tables;
  std::vector<rocksdb::LiveFileMetaData> live;
  db_->GetLiveFilesMetaData(&live);
  for (const rocksdb::LiveFileMetaData& file : live) tables.push_back(file.name);
  ISOZONE_ASSERT_OK(db_->CompactFiles(rocksdb::CompactionOptions(), tables, 1));
  const uint64_t data = 1000 * 400;
  EXPECT_GE(ClassBytes(fs(), "flush", "bytes_written"), 3 * data);
  EXPECT_GE(ClassBytes(fs(), "compaction-write", "bytes_written"), data);
  EXPECT_LT(ClassBytes(fs(), "other", "bytes_written"), data);
  EXPECT_GE(ClassBytes(fs(), "compaction-read", "bytes_read"), 3 * data);
}

TEST_F(DatabaseTest, CompactionsReadAheadWithoutDirectIo) {
  OpenIt();
  Fill(0, 5000);
  ISOZONE_ASSERT_OK(db_->Flush(FlushOptions()));
  Compact();
  const uint64_t bytes = ClassBytes(fs(), "compaction-read", "bytes_read");
  const uint64_t reads = ClassBytes(fs(), "compaction-read", "reads");
  ASSERT_GT(reads, 0U);
  EXPECT_GT(bytes / reads, 64U << 10) << bytes << " bytes in " << reads << " reads";
}

TEST_F(DatabaseTest, CheckpointsAreCompleteDatabases) {
  OpenIt();
  Fill(0, 3000);
  std::unique_ptr<rocksdb::Checkpoint> checkpoint;
  {
    rocksdb::Checkpoint* raw = nullptr;
    ISOZONE_ASSERT_OK(rocksdb::Checkpoint::Create(db_.get(), &raw));
    checkpoint.reset(raw);
  }
  ISOZONE_ASSERT_OK(checkpoint->CreateCheckpoint("/checkpoint"));
  Fill(0, 3000, 1);
  Compact();
  std::unique_ptr<DB> copy;
  ISOZONE_ASSERT_OK(OpenDb(options_, "/checkpoint", &copy));
  Verify(*copy, 0, 3000);
  Verify(*db_, 0, 3000, 1);
}

class BackupTest : public DatabaseTest {
 protected:
  std::unique_ptr<rocksdb::BackupEngine> OpenEngine(const std::string& directory, rocksdb::Env* backup_env) {
    rocksdb::BackupEngineOptions options(directory, backup_env);
    rocksdb::BackupEngine* engine = nullptr;
    ISOZONE_EXPECT_OK(rocksdb::BackupEngine::Open(options, env_.get(), &engine));
    return std::unique_ptr<rocksdb::BackupEngine>(engine);
  }
  void BackUpAndRestore(const std::string& directory, rocksdb::Env* backup_env) {
    OpenIt();
    Fill(0, 3000);
    const auto engine = OpenEngine(directory, backup_env);
    ISOZONE_ASSERT_OK(engine->CreateNewBackup(db_.get(), /*flush_before_backup=*/false));
    Fill(3000, 4000);
    ISOZONE_ASSERT_OK(engine->CreateNewBackup(db_.get(), /*flush_before_backup=*/true));
    ISOZONE_ASSERT_OK(engine->VerifyBackup(1, /*verify_with_checksum=*/true));
    db_.reset();
    ISOZONE_ASSERT_OK(rocksdb::DestroyDB(kPath, options_));
    ISOZONE_ASSERT_OK(engine->RestoreDBFromLatestBackup(kPath, kPath));
    OpenIt();
    VerifyScan(*db_, 4000);
    ISOZONE_ASSERT_OK(engine->RestoreDBFromBackup(1, "/first", "/first"));
    std::unique_ptr<DB> first;
    ISOZONE_ASSERT_OK(OpenDb(options_, "/first", &first));
    VerifyScan(*first, 3000);
  }
};

TEST_F(BackupTest, GoesToTheLocalFileSystemAndBack) {
  BackUpAndRestore(scratch_.path() + "/backup", rocksdb::Env::Default());
}

TEST_F(BackupTest, GoesToTheSameDevice) { BackUpAndRestore("/backup", env_.get()); }

TEST_F(BackupTest, BringsADatabaseFromTheLocalFileSystem) {
  Options local = options_;
  local.env = rocksdb::Env::Default();
  ISOZONE_ASSERT_OK(OpenDb(local, scratch_.path() + "/local", &db_));
  Fill(0, 1000);
  rocksdb::BackupEngineOptions backup("/backup", env_.get());
  rocksdb::BackupEngine* raw = nullptr;
  ISOZONE_ASSERT_OK(rocksdb::BackupEngine::Open(backup, rocksdb::Env::Default(), &raw));
  std::unique_ptr<rocksdb::BackupEngine> engine(raw);
  ISOZONE_ASSERT_OK(engine->CreateNewBackup(db_.get(), /*flush_before_backup=*/true));
  engine = OpenEngine("/backup", env_.get());
  ISOZONE_ASSERT_OK(engine->RestoreDBFromLatestBackup(kPath, kPath));
  OpenIt();
  VerifyScan(*db_, 1000);
}

TEST_F(DatabaseTest, ManyColumnFamiliesKeepTheirKeys) {
  constexpr int kFamilies = 40;
  OpenIt();
  std::vector<ColumnFamilyHandle*> handles;
  for (int f = 0; f < kFamilies; ++f) {
    ColumnFamilyHandle* handle = nullptr;
    ISOZONE_ASSERT_OK(db_->CreateColumnFamily(options_, "family" + std::to_string(f), &handle));
    handles.push_back(handle);
    for (uint64_t i = 0; i < 50; ++i) {
      ISOZONE_ASSERT_OK(db_->Put(WriteOptions(), handle, Key(i), Value(i, static_cast<uint64_t>(f))));
    }
  }
  ISOZONE_ASSERT_OK(db_->Flush(FlushOptions(), handles));
  ISOZONE_ASSERT_OK(db_->DropColumnFamily(handles[7]));
  for (ColumnFamilyHandle* handle : handles) ISOZONE_ASSERT_OK(db_->DestroyColumnFamilyHandle(handle));
  db_.reset();

  std::vector<std::string> names;
  ISOZONE_ASSERT_OK(DB::ListColumnFamilies(options_, kPath, &names));
  EXPECT_EQ(names.size(), kFamilies);  // with "default", without the dropped one
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (const std::string& name : names) families.emplace_back(name, options_);
  handles.clear();
  ISOZONE_ASSERT_OK(OpenInto(&db_, ISOZONE_OPEN(Open, options_, kPath, families, &handles)));
  for (size_t f = 0; f < handles.size(); ++f) {
    if (names[f] != "default") {
      const uint64_t number = std::stoull(names[f].substr(6));
      for (uint64_t i = 0; i < 50; ++i) {
        std::string value;
        ISOZONE_ASSERT_OK(db_->Get(ReadOptions(), handles[f], Key(i), &value));
        ASSERT_EQ(Slice(value), Slice(Value(i, number)));
      }
    }
    ISOZONE_ASSERT_OK(db_->DestroyColumnFamilyHandle(handles[f]));
  }
}

TEST_F(DatabaseTest, TransactionsCommitAndRollBack) {
  rocksdb::TransactionDB* raw = nullptr;
  ISOZONE_ASSERT_OK(rocksdb::TransactionDB::Open(options_, rocksdb::TransactionDBOptions(), kPath, &raw));
  std::unique_ptr<rocksdb::TransactionDB> transactions(raw);
  for (uint64_t i = 0; i < 200; ++i) {
    const std::unique_ptr<rocksdb::Transaction> transaction(transactions->BeginTransaction(WriteOptions()));
    ISOZONE_ASSERT_OK(transaction->Put(Key(i), Value(i)));
    if (i % 2 == 0) {
      ISOZONE_ASSERT_OK(transaction->Commit());
    } else {
      ISOZONE_ASSERT_OK(transaction->Rollback());
    }
  }
  std::unique_ptr<rocksdb::Transaction> prepared(transactions->BeginTransaction(WriteOptions()));
  ISOZONE_ASSERT_OK(prepared->SetName("in doubt"));
  ISOZONE_ASSERT_OK(prepared->Put(Key(1000), Value(1000)));
  ISOZONE_ASSERT_OK(prepared->Prepare());
  prepared.reset();
  transactions.reset();

  ISOZONE_ASSERT_OK(rocksdb::TransactionDB::Open(options_, rocksdb::TransactionDBOptions(), kPath, &raw));
  transactions.reset(raw);
  std::string value;
  for (uint64_t i = 0; i < 200; ++i) {
    EXPECT_EQ(transactions->Get(ReadOptions(), Key(i), &value).ok(), i % 2 == 0) << i;
  }
  const std::unique_ptr<rocksdb::Transaction> recovered(transactions->GetTransactionByName("in doubt"));
  ASSERT_NE(recovered, nullptr);
  ISOZONE_ASSERT_OK(recovered->Commit());
  EXPECT_EQ(Get(*transactions, 1000), Value(1000));
}

TEST_F(DatabaseTest, BlobFilesHoldValues) {
  options_.enable_blob_files = true;
  options_.min_blob_size = 100;
  options_.blob_file_size = 512 << 10;
  options_.enable_blob_garbage_collection = true;
  options_.blob_garbage_collection_age_cutoff = 1.0;
  OpenIt();
  Fill(0, 3000);
  Fill(0, 1500, 1);
  ISOZONE_ASSERT_OK(db_->Flush(FlushOptions()));
  Compact();
  Reopen();
  Verify(*db_, 0, 1500, 1);
  Verify(*db_, 1500, 3000);
  std::vector<std::string> children;
  ISOZONE_ASSERT_OK(env_->GetChildren(kPath, &children));
  EXPECT_TRUE(std::any_of(children.begin(), children.end(), [](const auto& name) { return name.ends_with(".blob"); }));
}

class IngestionTest : public DatabaseTest, public ::testing::WithParamInterface<std::tuple<bool, bool>> {};

TEST_P(IngestionTest, TablesJoinTheDatabase) {
  OpenIt();
  Fill(0, 1000);
  rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options_);
  ISOZONE_ASSERT_OK(env_->CreateDirIfMissing("/import"));
  ISOZONE_ASSERT_OK(writer.Open("/import/table.sst"));
  for (uint64_t i = 500; i < 2000; ++i) ISOZONE_ASSERT_OK(writer.Put(Key(i), Value(i, 1)));
  ISOZONE_ASSERT_OK(writer.Finish());

  rocksdb::IngestExternalFileOptions ingestion;
  ingestion.move_files = std::get<0>(GetParam());
  ingestion.write_global_seqno = std::get<1>(GetParam());
  ISOZONE_ASSERT_OK(db_->IngestExternalFile({"/import/table.sst"}, ingestion));
  EXPECT_EQ(env_->FileExists("/import/table.sst").IsNotFound(), ingestion.move_files);
  Verify(*db_, 0, 500);
  Verify(*db_, 500, 2000, 1);
  Reopen();
  Compact();
  Verify(*db_, 0, 500);
  Verify(*db_, 500, 2000, 1);
}

INSTANTIATE_TEST_SUITE_P(MoveAndGlobalSeqno, IngestionTest, ::testing::Combine(::testing::Bool(), ::testing::Bool()),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param) ? "Moved" : "Copied") +
                                  (std::get<1>(info.param) ? "WithSeqnoInFile" : "WithSeqnoInManifest");
                         });

// Options that change how RocksDB calls the file system, each with the same load.
struct Mode {
  const char* name;
  void (*set)(Options& options);
};

class ModeTest : public DatabaseTest, public ::testing::WithParamInterface<Mode> {};

TEST_P(ModeTest, KeepsItsContent) {
  GetParam().set(options_);
  OpenIt();
  Fill(0, 4000, 1);
  Fill(0, 4000);
  if (options_.manual_wal_flush) {
    ISOZONE_ASSERT_OK(db_->FlushWAL(/*sync=*/true));
  }
  Reopen();
  VerifyScan(*db_, 4000);
  Fill(0, 4000, 2);
  ISOZONE_ASSERT_OK(db_->Flush(FlushOptions()));
  Compact();
  Reopen();
  Verify(*db_, 0, 4000, 2);
}

constexpr Mode kModes[] = {
    {"DirectReads", [](Options& o) { o.use_direct_reads = true; }},
    {"DirectWrites", [](Options& o) { o.use_direct_io_for_flush_and_compaction = true; }},
    {"DirectReadsAndWrites", [](Options& o) { o.use_direct_reads = o.use_direct_io_for_flush_and_compaction = true; }},
    {"MmapReads", [](Options& o) { o.allow_mmap_reads = true; }},
    {"MmapWrites", [](Options& o) { o.allow_mmap_writes = true; }},
    {"RecycledLogs",
     [](Options& o) {
       o.recycle_log_file_num = 4;
       o.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
     }},
    {"ManualWalFlush", [](Options& o) { o.manual_wal_flush = true; }},
    {"BytesPerSync",
     [](Options& o) {
       o.bytes_per_sync = o.wal_bytes_per_sync = 32 << 10;
       o.strict_bytes_per_sync = true;
     }},
    {"ArchivedLogs", [](Options& o) { o.WAL_ttl_seconds = 3600; }},
    {"Fsync", [](Options& o) { o.use_fsync = true; }},
    {"PlainTables",
     [](Options& o) {
       o.allow_mmap_reads = true;
       o.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(13));
       rocksdb::PlainTableOptions plain;
       plain.user_key_len = 13;
       o.table_factory.reset(rocksdb::NewPlainTableFactory(plain));
     }},
    {"UniversalCompaction", [](Options& o) { o.compaction_style = rocksdb::kCompactionStyleUniversal; }},
    {"Subcompactions", [](Options& o) { o.max_subcompactions = 4; }},
};
INSTANTIATE_TEST_SUITE_P(Modes, ModeTest, ::testing::ValuesIn(kModes),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_F(DatabaseTest, ReadOnlyAndSecondaryInstancesOpenInTheSameProcess) {
  // RocksDB's secondaries miss keys while the primary flushes or compacts beside their catch-up, on POSIX as well.
  options_.disable_auto_compactions = true;
  OpenIt();
  Fill(0, 900);
  ISOZONE_ASSERT_OK(db_->Flush(FlushOptions()));
  Fill(900, 1000);
  ISOZONE_ASSERT_OK(db_->SyncWAL());
  std::unique_ptr<DB> read_only;
  ISOZONE_ASSERT_OK(OpenInto(&read_only, ISOZONE_OPEN(OpenForReadOnly, options_, kPath)));
  Verify(*read_only, 0, 1000);
  EXPECT_FALSE(read_only->Put(WriteOptions(), "x", "y").ok());

  Options secondary_options = options_;
  secondary_options.max_open_files = -1;
  std::unique_ptr<DB> secondary;
  ISOZONE_ASSERT_OK(OpenInto(&secondary, ISOZONE_OPEN(OpenAsSecondary, secondary_options, kPath, "/secondary")));
  Verify(*secondary, 0, 1000);
  Fill(0, 3000, 1);
  ISOZONE_ASSERT_OK(db_->Flush(FlushOptions()));
  Fill(3000, 3100, 1);
  ISOZONE_ASSERT_OK(secondary->TryCatchUpWithPrimary());
  Verify(*secondary, 0, 3100, 1);
}

// What RocksDB's own tests (DBBasicTest.OpenWhenOpen, CheckLock) ask for, as they find it on POSIX.
TEST_F(DatabaseTest, ASecondOpenForWritingIsAnIoErrorThatSpeaksOfTheLock) {
  OpenIt();
  std::unique_ptr<DB> second;
  const rocksdb::Status refused = OpenDb(options_, kPath, &second);
  EXPECT_EQ(refused.code(), rocksdb::Status::kIOError) << refused.ToString();
  EXPECT_EQ(refused.subcode(), rocksdb::Status::kNone) << refused.ToString();
  EXPECT_NE(std::string(refused.getState()).find("lock "), std::string::npos) << refused.ToString();
  db_.reset();
  ISOZONE_EXPECT_OK(OpenDb(options_, kPath, &second));
}

TEST_F(DatabaseTest, ADatabaseWithoutANameIsNotFound) {
  for (rocksdb::Env* env : {env_.get(), rocksdb::Env::Default()}) {
    options_.env = env;
    const rocksdb::Status status = OpenDb(options_, "", &db_);
    EXPECT_TRUE(status.IsIOError() && status.IsPathNotFound()) << status.ToString();
  }
}

TEST_F(DatabaseTest, MultiGetAndIteratorsReadAsynchronously) {
  OpenIt();
  Fill(0, 5000);
  ISOZONE_ASSERT_OK(db_->Flush(FlushOptions()));
  Compact();
  Reopen();
  ReadOptions async;
  async.async_io = true;
  async.adaptive_readahead = true;
  async.optimize_multiget_for_io = true;
  async.readahead_size = 128 << 10;
  VerifyScan(*db_, 5000, async);

  for (uint64_t first = 0; first < 5000; first += 617) {
    std::vector<std::string> keys;
    for (uint64_t i = first; i < first + 2000; i += 37) keys.push_back(Key(i % 5000));
    const std::vector<Slice> slices(keys.begin(), keys.end());
    std::vector<std::string> values;
    const std::vector<rocksdb::Status> statuses = db_->MultiGet(async, slices, &values);
    for (size_t k = 0; k < keys.size(); ++k) {
      ISOZONE_ASSERT_OK(statuses[k]);
      ASSERT_EQ(Slice(values[k]), Slice(Value((first + k * 37) % 5000)));
    }
  }
  // An iterator left in the middle has a read in flight, which is aborted.
  const std::unique_ptr<rocksdb::Iterator> iterator(db_->NewIterator(async));
  iterator->Seek(Key(100));
  for (int i = 0; i < 300 && iterator->Valid(); ++i) iterator->Next();
  EXPECT_TRUE(iterator->Valid());
}

TEST_F(DatabaseTest, InfoLogsCanBeRedirected) {
  const std::string log_dir = scratch_.path() + "/logs";
  env_.reset();
  env_ = OpenEnv("log_dir=" + log_dir);
  options_.env = env_.get();
  OpenIt();
  const std::string log = log_dir + "/emu" + scratch_.path() + "/ssd.img/db/LOG";
  ISOZONE_EXPECT_OK(rocksdb::Env::Default()->FileExists(log));
  EXPECT_TRUE(env_->FileExists("/db/LOG").IsNotFound());
  Reopen();
  ISOZONE_EXPECT_OK(rocksdb::Env::Default()->FileExists(log + ".old"));
}

TEST_F(DatabaseTest, InfoLogsAreOnTheDeviceByDefault) {
  OpenIt();
  db_.reset();
  const std::string log = ReadFile(fs(), "/db/LOG");
  EXPECT_NE(log.find("RocksDB version"), std::string::npos);
  Reopen();
  std::vector<std::string> children;
  ISOZONE_ASSERT_OK(env_->GetChildren(kPath, &children));
  EXPECT_TRUE(
      std::any_of(children.begin(), children.end(), [](const auto& name) { return name.starts_with("LOG.old."); }));
}

TEST_F(DatabaseTest, DestroyingLeavesNothing) {
  OpenIt();
  Fill(0, 1000);
  db_.reset();
  ISOZONE_ASSERT_OK(rocksdb::DestroyDB(kPath, options_));
  EXPECT_TRUE(env_->FileExists(kPath).IsNotFound());
}

TEST_F(DatabaseTest, AFullDeviceFailsWritesAndLosesNothing) {
  options_.write_buffer_size = 64 << 20;  // so that the log meets the end first: RocksDB stalls where a flush does
  OpenIt();
  WriteFile(fs(), "/ballast.sst", "");
  uint64_t free = 0;
  ISOZONE_ASSERT_OK(env_->GetFreeSpace("/", &free));
  {
    std::unique_ptr<rocksdb::FSWritableFile> ballast;
    ISOZONE_ASSERT_OK(fs().ReopenWritableFile("/ballast.sst", rocksdb::FileOptions(), &ballast, nullptr));
    const std::string piece = Bytes(1 << 20, 3);
    for (uint64_t written = 0; written + (24 << 20) < free; written += piece.size()) {
      ISOZONE_ASSERT_OK(ballast->Append(piece, rocksdb::IOOptions(), nullptr));
    }
    ISOZONE_ASSERT_OK(ballast->Close(rocksdb::IOOptions(), nullptr));
  }
  WriteOptions synced;
  synced.sync = true;
  uint64_t written = 0;
  rocksdb::Status status;
  for (; written < 500000; ++written) {
    status = db_->Put(written % 100 == 0 ? synced : WriteOptions(), Key(written), Value(written));
    if (!status.ok()) break;
  }
  EXPECT_TRUE(status.IsNoSpace()) << status.ToString();
  db_.reset();

  ISOZONE_ASSERT_OK(fs().DeleteFile("/ballast.sst", rocksdb::IOOptions(), nullptr));
  OpenIt();
  const uint64_t last_synced = (written - 1) / 100 * 100;
  Verify(*db_, 0, last_synced + 1);
  Fill(0, 3000, 5);
  Verify(*db_, 0, 3000, 5);
}

}  // namespace
}  // namespace isozone
