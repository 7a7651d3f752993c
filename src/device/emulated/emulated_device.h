// EmulatedDevice: a zoned SSD in an image file, with the semantics of NVMe ZNS, the timing of a NAND model, and the
// faults of real devices.
//
// A command has two halves. *Start* runs on the submitting thread: it checks the command, injects faults, and moves the
// data: a write stores its data in the file and then advances the write pointer, a read copies out of the mapping.
// *Settle* runs when the command completes: it makes durable what the command promises, and executes reset, finish,
// open and close. So these take effect at their completion, the latest time that the standard allows. With timing off,
// Settle follows Start at once; with timing on, a CompletionTimer runs between them.
//
// Process kill: the image has everything that was started, because the zone table is shared memory of the file. The
// next open finds all zone states as they were left, open zones included, as on a device that stayed powered.
//
// Power cut: durable bytes survive. Of the bytes in the cache, between two durable ranges or behind the last, a prefix
// survives that ends at a random block; the same holds for a write in flight. The write pointer goes back to the last
// block that survived, and lost blocks below it become zeros (durable_ranges.h). Each reset, finish, open and close in
// flight either happened or did not. Every request in flight, and every later one, completes with kPowerLoss until
// RestorePower() or a new open.
//
// Host errors: if the file cannot take data, it does not count as written. The command completes with kCapacityExceeded
// where the disk of the file is full, else with kInternalError, and host_error() returns the reason. Once a page of the
// file could not be read, every later command completes with kInternalError.
//
// Locks: one mutex (`state_mu_`) guards the state machine and what is durable; it is never held during I/O. Each zone
// has a mutex (`content_mu`), taken before it, that orders all changes of the file's blocks of that zone. Reads take
// neither.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/histogram.h"
#include "base/mutex.h"
#include "base/status.h"
#include "device/emulated/block_reclaimer.h"
#include "device/emulated/completion_timer.h"
#include "device/emulated/device_options.h"
#include "device/emulated/durable_ranges.h"
#include "device/emulated/faults.h"
#include "device/emulated/image_file.h"
#include "device/emulated/nand/profile.h"
#include "device/emulated/nand/timing_model.h"
#include "device/emulated/zone_state_machine.h"
#include "device/open_device.h"
#include "device/zoned_device.h"

namespace isozone {

class EmulatedDevice final : public ZonedDevice {
 public:
  // Creates the image of a device as `profile` describes it, which remembers the timing and the sync of `remembered`.
  static Status CreateImage(const std::string& path, const Profile& profile, const EmulatedOptions& remembered = {});
  static Result<MemoryImage> CreateInMemory(const Profile& profile);
  // Makes an image without a timing model, which can be opened only with timing off.
  static Result<MemoryImage> CreateInMemory(const DeviceGeometry& geometry);

  static Result<std::unique_ptr<EmulatedDevice>> Open(const std::string& path, OpenMode mode,
                                                      const EmulatedOptions& options);
  ~EmulatedDevice() override;

  const DeviceGeometry& geometry() const override { return image_->info().geometry; }
  std::string name() const override { return "emu:" + path_; }
  bool read_only() const override { return mode_ == OpenMode::kReadOnly; }
  void Submit(DeviceRequest& request) override;
  Status ReportZones(ZoneId first, std::span<ZoneDescriptor> out) const override;
  // Counts what writers do. What a read-only device reads is not counted.
  DeviceCounters counters() const override;
  DeviceDescription description() const override;

  const ImageInfo& image_info() const { return image_->info(); }
  bool timing() const { return timing_; }
  // Returns the first error of the host that the device met; OK if there was none.
  Status host_error() const;

  // Faults on demand, for devices that are open for writing.
  uint64_t fault_seed() const { return faults_.seed(); }
  void FailNext(DeviceOp op, ZoneId zone, DeviceStatus status) { faults_.FailNext(op, zone, status); }
  // `state` is kReadOnly or kOffline.
  void SetZoneState(ZoneId zone, ZoneState state);
  // Lets another user hold `zones` open zones, of those that the device allows.
  void SetForeignActive(uint32_t zones);
  void CutPower();
  void CutPowerAfter(uint64_t commands) { faults_.CutPowerAfter(commands); }
  // Ends a power cut. No request may be in flight.
  void RestorePower();

 private:
  // The state of a zone in this process. Its persistent state is the entry in the image.
  struct Zone {
    Mutex content_mu;
    std::atomic<bool> write_in_flight{false};
  };
  struct Progress {
    bool unflushed = false;  // listed in unflushed_
    uint64_t completed = 0;  // bytes; the end of the last write or append that completed
  };
  // The bytes [begin, bytes) of a zone, which may become durable unless the zone is reset before.
  struct DurablePoint {
    ZoneId zone;
    uint64_t resets = 0;
    uint64_t bytes = 0;
    uint64_t begin = 0;
  };
  // A command between its halves.
  struct Command {
    DeviceRequest* request = nullptr;
    bool holds_zone = false;            // it is the one write in flight to its zone
    DurablePoint end;                   // kWrite, kAppend: where it ends, and which bytes it can make durable
    std::vector<DurablePoint> flushed;  // kFlush: the writes that had completed before it
  };

  // `profile` is empty if the image has none.
  EmulatedDevice(std::string path, OpenMode mode, std::unique_ptr<ImageFile> image, std::optional<Profile> profile,
                 const EmulatedOptions& options);
  // Corrects the table after the last writer, or after a crash of its host. For a writer.
  void Recover();
  // `model` is null with timing off.
  Status StartTimer(std::unique_ptr<TimingModel> model, double speed, bool spikes);

  // The first half of a command. If it returns kSuccess, the command takes its time and is settled; otherwise the
  // command completes at once with this status.
  DeviceStatus Start(Command& command, int64_t& delay_ns);
  DeviceStatus StartFaulty(Command& command, const FaultInjector::Verdict& verdict);
  DeviceStatus StartOp(Command& command, uint64_t length);
  DeviceStatus Read(const DeviceRequest& request);
  DeviceStatus StartWrite(Command& command, uint64_t length);
  DeviceStatus BeginWrite(const DeviceRequest& request) ISOZONE_REQUIRES(state_mu_);
  // Undoes a write that could not be stored at `at`, in bytes from the start of the zone.
  DeviceStatus AbandonWrite(ZoneId zone, uint64_t at, const Status& cause) ISOZONE_EXCLUDES(state_mu_);
  DeviceStatus EndWrite(Command& command, ZoneId zone, uint64_t length);
  DeviceStatus StartFlush(Command& command);
  TimingOp TimingOf(const DeviceRequest& request) const;

  // Hands `command` to the timer and returns its ticket. Returns no ticket, and leaves the command alone, if power has
  // failed.
  std::optional<uint64_t> PutInFlight(Command& command);

  // The second half.
  DeviceStatus Settle(Command& command);
  DeviceStatus SettleDurable(std::span<const DurablePoint> points);
  DeviceStatus SettleZoneCommand(DeviceOp op, ZoneId zone);
  DeviceStatus ExecuteZoneCommand(DeviceOp op, ZoneId zone) ISOZONE_REQUIRES(state_mu_);
  void MakeDurable(std::span<const DurablePoint> points) ISOZONE_REQUIRES(state_mu_);
  void CountMedia(const MediaCounts& since_open);
  // Counts the bytes from `written` to `end`, with which a finish or reset pads a zone. Does nothing with timing, which
  // counts them itself.
  void CountPadding(uint64_t written, uint64_t end);
  void OnTimer(std::span<const uint64_t> tickets, const MediaCounts& media);
  void Complete(const Command& command, DeviceStatus status);

  // Cuts the power. `torn`, if not null, is in flight as well, but not with the timer; it is not completed here.
  void LosePower(const Command* torn);
  void LoseInFlight(const Command& command) ISOZONE_REQUIRES(state_mu_);
  // Loses what is not durable in the zone: all of it with `all`, otherwise a random part. Adds the ranges that are lost
  // below the write pointer to `lost`.
  void LoseUnflushed(ZoneId zone, bool all, std::vector<std::pair<ZoneId, ZoneRange>>& lost)
      ISOZONE_REQUIRES(state_mu_);
  // Returns how many of `bytes` in the cache survive.
  uint64_t SurvivorsOf(uint64_t bytes);
  void ZeroLost(std::span<const std::pair<ZoneId, ZoneRange>> lost);
  void ReclaimBlocks(ZoneId zone);
  bool SyncImage();
  bool HostFailed();
  void LatchHostError(const Status& status);
  ZoneEntry& Entry(ZoneId zone) { return image_->table()[zone.value()]; }
  const ZoneEntry& Entry(ZoneId zone) const { return std::as_const(*image_).table()[zone.value()]; }
  LiveBlock::Traffic& Traffic();

  const std::string path_;
  const OpenMode mode_;
  const std::unique_ptr<ImageFile> image_;
  const std::optional<Profile> profile_;
  const ImageSync sync_;
  FaultInjector faults_;
  const std::unique_ptr<Zone[]> zones_;
  bool timing_ = false;  // set by StartTimer, like speed_
  double speed_ = 1;
  const MediaCounts media_before_;  // programmed before this open

  std::atomic<bool> powered_{true};
  std::atomic<bool> sync_failed_{false};  // the host has lost writes; from then on the device can only be read
  mutable Mutex state_mu_;
  ZoneStateMachine machine_ ISOZONE_GUARDED_BY(state_mu_);
  std::vector<Progress> progress_ ISOZONE_GUARDED_BY(state_mu_);  // by zone
  std::vector<ZoneId> unflushed_ ISOZONE_GUARDED_BY(state_mu_);   // zones whose Progress says unflushed
  std::unordered_map<uint64_t, Command> in_flight_ ISOZONE_GUARDED_BY(state_mu_);  // by ticket; only with a timer
  uint64_t next_ticket_ ISOZONE_GUARDED_BY(state_mu_) = 0;
  mutable Mutex error_mu_;
  Status host_error_ ISOZONE_GUARDED_BY(error_mu_);

  std::unique_ptr<BlockReclaimer> reclaimer_;  // null: blocks are given back inline
  std::unique_ptr<CompletionTimer> timer_;     // null: commands complete inline
};

}  // namespace isozone
