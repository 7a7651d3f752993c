// InPlaceWrites: writes over bytes that a file has, or into its holes. Zones are written in sequence, so the new bytes
// go to new space, and the file's extents are changed:
//
//   Write     the bytes are on their way to the device; readers of the file find them; the range is *pending*
//   Publish   a flush, then one record for all pending ranges (PlaceExtents), which says where they lie from now on,
//             and not what the rest of the file is. What lay there before is free once no read uses it.
//
// The collector may publish what is pending in the zone that it wants to empty (unpublished.h). Ranges are numbered as
// they are written: it publishes none that came after its flush.
//
// Invariants: no record refers to bytes that a power cut could take. Pending ranges do not overlap, and lie within what
// the metadata knows of the file, but for the moment in which it is cut; a range that is written again replaces what is
// pending of it.
//
// All files of a mount write through one ZoneStream, so in-place writes of many files hold one zone open, and not many.
//
// Locks: the namespace mutex before the one in here, which is not held across device I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "store/file/catalog.h"
#include "store/file/data_path.h"
#include "store/file/unpublished.h"
#include "store/file/zone_stream.h"

namespace isozone {

// InPlaceZones: the zone to which all files of a mount write in place.
//
// Thread safety: any thread.
class InPlaceZones {
 public:
  // `data_path` must outlive this.
  explicit InPlaceZones(DataPath& data_path) : data_path_(data_path), stream_(data_path, ZoneUse::kData) {}

  // Writes `data`, which belongs at `file_offset` of a file. Appends its extents to `written`, and adds the claim on
  // them to `space`, even if it fails half-way. Counts a write that succeeds.
  Status Write(std::span<const std::byte> data, uint64_t file_offset, DataClass data_class, IoClass io_class,
               std::vector<FileExtent>& written, SpaceClaim& space) ISOZONE_EXCLUDES(mu_);
  // Makes everything durable that was written before.
  Status MakeDurable() ISOZONE_EXCLUDES(mu_);
  // Gives the zone back. Writing may go on.
  void Release() ISOZONE_EXCLUDES(mu_);

 private:
  DataPath& data_path_;
  Mutex mu_;  // held across the write: a zone takes one at a time
  ZoneStream stream_ ISOZONE_GUARDED_BY(mu_);
};

// InPlaceWrites of one file. Thread safety: one thread at a time, beside PublishZone.
class InPlaceWrites final : public Unpublished {
 public:
  // Pending ranges are published when they are more than that, so that few are lost with the power.
  static constexpr uint64_t kPendingBytesMax = 4 * kMiB;
  static constexpr size_t kPendingRangesMax = 1024;

  // All arguments must outlive this.
  InPlaceWrites(Catalog& catalog, InPlaceZones& zones, OpenFile& file)
      : Unpublished(catalog, file.id()), zones_(zones), file_(file) {}
  ~InPlaceWrites();

  bool empty() const ISOZONE_EXCLUDES(mu_);
  // Returns whether it is time to publish.
  bool is_large() const ISOZONE_EXCLUDES(mu_);
  // Writes over a range of the file. The range must lie within the file, nothing of it may be in a writer's memory, and
  // the metadata must know of all of it. After an error nothing of the file has changed.
  Status Write(uint64_t offset, std::span<const std::byte> data, DataClass data_class, IoClass io_class)
      ISOZONE_EXCLUDES(mu_);
  // Flushes, and tells the metadata of all pending ranges. Returns what to sync to make that durable. After an error,
  // and if the file has no name, everything stays pending.
  Result<uint64_t> Publish() ISOZONE_EXCLUDES(mu_);
  // Forgets pending ranges behind `size`, to which the file was cut.
  void Cut(uint64_t size) ISOZONE_EXCLUDES(mu_);
  // Gives up all pending ranges. If the file has a name, it has again what the metadata says. The handles get their
  // space.
  void Abandon() ISOZONE_EXCLUDES(mu_);

 private:
  struct Pending {
    FileExtent extent;
    uint64_t number = 0;  // of the write
  };
  using Ranges = std::map<uint64_t, Pending>;  // by offset in the file

  // Takes [offset, offset + length) out of the pending ranges. Returns the space that these parts have.
  std::vector<ZoneBytes> Supersede(uint64_t offset, uint64_t length) ISOZONE_REQUIRES(mu_);
  void Insert(const FileExtent& extent, uint64_t number) ISOZONE_REQUIRES(mu_);
  // Tells the metadata of the ranges of writes up to `last`, which were flushed, and forgets them. The file must have a
  // name. `catalog` is catalog_.
  Status PublishUpTo(Catalog& catalog, uint64_t last) ISOZONE_REQUIRES(catalog.namespace_mutex, mu_);
  bool LiesIn(ZoneId zone) const override ISOZONE_REQUIRES(mu_);
  Status PublishFlushed(Catalog& catalog, uint64_t flushed) override ISOZONE_REQUIRES(catalog.namespace_mutex, mu_);
  // Returns one operation for each run of adjacent ranges.
  std::vector<MetadataOp> Operations(const std::vector<FileExtent>& ranges) const;
  // Returns the space that the metadata has in these ranges now.
  std::vector<ZoneBytes> SpaceBefore(const Inode& inode, const std::vector<FileExtent>& ranges) const;

  InPlaceZones& zones_;
  OpenFile& file_;
  Ranges pending_ ISOZONE_GUARDED_BY(mu_);
  uint64_t bytes_ ISOZONE_GUARDED_BY(mu_) = 0;  // of pending_
};

}  // namespace isozone
