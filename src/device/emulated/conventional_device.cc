#include "device/emulated/conventional_device.h"

#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/units.h"

namespace isozone {
namespace {

constexpr uint64_t kDefaultSize = 8 * kGiB;
constexpr double kMostAge = 100;

}  // namespace

std::string ConventionalOptions::ToString() const {
  return fmt::format("profile={} size={} timing={} speed={} age={} age_seed={}", profile.name, profile.capacity,
                     timing ? "on" : "off", speed, age, age_seed);
}

Result<ConventionalOptions> TakeConventionalOptions(UriOptions& options) {
  ConventionalOptions taken;
  ISOZONE_ASSIGN_OR_RETURN(Profile profile, LoadProfile(options.Take("profile").value_or("conventional")));
  if (profile.zoned()) {
    return Status::InvalidArgument(
        fmt::format("profile {} is of a zoned SSD; take conventional here, or isozone://emu:/path/ssd.img for a zoned "
                    "one",
                    profile.name));
  }
  ISOZONE_ASSIGN_OR_RETURN(const auto size, options.TakeSize("size", kMiB, profile.capacity));
  ISOZONE_ASSIGN_OR_RETURN(taken.profile,
                           ScaleConventional(profile, size.value_or(std::min(kDefaultSize, profile.capacity))));
  ISOZONE_ASSIGN_OR_RETURN(const auto timing, options.TakeBool("timing"));
  taken.timing = timing.value_or(true);
  ISOZONE_ASSIGN_OR_RETURN(const auto speed, options.TakeReal("speed", 0.001, 1000.0));
  taken.speed = speed.value_or(1);
  ISOZONE_ASSIGN_OR_RETURN(const auto age, options.TakeReal("age", 0, kMostAge));
  taken.age = age.value_or(0);
  ISOZONE_ASSIGN_OR_RETURN(const auto seed, options.TakeUnsigned("age_seed", 0, std::numeric_limits<uint64_t>::max()));
  taken.age_seed = seed.value_or(taken.age_seed);
  return taken;
}

void BytesInFlight::Begin(uint64_t bytes) {
  const MutexLock lock(mu_);
  ++commands_;
  bytes_ += bytes;
}

void BytesInFlight::End(uint64_t bytes) {
  const MutexLock lock(mu_);
  --commands_;
  bytes_ -= bytes;
  changed_.SignalAll();
}

void BytesInFlight::Wait() {
  const MutexLock lock(mu_);
  while (commands_ > 0) changed_.Wait(mu_);
}

void BytesInFlight::WaitForAtMost(uint64_t bytes) {
  const MutexLock lock(mu_);
  while (bytes_ > bytes) changed_.Wait(mu_);
}

ConventionalDevice::ConventionalDevice(const ConventionalOptions& options)
    : capacity_(options.profile.capacity), block_size_(options.profile.block_size) {
  auto model = std::make_unique<ConventionalModel>(options.profile, options.timing);
  if (options.age > 0) model->Age(options.age, options.age_seed);
  if (!options.timing) {
    const MutexLock lock(mu_);
    untimed_ = std::move(model);
    return;
  }
  timed_ = model.get();
  timer_ = std::make_unique<CompletionTimer>(
      std::move(model), options.speed,
      [this](std::span<const uint64_t> tickets, const MediaCounts&) { OnTimer(tickets); });
}

ConventionalDevice::~ConventionalDevice() {
  if (timer_) timer_->Stop();
}

void ConventionalDevice::Fill(uint64_t offset, uint64_t length) {
  if (timer_) {
    return timer_->WithModel([&](CommandModel& model) { static_cast<ConventionalModel&>(model).Fill(offset, length); });
  }
  const MutexLock lock(mu_);
  untimed_->Fill(offset, length);
}

void ConventionalDevice::Submit(TimingOpKind kind, uint64_t offset, uint64_t length,
                                const std::shared_ptr<BytesInFlight>& transfers) {
  const int64_t arrived_ns = MonotonicNs();
  const TimingOp op{.kind = kind, .offset = offset, .length = length};
  Count(kind, length);
  transfers->Begin(length);
  if (!timer_) {
    {
      const MutexLock lock(mu_);
      untimed_->Submit(0, op, 0);
      completed_.clear();
      untimed_->AdvanceTo(0, completed_);
    }
    return transfers->End(length);
  }
  uint64_t ticket = 0;
  {
    const MutexLock lock(mu_);
    ticket = next_ticket_++;
    in_flight_[ticket] = {transfers, length};
  }
  timer_->Submit(op, arrived_ns, 0, ticket);
}

void ConventionalDevice::OnTimer(std::span<const uint64_t> tickets) {
  for (const uint64_t ticket : tickets) {
    std::unordered_map<uint64_t, InFlight>::node_type ended;
    {
      const MutexLock lock(mu_);
      ended = in_flight_.extract(ticket);
    }
    ended.mapped().transfers->End(ended.mapped().bytes);
  }
}

void ConventionalDevice::Count(TimingOpKind kind, uint64_t length) {
  if (kind == TimingOpKind::kRead) bytes_read_.fetch_add(length, std::memory_order_relaxed);
  if (kind == TimingOpKind::kWrite) bytes_written_.fetch_add(length, std::memory_order_relaxed);
  if (kind == TimingOpKind::kTrim) bytes_trimmed_.fetch_add(length, std::memory_order_relaxed);
}

ConventionalStats ConventionalDevice::Stats() const {
  ConventionalStats stats;
  if (timer_) {
    timer_->WithModel([&](CommandModel&) { stats.ftl = timed_->counters(); });
  } else {
    const MutexLock lock(mu_);
    stats.ftl = untimed_->counters();
  }
  stats.host_bytes_read = bytes_read_.load(std::memory_order_relaxed);
  stats.host_bytes_written = bytes_written_.load(std::memory_order_relaxed);
  stats.host_bytes_trimmed = bytes_trimmed_.load(std::memory_order_relaxed);
  stats.flash_bytes_written = (stats.ftl.host_pages + stats.ftl.copied_pages) * block_size_;
  return stats;
}

}  // namespace isozone
