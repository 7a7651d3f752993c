#include "isozone/file_checksum.h"

#include "base/aligned_buffer.h"
#include "base/crc32c.h"
#include "base/units.h"

namespace isozone::cli {
namespace {

// Polynomials modulo that of CRC-32C: bit 31 is the factor of x^0, bit 0 that of x^31.
constexpr uint32_t kOne = uint32_t{1} << 31;
constexpr uint32_t kXToThe8 = kOne >> 8;
constexpr uint32_t kXToThe32 = 0x82F63B78;

uint32_t TimesX(uint32_t a) { return (a >> 1) ^ ((a & 1) == 0 ? 0 : kXToThe32); }

uint32_t Product(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t factor = kOne; factor != 0; factor >>= 1) {
    if ((a & factor) != 0) product ^= b;
    b = TimesX(b);
  }
  return product;
}

// A byte of zeros multiplies the state of a CRC by x^8, so that many of them multiply it by a power of that.
uint32_t ChecksumOfZeros(uint64_t bytes, uint32_t crc) {
  uint32_t state = ~crc;
  for (uint32_t power = kXToThe8; bytes > 0; bytes >>= 1) {
    if ((bytes & 1) != 0) state = Product(state, power);
    power = Product(power, power);
  }
  return ~state;
}

}  // namespace

uint32_t ChecksumOf(const ContentRun& run, std::span<const std::byte> buffer, uint32_t crc) {
  return run.is_hole ? ChecksumOfZeros(run.length, crc) : Crc32c(buffer.first(run.length), crc);
}

Result<uint32_t> ChecksumOf(FileSystem& file_system, const std::string& path) {
  ISOZONE_ASSIGN_OR_RETURN(const auto file, OpenWithHoles(file_system, path));
  AlignedBuffer buffer(kMiB);
  uint32_t crc = 0;
  for (uint64_t offset = 0;;) {
    ISOZONE_ASSIGN_OR_RETURN(const ContentRun run, ReadRun(*file, offset, buffer.span()));
    if (run.length == 0) return crc;
    crc = ChecksumOf(run, buffer.span(), crc);
    offset += run.length;
  }
}

}  // namespace isozone::cli
