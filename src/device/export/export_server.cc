#include "device/export/export_server.h"

#include <sys/prctl.h>

#include "base/log.h"
#include "base/thread.h"

namespace isozone {

ExportServer::ExportServer(ZonedDevice& device, WriteLedger& ledger, ExportKernel& kernel) : kernel_(kernel) {
  const ExportLayout layout = kernel.layout();
  for (uint16_t i = 0; i < layout.queues; ++i) {
    queues_.push_back(std::make_unique<QueueServer>(device, ledger, layout, uint32_t{i} * layout.depth));
  }
}

ExportServer::~ExportServer() {
  if (threads_.empty()) return;
  if (const Status stopped = Stop(); !stopped.ok()) Log().error("{}", stopped.message());
}

std::vector<std::span<std::byte>> ExportServer::memory() {
  std::vector<std::span<std::byte>> all;
  for (const auto& queue : queues_) all.push_back(queue->memory());
  return all;
}

Status ExportServer::Start() {
  const uint16_t queues = kernel_.layout().queues;
  for (uint16_t i = 0; i < queues; ++i) {
    auto thread = StartThread("a queue of the exported device", [this, i] { Serve(i); });
    if (thread.ok()) {
      threads_.push_back(std::move(thread).value());
    } else {
      Opened(thread.status());
    }
  }
  Status status = WaitUntilOpened();
  if (status.ok()) status = kernel_.Start();
  if (status.ok()) return status;
  // What went wrong first is what counts.
  if (const Status stopped = kernel_.GiveUp(status); !stopped.ok()) Log().error("{}", stopped.message());
  Join();
  return status;
}

Status ExportServer::Stop() {
  const Status status = kernel_.Stop();
  Join();
  return status;
}

void ExportServer::Join() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void ExportServer::Serve(uint16_t number) {
  ::prctl(PR_SET_NAME, "isozone-export");
  auto queue = kernel_.OpenQueue(number);
  Opened(queue.status());
  if (queue.ok()) queues_[number]->Run(**queue);
}

void ExportServer::Opened(const Status& status) {
  const MutexLock lock(mu_);
  ++opened_;
  if (failure_.ok()) failure_ = status;
  changed_.Signal();
}

Status ExportServer::WaitUntilOpened() {
  const MutexLock lock(mu_);
  while (opened_ < queues_.size()) changed_.Wait(mu_);
  return failure_;
}

}  // namespace isozone
