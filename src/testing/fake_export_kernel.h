// FakeExportKernel: stands in for the kernel's side of an exported device, and for the users of the device. A user
// calls Call, from any thread; it is served as the kernel would have it served.
#pragma once

#include <cerrno>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "device/export/export_kernel.h"

namespace isozone {

class FakeExportKernel final : public ExportKernel {
 public:
  struct Answer {
    int32_t result = 0;
    uint64_t append_sector = 0;
    std::vector<std::byte> data;  // of reads and reports
  };

  explicit FakeExportKernel(const ExportLayout& layout) : layout_(layout) {
    const MutexLock lock(mu_);
    for (uint16_t i = 0; i < layout.queues; ++i) queues_.emplace_back(layout.depth);
  }

  // Makes a request of a user, with the data of a write or for `length` bytes that are read, and waits for its result.
  // As in the kernel, that is -EIO if the device has been stopped.
  Answer Call(uint16_t queue, ublk::RequestDescriptor descriptor, std::vector<std::byte> data = {}, size_t length = 0)
      ISOZONE_EXCLUDES(mu_) {
    Request request{descriptor, std::move(data), {}, false};
    if (length > 0) request.data.resize(length);
    const MutexLock lock(mu_);
    Queue& called = queues_[queue];
    while (called.free.empty() && !stopped_) changed_.Wait(mu_);
    if (stopped_) return {-EIO, 0, {}};
    const uint16_t tag = called.free.back();
    called.free.pop_back();
    called.requests[tag] = &request;
    called.arriving.push_back(tag);
    ++calls_;
    changed_.SignalAll();
    while (!request.answered) changed_.Wait(mu_);
    called.free.push_back(tag);
    --calls_;
    changed_.SignalAll();
    request.answer.data = std::move(request.data);
    return request.answer;
  }

  // Sets the error of opening a queue and of starting the device.
  void FailQueue(int error) { queue_error_ = error; }
  void FailStart(int error) { start_error_ = error; }
  // Sets what runs while the kernel starts the device, when all queues are open.
  void WhileStarting(std::function<void()> action) { while_starting_ = std::move(action); }

  bool stopped() const ISOZONE_EXCLUDES(mu_) {
    const MutexLock lock(mu_);
    return stopped_;
  }
  // Returns how many requests have no result yet.
  size_t unanswered() const ISOZONE_EXCLUDES(mu_) {
    const MutexLock lock(mu_);
    return calls_;
  }
  // Waits until `calls` requests have no result.
  void WaitForCalls(size_t calls) ISOZONE_EXCLUDES(mu_) {
    const MutexLock lock(mu_);
    while (calls_ < calls) changed_.Wait(mu_);
  }

  ExportLayout layout() const override { return layout_; }

  Result<std::unique_ptr<ExportQueue>> OpenQueue(uint16_t number) override {
    if (queue_error_ != 0 && number == layout_.queues - 1) return Status::FromErrno(queue_error_, "the last queue");
    return std::unique_ptr<ExportQueue>(std::make_unique<FakeQueue>(*this, number));
  }

  Status Start() override {
    if (start_error_ != 0) return Status::FromErrno(start_error_, "start");
    if (while_starting_) while_starting_();
    return Status::Ok();
  }

  Status GiveUp(const Status&) override { return Stop(); }

  Status Stop() override {
    const MutexLock lock(mu_);
    stopped_ = true;
    changed_.SignalAll();
    while (calls_ > 0) changed_.Wait(mu_);
    for (Queue& queue : queues_) queue.ended = true;
    changed_.SignalAll();
    return Status::Ok();
  }

 private:
  struct Request {
    ublk::RequestDescriptor descriptor;
    std::vector<std::byte> data;
    Answer answer;
    bool answered = false;
  };
  struct Queue {
    explicit Queue(uint16_t depth) : requests(depth) {
      for (uint16_t tag = 0; tag < depth; ++tag) free.push_back(tag);
    }
    std::vector<Request*> requests;  // by tag
    std::vector<uint16_t> free;
    std::deque<uint16_t> arriving;
    bool woken = false;
    bool ended = false;
  };

  class FakeQueue final : public ExportQueue {
   public:
    FakeQueue(FakeExportKernel& kernel, uint16_t number) : kernel_(kernel), number_(number) {}

    int Wait(std::vector<uint16_t>& arrived) override {
      const MutexLock lock(kernel_.mu_);
      Queue& queue = kernel_.queues_[number_];
      while (queue.arriving.empty() && !queue.woken && !queue.ended) kernel_.changed_.Wait(kernel_.mu_);
      queue.woken = false;
      arrived.insert(arrived.end(), queue.arriving.begin(), queue.arriving.end());
      queue.arriving.clear();
      return queue.ended ? ENODEV : 0;
    }
    ublk::RequestDescriptor Describe(uint16_t tag) const override { return Find(tag).descriptor; }
    int CopyIn(uint16_t tag, std::span<std::byte> out) override {
      const Request& request = Find(tag);
      if (request.data.size() != out.size()) return EFAULT;
      std::memcpy(out.data(), request.data.data(), out.size());
      return 0;
    }
    int CopyOut(uint16_t tag, std::span<const std::byte> data) override {
      Request& request = Find(tag);
      if (request.data.size() < data.size()) return EFAULT;
      std::memcpy(request.data.data(), data.data(), data.size());
      return 0;
    }
    void Commit(uint16_t tag, int32_t result, uint64_t append_sector) override {
      Request& request = Find(tag);
      const MutexLock lock(kernel_.mu_);
      request.answer.result = result;
      request.answer.append_sector = append_sector;
      request.answered = true;
      kernel_.changed_.SignalAll();
    }
    void Wake() override {
      const MutexLock lock(kernel_.mu_);
      kernel_.queues_[number_].woken = true;
      kernel_.changed_.SignalAll();
    }

   private:
    Request& Find(uint16_t tag) const {
      const MutexLock lock(kernel_.mu_);
      return *kernel_.queues_[number_].requests[tag];
    }

    FakeExportKernel& kernel_;
    const uint16_t number_;
  };

  const ExportLayout layout_;
  int queue_error_ = 0;
  int start_error_ = 0;
  std::function<void()> while_starting_;
  mutable Mutex mu_;
  CondVar changed_;
  std::vector<Queue> queues_ ISOZONE_GUARDED_BY(mu_);
  size_t calls_ ISOZONE_GUARDED_BY(mu_) = 0;
  bool stopped_ ISOZONE_GUARDED_BY(mu_) = false;
};

}  // namespace isozone
