#include "insight/stats/page_layout.h"

#include <algorithm>

namespace isozone {
namespace {

constexpr uint64_t kLow32 = 0xFFFFFFFF;

// Appends fields to a word, from the lowest bit on, and takes them off again.
class Packer {
 public:
  explicit Packer(uint64_t word = 0) : word_(word) {}
  void Put(uint64_t value, int bits) {
    word_ |= (value & ((uint64_t{1} << bits) - 1)) << at_;
    at_ += bits;
  }
  uint64_t Take(int bits) {
    const uint64_t value = word_ >> at_ & ((uint64_t{1} << bits) - 1);
    at_ += bits;
    return value;
  }
  uint64_t word() const { return word_; }

 private:
  uint64_t word_;
  int at_ = 0;
};

constexpr int kPhaseBits = 4;
constexpr int kUseBits = 3;
constexpr int kLifetimeBits = 3;
constexpr int kHeatBits = 2;
constexpr int kLevelBits = 6;
constexpr int kWriterBits = 3;
constexpr int kGroupBits = 16;
constexpr int kAgeBits = 24;
static_assert(kPhaseBits + kUseBits + kLifetimeBits + kHeatBits + kLevelBits + kWriterBits + 3 + kGroupBits +
                  kAgeBits ==
              64);

// The enumerator, or the last one where `value` is none.
template <typename Enum>
Enum Clamped(uint64_t value, Enum last) {
  return static_cast<Enum>(std::min(value, static_cast<uint64_t>(last)));
}

}  // namespace

ZoneWords PackZone(const PageZone& zone) {
  Packer packer;
  packer.Put(static_cast<uint64_t>(zone.phase), kPhaseBits);
  packer.Put(static_cast<uint64_t>(zone.use), kUseBits);
  packer.Put(static_cast<uint64_t>(zone.data.lifetime), kLifetimeBits);
  packer.Put(static_cast<uint64_t>(zone.data.heat), kHeatBits);
  const int levels = std::clamp<int>(zone.data.level, -1, PageZone::kMostLevel) + 1;
  packer.Put(static_cast<uint64_t>(levels), kLevelBits);
  packer.Put(static_cast<uint64_t>(zone.writer), kWriterBits);
  packer.Put(zone.victim ? 1 : 0, 1);
  packer.Put(zone.sealed ? 1 : 0, 1);
  packer.Put(zone.kept ? 1 : 0, 1);
  packer.Put(zone.group, kGroupBits);
  packer.Put(zone.written_at, kAgeBits);
  return {uint64_t{zone.write_pointer} << 32 | zone.live, packer.word()};
}

PageZone UnpackZone(const ZoneWords& words) {
  Packer packer(words[1]);
  PageZone zone;
  zone.write_pointer = static_cast<uint32_t>(words[0] >> 32);
  zone.live = static_cast<uint32_t>(words[0] & kLow32);
  zone.phase = Clamped(packer.Take(kPhaseBits), ZonePhase::kOffline);
  zone.use = Clamped(packer.Take(kUseBits), ZoneUse::kUnusable);
  zone.data.lifetime = Clamped(packer.Take(kLifetimeBits), Lifetime::kExtreme);
  zone.data.heat = Clamped(packer.Take(kHeatBits), ZoneHeat::kC2);
  zone.data.level = static_cast<int8_t>(static_cast<int>(packer.Take(kLevelBits)) - 1);
  zone.writer = Clamped(packer.Take(kWriterBits), ZoneWriter::kOther);
  zone.victim = packer.Take(1) != 0;
  zone.sealed = packer.Take(1) != 0;
  zone.kept = packer.Take(1) != 0;
  zone.group = static_cast<uint16_t>(packer.Take(kGroupBits));
  zone.written_at = static_cast<uint32_t>(packer.Take(kAgeBits));
  return zone;
}

PageZone PageZoneOf(const ZoneRecord& zone, uint16_t group, uint32_t block_size, uint64_t age_unit) {
  const auto blocks = [block_size](uint64_t bytes) {
    return static_cast<uint32_t>(std::min<uint64_t>((bytes + block_size - 1) / block_size, kLow32));
  };
  PageZone page;
  page.write_pointer = blocks(zone.write_pointer);
  page.live = blocks(zone.live);
  page.phase = zone.phase;
  page.use = zone.use;
  page.data = zone.data;
  page.writer = zone.phase == ZonePhase::kLeased ? zone.writer : ZoneWriter::kNone;
  page.victim = zone.victim;
  page.sealed = zone.sealed;
  page.kept = zone.kept;
  page.group = group;
  if (zone.written_at > 0) {
    // 0 says that it was not written, so that the count leaves it out.
    const auto age = static_cast<uint32_t>(zone.written_at / age_unit % (PageZone::kAges - 1));
    page.written_at = age + 1;
  }
  return page;
}

}  // namespace isozone
