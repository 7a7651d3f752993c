#include "store/mount/mount_context.h"

#include <utility>

#include "store/file/log_frame.h"

namespace isozone {

MountContext::MountContext(std::unique_ptr<ZonedDevice> device, const MountOptions& options, std::string label,
                           std::string uuid, MetadataState state, bool parallel, Clock& clock)
    : label(std::move(label)),
      uuid(std::move(uuid)),
      data_path(std::move(device), options, LogFrameSeed(this->uuid), parallel, state.device().groups.get(), clock),
      catalog(data_path.geometry(), std::move(state), clock) {}

}  // namespace isozone
