// Mounting by URI, once per process: RocksDB opens the same URI many times (one Env for each option set), and a device
// has one writer, so equal devices share one mounted FileSystem.
//
// Thread safety: any thread may call any function.
#pragma once

#include <memory>
#include <string_view>

#include "base/status.h"
#include "store/file_system.h"

namespace isozone {

// Returns the mounted file system of `uri` ("isozone://emu:/path/ssd.img?policy=zenfs"), and mounts it if this process
// has not done so. It is unmounted when its last owner releases it. The options of a later call must agree with those
// of the first (kInvalidArgument, with both). Unknown options are kInvalidArgument.
Result<std::shared_ptr<FileSystem>> MountShared(std::string_view uri, bool read_only);

}  // namespace isozone
