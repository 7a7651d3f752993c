// StatisticsWriter: writes the statistics page of a mount (page_layout.h). Nothing here waits, allocates or fails, so
// that it may be called under any lock and in any completion. WaitScope tells the page that a thread waits.
//
// Thread safety: any thread may call any method. Two calls of SetZone for one zone must not overlap, and Publish,
// SetLatency, SetGroup and SetRead are for one thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/clock.h"
#include "base/histogram.h"
#include "device/zoned_device.h"
#include "insight/stats/page_layout.h"

namespace isozone {

// Copies `fine` into the buckets of a page, each value to the one that has the upper end of its own.
void Coarsen(const Histogram& fine, PageHistogram& coarse);

class StatisticsWriter {
 public:
  // `words` is the page: zeros, PageLayout::Size bytes, and outlives this. `header` says all but magic, version and
  // size.
  StatisticsWriter(std::span<uint64_t> words, PageHeader header);
  StatisticsWriter(const StatisticsWriter&) = delete;
  StatisticsWriter& operator=(const StatisticsWriter&) = delete;

  const PageHeader& header() const { return header_; }

  // --- As it happens ---
  void SetZone(ZoneId zone, const PageZone& now);
  // A thread begins to wait. Returns the wait for ChangeWait and EndWait; kNoWait if there is no room to tell it.
  int BeginWait(ZoneWriter who, WaitReason reason, int64_t now_ns);
  // The same wait goes on, for another reason.
  void ChangeWait(int wait, WaitReason reason);
  // It counts for the reason that it had last.
  void EndWait(int wait, int64_t now_ns);
  void AddEvent(PageEventKind kind, ZoneId zone, int64_t now_ns, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0);
  void AddMessage(std::string_view text, uint64_t now_s);

  // --- About ten times a second ---
  // Fills in what this object counts itself: zones begun and died, stalls, dropped records.
  void Publish(PageFigures figures);
  void SetLatency(int histogram, const PageHistogram& latency);
  void SetGroup(uint32_t group, uint32_t at_device, uint32_t waiting);
  void SetRead(size_t slot, uint64_t word);

  // The mount has ended.
  void End();

  static constexpr int kNoWait = -1;

 private:
  struct Wait {
    ZoneWriter who = ZoneWriter::kNone;
    WaitReason reason = WaitReason::kReset;
    int64_t since_ns = 0;
  };
  struct Stall {
    std::atomic<uint64_t> count{0};
    std::atomic<uint64_t> ns{0};
  };

  // The words of the page from `offset` bytes on.
  std::span<uint64_t> At(size_t offset, size_t bytes) const { return words_.subspan(offset / 8, bytes / 8); }
  template <typename Record>
  std::span<uint64_t> RecordAt(size_t section, size_t index) const {
    return At(section + index * sizeof(Record), sizeof(Record));
  }
  // Writes `record`, of which the sequence does not count, over an older one. Gives up, and counts that, if another
  // thread is writing there, or has written a later one.
  template <typename Record>
  void Write(size_t section, size_t index, uint64_t sequence, const Record& record);
  void ShowWait(int wait, uint64_t who_and_why);

  const std::span<uint64_t> words_;
  const PageHeader header_;
  std::atomic<uint64_t> next_event_{0};
  std::atomic<uint64_t> next_message_{0};
  std::atomic<uint32_t> waiting_{0};  // bit by bit, the places of `waits_` that are taken
  // Each belongs to the thread that has taken the place.
  std::array<Wait, PageLayout::kWaits> waits_;
  std::array<uint64_t, PageLayout::kWaits> wait_sequences_{};
  std::array<std::atomic<uint64_t>, kZoneWriterCount> zones_begun_{};
  std::atomic<uint64_t> zones_died_{0};
  std::array<std::array<Stall, kWaitReasonCount>, kZoneWriterCount> stalls_;
  std::atomic<uint64_t> dropped_{0};
  // Of the thread that publishes.
  uint64_t published_ = 0;
  uint64_t history_ = 0;
  int64_t history_ns_ = 0;
};

// One thread that may have to wait, from its first wait to the end of the last.
class WaitScope {
 public:
  // `writer` may be null; both outlive this.
  WaitScope(StatisticsWriter* writer, const Clock& clock, ZoneWriter who) : writer_(writer), clock_(clock), who_(who) {}
  ~WaitScope() {
    if (wait_ != StatisticsWriter::kNoWait) writer_->EndWait(wait_, clock_.NowNs());
  }
  WaitScope(const WaitScope&) = delete;
  WaitScope& operator=(const WaitScope&) = delete;

  void For(WaitReason reason) {
    if (writer_ == nullptr) return;
    if (wait_ == StatisticsWriter::kNoWait) {
      wait_ = writer_->BeginWait(who_, reason, clock_.NowNs());
    } else {
      writer_->ChangeWait(wait_, reason);
    }
  }

 private:
  StatisticsWriter* const writer_;
  const Clock& clock_;
  const ZoneWriter who_;
  int wait_ = StatisticsWriter::kNoWait;
};

}  // namespace isozone
