#include "fs/log_frame.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/aligned_buffer.h"
#include "base/crc32c.h"

namespace isozone {
namespace {

constexpr uint64_t kScanWindow = 1 * kMiB;

uint32_t HeaderCrc(const LogFrameHeader& header, uint32_t seed) {
  uint32_t crc = Crc32c(&header.magic, sizeof(header.magic), seed);
  return Crc32c(&header.inode, offsetof(LogFrameHeader, header_crc) - offsetof(LogFrameHeader, inode), crc);
}

// Reads a zone front to back through one window.
class WindowReader {
 public:
  WindowReader(IoEngine& engine, ZoneId zone, uint64_t limit)
      : engine_(engine), zone_(zone), limit_(limit), buffer_(kScanWindow) {}

  // The bytes [offset, offset + length) of the zone, length <= kScanWindow; offset block-aligned and never decreasing.
  Result<std::span<const std::byte>> Get(uint64_t offset, uint64_t length) {
    if (offset < start_ || offset + length > start_ + filled_) ISOZONE_RETURN_IF_ERROR(Fill(offset));
    return std::span<const std::byte>(buffer_.span().subspan(offset - start_, length));
  }

 private:
  Status Fill(uint64_t offset) {
    const DeviceGeometry& geometry = engine_.device().geometry();
    IoRequest request;
    request.io_class = IoClass::kOther;
    request.device.op = DeviceOp::kRead;
    request.device.offset = DeviceOffset(geometry.ZoneStart(zone_).value() + offset);
    request.device.data = buffer_.data();
    request.device.length = std::min<uint64_t>(kScanWindow, limit_ - offset);
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

}  // namespace

uint32_t LogFrameSeed(std::string_view uuid) { return Crc32c(uuid.data(), uuid.size()); }

void SealLogFrame(std::span<std::byte> frame, uint32_t uuid_seed, InodeId inode, uint64_t file_offset) {
  LogFrameHeader header;
  header.inode = inode.value();
  header.file_offset = file_offset;
  header.length = static_cast<uint32_t>(frame.size() - sizeof(header));
  header.header_crc = HeaderCrc(header, uuid_seed);
  header.crc = Crc32c(frame.subspan(sizeof(header)), header.header_crc);
  std::memcpy(frame.data(), &header, sizeof(header));
}

LogScan ScanLogRegion(IoEngine& engine, uint32_t uuid_seed, InodeId inode, const LogRegion& region,
                      uint64_t file_offset, uint64_t write_pointer) {
  const DeviceGeometry& geometry = engine.device().geometry();
  const uint64_t zone_start = geometry.ZoneStart(region.zone).value();
  const uint64_t limit = region.open() ? write_pointer : region.end;
  LogScan scan;
  scan.end = region.begin;
  const auto damaged = [&](std::string_view what) {
    scan.damage =
        Status::Corruption(fmt::format("log inode {}: {} in zone {} at {}; its bytes from {} on are lost",
                                       inode.value(), what, region.zone.value(), scan.end, file_offset + scan.payload));
    return scan;
  };
  if (limit > write_pointer) return damaged("the write pointer is short of the end of the region");

  WindowReader window(engine, region.zone, limit);
  while (scan.end < limit) {
    auto block = window.Get(scan.end, geometry.block_size);
    if (!block.ok()) {
      scan.damage = block.status();
      return scan;
    }
    LogFrameHeader header;
    std::memcpy(&header, block->data(), sizeof(header));
    if (header.magic != LogFrameHeader::kMagic || header.header_crc != HeaderCrc(header, uuid_seed)) {
      return damaged("no valid frame header");
    }
    if (header.inode != inode.value() || header.file_offset != file_offset + scan.payload || header.length == 0) {
      return damaged("a frame that does not continue the log");
    }
    const uint64_t frame = sizeof(header) + header.length;
    const uint64_t next = scan.end + RoundUp(frame, geometry.block_size);
    if (next > limit) {
      if (!region.open()) return damaged("a frame beyond the end of the region");
      scan.torn = true;
      return scan;
    }
    uint32_t crc = header.header_crc;
    for (uint64_t at = 0; at < frame;) {
      const uint64_t piece = std::min<uint64_t>(frame - at, geometry.block_size);
      auto bytes = window.Get(scan.end + at, piece);
      if (!bytes.ok()) {
        scan.damage = bytes.status();
        return scan;
      }
      crc = Crc32c(at == 0 ? bytes->subspan(sizeof(header)) : *bytes, crc);
      at += piece;
    }
    if (crc != header.crc) return damaged("a frame with a wrong checksum");
    scan.extents.push_back(
        {file_offset + scan.payload, DeviceOffset(zone_start + scan.end + sizeof(header)), header.length});
    scan.payload += header.length;
    scan.end = next;
  }
  if (!region.open() && scan.payload < region.payload) return damaged("less payload than the metadata says");
  // A log that was cut (truncated) keeps its frames, and ends inside one.
  if (!region.open()) {
    while (scan.payload > region.payload) {
      FileExtent& last = scan.extents.back();
      const uint64_t surplus = std::min(last.length, scan.payload - region.payload);
      last.length -= surplus;
      scan.payload -= surplus;
      if (last.length == 0) scan.extents.pop_back();
    }
  }
  return scan;
}

}  // namespace isozone
