// QueueServer: serves one queue of requests with a ZonedDevice, on one thread.
//
//   a request that arrived --ParseRequest--> refused, or done at once (a report)
//                          \--its data (CopyIn)--> ZonedDevice::Submit --done, any thread--> ended_, Wake
//   ended_ --the queue's thread--> its data (CopyOut), ErrorOf --> Commit
//
// Only the thread that serves a queue may hand results to the kernel, so completions of the device only put the request
// into a list and wake it.
//
// Each tag has memory for its data from the beginning: a server must not need memory to let the kernel write something
// out, because that may be how the kernel gets memory.
//
// A write or append that the last server may have done already is looked for in the zone (write_ledger.h), and what is
// there is not written again. The queue's thread does that, and waits for the device: only after a server died.
//
// Thread safety: Run is called once, by the thread of the queue. The object is made before and destroyed after that.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/mutex.h"
#include "device/export/block_request.h"
#include "device/export/export_kernel.h"
#include "device/export/write_ledger.h"
#include "device/zoned_device.h"

namespace isozone {

struct ResetAllCommands;

class QueueServer {
 public:
  // Tag t has slot `first_slot` + t of the ledger. All arguments must outlive this object.
  QueueServer(ZonedDevice& device, WriteLedger& ledger, const ExportLayout& layout, uint32_t first_slot);
  ~QueueServer();
  QueueServer(const QueueServer&) = delete;
  QueueServer& operator=(const QueueServer&) = delete;

  // Returns the memory for the data of requests.
  std::span<std::byte> memory() { return memory_.span(); }

  // Serves `queue` until it has ended and every request has been answered.
  void Run(ExportQueue& queue);

 private:
  // A request of the kernel, from its arrival to its result.
  struct Task {
    QueueServer* server = nullptr;
    uint16_t tag = 0;
    BlockRequest request;
    DeviceRequest command;                     // the request of the device
    std::unique_ptr<ResetAllCommands> resets;  // kResetAll
  };

  void Arrive(Task& task);
  void Transfer(Task& task);
  void Report(Task& task);
  void ResetAll(Task& task);
  // Returns whether the last server has done this write or append, of which all or a part lies in the zone. If so,
  // answers it.
  bool WasDoneBefore(Task& task);
  // Returns whether the bytes at `place` are those of `task`.
  bool HasBytes(const Task& task, DeviceOffset place, uint64_t length);
  // Writes what is missing behind the first `written` bytes, and flushes if the request asked for Force Unit Access.
  DeviceStatus Complete(Task& task, DeviceOffset place, uint64_t written);

  void Submit(Task& task);
  static void OnEnded(DeviceRequest& command);
  void Enqueue(Task& task);
  void End(Task& task);
  void Answer(Task& task, int32_t result, uint64_t append_sector = 0);

  ZonedDevice& device_;
  WriteLedger& ledger_;
  const ExportLayout layout_;
  const uint32_t first_slot_;
  AlignedBuffer memory_;
  std::vector<Task> tasks_;  // by tag
  ExportQueue* queue_ = nullptr;

  Mutex mu_;
  std::vector<Task*> ended_ ISOZONE_GUARDED_BY(mu_);  // ended on the device, and not answered yet
};

}  // namespace isozone
