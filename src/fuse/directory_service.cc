#include "fuse/directory_service.h"

#include <memory>

#include "base/log.h"
#include "fuse/fuse_session.h"
#include "fuse/fuse_view.h"

namespace isozone {

Status ServeDirectory(FileSystem& file_system, InodeFiles& inodes, const DirectoryService& service, EndOfService& end,
                      const std::function<void()>& ready) {
  FuseView view(file_system, inodes, service.options);
  const fuse_lowlevel_ops operations = FuseOperations();
  Status status;
  {
    ISOZONE_ASSIGN_OR_RETURN(const std::unique_ptr<FuseSession> session,
                             FuseSession::Mount(operations, &view, service.directory, service.source, service.options));
    if (service.hints != nullptr) view.UseHints(*service.hints, service.directory, session->device());
    ISOZONE_RETURN_IF_ERROR(session->Start([&end] { end.NothingLeft(); }));
    ready();
    const Status rings = session->WaitForRings();
    if (rings.ok()) {
      Log().info("requests to {} come by io_uring", service.directory);
    } else {
      Log().info("requests to {} come by /dev/fuse: {}", service.directory, rings.message());
    }
    const Result<bool> by_signal = end.Wait();
    status = by_signal.status();
    if (!by_signal.ok() || *by_signal) {
      const Status unmounted = session->Unmount();
      if (status.ok()) status = unmounted;
    }
  }
  view.handles().CloseAll();
  if (view.refused_in_place() > 0) {
    Log().warn("{}: {} writes in place were refused", service.directory, view.refused_in_place());
  }
  return status;
}

}  // namespace isozone
