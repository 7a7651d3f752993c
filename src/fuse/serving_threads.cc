#include "fuse/serving_threads.h"

namespace isozone {
namespace {

thread_local ServingThreads* threads_of_this = nullptr;

}  // namespace

ServingThreads::Membership::Membership(ServingThreads& threads) : threads_(threads) {
  threads_of_this = &threads;
  ++threads.awake_;
}

ServingThreads::Membership::~Membership() {
  --threads_.awake_;
  threads_of_this = nullptr;
}

ServingThreads::Pause::Pause() : threads_(threads_of_this) {
  if (threads_ == nullptr) return;
  int awake = threads_->awake_;
  while (awake > 1) {
    if (threads_->awake_.compare_exchange_weak(awake, awake - 1)) return;
  }
  threads_ = nullptr;
}

ServingThreads::Pause::~Pause() {
  if (threads_ != nullptr) ++threads_->awake_;
}

}  // namespace isozone
