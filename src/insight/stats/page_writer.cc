#include "insight/stats/page_writer.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace isozone {
namespace {

using Word = std::atomic_ref<uint64_t>;
static_assert(Word::is_always_lock_free);

// Every store releases: who sees it also sees the odd sequence that was stored before.
void Store(uint64_t& word, uint64_t value) { Word(word).store(value, std::memory_order_release); }
uint64_t Load(uint64_t& word) { return Word(word).load(std::memory_order_relaxed); }

template <typename T>
std::array<uint64_t, sizeof(T) / sizeof(uint64_t)> WordsOf(const T& value) {
  static_assert(sizeof(T) % sizeof(uint64_t) == 0);
  return std::bit_cast<std::array<uint64_t, sizeof(T) / sizeof(uint64_t)>>(value);
}

uint64_t WhoAndWhy(ZoneWriter who, WaitReason reason) {
  return uint64_t{1} << 16 | static_cast<uint64_t>(who) << 8 | static_cast<uint64_t>(reason);
}

// The bucket of a page that has `value`.
int BucketOf(uint64_t value) {
  if (value < PageHistogram::EndOf(0)) return 0;
  const int power = 63 - std::countl_zero(value);
  if (power >= PageHistogram::kLastPower) return PageHistogram::kBuckets - 1;
  const uint64_t quarter = (value - (uint64_t{1} << power)) * PageHistogram::kSubBuckets >> power;
  return 1 + (power - PageHistogram::kFirstPower) * PageHistogram::kSubBuckets + static_cast<int>(quarter);
}

}  // namespace

void Coarsen(const Histogram& fine, PageHistogram& coarse) {
  static_assert(PageHistogram::kBuckets <= UINT8_MAX);
  static const auto bucket_of = [] {
    std::array<uint8_t, Histogram::kBuckets> buckets{};
    for (int i = 0; i < Histogram::kBuckets; ++i) {
      buckets[static_cast<size_t>(i)] = static_cast<uint8_t>(BucketOf(Histogram::UpperBoundOf(i)));
    }
    return buckets;
  }();
  coarse.buckets.fill(0);
  coarse.sum = fine.Sum();
  coarse.max = fine.Max();
  for (int i = 0; i < Histogram::kBuckets; ++i) coarse.buckets[bucket_of[static_cast<size_t>(i)]] += fine.CountIn(i);
}

StatisticsWriter::StatisticsWriter(std::span<uint64_t> words, PageHeader header)
    : words_(words), header_([&] {
        header.magic = kPageMagic;
        header.version = kPageVersion;
        header.bytes = PageLayout::Size(header.zone_count, header.group_count);
        return header;
      }()) {
  const auto content = WordsOf(header_);
  const std::span<uint64_t> place = At(0, sizeof(PageHeader));
  for (size_t i = 0; i < content.size(); ++i) Store(place[i], content[i]);
  Store(At(PageLayout::kState, sizeof(uint64_t))[0], static_cast<uint64_t>(PageState::kMounted));
}

template <typename Record>
void StatisticsWriter::Write(size_t section, size_t index, uint64_t sequence, const Record& record) {
  const auto content = WordsOf(record);
  const std::span<uint64_t> place = RecordAt<Record>(section, index);
  uint64_t before = Load(place[0]);
  if (before % 2 != 0 || before >= sequence ||
      !Word(place[0]).compare_exchange_strong(before, sequence - 1, std::memory_order_acq_rel)) {
    dropped_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  for (size_t i = 1; i < content.size(); ++i) Store(place[i], content[i]);
  Store(place[0], sequence);
}

// ---------------------------------------------------------------------------------------------------------------------
// As it happens
// ---------------------------------------------------------------------------------------------------------------------

void StatisticsWriter::SetZone(ZoneId zone, const PageZone& now) {
  const size_t offset = PageLayout::Zones(header_.group_count) + zone.value() * PageLayout::kZoneBytes;
  const std::span<uint64_t> place = At(offset, PageLayout::kZoneBytes);
  const PageZone before = UnpackZone({Load(place[0]), Load(place[1])});
  if (before.phase == ZonePhase::kEmpty && now.phase == ZonePhase::kLeased) {
    zones_begun_[static_cast<size_t>(now.writer)].fetch_add(1, std::memory_order_relaxed);
  }
  if (before.live > 0 && now.live == 0) zones_died_.fetch_add(1, std::memory_order_relaxed);
  const ZoneWords words = PackZone(now);
  Store(place[0], words[0]);
  Store(place[1], words[1]);
}

int StatisticsWriter::BeginWait(ZoneWriter who, WaitReason reason, int64_t now_ns) {
  uint32_t taken = waiting_.load(std::memory_order_relaxed);
  int place = 0;
  do {
    place = std::countr_one(taken);
    if (place >= static_cast<int>(PageLayout::kWaits)) {
      dropped_.fetch_add(1, std::memory_order_relaxed);
      return kNoWait;
    }
  } while (!waiting_.compare_exchange_weak(taken, taken | 1U << place, std::memory_order_acquire,
                                           std::memory_order_relaxed));
  waits_[static_cast<size_t>(place)] = {who, reason, now_ns};
  ShowWait(place, WhoAndWhy(who, reason));
  return place;
}

void StatisticsWriter::ShowWait(int wait, uint64_t who_and_why) {
  const auto i = static_cast<size_t>(wait);
  Write(PageLayout::kWaiting, i, wait_sequences_[i] += 2, PageWait{0, who_and_why, waits_[i].since_ns});
}

void StatisticsWriter::ChangeWait(int wait, WaitReason reason) {
  Wait& of = waits_[static_cast<size_t>(wait)];
  if (of.reason == reason) return;
  of.reason = reason;
  ShowWait(wait, WhoAndWhy(of.who, reason));
}

void StatisticsWriter::EndWait(int wait, int64_t now_ns) {
  const Wait of = waits_[static_cast<size_t>(wait)];
  const auto ns = static_cast<uint64_t>(std::max<int64_t>(0, now_ns - of.since_ns));
  ShowWait(wait, 0);
  waiting_.fetch_and(~(1U << wait), std::memory_order_release);
  Stall& stall = stalls_[static_cast<size_t>(of.who)][static_cast<size_t>(of.reason)];
  stall.count.fetch_add(1, std::memory_order_relaxed);
  stall.ns.fetch_add(ns, std::memory_order_relaxed);
  if (ns >= static_cast<uint64_t>(kLongStallNs)) {
    AddEvent(PageEventKind::kStall, ZoneId(0), now_ns, WhoAndWhy(of.who, of.reason), ns);
  }
}

void StatisticsWriter::AddEvent(PageEventKind kind, ZoneId zone, int64_t now_ns, uint64_t a, uint64_t b, uint64_t c) {
  const uint64_t number = next_event_.fetch_add(1, std::memory_order_relaxed);
  const uint64_t kind_and_zone = static_cast<uint64_t>(kind) << 32 | zone.value();
  Write(PageLayout::kHappened, number % PageLayout::kEvents, 2 * number + 2,
        PageEvent{0, now_ns, kind_and_zone, a, b, c});
}

void StatisticsWriter::AddMessage(std::string_view text, uint64_t now_s) {
  const uint64_t number = next_message_.fetch_add(1, std::memory_order_relaxed);
  PageMessage message{0, now_s, {}};
  std::memcpy(message.text.data(), text.data(), std::min(text.size(), message.text.size() - 1));
  Write(PageLayout::kErrors, number % PageLayout::kMessages, 2 * number + 2, message);
}

// ---------------------------------------------------------------------------------------------------------------------
// About ten times a second
// ---------------------------------------------------------------------------------------------------------------------

void StatisticsWriter::Publish(PageFigures figures) {
  for (size_t who = 0; who < kZoneWriterCount; ++who) {
    figures.zones_begun[who] = zones_begun_[who].load(std::memory_order_relaxed);
    for (size_t reason = 0; reason < kWaitReasonCount; ++reason) {
      const Stall& stall = stalls_[who][reason];
      figures.stalls[who][reason] = {stall.count.load(std::memory_order_relaxed),
                                     stall.ns.load(std::memory_order_relaxed)};
    }
  }
  figures.zones_died = zones_died_.load(std::memory_order_relaxed);
  figures.dropped_records = dropped_.load(std::memory_order_relaxed);
  Write(PageLayout::kFigures, published_ % PageLayout::kLatest, 2 * published_ + 2, figures);
  ++published_;
  if (history_ > 0 && figures.taken_ns < history_ns_ + kHistoryIntervalNs) return;
  Write(PageLayout::kPast, history_ % PageLayout::kHistory, 2 * history_ + 2, figures);
  ++history_;
  history_ns_ = figures.taken_ns;
}

void StatisticsWriter::SetLatency(int histogram, const PageHistogram& latency) {
  const auto content = WordsOf(latency);
  const std::span<uint64_t> place = RecordAt<PageHistogram>(PageLayout::kLatencies, static_cast<size_t>(histogram));
  for (size_t i = 0; i < content.size(); ++i) Store(place[i], content[i]);
}

void StatisticsWriter::SetGroup(uint32_t group, uint32_t at_device, uint32_t waiting) {
  Store(RecordAt<uint64_t>(PageLayout::kGroups, group)[0], uint64_t{at_device} << 32 | waiting);
}

void StatisticsWriter::SetRead(size_t slot, uint64_t word) {
  Store(RecordAt<uint64_t>(PageLayout::kRecentReads, slot)[0], word);
}

void StatisticsWriter::End() {
  Store(At(PageLayout::kState, sizeof(uint64_t))[0], static_cast<uint64_t>(PageState::kUnmounted));
}

}  // namespace isozone
