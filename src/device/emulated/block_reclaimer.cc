#include "device/emulated/block_reclaimer.h"

#include <utility>

#include "base/thread.h"

namespace isozone {

BlockReclaimer::BlockReclaimer(std::function<void(ZoneId)> reclaim) : reclaim_(std::move(reclaim)) {
  if (auto thread = StartThread("space of the image", [this] { Run(); }); thread.ok()) {
    thread_ = std::move(thread).value();
  }
}

BlockReclaimer::~BlockReclaimer() {
  {
    const MutexLock lock(mu_);
    stop_ = true;
    wake_.Signal();
  }
  if (thread_.joinable()) thread_.join();
}

void BlockReclaimer::Add(ZoneId zone) {
  if (!thread_.joinable()) return reclaim_(zone);
  const MutexLock lock(mu_);
  queue_.push_back(zone);
  wake_.Signal();
}

void BlockReclaimer::Run() {
  const MutexLock lock(mu_);
  for (;;) {
    while (queue_.empty() && !stop_) wake_.Wait(mu_);
    if (queue_.empty()) return;
    const ZoneId zone = queue_.front();
    queue_.pop_front();
    const MutexUnlock unlock(mu_);
    reclaim_(zone);
  }
}

}  // namespace isozone
