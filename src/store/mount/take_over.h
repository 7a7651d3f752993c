// Taking over: what a mount for writing does with the kept memory (store/kept) of a process that was killed, and with
// its own.
//
//   1  the records that the journal on the device does not have are applied, and appended to the journal
//   2  what the device does not have of logs and small files is appended to these, and made durable
//   3  the mount begins, by a new number: the old memory counts no more
//   4  the new memory takes the name of the old one
//
// A process that is killed before step 3 is done leaves the old memory to the next mount, which finds some of it on the
// device by then, and goes on. Nobody else sees the file system before step 4.
//
// Thread safety: the thread that mounts.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "store/kept/kept_reader.h"
#include "store/metadata/metadata.h"
#include "store/mount/mount_context.h"

namespace isozone {

struct KeptLegacy {
  std::vector<std::vector<MetadataOp>> records;  // those that the device does not have
  std::vector<KeptPiece> pieces;                 // some of which the device may have
};

// Makes the kept memory of `context`, without a name yet, and returns the number that the mount will have. If there can
// be none, logs that, and each flush of a log writes through.
uint64_t MakeKeptMemory(MountContext& context);

// Does step 1: returns what was left, with its records applied to the state. The caller appends them to the journal.
// `sequence` is that of the last record on the device. kPermissionDenied if only another user may read the memory.
Result<KeptLegacy> ApplyLegacy(MountContext& context, uint64_t sequence)
    ISOZONE_REQUIRES(context.catalog.namespace_mutex);

// Does step 2. What finds no room is lost, as what a kernel could not write back is. If the end of a log is lost, so
// are the logs that come after it. All this is logged.
void TakeOver(const std::shared_ptr<MountContext>& context, const KeptLegacy& legacy);

// Does steps 3 and 4.
void BeginMountOf(MountContext& context, uint64_t mount_number);

}  // namespace isozone
