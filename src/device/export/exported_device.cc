#include "device/export/exported_device.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/file_descriptor.h"
#include "base/log.h"
#include "device/export/export_server.h"
#include "device/export/export_shape.h"
#include "device/export/ledger_file.h"
#include "device/export/ublk_control.h"
#include "device/export/ublk_kernel.h"
#include "device/export/write_ledger.h"

#ifndef PR_SET_IO_FLUSHER
#define PR_SET_IO_FLUSHER 57  // Linux 5.6
#endif

namespace isozone {

Status PinMemory() {
  if (::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) != 0) return Status::FromErrno(errno, "cannot become an I/O flusher");
  if (::mlockall(MCL_CURRENT) != 0) return Status::FromErrno(errno, "cannot lock memory");
  return Status::Ok();
}

ExportedDevice::ExportedDevice() = default;

ExportedDevice::~ExportedDevice() {
  const Status status = Stop();
  if (!status.ok()) Log().error("{}", status.message());
}

Result<std::unique_ptr<ExportedDevice>> ExportedDevice::Start(ZonedDevice& device, const Options& options) {
  std::unique_ptr<ExportedDevice> exported(new ExportedDevice);
  const Status opened = exported->Open(device, options);
  if (!opened.ok()) return opened.WithContext(device.name());
  return exported;
}

Status ExportedDevice::Open(ZonedDevice& device, const Options& options) {
  ISOZONE_ASSIGN_OR_RETURN(const ExportShape shape, ShapeOf(device.geometry(), device.read_only()));
  ISOZONE_ASSIGN_OR_RETURN(std::unique_ptr<UblkControl> control, UblkControl::Open());
  if (options.recover) {
    ISOZONE_ASSIGN_OR_RETURN(kernel_, UblkKernel::Recover(std::move(control), shape, *options.id));
  } else {
    ISOZONE_ASSIGN_OR_RETURN(kernel_, UblkKernel::Add(std::move(control), shape, options.id));
  }
  const ExportLayout layout = kernel_->layout();
  const uint32_t slots = uint32_t{layout.queues} * layout.depth;
  const std::string path = LedgerFile::PathOf(kernel_->id());
  ISOZONE_ASSIGN_OR_RETURN(file_, LedgerFile::Open(path, WriteLedger::MemorySize(slots), options.recover));
  ISOZONE_ASSIGN_OR_RETURN(ledger_, WriteLedger::Create(device, slots, file_->memory()));
  ISOZONE_RETURN_IF_ERROR(kernel_->Open());
  server_ = std::make_unique<ExportServer>(device, *ledger_, *kernel_);
  bool pinned = ::mlock(file_->memory().data(), file_->memory().size()) == 0;
  for (const std::span<std::byte> memory : server_->memory()) {
    pinned = ::mlock(memory.data(), memory.size()) == 0 && pinned;
  }
  if (!pinned) Log().warn("{}: cannot lock memory; low memory may stop the device", kernel_->path());
  const Status started = server_->Start();
  if (!started.ok()) server_.reset();
  return started;
}

Status ExportedDevice::RemoveDead(uint32_t id) {
  ISOZONE_ASSIGN_OR_RETURN(const std::unique_ptr<UblkControl> control, UblkControl::Open());
  return UblkKernel::RemoveDead(*control, id, [id] { ::unlink(LedgerFile::PathOf(id).c_str()); });
}

std::string ExportedDevice::path() const { return kernel_->path(); }

bool ExportedDevice::InUse() const {
  const FileDescriptor fd(::open(path().c_str(), O_RDONLY | O_EXCL | O_CLOEXEC | O_NONBLOCK));
  return fd.get() < 0 && errno == EBUSY;
}

Status ExportedDevice::Stop() {
  if (server_ == nullptr) return Status::Ok();
  const Status status = server_->Stop();
  server_.reset();
  file_->Remove();  // while nobody else can have the number
  const Status removed = kernel_->Remove();
  return status.ok() ? removed : status;
}

}  // namespace isozone
