#include "device/export/ublk_kernel.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "device/export/ublk_queue.h"

namespace isozone {
namespace {

constexpr uint16_t kQueues = 4;  // at most; the kernel makes no more than there are processors
constexpr uint16_t kDepth = 32;
// For how long udev may take to make a node, or the kernel to end a process that was killed.
constexpr std::chrono::seconds kPatience(5);
constexpr std::chrono::milliseconds kPause(20);

std::string ServerPath(uint32_t id) { return fmt::format("/dev/ublkc{}", id); }
std::string DevicePath(uint32_t id) { return fmt::format("/dev/ublkb{}", id); }

// Calls `attempt` until it returns something other than `error`, or patience ends.
template <typename Attempt>
int Retry(int error, Attempt attempt) {
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    const int outcome = attempt();
    if (outcome != error || std::chrono::steady_clock::now() >= give_up) return outcome;
    std::this_thread::sleep_for(kPause);
  }
}

Status NoSuchDevice(uint32_t id) { return Status::NotFound(fmt::format("there is no exported device {}", id)); }

Status HasServer(uint32_t id, const ublk::DeviceInfo& info) {
  return Status::Busy(
      fmt::format("{} is served by process {}; end that with SIGTERM first", DevicePath(id), info.server));
}

// The device must be one that has lost its server, which may take the kernel a moment to notice.
Status CheckDead(UblkControl& control, uint32_t id, ublk::DeviceInfo& info) {
  const int error = Retry(EBUSY, [&] {
    const int asked = control.Send(ublk::kGetDeviceInfo, id, &info, sizeof(info));
    return asked == 0 && info.state == static_cast<uint16_t>(ublk::DeviceState::kLive) ? EBUSY : asked;
  });
  if (error == ENODEV || error == ENOENT) return NoSuchDevice(id);
  if (error == EBUSY) return HasServer(id, info);
  if (error != 0) return Status::FromErrno(error, fmt::format("cannot look at exported device {}", id));
  return Status::Ok();
}

// Its last user may still have it open. Waits a moment for that one; the number is free once it has closed it.
int Delete(UblkControl& control, uint32_t id) {
  const int error = control.Send(ublk::kDeleteDeviceLater, id);
  if (error == EOPNOTSUPP || error == EINVAL) return control.Send(ublk::kDeleteDevice, id);
  if (error != 0) return error;
  ublk::DeviceInfo info;
  if (Retry(0, [&] { return control.Send(ublk::kGetDeviceInfo, id, &info, sizeof(info)); }) == 0) {
    Log().warn("{} is open in another process, and its number is taken until that ends", DevicePath(id));
  }
  return 0;
}

}  // namespace

UblkKernel::UblkKernel(std::unique_ptr<UblkControl> control, uint32_t id, const ublk::DeviceInfo& info)
    : control_(std::move(control)), id_(id), layout_{info.queues, info.depth, info.max_transfer} {}

UblkKernel::~UblkKernel() {
  if (recovers_ || removed_) return;
  if (const Status removed = Remove(); !removed.ok()) Log().error("{}", removed.message());
}

std::string UblkKernel::path() const { return DevicePath(id_); }

Result<std::unique_ptr<UblkKernel>> UblkKernel::Add(std::unique_ptr<UblkControl> control, const ExportShape& shape,
                                                    std::optional<uint32_t> id) {
  constexpr uint64_t kFlags =
      ublk::kZoned | ublk::kUserCopy | ublk::kUserRecovery | ublk::kUserRecoveryReissue | ublk::kCommandIoctlEncode;
  ublk::DeviceInfo info;
  info.queues = static_cast<uint16_t>(std::clamp<long>(::sysconf(_SC_NPROCESSORS_ONLN), 1, kQueues));
  info.depth = kDepth;
  info.max_transfer = shape.max_transfer;
  info.device = id.value_or(ublk::kAnyDevice);
  info.flags = kFlags;
  const int error = control->Send(ublk::kAddDevice, info.device, &info, sizeof(info));
  if (error == EEXIST) {
    return Status::Busy(
        fmt::format("there is a device {} already; choose another number with --id, or --recover that one "
                    "if its server died",
                    DevicePath(*id)));
  }
  if (error == EPERM || error == EACCES) {
    return Status::PermissionDenied("may not make a block device: run this as root, with CAP_SYS_ADMIN");
  }
  if (error == EINVAL) {
    return Status::NotSupported(id ? fmt::format("the kernel takes no zoned device with the number {}", *id)
                                   : "the kernel takes no zoned device: it has no CONFIG_BLK_DEV_ZONED");
  }
  if (error != 0) return Status::FromErrno(error, "cannot make a block device");
  std::unique_ptr<UblkKernel> kernel(new UblkKernel(std::move(control), info.device, info));
  ublk::Parameters parameters = shape.parameters;
  const int refused = kernel->control_->Send(ublk::kSetParameters, kernel->id_, &parameters, sizeof(parameters));
  if (refused != 0) return Status::FromErrno(refused, "the kernel does not take a device with these zones and limits");
  return kernel;
}

Result<std::unique_ptr<UblkKernel>> UblkKernel::Recover(std::unique_ptr<UblkControl> control, const ExportShape& shape,
                                                        uint32_t id) {
  ublk::DeviceInfo info;
  ISOZONE_RETURN_IF_ERROR(CheckDead(*control, id, info));
  if (info.state == static_cast<uint16_t>(ublk::DeviceState::kDead)) {
    return Status::NotSupported(fmt::format("{} was never started; give it up with --remove {}", DevicePath(id), id));
  }
  ublk::Parameters known;
  const int asked = control->Send(ublk::kGetParameters, id, &known, sizeof(known));
  if (asked != 0) return Status::FromErrno(asked, fmt::format("cannot look at exported device {}", id));
  if (!SameShape(known, shape.parameters)) {
    return Status::InvalidArgument(fmt::format("{} was another device: its zones or limits differ", DevicePath(id)));
  }
  if ((info.flags & ublk::kUserRecoveryReissue) == 0) {
    return Status::NotSupported(fmt::format("{} was not made by isozone export", DevicePath(id)));
  }
  std::unique_ptr<UblkKernel> kernel(new UblkKernel(std::move(control), id, info));
  kernel->recovers_ = true;
  return kernel;
}

Status UblkKernel::RemoveDead(UblkControl& control, uint32_t id, const std::function<void()>& forget) {
  ublk::DeviceInfo info;
  ISOZONE_RETURN_IF_ERROR(CheckDead(control, id, info));
  int error = control.Send(ublk::kStopDevice, id);
  if (error == 0) {
    forget();
    error = Delete(control, id);
  }
  return error == 0 ? Status::Ok() : Status::FromErrno(error, fmt::format("cannot remove {}", DevicePath(id)));
}

Status UblkKernel::Open() {
  if (recovers_) {
    const int error = Retry(EBUSY, [&] { return control_->Send(ublk::kStartRecovery, id_); });
    // EINVAL: a server that died since has begun this, and had opened no queue.
    if (error != 0 && error != EINVAL)
      return Status::FromErrno(error, fmt::format("cannot recover {}", DevicePath(id_)));
  }
  const std::string path = ServerPath(id_);
  int fd = -1;
  const int error = Retry(ENOENT, [&] {
    fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    return fd < 0 ? errno : 0;
  });
  if (error == 0) {
    fd_ = FileDescriptor(fd);
    return Status::Ok();
  }
  return Status::FromErrno(error, fmt::format("cannot open {}", path));
}

Result<std::unique_ptr<ExportQueue>> UblkKernel::OpenQueue(uint16_t number) {
  ISOZONE_ASSIGN_OR_RETURN(std::unique_ptr<UblkQueue> queue, UblkQueue::Open(fd_.get(), number, layout_.depth));
  return std::unique_ptr<ExportQueue>(std::move(queue));
}

Status UblkKernel::Start() {
  const uint32_t command = recovers_ ? ublk::kEndRecovery : ublk::kStartDevice;
  const int error = control_->Send(command, id_, nullptr, 0, static_cast<uint64_t>(::getpid()));
  if (error != 0) return Status::FromErrno(error, fmt::format("the kernel does not start {}", path()));
  const int missing = Retry(ENOENT, [&] { return ::access(path().c_str(), F_OK) == 0 ? 0 : errno; });
  if (missing == 0) return Status::Ok();
  return Status::FromErrno(missing,
                           fmt::format("{} does not appear; does udev or devtmpfs make nodes in /dev?", path()));
}

Status UblkKernel::Stop() {
  const int error = control_->Send(ublk::kStopDevice, id_);
  return error == 0 ? Status::Ok() : Status::FromErrno(error, fmt::format("cannot stop {}", path()));
}

Status UblkKernel::GiveUp(const Status& why) {
  if (!recovers_) return Stop();
  Log().critical("{}; {} waits for another server", why.message(), path());
  Log().flush();
  std::_Exit(EXIT_FAILURE);
}

Status UblkKernel::Remove() {
  fd_ = FileDescriptor();
  removed_ = true;
  const int error = Delete(*control_, id_);
  return error == 0 ? Status::Ok() : Status::FromErrno(error, fmt::format("cannot remove {}", path()));
}

}  // namespace isozone
