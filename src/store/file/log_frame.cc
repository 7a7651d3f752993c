#include "store/file/log_frame.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/aligned_buffer.h"
#include "base/crc32c.h"
#include "store/kept/kept_memory.h"

namespace isozone {
namespace {

constexpr uint64_t kScanWindow = 1 * kMiB;

uint32_t HeaderCrc(const LogFrameHeader& header, uint32_t seed) {
  uint32_t crc = Crc32c(&header.magic, sizeof(header.magic), seed);
  crc = Crc32c(&header.inode, offsetof(LogFrameHeader, header_crc) - offsetof(LogFrameHeader, inode), crc);
  return Crc32c(&header.region_begin, sizeof(header.region_begin), crc);
}

// Reads a zone front to back through one window.
class WindowReader {
 public:
  WindowReader(IoEngine& engine, ZoneId zone, uint64_t limit)
      : engine_(engine), zone_(zone), limit_(limit), buffer_(kScanWindow) {}

  // The bytes [offset, offset + length) of the zone, length <= kScanWindow; offset block-aligned and never decreasing.
  Result<std::span<const std::byte>> Get(uint64_t offset, uint64_t length) {
    if (offset < start_ || offset + length > start_ + filled_) {
      const uint64_t needed = RoundUp(length, engine_.device().geometry().block_size);
      // If a block further on cannot be read, what lies before it is read without it.
      if (!Fill(offset, kScanWindow).ok()) ISOZONE_RETURN_IF_ERROR(Fill(offset, needed));
    }
    return std::span<const std::byte>(buffer_.span().subspan(offset - start_, length));
  }

 private:
  // Fills the window with at most `length` bytes.
  Status Fill(uint64_t offset, uint64_t length) {
    const DeviceGeometry& geometry = engine_.device().geometry();
    IoRequest request;
    request.io_class = IoClass::kOther;
    request.device.op = DeviceOp::kRead;
    request.device.offset = DeviceOffset(geometry.ZoneStart(zone_).value() + offset);
    request.device.data = buffer_.data();
    request.device.length = std::min<uint64_t>(length, limit_ - offset);
    if (geometry.max_transfer != 0) request.device.length = std::min(request.device.length, geometry.max_transfer);
    engine_.Run(request);
    ISOZONE_RETURN_IF_ERROR(ToStatus(geometry, request.device));
    start_ = offset;
    filled_ = request.device.length;
    return Status::Ok();
  }

  IoEngine& engine_;
  ZoneId zone_;
  uint64_t limit_;
  AlignedBuffer buffer_;
  uint64_t start_ = 0;
  uint64_t filled_ = 0;
};

// One scan, which goes from frame to frame until something stops it.
class LogScanner {
 public:
  LogScanner(IoEngine& engine, uint32_t seed, InodeId inode, const LogRegion& region, uint64_t write_pointer)
      : geometry_(engine.device().geometry()),
        seed_(seed),
        inode_(inode),
        region_(region),
        write_pointer_(write_pointer),
        limit_(region.open() ? write_pointer : region.end),
        window_(engine, region.zone, limit_) {
    scan_.end = region.begin;
  }

  LogScan Run() {
    if (limit_ > write_pointer_) {
      scan_.damage = Damage("the write pointer is short of the end of the region");
      return std::move(scan_);
    }
    bool more = true;
    const bool to_the_end = region_.open() || region_.damaged;
    while (more && scan_.end < limit_ && (to_the_end || scan_.payload < region_.payload)) {
      const Result<bool> next = NextFrame();
      if (!next.ok()) scan_.damage = next.status();
      more = next.ok() && *next;
    }
    if (!region_.open() && scan_.damage.ok()) CutToPayload();
    return std::move(scan_);
  }

 private:
  // Takes the frame at scan_.end. Returns false if the log ends before it.
  Result<bool> NextFrame() {
    ISOZONE_ASSIGN_OR_RETURN(const auto block, window_.Get(scan_.end, geometry_.block_size));
    LogFrameHeader header;
    std::memcpy(&header, block.data(), sizeof(header));
    if (header.magic != LogFrameHeader::kMagic || header.header_crc != HeaderCrc(header, seed_)) {
      return TornIfLost(scan_.end, "no valid frame header");
    }
    if (header.inode != inode_.value() || header.region_begin != region_.begin || header.file_offset < FileEnd() ||
        header.length == 0) {
      if (!region_.open()) return Damage("a frame that does not continue the log");
      return false;
    }
    const uint64_t next = scan_.end + RoundUp(sizeof(header) + header.length, geometry_.block_size);
    if (next > limit_) {
      if (!region_.open()) return Damage("a frame beyond the end of the region");
      scan_.torn = true;
      return false;
    }
    ISOZONE_ASSIGN_OR_RETURN(const uint32_t crc, PayloadCrc(header));
    if (crc != header.crc) return TornIfLost(next - geometry_.block_size, "a frame with a wrong checksum");
    const uint64_t payload_at = geometry_.ZoneStart(region_.zone).value() + scan_.end + sizeof(header);
    scan_.extents.push_back({header.file_offset, DeviceOffset(payload_at), header.length});
    scan_.payload += header.length;
    scan_.end = next;
    return true;
  }

  // Returns where in the file the last frame ends.
  uint64_t FileEnd() const {
    return scan_.extents.empty() ? 0 : scan_.extents.back().file_offset + scan_.extents.back().length;
  }

  Result<uint32_t> PayloadCrc(const LogFrameHeader& header) {
    uint32_t crc = LogPayloadSeed(seed_, inode_, header.file_offset);
    const uint64_t end = sizeof(header) + header.length;
    for (uint64_t at = 0; at < end; at += geometry_.block_size) {
      ISOZONE_ASSIGN_OR_RETURN(const auto bytes,
                               window_.Get(scan_.end + at, std::min<uint64_t>(end - at, geometry_.block_size)));
      crc = Crc32c(at == 0 ? bytes.subspan(sizeof(header)) : bytes, crc);
    }
    return crc;
  }

  // Invalid bytes were lost in a power cut if the blocks from `begin` on, which is the last block of the frame, are
  // zeros. They must be zeros up to the end of a full zone. On devices where a write with Force Unit Access may survive
  // what lies before it, they may also end at something that is not of this region.
  Result<bool> TornIfLost(uint64_t begin, std::string_view what) {
    if (!region_.open() || (geometry_.fua_covers_zone && write_pointer_ < geometry_.zone_capacity)) return Damage(what);
    for (uint64_t at = begin; at < limit_; at += geometry_.block_size) {
      ISOZONE_ASSIGN_OR_RETURN(const auto bytes, window_.Get(at, geometry_.block_size));
      if (std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; })) continue;
      if (at == begin || geometry_.fua_covers_zone || IsOfThisRegion(bytes)) return Damage(what);
      break;
    }
    scan_.torn = true;
    return false;
  }

  bool IsOfThisRegion(std::span<const std::byte> block) const {
    LogFrameHeader header;
    std::memcpy(&header, block.data(), sizeof(header));
    return header.magic == LogFrameHeader::kMagic && header.header_crc == HeaderCrc(header, seed_) &&
           header.inode == inode_.value() && header.region_begin == region_.begin;
  }

  Status Damage(std::string_view what) const {
    return Status::Corruption(fmt::format("{} in zone {} at {}", what, region_.zone.value(), scan_.end));
  }

  // A log that was cut (truncated) keeps its frames, and ends inside one.
  void CutToPayload() {
    if (scan_.payload < region_.payload) scan_.damage = Damage("less payload than the metadata says");
    if (scan_.payload <= region_.payload) return;
    scan_.extents.back().length -= scan_.payload - region_.payload;
    scan_.payload = region_.payload;
  }

  const DeviceGeometry& geometry_;
  const uint32_t seed_;
  const InodeId inode_;
  const LogRegion region_;
  const uint64_t write_pointer_;
  const uint64_t limit_;  // bytes in the zone
  WindowReader window_;
  LogScan scan_;
};

}  // namespace

uint32_t LogFrameSeed(std::string_view uuid) { return Crc32c(uuid.data(), uuid.size()); }

uint32_t LogPayloadSeed(uint32_t uuid_seed, InodeId inode, uint64_t file_offset) {
  return KeptSeed(uuid_seed, inode.value(), file_offset);
}

void SealLogFrame(std::span<std::byte> frame, uint32_t uuid_seed, InodeId inode, uint64_t file_offset,
                  uint64_t region_begin, uint32_t payload_crc) {
  LogFrameHeader header;
  header.inode = inode.value();
  header.file_offset = file_offset;
  header.length = static_cast<uint32_t>(frame.size() - sizeof(header));
  header.region_begin = region_begin;
  header.header_crc = HeaderCrc(header, uuid_seed);
  header.crc = payload_crc;
  std::memcpy(frame.data(), &header, sizeof(header));
}

LogScan ScanLogRegion(IoEngine& engine, uint32_t uuid_seed, InodeId inode, const LogRegion& region,
                      const ZoneDescriptor& zone) {
  if (zone.state == ZoneState::kOffline) {
    LogScan scan;
    scan.end = region.begin;
    scan.damage = Status::IoError(fmt::format("log inode {}: zone {} is offline", inode.value(), zone.zone.value()));
    return scan;
  }
  return LogScanner(engine, uuid_seed, inode, region, zone.write_pointer).Run();
}

}  // namespace isozone
