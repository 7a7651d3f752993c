// Recovery: the copies of the metadata that are on the device, the one that counts, and the state that it says.
//
// Every byte is checked before it is believed: batches by their CRCs and numbers (batch_stream.h), records by the
// decoder, and what the records say by MetadataState.
//
// Which copy counts: of the copies that are whole up to their end and have all that was acknowledged, it is the one
// with the most records; if none is known to have all, of all that are whole. Copies are written side by side, and a
// record is acknowledged when all copies that are being written have it. So a copy that is a little behind lacks
// nothing that was acknowledged. A batch says when there was no other copy. If a damaged copy has such records and no
// whole copy has them, that is corruption, since an older state must not be used in its place. A copy whose checkpoint
// has no end was never finished, and does not count.
//
// Which copy has all that was acknowledged: a whole one that has joined the others, of which no zone is read-only, and
// that was not finished before its zone was full. For a new copy says in a batch that it joins, and one that was given
// up or replaced is erased, or finished if the device refuses that (JournalCopies). If two copies are wanted, and two
// that have joined are equal, these have it as well. Otherwise, if a copy that cannot be read may have had more, what
// is left may be read, but nothing may be written (RecoveredMetadata::newest).
//
// A writer in another process may replace copies while they are read. Their first zones show that: what was read
// counts, damage included, only if the same copies are still there afterwards. Otherwise recovery starts over.

#include "store/metadata/recovery.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "store/metadata/metadata_codec.h"
#include "store/metadata/metadata_io.h"
#include "store/zone/allocator/zone_reserves.h"

namespace isozone {
namespace {

// If a writer replaces its metadata this often while it is read once, something else is wrong.
constexpr int kReadAttemptsMax = 32;

// Builds a state of what the reader gives.
class StateBuilder {
 public:
  explicit StateBuilder(const DeviceGeometry& geometry) : geometry_(geometry) {}

  Status Take(const MetadataReader& reader, const MetadataReader::Record& record) {
    if (record.kind != BatchKind::kJournal && reader.footer()) return Restore(reader);
    Result<std::vector<MetadataOp>> ops = DecodeRecord(record.body);
    if (!ops.ok()) return reader.Damage(ops.status().message());
    if (record.kind == BatchKind::kJournal) {
      const Status applied = state_->Apply(*ops);
      return applied.ok() ? applied : reader.Damage(applied.message());
    }
    if (ops->size() != 1) return reader.Damage("a record of the checkpoint is not one thing");
    if (auto* put = std::get_if<PutInode>(&ops->front())) {
      inodes_.push_back(std::move(put->inode));
    } else if (auto* set = std::get_if<SetZoneGroups>(&ops->front()); set != nullptr && !device_records_.groups) {
      device_records_.groups = std::move(set->groups);
    } else if (auto* heats = std::get_if<SetZoneHeats>(&ops->front());
               heats != nullptr && device_records_.heats.empty()) {
      device_records_.heats = std::move(heats->heats);
    } else if (auto* mount = std::get_if<BeginMount>(&ops->front());
               mount != nullptr && device_records_.mount_number == 0) {
      device_records_.mount_number = mount->number;
    } else {
      return reader.Damage("a record is neither an inode, nor the zone groups, the heats or the mount");
    }
    return {};
  }
  std::optional<MetadataState>& state() { return state_; }

 private:
  Status Restore(const MetadataReader& reader) {
    const CheckpointFooter& footer = *reader.footer();
    if (footer.inodes != inodes_.size()) {
      return reader.Damage(fmt::format("it holds {} inodes of {}", inodes_.size(), footer.inodes));
    }
    Result<MetadataState> state =
        MetadataState::Restore(geometry_, std::move(inodes_), footer.next_id, std::move(device_records_));
    if (!state.ok()) return state.status().WithContext("checkpoint corrupt; the files cannot be found");
    state_ = std::move(state).value();
    return {};
  }

  const DeviceGeometry& geometry_;
  std::vector<Inode> inodes_;
  DeviceRecords device_records_;
  std::optional<MetadataState> state_;
};

// Returns whether the copy was certainly not given up: that would have erased or finished it, unless it has a read-only
// zone.
bool IsInUse(ZonedDevice& device, const FoundCopy& copy) {
  for (size_t i = 0; i < copy.zones.size(); ++i) {
    const Result<ZoneDescriptor> zone = DescribeZone(device, copy.zones[i]);
    if (!zone.ok() || zone->state == ZoneState::kReadOnly) return false;
    if (i == copy.end.zone && copy.end.offset < zone->capacity && !IsWritable(zone->state)) return false;
  }
  return true;
}

// Reads one copy to its end, or to what is wrong with it. Its state goes into `builder`, which may be null.
FoundCopy ReadCopy(ZonedDevice& device, MetadataReader& reader, StateBuilder* builder) {
  FoundCopy copy;
  copy.superblock = reader.superblock();
  for (;;) {
    const auto record = reader.Next();
    copy.damage = record.status();
    if (!record.ok() || !*record) break;
    if (builder != nullptr) copy.damage = builder->Take(reader, **record);
    if (!copy.damage.ok()) break;
    if ((*record)->kind == BatchKind::kJournal) copy.sequence = (*record)->sequence;
    if (reader.footer() && (*record)->kind == BatchKind::kCheckpoint) copy.sequence = reader.footer()->sequence;
  }
  copy.zones = reader.zones();
  copy.complete = reader.footer().has_value();
  copy.end = reader.end();
  copy.joined = reader.joined();
  copy.has_all = copy.whole() && copy.joined && IsInUse(device, copy);
  copy.alone_sequence = copy.damage.ok() ? reader.alone_sequence() : reader.AloneBehind();
  return copy;
}

bool CountsMore(const FoundCopy& a, const FoundCopy& b) {
  return std::tuple(a.has_all, a.sequence, a.superblock.generation) >
         std::tuple(b.has_all, b.sequence, b.superblock.generation);
}

// Finds the copies, reads them, and chooses the one that counts.
class Survey {
 public:
  Survey(ZonedDevice& device, bool everywhere) : device_(device), everywhere_(everywhere) {}

  Status Run();
  // Returns whether as many whole copies as there should be were found where they should be, and nothing else.
  bool IsAsItShouldBe() const;
  Result<MetadataReading> Finish();

 private:
  Status ReadOne(const Superblock& superblock);
  Status ReadBest();
  Status NothingFound() const;
  Status CheckIsNewest() const;
  Status WhyNotNewest() const;
  void Describe(RecoveredMetadata& metadata) const;
  Status FindBehind(RecoveredMetadata& metadata);

  ZonedDevice& device_;
  const bool everywhere_;
  std::vector<FoundSuperblock> unreadable_;
  std::vector<FoundCopy> copies_;           // the whole ones first, and the one that counts before all others
  std::unique_ptr<MetadataReader> reader_;  // of copies_[0]; state_ is what it gave
  std::optional<MetadataState> state_;
};

Status Survey::Run() {
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<FoundSuperblock> found, FindSuperblocks(device_, everywhere_));
  std::vector<Superblock> superblocks;
  for (const FoundSuperblock& f : found) {
    if (f.superblock.ok()) {
      superblocks.push_back(*f.superblock);
    } else {
      unreadable_.push_back(f);
    }
  }
  // The newest copy is the most likely to count. It is then read only once.
  std::sort(superblocks.begin(), superblocks.end(),
            [](const Superblock& a, const Superblock& b) { return a.generation > b.generation; });
  for (const Superblock& superblock : superblocks) {
    if (superblock.uuid == superblocks.front().uuid) {
      ISOZONE_RETURN_IF_ERROR(ReadOne(superblock));
    } else {
      // Formatting begins with a higher generation than anything that it could not erase.
      Log().warn("zone {} holds metadata of a file system that was here before", superblock.zone.value());
    }
  }
  return ReadBest();
}

Status Survey::ReadOne(const Superblock& superblock) {
  auto reader = std::make_unique<MetadataReader>(device_, superblock);
  StateBuilder builder(device_.geometry());
  FoundCopy copy = ReadCopy(device_, *reader, state_ ? nullptr : &builder);
  if (copy.whole() && !state_) {
    reader_ = std::move(reader);
    state_ = std::move(builder.state());
  }
  copies_.push_back(std::move(copy));
  return {};
}

// Sorts the copies, and reads the one that counts, unless its state was read already.
Status Survey::ReadBest() {
  std::stable_sort(copies_.begin(), copies_.end(), [](const FoundCopy& a, const FoundCopy& b) {
    return a.whole() != b.whole() ? a.whole() : CountsMore(a, b);
  });
  while (!copies_.empty() && copies_.front().whole()) {
    FoundCopy& best = copies_.front();
    if (reader_->superblock().generation == best.superblock.generation) return {};
    auto reader = std::make_unique<MetadataReader>(device_, best.superblock);
    StateBuilder builder(device_.geometry());
    FoundCopy again = ReadCopy(device_, *reader, &builder);
    if (again.whole()) {
      reader_ = std::move(reader);
      state_ = std::move(builder.state());
      best = std::move(again);
      return {};
    }
    best.damage = again.damage;
    std::rotate(copies_.begin(), copies_.begin() + 1, copies_.end());
  }
  return {};
}

bool Survey::IsAsItShouldBe() const {
  if (!unreadable_.empty() || copies_.empty()) return false;
  if (copies_.size() != copies_.front().superblock.copies) return false;
  if (!std::all_of(copies_.begin(), copies_.end(), [](const FoundCopy& copy) { return copy.whole(); })) return false;
  // A copy that was replaced can be left only in a zone that could not be reset.
  std::vector<ZoneDescriptor> report(std::min(device_.geometry().zone_count, kHomeZonesMax));
  if (!device_.ReportZones(ZoneId(0), report).ok()) return false;
  return std::none_of(report.begin(), report.end(), [](const ZoneDescriptor& zone) {
    return zone.state == ZoneState::kReadOnly || zone.state == ZoneState::kOffline;
  });
}

// Says why no copy is whole.
Status Survey::NothingFound() const {
  const auto damaged =
      std::find_if(copies_.begin(), copies_.end(), [](const FoundCopy& copy) { return !copy.damage.ok(); });
  if (damaged != copies_.end()) return damaged->damage;
  for (const FoundSuperblock& found : unreadable_) {
    const Status& status = found.superblock.status();
    if (!status.Is(StatusCode::kCorruption)) return status;
    return status.WithContext(
        fmt::format("superblock corrupt in zone {}, so no file can be found", found.zone.value()));
  }
  ISOZONE_ASSIGN_OR_RETURN(const DeviceContent content, ProbeDevice(device_));
  if (content == DeviceContent::kZenFs) {
    return Status::NotSupported(
        fmt::format("{} is formatted by ZenFS, which Isozone does not read: run isozone mkfs --force to replace it",
                    device_.name()));
  }
  std::vector<ZoneDescriptor> report(std::min(device_.geometry().zone_count, kHomeZonesMax));
  ISOZONE_RETURN_IF_ERROR(device_.ReportZones(ZoneId(0), report));
  for (const ZoneDescriptor& zone : report) {
    if (zone.state != ZoneState::kOffline) continue;
    return Status::IoError(
        fmt::format("no metadata is found, and zone {}, which may hold it, is offline", zone.zone.value()));
  }
  if (content == DeviceContent::kEmpty) {
    return Status::NotFound(fmt::format("{} is not formatted: run isozone mkfs", device_.name()));
  }
  return Status::NotFound(
      fmt::format("{} holds data but no whole Isozone metadata: run isozone mkfs --force if nothing on it is needed",
                  device_.name()));
}

// Checks that a damaged copy has nothing acknowledged that the copy that counts lacks.
Status Survey::CheckIsNewest() const {
  const FoundCopy& best = copies_.front();
  for (const FoundCopy& copy : copies_) {
    if (copy.whole() || copy.alone_sequence <= best.sequence) continue;
    const Status& why = copy.damage;
    return Status::Corruption(
        fmt::format("{}; the other copy, in zone {}, is older: it ends with sequence {}, this one had {} at least",
                    why.message(), best.superblock.zone.value(), best.sequence, copy.alone_sequence));
  }
  return {};
}

// Says why something acknowledged may be missing in what counts, though no copy shows that.
Status Survey::WhyNotNewest() const {
  if (std::ranges::any_of(copies_, &FoundCopy::has_all)) return {};
  const FoundCopy& best = copies_.front();
  const auto equal = std::ranges::count_if(copies_, [&best](const FoundCopy& copy) {
    return copy.whole() && copy.joined && copy.sequence == best.sequence;
  });
  if (equal > 1 && equal >= static_cast<ptrdiff_t>(best.superblock.copies)) return {};
  const auto older = [&best](std::string_view other) {
    return Status::IoError(
        fmt::format("{}; the copy of the metadata in zone {} may be older", other, best.superblock.zone.value()));
  };
  for (const FoundCopy& copy : copies_) {
    if (!copy.damage.ok()) return older(copy.damage.message());
  }
  for (const FoundSuperblock& found : unreadable_) {
    const Status& status = found.superblock.status();
    return older(fmt::format("superblock unreadable in zone {}: {}", found.zone.value(), status.message()));
  }
  std::vector<ZoneDescriptor> report(device_.geometry().zone_count);
  ISOZONE_RETURN_IF_ERROR(device_.ReportZones(ZoneId(0), report));
  for (const ZoneDescriptor& zone : report) {
    if (zone.state != ZoneState::kOffline) continue;
    return older(fmt::format("zone {}, which may have held a copy of the metadata, is offline", zone.zone.value()));
  }
  return {};
}

void Survey::Describe(RecoveredMetadata& metadata) const {
  const FoundCopy& best = copies_.front();
  size_t kept = 0;
  for (const FoundCopy& copy : copies_) {
    MetadataCopy said{
        copy.superblock.zone, copy.superblock.generation, copy.zones, MetadataCopy::State::kWhole, copy.sequence, {}};
    if (!copy.damage.ok()) {
      said.state = MetadataCopy::State::kDamaged;
      said.text = copy.damage.message();
    } else if (!copy.complete) {
      said.state = MetadataCopy::State::kUnfinished;
      said.text = fmt::format("the copy in zone {} was not finished, as after a power cut", said.head.value());
    } else if (kept == best.superblock.copies) {
      said.state = MetadataCopy::State::kReplaced;
      said.text = fmt::format("the copy in zone {} was replaced by a newer one", said.head.value());
    } else if (++kept; copy.sequence < best.sequence) {
      said.state = MetadataCopy::State::kBehind;
      said.text = fmt::format("the copy in zone {} ends with sequence {} instead of {}", said.head.value(),
                              copy.sequence, best.sequence);
    }
    metadata.copies.push_back(std::move(said));
  }
  for (const FoundSuperblock& found : unreadable_) {
    metadata.copies.push_back(
        {found.zone,
         0,
         {found.zone},
         MetadataCopy::State::kDamaged,
         0,
         fmt::format("superblock corrupt in zone {}: {}", found.zone.value(), found.superblock.status().message())});
  }
}

// Finds the zones that a copy names which is behind. They must stay as they are until that copy has caught up.
Status Survey::FindBehind(RecoveredMetadata& metadata) {
  for (const FoundCopy& copy : metadata.position->copies) {
    if (copy.sequence == metadata.sequence) continue;
    MetadataReader reader(device_, copy.superblock);
    StateBuilder builder(device_.geometry());
    const FoundCopy again = ReadCopy(device_, reader, &builder);
    if (!again.whole()) return again.damage;
    for (const auto& [zone, end] : NamedZones(device_.geometry(), *builder.state(), {})) {
      metadata.behind_zones.insert(zone);
    }
  }
  return {};
}

Result<MetadataReading> Survey::Finish() {
  if (copies_.empty() || !copies_.front().whole()) return NothingFound();
  ISOZONE_RETURN_IF_ERROR(CheckIsNewest());
  const FoundCopy& best = copies_.front();
  RecoveredMetadata metadata{.state = std::move(*state_),
                             .label = best.superblock.label,
                             .uuid = FormatUuid(best.superblock.uuid),
                             .sequence = best.sequence,
                             .checkpoint_inodes = reader_->footer()->inodes,
                             .journal_records = best.sequence - reader_->footer()->sequence,
                             .torn_tail = best.end.torn,
                             .zones = {},
                             .behind_zones = {},
                             .copies_wanted = best.superblock.copies,
                             .copies = {},
                             .newest = WhyNotNewest(),
                             .position = nullptr};
  auto position = std::make_shared<RecoveredMetadata::Position>();
  for (const FoundCopy& copy : copies_) {
    position->generation = std::max(position->generation, copy.superblock.generation);
    if (!copy.whole() || position->copies.size() == best.superblock.copies) continue;
    position->copies.push_back(copy);
    metadata.zones.insert(metadata.zones.end(), copy.zones.begin(), copy.zones.end());
  }
  metadata.position = std::move(position);
  Describe(metadata);
  ISOZONE_RETURN_IF_ERROR(FindBehind(metadata));
  return MetadataReading{std::move(metadata), std::move(reader_)};
}

// The first zones of the copies that are there now, and their generations, which are 0 where a superblock is not
// readable.
using Signature = std::vector<std::pair<ZoneId, uint64_t>>;
Result<Signature> SignatureOf(ZonedDevice& device, bool everywhere) {
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<FoundSuperblock> found, FindSuperblocks(device, everywhere));
  Signature signature;
  for (const FoundSuperblock& f : found) {
    signature.emplace_back(f.zone, f.superblock.ok() ? f.superblock->generation : 0);
  }
  return signature;
}

}  // namespace

uint32_t RecoveredMetadata::whole_copies() const {
  return static_cast<uint32_t>(std::count_if(copies.begin(), copies.end(), [](const MetadataCopy& copy) {
    return copy.state == MetadataCopy::State::kWhole;
  }));
}

bool RecoveredMetadata::has_older_version() const {
  return std::ranges::any_of(position->copies,
                             [](const FoundCopy& copy) { return copy.superblock.version < kFormatVersion; });
}

std::map<ZoneId, uint64_t> NamedZones(const DeviceGeometry& geometry, const MetadataState& state,
                                      std::span<const ZoneId> metadata_zones) {
  std::vector<std::optional<uint64_t>> ends(geometry.zone_count);
  const auto reaches = [&ends](ZoneId zone, uint64_t end) {
    std::optional<uint64_t>& known = ends[zone.value()];
    known = std::max(known.value_or(0), end);
  };
  for (const ZoneId zone : metadata_zones) reaches(zone, UINT64_MAX);
  for (const Inode* inode = state.Next(InodeId()); inode != nullptr; inode = state.Next(inode->id)) {
    inode->extents.VisitRuns([&](const ExtentRun& column) {
      VisitByZone(geometry, column, [&](ZoneId zone, const ExtentRun& run) {
        reaches(zone, geometry.OffsetInZone(run.device_offset) + run.count * run.length);
      });
    });
    for (const LogRegion& region : inode->regions) reaches(region.zone, region.open() ? region.begin : region.end);
  }
  std::map<ZoneId, uint64_t> zones;
  for (uint32_t i = 0; i < ends.size(); ++i) {
    if (ends[i]) zones.emplace_hint(zones.end(), ZoneId(i), *ends[i]);
  }
  return zones;
}

void EraseReplaced(ZonedDevice& device, const RecoveredMetadata& recovered,
                   const std::function<bool(ZoneId)>& is_named) {
  for (const MetadataCopy& copy : recovered.copies) {
    if (copy.state == MetadataCopy::State::kWhole || copy.state == MetadataCopy::State::kBehind) continue;
    if (copy.generation == 0 || is_named(copy.head)) continue;
    const Status erased = ManageZone(device, DeviceOp::kReset, copy.head);
    if (!erased.ok()) Log().warn("a copy of the metadata could not be erased: {}", erased.message());
  }
}

Result<MetadataReading> ReadMetadata(ZonedDevice& device) {
  std::optional<Signature> failed_at;
  for (int attempt = 0; attempt < kReadAttemptsMax; ++attempt) {
    bool everywhere = false;
    ISOZONE_ASSIGN_OR_RETURN(const Signature before, SignatureOf(device, everywhere));
    Survey near(device, everywhere);
    ISOZONE_RETURN_IF_ERROR(near.Run());
    std::optional<Survey> far;
    if (!near.IsAsItShouldBe()) {
      everywhere = true;
      far.emplace(device, everywhere);
      ISOZONE_RETURN_IF_ERROR(far->Run());
    }
    Result<MetadataReading> reading = far ? far->Finish() : near.Finish();
    ISOZONE_ASSIGN_OR_RETURN(const Signature after, SignatureOf(device, /*everywhere=*/false));
    if (before != after) continue;
    // Copies elsewhere may just have been replaced. If the same copies are there after two failures in a row, they were
    // not.
    if (reading.ok() || failed_at == after) return reading;
    failed_at = after;
  }
  return Status::Busy(fmt::format("the metadata of {} changes faster than it can be read: try again", device.name()));
}

Result<RecoveredMetadata> RecoverMetadata(ZonedDevice& device) {
  ISOZONE_ASSIGN_OR_RETURN(MetadataReading reading, ReadMetadata(device));
  return std::move(reading.metadata);
}

}  // namespace isozone
