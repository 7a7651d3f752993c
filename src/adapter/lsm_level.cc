#include "adapter/lsm_level.h"

#include <limits>
#include <memory>
#include <string>

#include "adapter/column_family_driver.h"
#include "adapter/output_guide.h"
#include "zone/data_class.h"

namespace isozone {
namespace {

// Who has set the level clears it: a partitioner may be destroyed after the thread was told something else.
struct ToldLevel {
  int8_t level = DataClass::kNoLevel;
  const void* by = nullptr;
};
thread_local ToldLevel told;

// Of all listeners: only one job runs on a thread.
constexpr char kListener = 0;

int8_t AsLevel(int level) {
  return level < 0 || level > std::numeric_limits<int8_t>::max() ? DataClass::kNoLevel : static_cast<int8_t>(level);
}

bool IsFlush(rocksdb::TableFileCreationReason reason) {
  return reason == rocksdb::TableFileCreationReason::kFlush || reason == rocksdb::TableFileCreationReason::kRecovery;
}

class LevelPartitioner : public rocksdb::SstPartitioner {
 public:
  // RocksDB makes it on the thread that begins the compaction, which does the first part of it itself.
  explicit LevelPartitioner(int8_t level) : level_(level) { told = {level_, this}; }
  ~LevelPartitioner() override {
    if (told.by == this) told = {};
  }
  LevelPartitioner(const LevelPartitioner&) = delete;
  LevelPartitioner& operator=(const LevelPartitioner&) = delete;

  const char* Name() const override { return LevelPartitionerFactory::kClassName(); }
  // On the thread that writes, from the second key of a table on: before its first block is complete.
  rocksdb::PartitionerResult ShouldPartition(const rocksdb::PartitionerRequest&) override {
    told = {level_, this};
    return rocksdb::kNotRequired;
  }
  bool CanDoTrivialMove(const rocksdb::Slice&, const rocksdb::Slice&) override { return true; }

 private:
  const int8_t level_;
};

// Of a compaction that a picker has chosen. It goes before the guide does.
class GuidedPartitioner : public LevelPartitioner {
 public:
  GuidedPartitioner(int8_t level, OutputGuide& guide) : LevelPartitioner(level), guide_(guide) {}
  rocksdb::PartitionerResult ShouldPartition(const rocksdb::PartitionerRequest& request) override {
    (void)LevelPartitioner::ShouldPartition(request);
    const std::string_view key(request.current_user_key->data(), request.current_user_key->size());
    return guide_.CutsBefore(key, request.current_output_file_size) ? rocksdb::kRequired : rocksdb::kNotRequired;
  }
  bool CanDoTrivialMove(const rocksdb::Slice&, const rocksdb::Slice&) override { return false; }

 private:
  OutputGuide& guide_;
};

}  // namespace

int8_t JobLevel() { return told.level; }

int8_t TableLevel(int8_t job_level, IoClass io_class, Lifetime hint) {
  if (job_level != DataClass::kNoLevel) return job_level;
  if (io_class == IoClass::kFlush) return 0;
  switch (hint) {
    case Lifetime::kMedium:
      return 1;
    case Lifetime::kLong:
      return 2;
    case Lifetime::kExtreme:
      return 3;
    case Lifetime::kNotSet:
    case Lifetime::kNone:
    case Lifetime::kShort:
      break;
  }
  return DataClass::kNoLevel;
}

void LevelListener::OnTableFileCreationStarted(const rocksdb::TableFileCreationBriefInfo& info) {
  if (IsFlush(info.reason)) told = {0, &kListener};
}

void LevelListener::OnTableFileCreated(const rocksdb::TableFileCreationInfo& info) {
  if (IsFlush(info.reason)) told = {};
}

void LevelListener::OnSubcompactionBegin(const rocksdb::SubcompactionJobInfo& info) {
  told = {AsLevel(info.output_level), &kListener};
}

void LevelListener::OnSubcompactionCompleted(const rocksdb::SubcompactionJobInfo&) { told = {}; }

void LevelListener::OnCompactionCompleted(rocksdb::DB* db, const rocksdb::CompactionJobInfo&) {
  told = {};
  ColumnFamilyDriver::Wake(db);
}

void LevelListener::OnFlushBegin(rocksdb::DB* db, const rocksdb::FlushJobInfo& info) {
  ColumnFamilyDriver::HoldFlush(db, info.cf_id);
}

void LevelListener::OnFlushCompleted(rocksdb::DB* db, const rocksdb::FlushJobInfo&) { ColumnFamilyDriver::Wake(db); }

void LevelListener::OnExternalFileIngested(rocksdb::DB* db, const rocksdb::ExternalFileIngestionInfo&) {
  ColumnFamilyDriver::Wake(db);
}

std::unique_ptr<rocksdb::SstPartitioner> LevelPartitionerFactory::CreatePartitioner(
    const rocksdb::SstPartitioner::Context& context) const {
  const int8_t level = AsLevel(context.output_level);
  if (level == DataClass::kNoLevel) return nullptr;
  if (OutputGuide* guide = OutputGuide::Current()) return std::make_unique<GuidedPartitioner>(level, *guide);
  return std::make_unique<LevelPartitioner>(level);
}

void RegisterLevelSources(rocksdb::ObjectLibrary& library) {
  library.AddFactory<rocksdb::EventListener>(
      LevelListener::kClassName(),
      [](const std::string&, std::unique_ptr<rocksdb::EventListener>* guard, std::string*) {
        *guard = std::make_unique<LevelListener>();
        return guard->get();
      });
  library.AddFactory<rocksdb::SstPartitionerFactory>(
      LevelPartitionerFactory::kClassName(),
      [](const std::string&, std::unique_ptr<rocksdb::SstPartitionerFactory>* guard, std::string*) {
        *guard = std::make_unique<LevelPartitionerFactory>();
        return guard->get();
      });
}

}  // namespace isozone
