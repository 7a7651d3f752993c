#include "store/metadata/journal_copies.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/latch.h"
#include "base/log.h"
#include "store/metadata/metadata_codec.h"

namespace isozone {

Status JournalCopies::Resume(ZonedDevice& device, std::span<const FoundCopy> found) {
  durable_sequence = UINT64_MAX;
  for (const FoundCopy& copy : found) {
    const bool up_to_date = copy.sequence == last_sequence;
    ISOZONE_ASSIGN_OR_RETURN(Log log, MetadataLog::Resume(device, pool, copy, up_to_date));
    durable_sequence = std::min(durable_sequence, log->durable_sequence());
    all.push_back(std::move(log));
  }
  announced = all.size() == wanted;
  return {};
}

uint64_t JournalCopies::Append(std::span<const MetadataOp> ops) {
  ++stats.records;
  // After an error has latched, nothing is written any more.
  if (latched.ok()) {
    record.clear();
    EncodeRecord(ops, record);
    journalled += record.size();
    for (const Log& copy : all) copy->Append(record);
    if (rolling != nullptr) rolling->Append(record);
    if (kept != nullptr) kept->KeepRecord(last_sequence + 1, record);
  }
  return ++last_sequence;
}

bool JournalCopies::CanCommit() const {
  return std::any_of(all.begin(), all.end(), [this](const Log& copy) ISOZONE_REQUIRES(mu) { return HasWork(*copy); });
}

Status JournalCopies::Commit() {
  committing = true;
  ++stats.commits;
  // When a copy fails, the copies that are left say in one more batch that it is missing, before anything that only
  // they have is called durable.
  for (bool again = true; again && latched.ok();) {
    std::vector<MetadataLog*> writing;
    for (const Log& copy : all) {
      if (HasWork(*copy)) writing.push_back(copy.get());
    }
    if (writing.empty()) break;
    again = WriteBatches(writing);
    announced = !again;
  }
  EndLead();
  return latched;
}

bool JournalCopies::WriteBatches(std::span<MetadataLog* const> writing) {
  for (MetadataLog* copy : writing) copy->Build(static_cast<uint32_t>(all.size()));
  std::vector<Status> results(writing.size());
  {
    const MutexUnlock unlock(mu);
    isozone::Latch written;
    for (size_t i = 0; i < writing.size(); ++i) results[i] = writing[i]->Start(written);
    written.Wait();
  }
  size_t failed = 0;
  for (size_t i = 0; i < writing.size(); ++i) {
    if (results[i].ok()) results[i] = writing[i]->End();
    if (!results[i].ok()) ++failed;
  }
  const auto out_of_room = std::ranges::find_if(writing, &MetadataLog::out_of_room);
  if (failed == all.size() || out_of_room != writing.end()) {
    // The zones stay as they are, since everything that is durable is in them.
    const auto cause =
        out_of_room == writing.end() ? results.begin() : results.begin() + (out_of_room - writing.begin());
    (void)Latch(*cause);
    return true;
  }
  for (size_t i = 0; i < writing.size(); ++i) {
    if (!results[i].ok()) GiveUp(writing[i], results[i]);
  }
  return failed > 0;
}

void JournalCopies::Lead() {
  while (committing) changed.Wait(mu);
  committing = true;
}

void JournalCopies::EndLead() {
  NoteDurable();
  committing = false;
  changed.SignalAll();
}

void JournalCopies::NoteDurable() {
  if (!latched.ok() || !announced) return;
  uint64_t durable = last_sequence;
  for (const Log& copy : all) durable = std::min(durable, copy->durable_sequence());
  durable_sequence = std::max(durable_sequence, durable);
  if (kept != nullptr) kept->ForgetRecords(durable_sequence);
}

void JournalCopies::Replace(uint64_t generation, Log log) {
  const auto it =
      std::find_if(all.begin(), all.end(), [generation](const Log& copy) { return copy->generation() == generation; });
  if (it == all.end()) {
    isozone::Log().info("a copy of the metadata was written anew, to zone {}", log->zones().front().value());
    all.push_back(std::move(log));
    return;
  }
  std::swap(*it, log);
  Discard(std::move(log));
}

void JournalCopies::GiveUp(MetadataLog* copy, const Status& why) {
  isozone::Log().error("a copy of the metadata is given up, and written anew elsewhere: {}", why.message());
  const auto it = std::find_if(all.begin(), all.end(), [copy](const Log& log) { return log.get() == copy; });
  Log log = std::move(*it);
  all.erase(it);
  Discard(std::move(log));
}

void JournalCopies::Discard(Log log) {
  stats.bytes += log->bytes_written();
  {
    const MutexUnlock unlock(mu);
    log->Erase();
  }
  Release(std::move(log));
}

void JournalCopies::Release(Log log) {
  const std::vector<ZoneId> zones = log->zones();
  const MutexUnlock unlock(mu);
  log.reset();
  for (const ZoneId zone : zones) pool.ReleaseMetadata(zone);
}

Status JournalCopies::Latch(const Status& cause) {
  if (latched.ok()) {
    const StatusCode code = cause.Is(StatusCode::kNoSpace) ? StatusCode::kNoSpace : StatusCode::kReadOnly;
    latched = Status(code, fmt::format("the file system is read-only since its metadata could not be written: {}; "
                                       "mount it again to recover",
                                       cause.message()));
    isozone::Log().error("{}", latched.message());
  }
  changed.SignalAll();
  work.Signal();
  return latched;
}

MetadataLog* JournalCopies::Find(uint64_t generation) const {
  for (const Log& copy : all) {
    if (copy->generation() == generation) return copy.get();
  }
  return nullptr;
}

std::vector<ZoneId> JournalCopies::ZonesBut(uint64_t generation) const {
  std::vector<ZoneId> zones;
  for (const Log& copy : all) {
    if (copy->generation() != generation) zones.insert(zones.end(), copy->zones().begin(), copy->zones().end());
  }
  return zones;
}

}  // namespace isozone
