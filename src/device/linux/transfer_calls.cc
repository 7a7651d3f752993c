#include "device/linux/transfer_calls.h"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

namespace isozone {

const FileCalls& FileCalls::Get() {
  static const FileCalls calls;
  return calls;
}

void FileCalls::Prepare(const KernelTransfer& transfer, int file, io_uring_sqe& entry) const {
  const auto length = static_cast<unsigned>(transfer.length);
  switch (transfer.kind) {
    case KernelTransfer::Kind::kRead:
      return ::io_uring_prep_read(&entry, file, transfer.data, length, transfer.position);
    case KernelTransfer::Kind::kWrite:
      ::io_uring_prep_write(&entry, file, transfer.data, length, transfer.position);
      entry.rw_flags = transfer.durable ? RWF_DSYNC : 0;
      return;
    case KernelTransfer::Kind::kFlush:
      return ::io_uring_prep_fsync(&entry, file, IORING_FSYNC_DATASYNC);
  }
}

int64_t FileCalls::Call(const KernelTransfer& transfer) const {
  const iovec memory{transfer.data, transfer.length};
  const auto position = static_cast<off_t>(transfer.position);
  for (;;) {
    ssize_t moved = 0;
    switch (transfer.kind) {
      case KernelTransfer::Kind::kRead:
        moved = ::preadv(transfer.file, &memory, 1, position);
        break;
      case KernelTransfer::Kind::kWrite:
        moved = ::pwritev2(transfer.file, &memory, 1, position, transfer.durable ? RWF_DSYNC : 0);
        break;
      case KernelTransfer::Kind::kFlush:
        moved = ::fdatasync(transfer.file);
        break;
    }
    if (moved >= 0) return moved;
    if (errno != EINTR) return -errno;
  }
}

}  // namespace isozone
