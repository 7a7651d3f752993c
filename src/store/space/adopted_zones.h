// AdoptedZones: tells a pool of zones what the metadata says of them, at mount, before ZonePool::Start.
//
// Thread safety: any thread.
#pragma once

#include <functional>

#include "base/status.h"
#include "device/zoned_device.h"
#include "store/zone/data_class.h"
#include "store/zone/zone_use.h"

namespace isozone {

class ZoneExecutor;

class AdoptedZones {
 public:
  // `executor` outlives this.
  explicit AdoptedZones(ZoneExecutor& executor) : executor_(executor) {}

  // A zone that holds metadata, or is set aside for it. kInvalidArgument: the device has no such zone.
  Status SetMetadata(ZoneId zone);
  void SetDataClass(ZoneId zone, DataClass data);  // of what it holds
  void SetUse(ZoneId zone, ZoneUse use);           // kData or kLog
  // An empty zone that a durable record may name, though no longer the state: it is given to nobody before it was
  // reset, which waits until that is durable.
  void ResetBeforeUse(ZoneId zone);
  // A partly written zone that nothing more may be written to before it is reset.
  void KeepAsItIs(ZoneId zone);
  // What is dead in zones that nothing durable names, metadata that was given up included, is reset without asking
  // make_durable, which may need one of them. What was found is durable.
  void ReleaseUnnamed(const std::function<bool(ZoneId)>& is_named);

 private:
  ZoneExecutor& executor_;
};

}  // namespace isozone
