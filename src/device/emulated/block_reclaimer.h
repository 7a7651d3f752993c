// BlockReclaimer: gives the blocks of reset zones back to the host on a thread of its own, so that completions do not
// wait for that.
//
// Thread safety: every method may be called from any thread.
#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "base/mutex.h"
#include "device/zoned_device.h"

namespace isozone {

class BlockReclaimer {
 public:
  // `reclaim` is called on the thread, without the lock.
  explicit BlockReclaimer(std::function<void(ZoneId)> reclaim);
  // Reclaims all zones that were added before.
  ~BlockReclaimer();
  BlockReclaimer(const BlockReclaimer&) = delete;
  BlockReclaimer& operator=(const BlockReclaimer&) = delete;

  void Add(ZoneId zone);

 private:
  void Run();

  const std::function<void(ZoneId)> reclaim_;
  Mutex mu_;
  CondVar wake_;
  bool stop_ ISOZONE_GUARDED_BY(mu_) = false;
  std::deque<ZoneId> queue_ ISOZONE_GUARDED_BY(mu_);
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace isozone
