// The checksum of a file, by which a command knows a file that it wrote before it was stopped, or that it reads back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"
#include "isozone/holes.h"
#include "store/file_system.h"

namespace isozone::cli {

// Returns the CRC-32C of bytes whose checksum is `crc`, followed by `run`, which was read into `buffer`. A hole counts
// as zeros, and takes hardly any time.
uint32_t ChecksumOf(const ContentRun& run, std::span<const std::byte> buffer, uint32_t crc);
// Reads all of the file at `path` on a device, and returns its CRC-32C. The errors are those of FileSystem::OpenForRead
// and FileReader::Read.
Result<uint32_t> ChecksumOf(FileSystem& file_system, const std::string& path);

}  // namespace isozone::cli
