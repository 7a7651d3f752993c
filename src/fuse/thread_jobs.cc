#include "fuse/thread_jobs.h"

#include "base/units.h"

namespace isozone {
namespace {

constexpr uint64_t kSeconds = uint64_t{1} << 30U;

}  // namespace

ThreadJob ThreadJobs::Of(pid_t thread, int64_t now_ns) {
  if (thread <= 0) return ThreadJob::kUnknown;
  const auto number = static_cast<uint64_t>(thread);
  const uint64_t now_s = static_cast<uint64_t>(now_ns / kSecondNs) % kSeconds;
  std::atomic<uint64_t>& place = places_[number % kPlaces];
  const uint64_t known = place.load(std::memory_order_relaxed);
  const uint64_t age_s = (now_s - (known >> 2U)) % kSeconds;
  if (known >> 32U == number && age_s < kKeptS) return static_cast<ThreadJob>(known & 3U);
  const ThreadJob job = look_(thread);
  place.store(number << 32U | now_s << 2U | static_cast<uint64_t>(job), std::memory_order_relaxed);
  return job;
}

}  // namespace isozone
