// Log frames: how a kLog file lies on the device, so that a Sync is one device write and no metadata write.
//
//   frame = header (40 bytes), payload, zero padding to a whole block
//
// Frames of one log follow one another in a region (metadata.h, LogRegion), in file order. Frames that are missing
// between two of them are in other regions (open_log.h). A region that was open when the power failed has no end in the
// metadata; ScanLogRegion finds it.
//
// What a scan finds at a block of the region, below the write pointer of the zone, and what it means:
//
//   a valid frame of this region, further on  the scan continues behind it
//   a valid header of anything else           the end of an open region: the writer had left the zone to others, and
//                                             the metadata that says so was not durable
//   a frame that reaches beyond the pointer   torn, the normal end: devices keep a prefix, block by block
//   in a full zone, zeros to its capacity     torn as well: a device that must leave the zone full reads like this
//   zeros before anything but a frame of this torn as well, unless fua_covers_zone: data that others wrote behind it
//   with region                                    Force Unit Access survived, and this frame did not
//   anything else                             corruption, with its place
//
// and at the write pointer: the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "store/io/io_engine.h"
#include "store/metadata/metadata.h"

namespace isozone {

// Little-endian on the device. All checksums start from the file system's uuid, so frames of an earlier format of the
// device are never taken for frames of this file system.
struct LogFrameHeader {
  static constexpr uint32_t kMagic = 0x474C5A49;  // "IZLG"
  uint32_t magic = kMagic;
  uint32_t crc = 0;  // of the payload, from LogPayloadSeed on; it can be computed before the length is known
  uint64_t inode = 0;
  uint64_t file_offset = 0;  // of the first payload byte
  uint32_t length = 0;       // payload bytes, > 0
  uint32_t header_crc = 0;   // of the other fields except `crc`; the length can be trusted before the payload is there
  // The beginning of the region, in bytes from the start of the zone. It keeps a region of the same log that was begun
  // behind an open one, and that the metadata does not know, from being taken for a part of that one.
  uint64_t region_begin = 0;
};
static_assert(sizeof(LogFrameHeader) == 40);
static_assert(offsetof(LogFrameHeader, inode) == 8 && offsetof(LogFrameHeader, file_offset) == 16 &&
              offsetof(LogFrameHeader, length) == 24 && offsetof(LogFrameHeader, header_crc) == 28 &&
              offsetof(LogFrameHeader, region_begin) == 32);

// Returns the value that the checksum of a payload starts from.
uint32_t LogPayloadSeed(uint32_t uuid_seed, InodeId inode, uint64_t file_offset);
// Fills in the header in front of the payload. `frame` is header and payload together, `payload_crc` the checksum of
// the payload.
void SealLogFrame(std::span<std::byte> frame, uint32_t uuid_seed, InodeId inode, uint64_t file_offset,
                  uint64_t region_begin, uint32_t payload_crc);

struct LogScan {
  std::vector<FileExtent> extents;  // the payloads, in file order
  uint64_t end = 0;                 // bytes from the start of the zone: behind the last frame
  uint64_t payload = 0;             // bytes
  bool torn = false;                // a torn frame follows
  Status damage;                    // what stopped the scan before the end; the fields above say how far it came
};

// Walks the frames of `region`. A sealed region must be whole up to where its payload ends, or, if it is damaged, where
// the damage is. An open one is followed up to the write pointer of `zone`, the zone's descriptor. Read errors and an
// offline zone are damage.
LogScan ScanLogRegion(IoEngine& engine, uint32_t uuid_seed, InodeId inode, const LogRegion& region,
                      const ZoneDescriptor& zone);

// Returns the value that the CRCs of a file system start from.
uint32_t LogFrameSeed(std::string_view uuid);

}  // namespace isozone
