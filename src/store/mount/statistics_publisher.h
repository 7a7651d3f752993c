// StatisticsPublisher: the statistics page of a mount for writing (src/insight/stats). A thread copies the figures into
// it every kFiguresIntervalNs; zones, waits, and most events are written by those who bring them about (store/space).
//
// Thread safety: any thread may call any method.
#pragma once

#include <memory>
#include <thread>

#include "base/mutex.h"
#include "insight/stats/published_page.h"
#include "store/mount/mount_context.h"

namespace isozone {

// Makes the page of a mount that is about to begin, still without a name. If it cannot be made where other processes
// see it, which is logged, or if the device has no name in the file system, as in tests, only this process sees the
// page.
Result<std::unique_ptr<PublishedPage>> MakeStatisticsPage(const MountContext& context);

class StatisticsPublisher {
 public:
  // `context` must have a page, pool, collector and journal, and must outlive this. Gives the page its name. If that is
  // not possible, logs it, and publishes where nobody else sees it.
  explicit StatisticsPublisher(MountContext& context);
  ~StatisticsPublisher() { Stop(); }
  StatisticsPublisher(const StatisticsPublisher&) = delete;
  StatisticsPublisher& operator=(const StatisticsPublisher&) = delete;

  // Publishes for the last time, and ends the thread. The journal must not have been closed before.
  void Stop() ISOZONE_EXCLUDES(mu_, publishing_);
  // Publishes, unless Stop was called, and reads the page.
  Result<Statistics> Look() ISOZONE_EXCLUDES(publishing_);

 private:
  void Run() ISOZONE_EXCLUDES(mu_, publishing_);
  void Publish() ISOZONE_REQUIRES(publishing_);
  // Adds the events that nobody else adds: the figures show them.
  void TellEvents(const PageFigures& figures) ISOZONE_REQUIRES(publishing_);

  MountContext& context_;
  StatisticsWriter& page_;
  Mutex mu_;
  CondVar wake_;
  bool stopping_ ISOZONE_GUARDED_BY(mu_) = false;
  Mutex publishing_;  // held by whoever publishes
  bool finished_ ISOZONE_GUARDED_BY(publishing_) = false;
  PageFigures last_ ISOZONE_GUARDED_BY(publishing_) = {};
  std::thread thread_;
};

}  // namespace isozone
