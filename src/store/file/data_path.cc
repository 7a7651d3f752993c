#include "store/file/data_path.h"

#include <utility>

namespace isozone {

DataPath::DataPath(std::unique_ptr<ZonedDevice> device, const MountOptions& options, uint32_t frame_seed, bool parallel,
                   const ZoneGroups* groups, Clock& clock)
    : device(std::make_unique<PatientDevice>(std::move(device))),
      options(options),
      frame_seed(frame_seed),
      parallel(parallel),
      groups(std::make_shared<GroupIndex>(geometry().zone_count, parallel ? groups : nullptr)),
      clock(clock),
      engine(*this->device, this->groups, {.isolation = parallel && options.isolation, .write_gap = options.write_gap}),
      buffers(2 * options.writer_memory),
      read_ahead(options.read_ahead_memory) {}

}  // namespace isozone
