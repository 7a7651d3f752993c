// WriteSink: takes the units of a FileWriter. data_sink.h is for kData and kSmall (extents, made known by the journal),
// log_sink.h for kLog (frames, found again by scanning). Units are taken in file order, are in flight together, and are
// finished in file order. Both sinks keep the rule that makes recovery exact:
//
//   no metadata record refers to bytes that a power cut could take: data is flushed before the record is appended.
//
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/crc32c.h"
#include "base/status.h"
#include "store/extents.h"
#include "store/io/io_class.h"
#include "store/kept/kept_memory.h"
#include "store/zone/cohort.h"
#include "store/zone/data_class.h"

namespace isozone {

// A piece of a file in memory: its payload is [header_size(), used) of the memory and belongs at `file_offset`.
struct WriteUnit {
  std::span<std::byte> memory;  // memory of `own` or of `kept`
  AlignedBuffer own;
  KeptUnitMemory kept;  // memory that outlives the process
  uint64_t file_offset = 0;
  size_t used = 0;  // bytes, the header's place included
  // The checksum of the payload up to `summed`; none if the unit is not kept and the sink wants none (ChecksumSeed). It
  // grows with the payload, so that whoever fills the unit does not have to wait for the sum of all of it.
  std::optional<uint32_t> checksum;
  size_t summed = 0;  // bytes, like `used`

  void SumUp() {
    if (!checksum) return;
    checksum = Crc32c(memory.subspan(summed, used - summed), *checksum);
    summed = used;
  }
};

class WriteSink {
 public:
  virtual ~WriteSink() = default;

  // Returns how many bytes a unit leaves free in front of its payload.
  virtual size_t header_size() const = 0;

  // Returns the length in bytes of a unit that begins now: at most `most`. One thread at a time.
  virtual size_t UnitSize(size_t most) const { return most; }

  // Returns what the checksum of the unit at `file_offset` starts from; none if the sink needs no checksum. Any thread.
  virtual std::optional<uint32_t> ChecksumSeed(uint64_t /*file_offset*/) const { return std::nullopt; }

  // Returns how many units may have been taken and not finished; 0: each is finished before Append returns.
  virtual size_t depth() const = 0;

  // Takes `unit`, which follows the one before in the file, and starts to write it, at once or later. It must stay
  // where it is until it is finished. Padding overwrites what is behind `used`, up to the next block. `durable`: a
  // thread waits for the unit to be durable.
  virtual Status Take(WriteUnit& unit, bool durable) = 0;
  // Starts the units that were taken and not started yet. `durable`: a thread waits for them to be durable.
  virtual Status StartAll(bool /*durable*/) { return Status::Ok(); }
  // Returns whether Finish would not wait for the device.
  virtual bool OldestIsDone() = 0;
  // Waits for the unit that was taken first, writes it elsewhere if that failed, and appends its extents to `written`.
  // After an error nothing that was taken behind it becomes part of the file.
  virtual Status Finish(std::vector<FileExtent>& written) = 0;
  // Says that readers of the file know by now what Finish has returned, so that it may be published, and moved from
  // then on.
  virtual void NoteReadable(std::span<const FileExtent> /*written*/) {}

  // Waits for what was taken and not finished, which does not become part of the file. Nobody uses its memory any more.
  virtual void Drop() = 0;

  // Makes everything finished known to the metadata, in memory, so that a kill does not take it any more.
  virtual Status MakeKnown() { return Status::Ok(); }
  // Makes everything written durable and known to the metadata. No unit may be taken and not finished.
  virtual Status MakeDurable() = 0;

  // Makes everything written known to the metadata, in memory, and gives the zones back. Writing may go on. Waits for
  // what was taken and not finished, which does not become part of the file.
  virtual Status Seal() = 0;

  virtual void SetDataClass(DataClass data) = 0;
  virtual void SetIoClass(IoClass io_class) = 0;
};

// `width` is the number of zones, each of another group, to which a sink may write at once; `depth` is that of
// WriteSink; `unit` is the greatest size of a unit, in bytes. A sink of data also uses the rest: what is known of the
// file beforehand (CreateOptions).
struct SinkOptions {
  uint32_t width = 1;
  size_t depth = 0;
  uint64_t unit = 1;
  bool wakes = false;          // the end of each write wakes the thread of DataPath::writers
  uint64_t expected_size = 0;  // bytes to come from now on; 0: unknown
  Cohort cohort = {};
};

}  // namespace isozone
