#include "device/emulated/block_reclaimer.h"

#include <utility>

namespace isozone {

BlockReclaimer::BlockReclaimer(std::function<void(ZoneId)> reclaim)
    : reclaim_(std::move(reclaim)), thread_([this] { Run(); }) {}

BlockReclaimer::~BlockReclaimer() {
  {
    const MutexLock lock(mu_);
    stop_ = true;
    wake_.Signal();
  }
  thread_.join();
}

void BlockReclaimer::Add(ZoneId zone) {
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
