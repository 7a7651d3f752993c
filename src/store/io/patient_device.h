// PatientDevice: a device that others may use at the same time. If another namespace or a tool holds active or open
// zones, the device refuses one more (Too Many Active Zones, Too Many Open Zones) although Isozone holds fewer than the
// device allows. Such a command is held back and submitted again, a little later each time, and at once when a zone of
// Isozone was finished or reset. After kPatienceNs it completes as refused.
//
//   write, append, open --refused--> parked --kFirstPauseNs, then twice as long each time, kLongestPauseNs at most-->
//   again
//
// A callback reports each refusal, so that the file system can finish zones to make room. The log has one line when
// refusals begin.
//
// Thread safety: as ZonedDevice. Completions run on a thread of the device; those of refused commands on the clock's.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/units.h"
#include "device/zoned_device.h"
#include "store/io/alarm_clock.h"

namespace isozone {

// Returns whether the device has no active or open zone left for the command, but may have one soon.
constexpr bool IsRefusal(DeviceStatus status) {
  return status == DeviceStatus::kTooManyActiveZones || status == DeviceStatus::kTooManyOpenZones;
}

struct RefusalStats {
  uint64_t refusals = 0;  // commands that the device refused at least once
  uint64_t given_up = 0;  // of these, commands that completed as refused
};

class PatientDevice final : public ZonedDevice {
 public:
  static constexpr int64_t kFirstPauseNs = 5 * kMillisecondNs;
  static constexpr int64_t kLongestPauseNs = 200 * kMillisecondNs;
  static constexpr int64_t kPatienceNs = 30 * kSecondNs;

  // `clock` is for tests; null means the real one.
  explicit PatientDevice(std::unique_ptr<ZonedDevice> device, std::unique_ptr<AlarmClock> clock = nullptr);
  ~PatientDevice() override;

  // Sets the function that is called for each refusal, on any thread; it must be short and do no I/O. May be empty.
  // Must only be called while no command is in flight.
  void OnRefusal(std::function<void()> refused) { refused_ = std::move(refused); }
  RefusalStats stats() const;

  const DeviceGeometry& geometry() const override { return device_->geometry(); }
  std::string name() const override { return device_->name(); }
  bool read_only() const override { return device_->read_only(); }
  Status ReportZones(ZoneId first, std::span<ZoneDescriptor> out) const override {
    return device_->ReportZones(first, out);
  }
  DeviceCounters counters() const override { return device_->counters(); }
  DeviceDescription description() const override { return device_->description(); }
  void Submit(DeviceRequest& request) override;

 private:
  // A command whose outcome this device watches, with the callback of its submitter.
  struct Command {
    PatientDevice* device = nullptr;
    DeviceRequest* request = nullptr;
    void (*done)(DeviceRequest&) = nullptr;
    void* context = nullptr;
    int64_t refused_ns = 0;  // the time of the first refusal; 0: never refused
  };

  Command* Take();
  void Complete(Command& command);
  // Parks a command that was refused. Returns false if its time is over.
  bool Park(Command& command);
  void SubmitParked();

  const std::unique_ptr<ZonedDevice> device_;
  const std::unique_ptr<AlarmClock> clock_;
  const bool limited_;  // the device has limits, so it may refuse commands
  std::function<void()> refused_;

  mutable Mutex mu_;
  std::vector<std::unique_ptr<Command>> commands_ ISOZONE_GUARDED_BY(mu_);  // all commands, in use or not
  std::vector<Command*> unused_ ISOZONE_GUARDED_BY(mu_);
  std::vector<Command*> parked_ ISOZONE_GUARDED_BY(mu_);
  bool alarm_set_ ISOZONE_GUARDED_BY(mu_) = false;
  int64_t pause_ns_ ISOZONE_GUARDED_BY(mu_) = kFirstPauseNs;
  RefusalStats stats_ ISOZONE_GUARDED_BY(mu_);
  std::atomic<bool> any_parked_{false};
};

}  // namespace isozone
