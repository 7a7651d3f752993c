// StatisticsWriter: writes the statistics page of a mount (page_layout.h). Nothing here waits, allocates or fails, so that
// it may be called under any lock and in any completion.
//
// Thread safety: any thread may call any method but the constructor. SetZone must be serialised for each zone, and Publish
// and SetGroup are for one thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/histogram.h"
#include "device/zoned_device.h"
#include "izg/group_index.h"
#include "stats/page_layout.h"

namespace isozone {

// Copies `fine` into buckets of a page, each value to the bucket that has the upper end of its own.
void Coarsen(const Histogram& fine, PageHistogram& coarse);

class StatisticsWriter {
 public:
  // `words` is the page: zeros, PageLayout::Size long, and outlives this. `header` says all but magic, version and bytes.
  StatisticsWriter(std::span<uint64_t> words, const PageHeader& header);
  StatisticsWriter(const StatisticsWriter&) = delete;
  StatisticsWriter& operator=(const StatisticsWriter&) = delete;

  // --- As it happens ---
  void SetZone(ZoneId zone, const PageZone& now);
  // Somebody begins to wait; returns what EndWait takes. -1: there is no room to say so.
  int BeginWait(ZoneWriter who, WaitReason reason, int64_t now_ns);
  // The same wait, for another reason.
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

 private:
};

}  // namespace isozone
