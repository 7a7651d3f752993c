// Taking over: what a mount for writing does about the kept memory (store/kept) of a process that was killed, and about
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
#include <vector>

#include "store/file/mount_context.h"
#include "store/kept/kept_reader.h"
#include "store/metadata/metadata.h"
#include "store/mount/mounted_file_system.h"

namespace isozone {

struct KeptLegacy {
  std::vector<std::vector<MetadataOp>> records;  // that the device does not have
  std::vector<KeptPiece> pieces;                 // which the device may have
};

// Makes the kept memory of `context`, without a name yet, and returns the number that the mount will have. Where none
// can be had, says so in the log, and each flush of a log writes through.
uint64_t MakeKeptMemory(MountContext& context);

// Step 1: what was left, with its records applied to the state. The caller appends them to the journal. `sequence`: of
// the last record on the device. kPermissionDenied: only another user may read it.
Result<KeptLegacy> ApplyLegacy(MountContext& context, uint64_t sequence) ISOZONE_REQUIRES(context.namespace_mutex);

// Step 2. What finds no room is lost, as what a kernel could not write back is, and with the end of a log the logs that
// come after it. The log of the mount says so.
void TakeOver(MountedFileSystem& mounted, const KeptLegacy& legacy);

// Steps 3 and 4.
void BeginMountOf(MountContext& context, uint64_t mount_number);

}  // namespace isozone
