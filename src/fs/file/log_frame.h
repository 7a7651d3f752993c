// Log frames: how a kLog file lies on the device, so that a Sync is one device write and no metadata write.
//
//   frame = header (40 bytes), payload, zero padding to a whole block
//
// Frames of one log follow one another in a region (metadata.h, LogRegion), in file order; what is missing between two of
// them is in other regions (open_log.h). A region that was open when the power went has no end in the metadata;
// ScanLogRegion finds it.
//
// What a scan meets at some block of the region, below the write pointer of the zone, and what it takes it for:
//
//   a valid frame of this region, further on  goes on behind it
//   a valid header of anything else           the end of an open region: the writer had left the zone to others, and the
//                                             metadata that says so was not durable
//   a frame that reaches beyond the pointer   torn, the normal end: devices keep a prefix, block by block
//   in a full zone, zeros to its capacity     torn as well: a device that had to leave the zone full reads so
//   zeros before anything but a frame of this torn as well, unless fua_covers_zone: what others wrote behind it with
//   region                                    Force Unit Access survived, and this did not
//   anything else                             corruption, with its place
//
// and at the write pointer: the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "fs/metadata/metadata.h"
#include "io/io_engine.h"

namespace isozone {

// Little-endian on the device. All checksums start from the file system's uuid, so frames of an earlier format of the
// device are never taken for ours.
struct LogFrameHeader {
  static constexpr uint32_t kMagic = 0x474C5A49;  // "IZLG"
  uint32_t magic = kMagic;
  uint32_t crc = 0;  // of the payload, from LogPayloadSeed on: it can be summed up before the length is known
  uint64_t inode = 0;
  uint64_t file_offset = 0;  // of the first payload byte
  uint32_t length = 0;       // payload bytes, > 0
  uint32_t header_crc = 0;   // of the other fields but `crc`: the length can be trusted before the payload is there
  // Bytes from the start of the zone: where the region begins. A region of the same log that was begun behind an open
  // one, of which the metadata does not know, is so not taken for a part of it.
  uint64_t region_begin = 0;
};
static_assert(sizeof(LogFrameHeader) == 40);
static_assert(offsetof(LogFrameHeader, inode) == 8 && offsetof(LogFrameHeader, file_offset) == 16 &&
              offsetof(LogFrameHeader, length) == 24 && offsetof(LogFrameHeader, header_crc) == 28 &&
              offsetof(LogFrameHeader, region_begin) == 32);

// What the checksum of a payload starts from.
uint32_t LogPayloadSeed(uint32_t uuid_seed, InodeId inode, uint64_t file_offset);
// Fills in the header in front of the payload: `frame` is header and payload together, `payload_crc` the checksum of the
// payload.
void SealLogFrame(std::span<std::byte> frame, uint32_t uuid_seed, InodeId inode, uint64_t file_offset,
                  uint64_t region_begin, uint32_t payload_crc);

struct LogScan {
  std::vector<FileExtent> extents;  // the payloads, in file order
  uint64_t end = 0;                 // bytes in the zone: behind the last frame
  uint64_t payload = 0;             // bytes
  bool torn = false;                // a torn frame follows
  Status damage;                    // what stopped the scan other than the end; the fields above say how far it came
};

// Walks the frames of `region`. A sealed region ends where its payload does, or, if it is damaged, where that is met, and
// must be whole up to there; an open one is followed up to the write pointer of `zone`, the zone's descriptor. Read errors and a zone that is offline are
// damage.
LogScan ScanLogRegion(IoEngine& engine, uint32_t uuid_seed, InodeId inode, const LogRegion& region,
                      const ZoneDescriptor& zone);

// What the CRCs of a file system start from.
uint32_t LogFrameSeed(std::string_view uuid);

}  // namespace isozone
