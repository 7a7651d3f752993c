// Volume: a file system on an emulated SSD in memory that can lose its power, fail, and be mounted again.
//
// Thread safety: none but that of the file system.
#pragma once

#include <memory>
#include <string>

#include "base/random.h"
#include "base/status.h"
#include "device/emulated/emulated_device.h"
#include "fs/file_system.h"
#include "testing/test_seed.h"

namespace isozone::model {

// `fallback` times ISOZONE_TEST_OPS over a million, where that is set.
uint64_t TestOperations(uint64_t fallback);

// A small device of random shape and either kind of Force Unit Access: 20 to 64 zones of up to `max_zone_size`, which fill, are reset and roll often.
DeviceGeometry RandomGeometry(Random& random, uint64_t max_zone_size);
// Up to 8 groups, which need not have anything to do with the device.
ZoneGroups RandomGroups(Random& random, const DeviceGeometry& geometry);
// Any policy and any collector, with small units and buffers and the least checkpoint interval. `at_leisure`: the
// collector acts by itself, on its own thread, so that what happens is not the same twice; else only when it is asked, or
// somebody waits for space.
MountOptions RandomMountOptions(Random& random, bool at_leisure);

class Volume {
 public:
  // With `timing`, commands take time and are in flight together; without, each completes before its Submit returns.
  static Result<Volume> Create(const DeviceGeometry& geometry, bool timing = false);

  Result<std::unique_ptr<EmulatedDevice>> Open(const FaultPlan& faults = {});
  Status Format(const FaultPlan& faults = {});
  // The mounted file system is at fs(), its device at device(). After an error there is neither.
  Status Mount(const MountOptions& options, const FaultPlan& faults = {});
  // Ends the file system without error where the power is off. Handles must be closed.
  Status Unmount();
  // Fsck, of the unmounted device: kCorruption with the findings.
  Status Check(bool read_data = false);
  // Takes one of the two copies of the metadata away from the unmounted device: its first zone goes offline, or, where not
  // `for_ever`, a byte of it changes. One of them `may_be_behind` the other where nobody counts on what only that one has.
  // False: there are not two. kCorruption where fsck does not report the loss of a zone.
  Result<bool> LoseMetadataCopy(Random& random, bool for_ever, bool may_be_behind);

  FileSystem& fs() { return *fs_; }
  bool mounted() const { return fs_ != nullptr; }
  EmulatedDevice& device() { return *device_; }
  // The power of the mounted device is on.
  bool powered();
  std::string path() const { return image_.path(); }

 private:
  // A byte of what was written to `zone` is another one.
  Status Damage(Random& random, ZoneId zone);

  explicit Volume(MemoryImage image) : image_(std::move(image)) {}

  MemoryImage image_;
  std::unique_ptr<FileSystem> fs_;
  EmulatedDevice* device_ = nullptr;  // the file system's
};

}  // namespace isozone::model
