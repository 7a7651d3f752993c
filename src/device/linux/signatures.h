// What other systems have left on a block device by which one knows them: file systems, swap, RAID members, partition
// tables. Found by libblkid, which also reads the zones of zoned devices.
//
// Thread safety: any thread may call any function.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace isozone {

struct Signature {
  std::string type;  // "btrfs", "swap", "dos partition table"
  std::string label;
  std::string uuid;

  // Returns it in words: "btrfs, label 'data', UUID 8a6e0804-2bd0-4672-b79d-d97027f9071a".
  std::string Text() const;
};

// Returns all signatures on the device, or in the file, at `path`; empty if there is none. Opens it for reading. Errors
// call it `name`.
Result<std::vector<Signature>> FindSignatures(const std::string& path, const std::string& name);

// Overwrites all signatures, or resets the zones that they lie in. Data of a kind that has no signature stays.
Status EraseSignatures(const std::string& path, const std::string& name);

}  // namespace isozone
