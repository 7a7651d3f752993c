#include "isozone/file_checksum.h"

#include "base/aligned_buffer.h"
#include "base/crc32c.h"
#include "base/units.h"

namespace isozone::cli {

Result<uint32_t> ChecksumOf(FileSystem& file_system, const std::string& path) {
  ISOZONE_ASSIGN_OR_RETURN(const auto reader, file_system.OpenForRead(path));
  AlignedBuffer buffer(kMiB);
  uint32_t crc = 0;
  for (uint64_t offset = 0;;) {
    ISOZONE_ASSIGN_OR_RETURN(const size_t length, reader->Read(offset, buffer.span(), IoClass::kOther));
    if (length == 0) return crc;
    crc = Crc32c(buffer.span().first(length), crc);
    offset += length;
  }
}

}  // namespace isozone::cli
