// ExportKernel and ExportQueue: what a server of a block device asks of the kernel, and nothing else. UblkKernel is the
// real one; FakeExportKernel (testing) stands in for it on machines whose kernel has no ublk.
//
// The kernel has requests of the device's users, each with a tag that no other request of its queue has. It hands them
// to the thread that serves the queue, and waits for the result of each.
//
// Errors are values of errno.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "device/export/ublk_abi.h"

namespace isozone {

struct ExportLayout {
  uint16_t queues = 0;        // at least 1
  uint16_t depth = 0;         // of each queue: tags are below it
  uint32_t max_transfer = 0;  // bytes of one request
};

// One queue of requests. The thread that opened it calls everything but Wake.
class ExportQueue {
 public:
  virtual ~ExportQueue() = default;

  // Hands the results that were committed to the kernel, and waits until requests have arrived, Wake was called or the
  // queue has ended. Adds the tags of new requests to `arrived`. Returns 0, or ENODEV when no further request will
  // come, and each that has arrived was committed.
  virtual int Wait(std::vector<uint16_t>& arrived) = 0;

  // Returns a request that has arrived.
  virtual ublk::RequestDescriptor Describe(uint16_t tag) const = 0;
  // Copies the data of a write or append into `out`, which is as long as the request. Returns 0 or an error.
  virtual int CopyIn(uint16_t tag, std::span<std::byte> out) = 0;
  // Copies the data of a read or report to its user. Returns 0 or an error.
  virtual int CopyOut(uint16_t tag, std::span<const std::byte> data) = 0;
  // Ends a request. `result` is bytes or -errno; `append_sector` is where an append went, and 0 for all others.
  virtual void Commit(uint16_t tag, int32_t result, uint64_t append_sector) = 0;

  // Makes Wait return. Any thread may call it.
  virtual void Wake() = 0;
};

// The device. Thread safety: the threads of the queues may call OpenQueue at the same time; one thread calls the rest.
class ExportKernel {
 public:
  virtual ~ExportKernel() = default;

  virtual ExportLayout layout() const = 0;

  // Must be called once for each queue, by the thread that will serve it. When it returns, the kernel can send
  // requests.
  virtual Result<std::unique_ptr<ExportQueue>> OpenQueue(uint16_t number) = 0;

  // Makes the device visible once all queues are open. The kernel reads from it before this returns.
  virtual Status Start() = 0;

  // Takes the device away from its users, whose requests end first. Then ends all queues, also those of a device that
  // was not started.
  virtual Status Stop() = 0;

  // Must be called in place of Stop if the device could not be started. If a device that lost its server has users, it
  // logs `why` and ends the process, because only then another server can take the device over.
  virtual Status GiveUp(const Status& why) = 0;
};

}  // namespace isozone
