#include "rocksdb/adapter/lsm_level.h"

#include "rocksdb/adapter/running_job.h"
#include "store/zone/data_class.h"

namespace isozone {

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

bool LevelListener::IsFlush(rocksdb::TableFileCreationReason reason) {
  return reason == rocksdb::TableFileCreationReason::kFlush || reason == rocksdb::TableFileCreationReason::kRecovery;
}

void LevelListener::OnTableFileCreationStarted(const rocksdb::TableFileCreationBriefInfo& info) {
  if (IsFlush(info.reason)) RunningJob::OfThread().TellLevel(0);
}

void LevelListener::OnTableFileCreated(const rocksdb::TableFileCreationInfo& info) {
  if (IsFlush(info.reason)) RunningJob::OfThread().ForgetLevel();
}

void LevelListener::OnSubcompactionBegin(const rocksdb::SubcompactionJobInfo& info) {
  RunningJob::OfThread().TellLevel(info.output_level);
}

void LevelListener::OnSubcompactionCompleted(const rocksdb::SubcompactionJobInfo&) {
  RunningJob::OfThread().ForgetLevel();
}

void LevelListener::OnCompactionCompleted(rocksdb::DB*, const rocksdb::CompactionJobInfo&) {
  RunningJob::OfThread().ForgetLevel();
}

LevelPartitioner::LevelPartitioner(int level) : level_(level) { RunningJob::OfThread().TellLevel(level_, this); }

LevelPartitioner::~LevelPartitioner() {
  RunningJob& job = RunningJob::OfThread();
  if (job.level_teller == this) job.ForgetLevel();
}

rocksdb::PartitionerResult LevelPartitioner::ShouldPartition(const rocksdb::PartitionerRequest&) {
  RunningJob::OfThread().TellLevel(level_, this);
  return rocksdb::kNotRequired;
}

}  // namespace isozone
