#include "device/export/ublk_control.h"

#include <fcntl.h>
#include <liburing.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/file_descriptor.h"
#include "device/export/ublk_abi.h"

namespace isozone {
namespace {

constexpr const char* kTooOld =
    "the ublk driver of this kernel has no zones; Linux 6.6 or later has, with CONFIG_BLK_DEV_ZONED";

Status CannotOpen(int error) {
  if (error == ENOENT || error == ENODEV || error == ENXIO) {
    return Status::NotSupported(
        fmt::format("there is no {}: run modprobe ublk_drv, which Linux 6.0 and later have", ublk::kControlPath));
  }
  if (error == EACCES || error == EPERM) {
    return Status::PermissionDenied(
        fmt::format("may not open {}: run this as root, with CAP_SYS_ADMIN", ublk::kControlPath));
  }
  return Status::FromErrno(error, fmt::format("cannot open {}", ublk::kControlPath));
}

class OpenedUblkControl final : public UblkControl {
 public:
  static Result<std::unique_ptr<OpenedUblkControl>> Open();
  ~OpenedUblkControl() override {
    if (ring_.ring_fd >= 0) ::io_uring_queue_exit(&ring_);
  }
  OpenedUblkControl(const OpenedUblkControl&) = delete;
  OpenedUblkControl& operator=(const OpenedUblkControl&) = delete;

  Status CheckFeatures();

 private:
  explicit OpenedUblkControl(FileDescriptor fd) : fd_(std::move(fd)) { ring_.ring_fd = -1; }
  int DoSend(uint32_t command, uint32_t device, void* argument, uint16_t length, uint64_t data) override;

  const FileDescriptor fd_;
  io_uring ring_{};
};

Result<std::unique_ptr<OpenedUblkControl>> OpenedUblkControl::Open() {
  FileDescriptor fd(::open(ublk::kControlPath, O_RDWR | O_CLOEXEC));
  if (fd.get() < 0) return CannotOpen(errno);
  std::unique_ptr<OpenedUblkControl> control(new OpenedUblkControl(std::move(fd)));
  io_uring_params params{};
  params.flags = IORING_SETUP_SQE128;
  if (const int error = -::io_uring_queue_init_params(4, &control->ring_, &params); error != 0) {
    control->ring_.ring_fd = -1;
    return Status::NotSupported(fmt::format(
        "the kernel refuses io_uring, which ublk needs: {}; see kernel.io_uring_disabled", std::strerror(error)));
  }
  return control;
}

int OpenedUblkControl::DoSend(uint32_t command, uint32_t device, void* argument, uint16_t length, uint64_t data) {
  ublk::ControlCommand payload;
  payload.device = device;
  payload.length = length;
  payload.address = reinterpret_cast<uint64_t>(argument);
  payload.data = data;
  io_uring_sqe* const entry = ::io_uring_get_sqe(&ring_);  // never null: one command at a time
  ::io_uring_prep_rw(IORING_OP_URING_CMD, entry, fd_.get(), nullptr, 0, 0);
  entry->cmd_op = command;
  std::memcpy(entry->cmd, &payload, sizeof(payload));
  int submitted = 0;
  do {
    submitted = ::io_uring_submit(&ring_);
  } while (submitted == -EINTR || submitted == -EAGAIN);
  if (submitted < 0) return -submitted;
  io_uring_cqe* completion = nullptr;
  int waited = 0;
  do {
    waited = ::io_uring_wait_cqe(&ring_, &completion);
  } while (waited == -EINTR || waited == -EAGAIN);
  if (waited != 0) return -waited;
  const int result = completion->res;
  ::io_uring_cqe_seen(&ring_, completion);
  return result < 0 ? -result : 0;
}

Status OpenedUblkControl::CheckFeatures() {
  uint64_t features = 0;
  switch (const int error = Send(ublk::kGetFeatures, ublk::kAnyDevice, &features, sizeof(features))) {
    case 0:
      break;
    case EPERM:
    case EACCES:
      return Status::PermissionDenied("the kernel refuses ublk: run this as root, with CAP_SYS_ADMIN");
    case EINVAL:
    case EOPNOTSUPP:
    case ENODEV:
      return Status::NotSupported(kTooOld);  // no such command before Linux 6.5
    default:
      return Status::FromErrno(error, "cannot ask for the features of ublk");
  }
  if ((features & ublk::kZoned) == 0) return Status::NotSupported(kTooOld);
  return Status::Ok();
}

}  // namespace

Result<std::unique_ptr<UblkControl>> UblkControl::Open() {
  ISOZONE_ASSIGN_OR_RETURN(std::unique_ptr<OpenedUblkControl> control, OpenedUblkControl::Open());
  ISOZONE_RETURN_IF_ERROR(control->CheckFeatures());
  return std::unique_ptr<UblkControl>(std::move(control));
}

}  // namespace isozone
