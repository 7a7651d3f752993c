// Statistics pages: whatever is changed in one, it is refused with a reason, or gives statistics that can be shown.
//
//   input   flags : 1 byte | changes, each: offset : 3 bytes | length : 1 byte | so many bytes
//
// Flag 1 cuts the page off before its end; flag 2 changes the last of the three copies that a reader takes, but not the
// first two; flag 4 takes the bytes behind the flags for the page itself.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "insight/stats/page_reader.h"
#include "insight/stats/page_writer.h"

namespace {

using isozone::PageLayout;
using Bytes = std::vector<std::byte>;

constexpr uint8_t kCutOff = 1;
constexpr uint8_t kChangesBetween = 2;
constexpr uint8_t kRaw = 4;

// A page with a record of each kind.
Bytes MakePage() {
  isozone::PageHeader header{};
  header.zone_count = 16;
  header.group_count = 4;
  header.block_size = 4096;
  std::vector<uint64_t> words(PageLayout::Size(header.zone_count, header.group_count) / sizeof(uint64_t));
  isozone::StatisticsWriter writer(words, header);
  for (int64_t i = 1; i <= 3; ++i) {
    isozone::PageFigures figures{};
    figures.taken_ns = i * isozone::kHistoryIntervalNs;
    writer.Publish(figures);
  }
  for (int reason = 0; reason < isozone::kWaitReasonCount; ++reason) {
    writer.BeginWait(isozone::ZoneWriter::kFlush, static_cast<isozone::WaitReason>(reason), reason);
  }
  for (int kind = 1; kind <= isozone::kPageEventKinds; ++kind) {
    writer.AddEvent(static_cast<isozone::PageEventKind>(kind), isozone::ZoneId(3), kind, 0x10203, 2, 3);
  }
  writer.AddMessage("a message", 1);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(words));
  return {bytes.begin(), bytes.end()};
}

void Change(std::span<const uint8_t> changes, Bytes& page) {
  while (changes.size() > 4) {
    const size_t offset = (size_t{changes[0]} | size_t{changes[1]} << 8 | size_t{changes[2]} << 16) % page.size();
    const size_t length = std::min({size_t{changes[3]}, changes.size() - 4, page.size() - offset});
    for (size_t i = 0; i < length; ++i) page[offset + i] = static_cast<std::byte>(changes[4 + i]);
    changes = changes.subspan(4 + length);
  }
}

// Shows all that can be shown; none of it may be empty.
void Show(const isozone::Statistics& statistics) {
  bool complete = true;
  for (const auto& wait : statistics.waits) complete &= !ExplainWait(wait, statistics).empty();
  for (const auto& event : statistics.events) {
    complete &= !DescribeEvent(event).empty() && !PageEventName(event.kind).empty();
  }
  for (const auto& zone : statistics.zones) {
    complete &= !ZonePhaseName(zone.phase).empty() && !ZoneUseName(zone.use).empty();
  }
  for (const auto& latency : statistics.latencies) complete &= latency.Percentile(99) >= 0;
  complete &= RatesOf(statistics).seconds >= 0 && statistics.figures.WriteAmplification() >= 0;
  if (!complete) std::abort();
}

void Read(const Bytes& page, const Bytes& later) {
  const auto header = isozone::CheckHeader(page, page.size());
  if (!header.ok()) {
    if (header.status().message().empty()) std::abort();
    return;
  }
  const size_t fixed = PageLayout::Zones(header->group_count);
  const std::span<const std::byte> all(page);
  const std::span<const std::byte> last = std::span(later).first(std::min(fixed, later.size()));
  const auto statistics =
      isozone::DecodePage(*header, {{all.first(fixed), all.first(fixed), last}, all.subspan(fixed)});
  if (statistics.ok()) {
    Show(*statistics);
  } else if (!statistics.status().Is(isozone::StatusCode::kBusy)) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static const Bytes kPage = MakePage();
  const std::span<const uint8_t> input(data + 1, size - 1);
  Bytes page = kPage;
  if ((data[0] & kRaw) != 0) {
    page.resize(input.size());
    std::ranges::transform(input, page.begin(), [](uint8_t byte) { return static_cast<std::byte>(byte); });
    Read(page, page);
    return 0;
  }
  Bytes later = page;
  Change(input, later);
  if ((data[0] & kChangesBetween) == 0) page = later;
  if ((data[0] & kCutOff) != 0) later.resize(later.size() / 2);
  Read(page, later);
  return 0;
}
