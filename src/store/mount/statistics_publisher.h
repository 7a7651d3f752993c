// StatisticsPublisher: the statistics page of a mount (src/insight/stats). A thread copies the figures into it every
// kFiguresIntervalNs; zones, waits, and most events are written by those who bring them about (store/space).
//
// Thread safety: any thread may call Stop; the rest belongs to the thread that mounts.
#pragma once

#include <memory>
#include <thread>

#include "base/mutex.h"
#include "insight/stats/published_page.h"
#include "store/file/mount_context.h"

namespace isozone {

// Makes the page of a mount that is about to begin, without a name. Null if it cannot be made, which is logged, or if
// the device has no name in the file system, as in tests, which is not.
std::unique_ptr<PublishedPage> MakeStatisticsPage(const MountContext& context);

class StatisticsPublisher {
 public:
  // `context` must have a page, pool, collector and journal, and must outlive this. Gives the page its name. If that is
  // not possible, logs it, and publishes where nobody sees it.
  explicit StatisticsPublisher(MountContext& context);
  ~StatisticsPublisher() { Stop(); }
  StatisticsPublisher(const StatisticsPublisher&) = delete;
  StatisticsPublisher& operator=(const StatisticsPublisher&) = delete;

  // Publishes for the last time, and ends the thread. The journal must not have been closed before.
  void Stop() ISOZONE_EXCLUDES(mu_);

 private:
  void Run() ISOZONE_EXCLUDES(mu_);
  void Publish();
  // Adds the events that nobody else adds: the figures show them.
  void TellEvents(const PageFigures& figures);

  MountContext& context_;
  StatisticsWriter& page_;
  Mutex mu_;
  CondVar wake_;
  bool stopping_ ISOZONE_GUARDED_BY(mu_) = false;
  // Used by whoever publishes: the thread, and before and after it whoever starts and stops it.
  PageFigures last_{};
  std::thread thread_;
};

}  // namespace isozone
