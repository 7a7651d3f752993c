// The checksum of a file on a device, by which a command knows a file that it wrote before it was stopped.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "fs/file_system.h"

namespace isozone::cli {

// Reads all of the file at `path`; its CRC-32C. The errors are those of FileSystem::OpenForRead and FileReader::Read.
Result<uint32_t> ChecksumOf(FileSystem& file_system, const std::string& path);

}  // namespace isozone::cli
