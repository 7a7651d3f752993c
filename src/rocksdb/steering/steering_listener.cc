#include "rocksdb/steering/steering_listener.h"

#include <charconv>
#include <cstddef>
#include <utility>

#include <fmt/format.h>
#include <rocksdb/utilities/options_type.h>

#include "rocksdb/adapter/opening_database.h"
#include "rocksdb/adapter/running_job.h"
#include "rocksdb/lsm/compaction_picker.h"
#include "rocksdb/steering/steered_databases.h"

namespace isozone {
namespace {

// The others are awaited by somebody who keeps all writers waiting, or compactions.
bool MayBeHeld(rocksdb::FlushReason reason) {
  return reason != rocksdb::FlushReason::kExternalFileIngestion && reason != rocksdb::FlushReason::kErrorRecovery &&
         reason != rocksdb::FlushReason::kErrorRecoveryRetryFlush && reason != rocksdb::FlushReason::kShutDown;
}

using rocksdb::OptionType;
using rocksdb::OptionTypeFlags;
using rocksdb::OptionTypeInfo;
using rocksdb::OptionVerificationType;

rocksdb::Status ParsePicker(const rocksdb::ConfigOptions&, const std::string&, const std::string& value, void* result) {
  if (value != SteeringListener::kNone) {
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
       {offsetof(ColumnFamilyDriverOptions, picker), OptionType::kString, OptionVerificationType::kNormal,
        OptionTypeFlags::kNone, ParsePicker}},
      {"threads",
       {offsetof(ColumnFamilyDriverOptions, threads), OptionType::kUInt32T, OptionVerificationType::kNormal,
        OptionTypeFlags::kNone, ParseThreads}},
      {"t_zone", {offsetof(ColumnFamilyDriverOptions, t_zone), OptionType::kBoolean}},
      {"dynamic_levels", {offsetof(ColumnFamilyDriverOptions, dynamic_levels), OptionType::kBoolean}},
  };
  return types;
}

}  // namespace

const SteeringListener* SteeringListener::In(const rocksdb::DBOptions& options) {
  for (const auto& listener : options.listeners) {
    const auto* const ours = listener->CheckedCast<SteeringListener>();
    if (ours != nullptr && ours->steers()) return ours;
  }
  return nullptr;
}

SteeringListener::SteeringListener() { RegisterOptions("isozone_steering", &steering_, &SteeringOptionTypes()); }

rocksdb::Status SteeringListener::ConfigureOptions(const rocksdb::ConfigOptions& config,
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

void SteeringListener::OnTableFileCreationStarted(const rocksdb::TableFileCreationBriefInfo& info) {
  LevelListener::OnTableFileCreationStarted(info);
  const FlushJob& flush = RunningJob::OfThread().flush;
  if (IsFlush(info.reason) && flush.db != nullptr) ColumnFamilyDriver::NoteFlush(flush, FlushStep::kWrites);
}

void SteeringListener::OnTableFileCreated(const rocksdb::TableFileCreationInfo& info) {
  LevelListener::OnTableFileCreated(info);
  if (!IsFlush(info.reason)) return;
  const FlushJob flush = std::exchange(RunningJob::OfThread().flush, {});
  if (flush.db == nullptr) return;
  ColumnFamilyDriver::NoteFlush(flush, info.status.ok() ? FlushStep::kWritten : FlushStep::kFailed);
}

void SteeringListener::OnCompactionCompleted(rocksdb::DB* db, const rocksdb::CompactionJobInfo& info) {
  LevelListener::OnCompactionCompleted(db, info);
  ColumnFamilyDriver::Wake(db);
}

void SteeringListener::OnFlushBegin(rocksdb::DB* db, const rocksdb::FlushJobInfo& info) {
  const FlushJob flush = {db, info.job_id, info.cf_id};
  ColumnFamilyDriver::BeginFlush(flush, MayBeHeld(info.flush_reason));
  RunningJob::OfThread().flush = flush;
}

void SteeringListener::OnFlushCompleted(rocksdb::DB* db, const rocksdb::FlushJobInfo& info) {
  ColumnFamilyDriver::NoteFlush({db, info.job_id, info.cf_id}, FlushStep::kInstalled);
  ColumnFamilyDriver::Wake(db);
  if (steers()) SteeredDatabases::Flushed(db, info);
}

void SteeringListener::OnExternalFileIngested(rocksdb::DB* db, const rocksdb::ExternalFileIngestionInfo&) {
  ColumnFamilyDriver::Wake(db);
}

void SteeringListener::OnColumnFamilyHandleDeletionStarted(rocksdb::ColumnFamilyHandle* handle) {
  if (steers()) SteeredDatabases::Closing(handle);
}

bool SteeringListener::ShouldBeNotifiedOnFileIO() {
  if (steers()) {
    OpeningDatabase::ListenerAsked([options = steering_](rocksdb::DB* db) { SteeredDatabases::Opened(db, options); });
  }
  return false;
}

}  // namespace isozone
