#include "store/io/patient_device.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace isozone {
namespace {

bool NeedsZone(DeviceOp op) { return op == DeviceOp::kWrite || op == DeviceOp::kAppend || op == DeviceOp::kOpen; }
bool GivesZoneBack(DeviceOp op) { return op == DeviceOp::kReset || op == DeviceOp::kFinish; }

}  // namespace

PatientDevice::PatientDevice(std::unique_ptr<ZonedDevice> device, std::unique_ptr<AlarmClock> clock)
    : device_(std::move(device)),
      clock_(clock != nullptr ? std::move(clock) : std::make_unique<ThreadAlarmClock>()),
      limited_(device_->geometry().max_active_zones != 0 || device_->geometry().max_open_zones != 0) {
  clock_->OnRing([this](uint32_t) { SubmitParked(); });
}

PatientDevice::~PatientDevice() { clock_->Stop(); }

RefusalStats PatientDevice::stats() const {
  const MutexLock lock(mu_);
  return stats_;
}

void PatientDevice::Submit(DeviceRequest& request) {
  const bool intercept = limited_ && (NeedsZone(request.op) || GivesZoneBack(request.op));
  if (!intercept) return device_->Submit(request);
  Command* command = Take();
  command->device = this;
  command->request = &request;
  command->done = std::exchange(request.done, [](DeviceRequest& r) {
    Command& c = *static_cast<Command*>(r.context);
    c.device->Complete(c);
  });
  command->context = std::exchange(request.context, command);
  command->refused_ns = 0;
  device_->Submit(request);
}

PatientDevice::Command* PatientDevice::Take() {
  const MutexLock lock(mu_);
  if (unused_.empty()) {
    unused_.push_back(commands_.emplace_back(std::make_unique<Command>()).get());
  }
  Command* command = unused_.back();
  unused_.pop_back();
  return command;
}

void PatientDevice::Complete(Command& command) {
  DeviceRequest& request = *command.request;
  if (IsRefusal(request.status)) {
    if (refused_) refused_();
    if (Park(command)) return;
  } else if (any_parked_.load(std::memory_order_relaxed) && GivesZoneBack(request.op)) {
    static_cast<void>(clock_->RingAt(clock_->Now(), 0));  // what is parked has an alarm already
  }
  request.done = command.done;
  request.context = command.context;
  {
    const MutexLock lock(mu_);
    unused_.push_back(&command);
  }
  request.done(request);
}

bool PatientDevice::Park(Command& command) {
  const int64_t now_ns = clock_->Now();
  command.request->may_block = false;  // the clock's thread will send it
  const MutexLock lock(mu_);
  if (command.refused_ns == 0) {
    command.refused_ns = now_ns;
    ++stats_.refusals;
    if (parked_.empty()) {
      Log().warn("{} refuses zone {} ({}): others hold zones of it, another namespace or a tool; trying for {} s",
                 name(), geometry().ZoneOf(command.request->offset).value(), DeviceStatusName(command.request->status),
                 kPatienceNs / kSecondNs);
    }
  } else if (now_ns - command.refused_ns >= kPatienceNs) {
    ++stats_.given_up;
    return false;
  }
  if (!alarm_set_) {
    if (!clock_->RingAt(now_ns + pause_ns_, 0)) {
      ++stats_.given_up;
      return false;
    }
    alarm_set_ = true;
    pause_ns_ = std::min(2 * pause_ns_, kLongestPauseNs);
  }
  parked_.push_back(&command);
  any_parked_.store(true, std::memory_order_relaxed);
  return true;
}

void PatientDevice::SubmitParked() {
  std::vector<Command*> parked;
  {
    const MutexLock lock(mu_);
    parked.swap(parked_);
    any_parked_.store(false, std::memory_order_relaxed);
    alarm_set_ = false;
  }
  for (Command* command : parked) device_->Submit(*command->request);
  const MutexLock lock(mu_);
  if (parked_.empty()) pause_ns_ = kFirstPauseNs;  // no command was refused again
}

}  // namespace isozone
