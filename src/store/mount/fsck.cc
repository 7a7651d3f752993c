#include "store/mount/fsck.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/aligned_buffer.h"
#include "store/file/open_log.h"
#include "store/kept/kept_reader.h"
#include "store/metadata/recovery.h"
#include "store/zone/allocator/zone_reserves.h"

namespace isozone {
namespace {

// A run of bytes that a file or the metadata claims.
struct Claim {
  uint64_t begin = 0;  // device offset
  uint64_t end = 0;
  std::string owner;
};

class Checker {
 public:
  Checker(ZonedDevice& device, const FsckOptions& options)
      : device_(device), geometry_(device.geometry()), options_(options), engine_(device) {}

  Result<FsckReport> Run() {
    zones_.resize(geometry_.zone_count);
    ISOZONE_RETURN_IF_ERROR(device_.ReportZones(ZoneId(0), zones_));
    auto recovered = RecoverMetadata(device_);
    if (!recovered.ok()) {
      if (!recovered.status().Is(StatusCode::kCorruption)) return recovered.status();
      Error(std::string(recovered.status().message()));
      return std::move(report_);
    }
    if (recovered->torn_tail) Note("the journal ends in a torn batch, as after a power cut");
    CheckCopies(*recovered);
    report_.checkpoint_inodes = recovered->checkpoint_inodes;
    report_.journal_records = recovered->journal_records;
    seed_ = LogFrameSeed(recovered->uuid);

    const Status invariants = recovered->state.CheckInvariants();
    if (!invariants.ok()) Error(std::string(invariants.message()));
    for (const ZoneId zone : recovered->zones) {
      const uint64_t start = geometry_.ZoneStart(zone).value();
      claims_.push_back({start, start + geometry_.zone_size, "metadata zone"});
    }
    CountWork(recovered->state);
    for (const Inode* inode = recovered->state.Next(InodeId()); inode != nullptr;
         inode = recovered->state.Next(inode->id)) {
      CheckInode(*inode, recovered->state);
    }
    CheckHomeZones(*recovered);
    CheckClaims();
    LookAtKept(*recovered);
    return std::move(report_);
  }

 private:
  void Error(std::string text) { report_.findings.push_back({FsckSeverity::kError, std::move(text)}); }
  // Of the copies of the metadata, while one of them is whole.
  void ErrorOfCopies(std::string text) { report_.findings.push_back({FsckSeverity::kError, std::move(text), true}); }
  void Note(std::string text) { report_.findings.push_back({FsckSeverity::kNote, std::move(text)}); }

  // What a process that was killed has left in memory.
  void LookAtKept(const RecoveredMetadata& recovered) {
    const std::string& directory = options_.kept_memory_directory;
    const uint64_t mount_number = recovered.state.device().mount_number;
    RemoveUselessKeptMemory(device_.name(), directory, recovered.uuid, mount_number);
    const auto kept = KeptReader::Open(device_.name(), directory, recovered.uuid, mount_number);
    if (!kept.ok() && !kept.status().Is(StatusCode::kNotFound)) {
      Note(fmt::format("what a killed process may have left in memory is not known: {}", kept.status().message()));
    }
    if (!kept.ok()) return;
    const auto pieces = (*kept)->Pieces(seed_);
    const auto records = (*kept)->RecordsAfter(recovered.sequence);
    if (!pieces.ok() || !records.ok() || (pieces->empty() && records->empty())) return;
    uint64_t bytes = 0;
    for (const KeptPiece& piece : *pieces) bytes += piece.bytes.size();
    Note(fmt::format(
        "a process was killed that has left {} bytes of files and {} changes of the metadata in memory; the "
        "next mount for writing takes them over",
        bytes, records->size()));
  }

  void CheckCopies(const RecoveredMetadata& recovered) {
    report_.copies_wanted = recovered.copies_wanted;
    if (!recovered.newest.ok()) ErrorOfCopies(std::string(recovered.newest.message()));
    const auto kept = static_cast<uint32_t>(std::ranges::count_if(recovered.copies, [](const MetadataCopy& copy) {
      return copy.state == MetadataCopy::State::kWhole || copy.state == MetadataCopy::State::kBehind;
    }));
    for (const MetadataCopy& copy : recovered.copies) {
      switch (copy.state) {
        case MetadataCopy::State::kWhole:
          report_.copies.push_back(copy.zones);
          break;
        case MetadataCopy::State::kBehind:
        case MetadataCopy::State::kUnfinished:
        case MetadataCopy::State::kReplaced:
          Note(copy.text);
          break;
        case MetadataCopy::State::kDamaged:
          // Other copies have taken its place, and its zones have not been reset yet.
          if (kept >= recovered.copies_wanted) Note(copy.text + "; it was replaced, and does not count any more");
          if (kept < recovered.copies_wanted) ErrorOfCopies(copy.text);
          break;
      }
    }
    if (kept < recovered.copies_wanted && recovered.sequence == 0) {
      Note("formatting was cut short before the other copies of the metadata; mounting for writing writes them");
    } else if (kept < recovered.copies_wanted) {
      ErrorOfCopies(
          fmt::format("{} of {} copies of the metadata are left: mounting for writing, or isozone fsck --repair, "
                      "writes the others anew",
                      kept, recovered.copies_wanted));
    }
  }

  void CountWork(const MetadataState& state) {
    for (const Inode* inode = state.Next(InodeId()); inode != nullptr; inode = state.Next(inode->id)) {
      if (options_.read_data) work_total_ += inode->extents.StoredBytes();
      for (const LogRegion& r : inode->regions) work_total_ += LimitOf(r) - std::min(LimitOf(r), r.begin);
    }
  }

  uint64_t WritePointer(ZoneId zone) const { return zones_[zone.value()].write_pointer; }
  uint64_t LimitOf(const LogRegion& region) const { return region.open() ? WritePointer(region.zone) : region.end; }

  void Advance(uint64_t bytes) {
    work_done_ += bytes;
    if (options_.progress) options_.progress(work_done_, work_total_);
  }

  static std::string NameOf(InodeId inode, const MetadataState& state) {
    const auto paths = state.PathsOf(inode);
    return paths.empty() ? fmt::format("inode {}", inode.value()) : paths.front();
  }

  void CheckInode(const Inode& inode, const MetadataState& state) {
    if (inode.is_directory) {
      ++report_.directories;
      return;
    }
    ++report_.files;
    const std::string name = NameOf(inode.id, state);
    report_.extents += inode.extents.size();
    inode.extents.VisitRuns([&](const ExtentRun& column) {
      VisitByZone(geometry_, column, [&](ZoneId zone, const ExtentRun& run) { CheckRun(zone, run, name); });
    });
    report_.file_bytes += inode.kind == FileKind::kLog ? CheckLog(inode, name) : inode.size;
  }

  // Checks extents of a file that lie behind one another in a zone.
  void CheckRun(ZoneId zone, const ExtentRun& run, const std::string& name) {
    const uint64_t begin = run.device_offset.value();
    claims_.push_back({begin, begin + run.count * run.length, name});
    const uint64_t there = WrittenOf(zone, run);
    if (there < run.count) NoteLost(zone, run, there, name);
    if (!options_.read_data) return;
    for (uint64_t i = 0; i < there; ++i) ReadExtent(run.extent(i), name);
  }

  // Returns how many extents of the run, from its first one on, can be read.
  uint64_t WrittenOf(ZoneId zone, const ExtentRun& run) const {
    if (zones_[zone.value()].state == ZoneState::kOffline) return 0;
    const uint64_t begin = geometry_.OffsetInZone(run.device_offset);
    const uint64_t written = WritePointer(zone);
    return written <= begin ? 0 : std::min(run.count, (written - begin) / run.length);
  }

  // Makes one finding of all of them, since a stripe can have millions.
  void NoteLost(ZoneId zone, const ExtentRun& run, uint64_t from, const std::string& name) {
    const FileExtent first = run.extent(from);
    const FileExtent last = run.extent(run.count - 1);
    const uint64_t end = last.file_offset + last.length;
    const std::string why = zones_[zone.value()].state == ZoneState::kOffline
                                ? fmt::format("zone {} is offline", zone.value())
                                : fmt::format("zone {} is written only up to {}", zone.value(), WritePointer(zone));
    const uint64_t lost = run.count - from;
    const std::string what =
        lost == 1 || run.file_stride == run.length
            ? fmt::format("bytes {}..{}", first.file_offset, end)
            : fmt::format("{} pieces of {} bytes between {} and {}", lost, run.length, first.file_offset, end);
    Error(fmt::format("{}: {} are lost: {}", name, what, why));
  }

  void ReadExtent(const FileExtent& extent, const std::string& name) {
    const uint64_t window = geometry_.max_transfer == 0 ? kMiB : std::min<uint64_t>(kMiB, geometry_.max_transfer);
    if (buffer_.size() == 0) buffer_ = AlignedBuffer(window);
    const uint64_t end = RoundUp(extent.device_offset.value() + extent.length, geometry_.block_size);
    for (uint64_t at = RoundDown(extent.device_offset.value(), geometry_.block_size); at < end;) {
      IoRequest request;
      request.device.op = DeviceOp::kRead;
      request.device.offset = DeviceOffset(at);
      request.device.data = buffer_.data();
      request.device.length = std::min(window, end - at);
      engine_.Run(request);
      const Status status = ToStatus(geometry_, request.device);
      if (!status.ok()) Error(fmt::format("{}: {}", name, status.message()));
      at += request.device.length;
      Advance(request.device.length);
    }
  }

  // Returns the bytes of the log.
  uint64_t CheckLog(const Inode& inode, const std::string& name) {
    std::vector<LogScan> scans;
    for (const LogRegion& region : inode.regions) scans.push_back(CheckRegion(inode, region, name));
    const LogContents log = JoinRegions(inode, std::move(scans));
    if (!log.damage.ok()) Error(fmt::format("{}: {}", name, log.damage.message()));
    for (const LogScan& scan : log.scans) {
      const bool told = log.damage.message().find(scan.damage.message()) != std::string_view::npos;
      if (!scan.damage.ok() && !told) Error(fmt::format("{}: {}", name, scan.damage.message()));
    }
    return inode.has_open_region() ? log.size : inode.size;
  }

  LogScan CheckRegion(const Inode& inode, const LogRegion& region, const std::string& name) {
    ++report_.extents;
    const uint64_t start = geometry_.ZoneStart(region.zone).value();
    const uint64_t limit = LimitOf(region);
    LogScan scan = ScanLogRegion(engine_, seed_, inode.id, region, zones_[region.zone.value()]);
    // Another log may have gone on behind an open region.
    claims_.push_back({start + region.begin, start + (region.open() ? scan.end : region.end), name});
    if (scan.torn) Note(fmt::format("{} ends in a torn frame, as after a power cut", name));
    Advance(limit - std::min(limit, region.begin));
    return scan;
  }

  // Makes one finding for each file and zone.
  void CheckHomeZones(const RecoveredMetadata& recovered) {
    for (ZoneId zone(0); zone.value() < HomeZones(recovered.copies_wanted); ++zone) {
      for (const auto& [inode, bytes] : recovered.state.BytesIn(zone, WritePointer(zone))) {
        Error(fmt::format("{}: lies in zone {}, which is reserved for metadata", NameOf(inode, recovered.state),
                          zone.value()));
      }
    }
  }

  void CheckClaims() {
    std::sort(claims_.begin(), claims_.end(), [](const Claim& a, const Claim& b) { return a.begin < b.begin; });
    for (size_t i = 1; i < claims_.size(); ++i) {
      const Claim& before = claims_[i - 1];
      const Claim& claim = claims_[i];
      if (claim.begin >= before.end) continue;
      const ZoneId zone = geometry_.ZoneOf(DeviceOffset(claim.begin));
      Error(fmt::format("zone {} at {}: claimed by {} and by {}", zone.value(),
                        geometry_.OffsetInZone(DeviceOffset(claim.begin)), before.owner, claim.owner));
    }
  }

  ZonedDevice& device_;
  const DeviceGeometry& geometry_;
  const FsckOptions& options_;
  IoEngine engine_;
  std::vector<ZoneDescriptor> zones_;
  std::vector<Claim> claims_;
  FsckReport report_;
  AlignedBuffer buffer_;
  uint32_t seed_ = 0;
  uint64_t work_done_ = 0;
  uint64_t work_total_ = 0;
};

}  // namespace

bool FsckReport::clean() const {
  return std::none_of(findings.begin(), findings.end(),
                      [](const FsckFinding& f) { return f.severity == FsckSeverity::kError; });
}

Result<FsckReport> Fsck(ZonedDevice& device, const FsckOptions& options) { return Checker(device, options).Run(); }

}  // namespace isozone
