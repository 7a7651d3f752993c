// Mounting by URI, once per process: RocksDB opens the same URI many times (one Env for each option set), and a device
// has one writer, so equal devices share one mounted FileSystem.
//
// Thread safety: any thread.
#pragma once

#include <memory>
#include <string_view>

#include "base/status.h"
#include "fs/file_system.h"

namespace isozone {

// The mounted file system of `uri` ("isozone://emu:/path/ssd.img?policy=zenfs"), mounted now if this process has it not
// mounted; it is unmounted when the last owner lets go. Options of a later call must agree with those of the first
// (kInvalidArgument naming both). Unknown options are kInvalidArgument.
Result<std::shared_ptr<FileSystem>> MountShared(std::string_view uri, bool read_only);

}  // namespace isozone
