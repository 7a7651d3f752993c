// Where a FileWriter's buffers go: DataSink for kData and kSmall (extents, made known by the journal), LogSink for kLog
// (frames, found again by scanning). Both keep the rule that makes recovery exact:
//
//   no metadata record refers to bytes that a power cut could take: data is flushed before the record is appended.
//
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/status.h"
#include "fs/core.h"
#include "fs/zone_stream.h"

namespace isozone {

class WriteSink {
 public:
  virtual ~WriteSink() = default;

  // Bytes a buffer leaves free in front of its payload.
  virtual size_t header_size() const = 0;

  // Writes the payload, bytes [header_size(), used) of `buffer`, which belongs at `file_offset`, and adds where it lies
  // to `written`. The rest of the buffer, to the next block, is overwritten by padding. `durable`: as one device write
  // if possible.
  virtual Status Write(AlignedBuffer& buffer, size_t used, uint64_t file_offset, bool durable,
                       std::vector<FileExtent>& written) = 0;

  // Everything written is durable, and known to the metadata, when this returns OK.
  virtual Status MakeDurable() = 0;

  // Makes everything written known to the metadata, in memory, and gives the zone back. Writing may go on.
  virtual Status Seal() = 0;

  virtual void SetLifetime(Lifetime lifetime) = 0;
  virtual void SetIoClass(IoClass io_class) = 0;
};

// The file has the extents that the metadata state says; the sink adds to them.
std::unique_ptr<WriteSink> MakeDataSink(FsCore& core, InodeId id, Lifetime lifetime);
std::unique_ptr<WriteSink> MakeLogSink(FsCore& core, InodeId id, Lifetime lifetime);

}  // namespace isozone
