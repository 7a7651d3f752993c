#include "rocksdb/adapter/lsm_level.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <rocksdb/utilities/options_type.h>

#include "base/log.h"
#include "rocksdb/adapter/column_family_driver.h"
#include "rocksdb/adapter/output_guide.h"
#include "rocksdb/adapter/running_job.h"
#include "rocksdb/adapter/steered_databases.h"
#include "rocksdb/lsm/compaction_picker.h"
#include "store/zone/data_class.h"

namespace isozone {
namespace {

int8_t AsLevel(int level) {
  return level < 0 || level > std::numeric_limits<int8_t>::max() ? DataClass::kNoLevel : static_cast<int8_t>(level);
}

// The others are awaited by somebody who keeps all writers waiting, or compactions.
bool MayBeHeld(rocksdb::FlushReason reason) {
  return reason != rocksdb::FlushReason::kExternalFileIngestion && reason != rocksdb::FlushReason::kErrorRecovery &&
         reason != rocksdb::FlushReason::kErrorRecoveryRetryFlush && reason != rocksdb::FlushReason::kShutDown;
}

bool IsFlush(rocksdb::TableFileCreationReason reason) {
  return reason == rocksdb::TableFileCreationReason::kFlush || reason == rocksdb::TableFileCreationReason::kRecovery;
}

using rocksdb::OptionType;
using rocksdb::OptionTypeFlags;
using rocksdb::OptionTypeInfo;
using rocksdb::OptionVerificationType;

rocksdb::Status ParsePicker(const rocksdb::ConfigOptions&, const std::string&, const std::string& value, void* result) {
  if (value != SteeringOptions::kNone) {
    const auto picker = MakeCompactionPicker(value);
    if (!picker.ok()) return rocksdb::Status::InvalidArgument(picker.status().message());
  }
  *static_cast<std::string*>(result) = value;
  return rocksdb::Status::OK();
}

rocksdb::Status ParseThreads(const rocksdb::ConfigOptions&, const std::string&, const std::string& value,
                             void* result) {
  uint32_t threads = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), threads);
  if (error != std::errc() || end != value.data() + value.size() || threads > kDriverThreadsMax) {
    return rocksdb::Status::InvalidArgument(
        fmt::format("threads={}; 1 to {} can be had, or 0 for as many as RocksDB would use", value, kDriverThreadsMax));
  }
  *static_cast<uint32_t*>(result) = threads;
  return rocksdb::Status::OK();
}

const std::unordered_map<std::string, OptionTypeInfo>& SteeringOptionTypes() {
  static const auto& types = *new std::unordered_map<std::string, OptionTypeInfo>{
      {"compaction",
       {offsetof(SteeringOptions, picker), OptionType::kString, OptionVerificationType::kNormal, OptionTypeFlags::kNone,
        ParsePicker}},
      {"threads",
       {offsetof(SteeringOptions, threads), OptionType::kUInt32T, OptionVerificationType::kNormal,
        OptionTypeFlags::kNone, ParseThreads}},
      {"t_zone", {offsetof(SteeringOptions, t_zone), OptionType::kBoolean}},
      {"dynamic_levels", {offsetof(SteeringOptions, dynamic_levels), OptionType::kBoolean}},
  };
  return types;
}

class LevelPartitioner : public rocksdb::SstPartitioner {
 public:
  // RocksDB makes it on the thread that begins the compaction, which does the first part of it itself.
  explicit LevelPartitioner(int8_t level) : level_(level) { Tell(); }
  ~LevelPartitioner() override {
    RunningJob& job = RunningJob::OfThread();
    if (job.level_teller == this) job.ForgetLevel();
  }
  LevelPartitioner(const LevelPartitioner&) = delete;
  LevelPartitioner& operator=(const LevelPartitioner&) = delete;

  const char* Name() const override { return LevelPartitionerFactory::kClassName(); }
  // On the thread that writes, from the second key of a table on: before its first block is complete.
  rocksdb::PartitionerResult ShouldPartition(const rocksdb::PartitionerRequest&) override {
    Tell();
    return rocksdb::kNotRequired;
  }
  bool CanDoTrivialMove(const rocksdb::Slice&, const rocksdb::Slice&) override { return true; }

 private:
  void Tell() const { RunningJob::OfThread().TellLevel(level_, this); }

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
  bool CanDoTrivialMove(const rocksdb::Slice&, const rocksdb::Slice&) override { return guide_.moves(); }

 private:
  OutputGuide& guide_;
};

}  // namespace

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

bool LevelListener::IsIn(const rocksdb::DBOptions& options) {
  return std::any_of(options.listeners.begin(), options.listeners.end(),
                     [](const auto& listener) { return std::string_view(listener->Name()) == kClassName(); });
}

const LevelListener* LevelListener::SteeringIn(const rocksdb::DBOptions& options) {
  for (const auto& listener : options.listeners) {
    const auto* const ours = listener->CheckedCast<LevelListener>();
    if (ours != nullptr && ours->steering_.steers()) return ours;
  }
  return nullptr;
}

LevelListener::LevelListener() { RegisterOptions("isozone_steering", &steering_, &SteeringOptionTypes()); }

rocksdb::Status LevelListener::ConfigureOptions(const rocksdb::ConfigOptions& config,
                                                const std::unordered_map<std::string, std::string>& options,
                                                std::unordered_map<std::string, std::string>* unused) {
  for (const auto& [name, value] : options) {
    if (config.ignore_unknown_options || SteeringOptionTypes().contains(name)) continue;
    return rocksdb::Status::InvalidArgument(fmt::format(
        "the listener isozone has no option {}={}; it has compaction=, threads=, t_zone= and dynamic_levels=", name,
        value));
  }
  return EventListener::ConfigureOptions(config, options, unused);
}

void LevelListener::OnTableFileCreationStarted(const rocksdb::TableFileCreationBriefInfo& info) {
  if (!IsFlush(info.reason)) return;
  RunningJob& job = RunningJob::OfThread();
  job.TellLevel(0);
  if (job.flush.db != nullptr) ColumnFamilyDriver::NoteFlush(job.flush, FlushStep::kWrites);
}

void LevelListener::OnTableFileCreated(const rocksdb::TableFileCreationInfo& info) {
  if (!IsFlush(info.reason)) return;
  RunningJob& job = RunningJob::OfThread();
  job.ForgetLevel();
  const FlushJob flush = std::exchange(job.flush, {});
  if (flush.db == nullptr) return;
  ColumnFamilyDriver::NoteFlush(flush, info.status.ok() ? FlushStep::kWritten : FlushStep::kFailed);
}

void LevelListener::OnSubcompactionBegin(const rocksdb::SubcompactionJobInfo& info) {
  RunningJob::OfThread().TellLevel(AsLevel(info.output_level));
}

void LevelListener::OnSubcompactionCompleted(const rocksdb::SubcompactionJobInfo&) {
  RunningJob::OfThread().ForgetLevel();
}

void LevelListener::OnCompactionCompleted(rocksdb::DB* db, const rocksdb::CompactionJobInfo&) {
  RunningJob::OfThread().ForgetLevel();
  ColumnFamilyDriver::Wake(db);
}

void LevelListener::OnFlushBegin(rocksdb::DB* db, const rocksdb::FlushJobInfo& info) {
  const FlushJob flush = {db, info.job_id, info.cf_id};
  ColumnFamilyDriver::BeginFlush(flush, MayBeHeld(info.flush_reason));
  RunningJob::OfThread().flush = flush;
}

void LevelListener::OnFlushCompleted(rocksdb::DB* db, const rocksdb::FlushJobInfo& info) {
  ColumnFamilyDriver::NoteFlush({db, info.job_id, info.cf_id}, FlushStep::kInstalled);
  ColumnFamilyDriver::Wake(db);
  if (steering_.steers()) SteeredDatabases::Flushed(db, info);
}

void LevelListener::OnExternalFileIngested(rocksdb::DB* db, const rocksdb::ExternalFileIngestionInfo&) {
  ColumnFamilyDriver::Wake(db);
}

void LevelListener::OnColumnFamilyHandleDeletionStarted(rocksdb::ColumnFamilyHandle* handle) {
  if (steering_.steers()) SteeredDatabases::Closing(handle);
}

bool LevelListener::ShouldBeNotifiedOnFileIO() {
  if (steering_.steers()) OpeningDatabase::ListenerAsked(steering_);
  return false;
}

bool LevelPartitionerFactory::IsIn(const rocksdb::ColumnFamilyOptions& options) {
  return options.sst_partitioner_factory != nullptr &&
         std::string_view(options.sst_partitioner_factory->Name()) == kClassName();
}

rocksdb::Status LevelPartitionerFactory::ValidateOptions(const rocksdb::DBOptions& db_options,
                                                         const rocksdb::ColumnFamilyOptions& options) const {
  const std::string refusal = SteeredDatabases::Refusal(db_options, options);
  if (!refusal.empty()) return rocksdb::Status::InvalidArgument("the listener cannot steer this database", refusal);
  if (options.compaction_style == rocksdb::kCompactionStyleNone && !LevelListener::IsIn(db_options)) {
    Log().warn(
        "nothing compacts a column family with kCompactionStyleNone unless the program does; add "
        "listeners={{id=isozone;compaction=ll}}");
  }
  return SstPartitionerFactory::ValidateOptions(db_options, options);
}

std::unique_ptr<rocksdb::SstPartitioner> LevelPartitionerFactory::CreatePartitioner(
    const rocksdb::SstPartitioner::Context& context) const {
  const int8_t level = AsLevel(context.output_level);
  if (level == DataClass::kNoLevel) return nullptr;
  if (OutputGuide* guide = RunningJob::OfThread().guide) return std::make_unique<GuidedPartitioner>(level, *guide);
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
