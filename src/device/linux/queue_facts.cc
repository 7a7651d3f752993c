#include "device/linux/queue_facts.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "base/units.h"
#include "device/linux/block_kernel.h"

namespace isozone {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kPagesOfRequest = 256;  // that the kernel puts into one request of direct I/O (BIO_MAX_VECS)
constexpr uint32_t kLargestBlock = 65536;

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  return text;
}

std::optional<uint64_t> Number(std::string_view text) {
  text = Trimmed(text);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

class Attributes {
 public:
  explicit Attributes(const SysfsReader& read) : read_(read) {}

  std::string Text(std::string_view name) const { return std::string(Trimmed(read_(name).value_or(""))); }

  Result<uint64_t> Needed(std::string_view name) const {
    const std::optional<std::string> text = read_(name);
    if (!text) return Missing(name);
    const std::optional<uint64_t> value = Number(*text);
    if (!value) return Status::NotSupported(fmt::format("the kernel says {}='{}', no number", name, Trimmed(*text)));
    return *value;
  }

  uint64_t Or(std::string_view name, uint64_t fallback) const {
    return Number(read_(name).value_or("")).value_or(fallback);
  }

  static Status Missing(std::string_view name) {
    return Status::NotSupported(
        fmt::format("the kernel does not tell {} of the device; use Linux 5.15 or newer, with sysfs", name));
  }

 private:
  const SysfsReader& read_;
};

// What the memory of transfers must be aligned to. Up to Linux 5.19 these are the logical blocks, which then are no
// larger than a page. Kernels that know larger ones ask only for what the device's memory access needs.
Result<uint32_t> MemoryAlignment(const Attributes& attributes, uint32_t logical_block) {
  if (logical_block <= kPage) return logical_block;
  ISOZONE_ASSIGN_OR_RETURN(const uint64_t mask, attributes.Needed("queue/dma_alignment"));
  if (mask < kPage && std::has_single_bit(mask + 1)) return static_cast<uint32_t>(std::max(mask + 1, kKernelSector));
  return Status::NotSupported(
      fmt::format("dma_alignment={}: Isozone aligns memory to {} bytes, and no further", mask, kPage));
}

// The longest request that the kernel hands to the device in one part. A longer one is split, and the parts of a write
// may be reordered. Memory need not be contiguous, so that every page is a segment, and one that is not aligned to
// pages has one more.
uint64_t MaxTransfer(const Attributes& attributes, const QueueFacts& facts) {
  const uint64_t sectors_kb = attributes.Or("queue/max_sectors_kb", 128);
  const uint64_t segments = std::max<uint64_t>(attributes.Or("queue/max_segments", kPagesOfRequest), 2);
  const uint64_t pages = std::min(segments, kPagesOfRequest) - (facts.memory_alignment < kPage ? 1 : 0);
  const uint64_t limit = std::min(sectors_kb * kKiB, pages * kPage);
  const uint64_t unit = limit >= 64 * kKiB ? 64 * kKiB : facts.write_granularity;
  return std::max<uint64_t>(RoundDown(limit, unit), facts.write_granularity);
}

Status CheckBlock(std::string_view name, uint64_t bytes) {
  if (std::has_single_bit(bytes) && bytes >= kKernelSector && bytes <= kLargestBlock) return {};
  return Status::NotSupported(
      fmt::format("{}={}: Isozone needs a power of two from 512 to {}", name, bytes, kLargestBlock));
}

// Limits of zones, of which the kernel writes none as 0. An open zone is an active one.
void LimitZones(const Attributes& attributes, QueueFacts& facts) {
  constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();
  facts.max_open_zones = static_cast<uint32_t>(std::min(attributes.Or("queue/max_open_zones", 0), kMost));
  facts.max_active_zones = static_cast<uint32_t>(std::min(attributes.Or("queue/max_active_zones", 0), kMost));
  if (facts.max_active_zones == 0) return;
  const uint32_t open = facts.max_open_zones == 0 ? facts.max_active_zones : facts.max_open_zones;
  facts.max_open_zones = std::min(open, facts.max_active_zones);
}

DurableWrites DurableOf(const Attributes& attributes) {
  if (attributes.Text("queue/write_cache") == "write through") return DurableWrites::kAlways;
  return attributes.Or("queue/fua", 0) == 1 ? DurableWrites::kForced : DurableWrites::kFlushed;
}

}  // namespace

std::string_view DurableWritesName(DurableWrites how) {
  switch (how) {
    case DurableWrites::kAlways:
      return "no volatile cache";
    case DurableWrites::kForced:
      return "Force Unit Access";
    case DurableWrites::kFlushed:
      break;
  }
  return "write and flush";
}

std::string ChosenOf(std::string_view choices) {
  choices = Trimmed(choices);
  const size_t begin = choices.find('[');
  const size_t end = choices.find(']');
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return std::string(choices);
  return std::string(choices.substr(begin + 1, end - begin - 1));
}

Result<QueueFacts> ParseQueueFacts(const SysfsReader& read) {
  const Attributes attributes(read);
  QueueFacts facts;
  facts.model = attributes.Text("queue/zoned");
  facts.scheduler = ChosenOf(attributes.Text("queue/scheduler"));
  ISOZONE_ASSIGN_OR_RETURN(const uint64_t sectors, attributes.Needed("size"));
  facts.size = sectors * kKernelSector;
  if (!facts.zoned()) return facts;

  ISOZONE_ASSIGN_OR_RETURN(const uint64_t logical, attributes.Needed("queue/logical_block_size"));
  ISOZONE_RETURN_IF_ERROR(CheckBlock("logical_block_size", logical));
  const uint64_t physical = std::max(attributes.Or("queue/physical_block_size", logical), logical);
  const uint64_t granularity = attributes.Or("queue/zone_write_granularity", 0);
  facts.logical_block = static_cast<uint32_t>(logical);
  ISOZONE_ASSIGN_OR_RETURN(facts.memory_alignment, MemoryAlignment(attributes, facts.logical_block));
  facts.write_granularity = static_cast<uint32_t>(std::max(granularity == 0 ? physical : granularity, logical));
  ISOZONE_RETURN_IF_ERROR(CheckBlock("zone_write_granularity", facts.write_granularity));
  ISOZONE_ASSIGN_OR_RETURN(const uint64_t zone_sectors, attributes.Needed("queue/chunk_sectors"));
  facts.zone_size = zone_sectors * kKernelSector;
  facts.max_transfer = MaxTransfer(attributes, facts);
  facts.optimal_write = std::max(attributes.Or("queue/optimal_io_size", 0), attributes.Or("queue/minimum_io_size", 0));
  LimitZones(attributes, facts);
  facts.durable = DurableOf(attributes);
  return facts;
}

}  // namespace isozone
