// ExportServer: serves a zoned device to the kernel, with one thread for each queue.
//
// Start needs the queues to be served already, because the kernel reads from the device (its zones, a partition table)
// before it returns. So the threads open their queues first, and only when all of them are open the device is started.
//
// Stop takes the device from its users: the kernel ends what they have asked for, and then the queues. It needs the
// threads, so they end only after that.
//
// Thread safety: one thread makes, starts, stops and destroys the object.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "device/export/export_kernel.h"
#include "device/export/queue_server.h"
#include "device/export/write_ledger.h"
#include "device/zoned_device.h"

namespace isozone {

class ExportServer {
 public:
  // All three must outlive this object. `ledger` must have a slot for each tag of each queue.
  ExportServer(ZonedDevice& device, WriteLedger& ledger, ExportKernel& kernel);
  // Stops the device if that has not been done.
  ~ExportServer();
  ExportServer(const ExportServer&) = delete;
  ExportServer& operator=(const ExportServer&) = delete;

  // Returns the memory of the requests of each queue, which must not be swapped out.
  std::vector<std::span<std::byte>> memory();

  // Returns when users can use the device. After an error the device was stopped.
  Status Start();
  // Returns when no request is left, and all threads have ended. The device must still be removed.
  Status Stop();

 private:
  void Serve(uint16_t number);
  void Opened(const Status& status) ISOZONE_EXCLUDES(mu_);
  void Join();
  Status WaitUntilOpened() ISOZONE_EXCLUDES(mu_);

  ExportKernel& kernel_;
  std::vector<std::unique_ptr<QueueServer>> queues_;
  std::vector<std::thread> threads_;

  Mutex mu_;
  CondVar changed_;                            // signalled when opened_ changes
  size_t opened_ ISOZONE_GUARDED_BY(mu_) = 0;  // queues of which the outcome is known
  Status failure_ ISOZONE_GUARDED_BY(mu_);     // of the first queue that could not be opened
};

}  // namespace isozone
