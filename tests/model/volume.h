// Volume: a file system on an emulated SSD in memory that can lose its power, fail, and be mounted again; or on the
// device that a person names, which is overwritten, and neither fails nor loses its power.
//
// Thread safety: that of the file system; none beyond it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/random.h"
#include "base/status.h"
#include "device/emulated/emulated_device.h"
#include "store/file_system.h"
#include "testing/test_seed.h"

namespace isozone::model {

// `fallback`, scaled by ISOZONE_TEST_OPS over a million if that is set.
uint64_t TestOperations(uint64_t fallback);

// The URI in ISOZONE_TEST_DEVICE, of a device that may be overwritten; null if the environment has none.
const char* NamedDevice();

// A small device of random shape and either kind of Force Unit Access. It has 20 to 64 zones of up to `max_zone_size`,
// so that zones fill, are reset and roll often.
DeviceGeometry RandomGeometry(Random& random, uint64_t max_zone_size);
// Up to 8 groups, which may differ from the real groups of the device.
ZoneGroups RandomGroups(Random& random, const DeviceGeometry& geometry);
// Any policy and any collector, with small units and buffers and the smallest checkpoint interval. `at_leisure`: the
// collector works by itself, on its own thread, so that a run cannot be repeated exactly. Otherwise it works only when
// it is asked to, or when a writer waits for space.
MountOptions RandomMountOptions(Random& random, bool at_leisure);

class Volume {
 public:
  // With `timing`, commands take time and several are in flight. Without it, each completes before its Submit returns.
  static Result<Volume> Create(const DeviceGeometry& geometry, bool timing = false);
  // The same in a file, so that there is kept memory: a thread of the file system writes logs. Each Mount is the first
  // of a boot.
  static Result<Volume> CreateInFile(const DeviceGeometry& geometry);
  // The same, or on the NamedDevice, if there is one.
  static Result<Volume> CreateOrNamed(const DeviceGeometry& geometry, bool timing = false);

  // Of a device that is not named.
  Result<std::unique_ptr<EmulatedDevice>> Open(const FaultPlan& faults = {});
  Status Format(const FaultPlan& faults = {});
  // After this the file system is at fs() and its device at device(); after an error there is neither.
  Status Mount(const MountOptions& options, const FaultPlan& faults = {});
  // Ends the file system. Returns no error if the power is off. Handles must be closed.
  Status Unmount();
  // Runs fsck on the unmounted device: kCorruption with the findings.
  Status Check(bool read_data = false);
  // Destroys one of the two copies of the metadata on the unmounted device: its first zone goes offline, or, unless
  // `for_ever`, one of its bytes changes. `may_be_behind`: the copies may differ, because the test does not rely on
  // records that only one of them has. False: there are not two copies. kCorruption if fsck does not report the lost
  // zone.
  Result<bool> LoseMetadataCopy(Random& random, bool for_ever, bool may_be_behind);

  // The machine boots anew: what processes have left in memory is gone.
  void Reboot();
  // What a URI needs so that a process finds that memory; empty where there is none.
  std::string kept_options() const;

  FileSystem& fs() { return *fs_; }
  bool mounted() const { return fs_ != nullptr; }
  EmulatedDevice& device() { return *device_; }  // of a device that is not named
  // Whether the power of the mounted device is on.
  bool powered();
  std::string path() const { return file_ != nullptr ? file_->image() : image_->path(); }

 private:
  // Changes one written byte of `zone`.
  Status Damage(Random& random, ZoneId zone);

  // A directory with an image, which goes with it.
  class ScratchFile {
   public:
    ScratchFile();
    ~ScratchFile();
    ScratchFile(const ScratchFile&) = delete;
    ScratchFile& operator=(const ScratchFile&) = delete;
    std::string image() const { return directory_ + "/image"; }
    const std::string& directory() const { return directory_; }

   private:
    std::string directory_;
  };

  explicit Volume(MemoryImage image) : image_(std::move(image)) {}
  explicit Volume(std::unique_ptr<ScratchFile> file) : file_(std::move(file)) {}
  explicit Volume(std::string uri) : uri_(std::move(uri)) {}
  // Either kind of device; `device_` is set if it is an emulated one.
  Result<std::unique_ptr<ZonedDevice>> OpenEither(const FaultPlan& faults = {});

  std::optional<MemoryImage> image_;  // none if there is a file, or the device is named
  std::unique_ptr<ScratchFile> file_;
  std::string uri_;  // of a device that is named; otherwise empty
  std::unique_ptr<FileSystem> fs_;
  EmulatedDevice* device_ = nullptr;  // the one that was opened last, or null
};

}  // namespace isozone::model
