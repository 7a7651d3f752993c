// UblkQueue: one queue of a device of the ublk driver, see ublk_kernel.h.
#pragma once

#include <liburing.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/file_descriptor.h"
#include "base/status.h"
#include "device/export/export_kernel.h"

namespace isozone {

class UblkQueue final : public ExportQueue {
 public:
  // Fetches a request for each tag. `fd` is /dev/ublkcN, and must outlive this object.
  static Result<std::unique_ptr<UblkQueue>> Open(int fd, uint16_t number, uint16_t depth);
  ~UblkQueue() override;
  UblkQueue(const UblkQueue&) = delete;
  UblkQueue& operator=(const UblkQueue&) = delete;

  int Wait(std::vector<uint16_t>& arrived) override;
  ublk::RequestDescriptor Describe(uint16_t tag) const override;
  int CopyIn(uint16_t tag, std::span<std::byte> out) override;
  int CopyOut(uint16_t tag, std::span<const std::byte> data) override;
  void Commit(uint16_t tag, int32_t result, uint64_t append_sector) override;
  void Wake() override;

 private:
  UblkQueue(int fd, uint16_t number, uint16_t depth) : fd_(fd), number_(number), depth_(depth) {}
  Status SetUp();
  Status Fetch();
  void Prepare(uint32_t command, const ublk::IoCommand& payload);
  void WaitForWake();
  // Takes what the kernel has completed. Returns 0, or an error with which a command has ended.
  int Take(std::vector<uint16_t>& arrived);

  const int fd_;
  const uint16_t number_;
  const uint16_t depth_;
  io_uring ring_{};
  FileDescriptor wake_;
  uint64_t wakes_ = 0;  // what is read from wake_
  const ublk::RequestDescriptor* descriptors_ = nullptr;
  uint32_t fetching_ = 0;        // commands at the kernel
  std::vector<uint16_t> early_;  // requests that arrived before the first Wait
  uint32_t held_ = 0;            // requests that have arrived, and were not committed
};

}  // namespace isozone
