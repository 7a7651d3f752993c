#include "rocksdb/steering/steering_partitioner.h"

#include <string>
#include <string_view>

#include "base/log.h"
#include "rocksdb/adapter/lsm_level.h"
#include "rocksdb/adapter/opening_database.h"
#include "rocksdb/adapter/running_job.h"
#include "rocksdb/steering/output_guide.h"
#include "rocksdb/steering/steering_listener.h"

namespace isozone {
namespace {

// Of a compaction that a picker has chosen. It goes before the guide does.
class GuidedPartitioner : public LevelPartitioner {
 public:
  GuidedPartitioner(int level, OutputGuide& guide) : LevelPartitioner(level), guide_(guide) {}
  rocksdb::PartitionerResult ShouldPartition(const rocksdb::PartitionerRequest& request) override {
    (void)LevelPartitioner::ShouldPartition(request);
    const std::string_view key(request.current_user_key->data(), request.current_user_key->size());
    return guide_.CutsBefore(key, request.current_output_file_size) ? rocksdb::kRequired : rocksdb::kNotRequired;
  }
  bool CanDoTrivialMove(const rocksdb::Slice&, const rocksdb::Slice&) override { return guide_.moves(); }

 private:
  OutputGuide& guide_;
};

// Why a database is not to be opened with these options, and what to change, because nothing would compact it; empty:
// it can be opened.
std::string Refusal(const rocksdb::DBOptions& db_options, const rocksdb::ColumnFamilyOptions& options) {
  if (SteeringListener::In(db_options) == nullptr || options.compaction_style != rocksdb::kCompactionStyleNone) {
    return "";
  }
  std::string why = WhyNotDriven(db_options, options);
  if (why.empty()) why = WhyTablesAreElsewhere(*db_options.env->GetFileSystem());
  const rocksdb::Logger* const log = db_options.info_log.get();
  if (!why.empty() || log == nullptr || OpeningDatabase::IsWatched(log)) return why;
  return "its info log is none that Isozone's file system makes, and only that tells when it is open; leave info_log "
         "unset, or make an isozone::CompactionDriver";
}

template <typename Base, typename Kind>
void Register(rocksdb::ObjectLibrary& library) {
  library.AddFactory<Base>(Kind::kClassName(), [](const std::string&, std::unique_ptr<Base>* guard, std::string*) {
    *guard = std::make_unique<Kind>();
    return guard->get();
  });
}

}  // namespace

rocksdb::Status SteeringPartitionerFactory::ValidateOptions(const rocksdb::DBOptions& db_options,
                                                            const rocksdb::ColumnFamilyOptions& options) const {
  const std::string refusal = Refusal(db_options, options);
  if (!refusal.empty()) return rocksdb::Status::InvalidArgument("the listener cannot steer this database", refusal);
  if (options.compaction_style == rocksdb::kCompactionStyleNone && !HasListener(db_options)) {
    Log().warn(
        "nothing compacts a column family with kCompactionStyleNone unless the program does; add "
        "listeners={{id=isozone;compaction=ll}}");
  }
  return SstPartitionerFactory::ValidateOptions(db_options, options);
}

std::unique_ptr<rocksdb::SstPartitioner> SteeringPartitionerFactory::CreatePartitioner(
    const rocksdb::SstPartitioner::Context& context) const {
  const int level = context.output_level;
  if (level < 0) return nullptr;
  if (OutputGuide* guide = RunningJob::OfThread().guide) return std::make_unique<GuidedPartitioner>(level, *guide);
  return std::make_unique<LevelPartitioner>(level);
}

void RegisterSteering(rocksdb::ObjectLibrary& library) {
  Register<rocksdb::EventListener, SteeringListener>(library);
  Register<rocksdb::SstPartitionerFactory, SteeringPartitionerFactory>(library);
}

}  // namespace isozone
