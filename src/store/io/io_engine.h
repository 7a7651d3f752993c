// IoEngine: all file data passes through it to the device. It counts every request by class, bytes and latency, lets a
// thread wait for requests that complete on another thread, and decides which request goes to the device when.
//
//   groups   Each independent zone group has a queue of its own (class_queues.h decides which request goes next). A
//            group has kDepthOfUnit requests at the device for each unit of flash that a zone lies on: one is served,
//            one is on its way, and all that wait behind them can still be overtaken. It never has fewer than its part
//            of kDeviceDepth. If no zone slows another, a group has that many for each of its zones, up to
//            kDeviceDepth, and background classes one for each unit. If nothing was measured, only background classes
//            are limited, to one less than kDeviceDepth: the device itself knows best what it can do at once.
//   slices   A request longer than a slice goes to the device in slices, each of which competes for its place. So no
//            request waits for more than one slice of a lower class. The slices of a write go one by one, as a zone is
//            written; the slices of a read go in parallel. A slice is what the medium programs at once, or, if all
//            zones are one group, the longest transfer that the device accepts.
//   gaps     While users read, background writes to a group keep a distance in time (write_gaps.h). A write that has to
//            wait for that is queued. An alarm sends it when its wait ends, unless another request has done so before.
//   FIFO     Without isolation, every request goes to the device at once.
//
// While no request waits, a request costs two atomic operations more than on the bare device, and a user's read two
// more if gaps are kept.
//
// Thread safety: any thread may call any method.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/histogram.h"
#include "base/mutex.h"
#include "device/izg/group_index.h"
#include "device/zoned_device.h"
#include "store/io/alarm_clock.h"
#include "store/io/class_queues.h"
#include "store/io/io_class.h"
#include "store/io/recent_reads.h"
#include "store/io/write_gaps.h"

namespace isozone {

class IoEngine;
struct IoGroup;  // internal to the engine

// One request. The submitter owns it and keeps it until `done` was called. The rules of DeviceRequest apply, except
// that a read or write may be longer than the device's longest transfer.
struct IoRequest : private ClassQueues::Waiting {
  DeviceRequest device;  // op, fua, offset, data, length, may_block; `done` and `context` belong to the engine
  IoClass io_class = IoClass::kOther;
  bool awaited = false;  // a write whose durability a thread waits for, by itself or with a flush: it keeps no gap
  void (*done)(IoRequest& request) = nullptr;
  void* context = nullptr;  // for the submitter's use

  // Returns how many bytes a write that has ended has written, from its beginning on. After an error there may be more
  // of them on the device.
  uint64_t written() const { return device.status == DeviceStatus::kSuccess ? device.length : completed_; }

 private:
  friend class IoEngine;
  IoEngine* engine_ = nullptr;
  IoGroup* group_ = nullptr;  // null: the request needs no place
  int64_t submitted_ns_ = 0;
  int64_t held_since_ns_ = 0;  // when it began to wait for a gap; 0: it does not wait
  uint64_t length_ = 0;        // bytes of all slices
  uint64_t completed_ = 0;     // bytes of the slices that are done; device.data points behind them
  bool fua_ = false;
  // The state of a slice between its submitter and its completion: whichever comes second goes on with the next slice.
  // So slices that complete before Submit returns make a loop, not a recursion.
  enum class Handoff : uint8_t { kSubmitting, kSubmitted, kDone };
  std::atomic<Handoff> handoff_{Handoff::kSubmitting};
  bool is_part_ = false;  // a slice of a longer read, which is counted instead
};

// What an engine counts of a class of I/O.
struct IoClassCounters {
  std::atomic<uint64_t> bytes_read{0};
  std::atomic<uint64_t> bytes_written{0};
  Histogram read_latency_ns;
  Histogram write_latency_ns;
};

class IoEngine {
 public:
  static constexpr uint32_t kDeviceDepth = 64;
  static constexpr uint32_t kDepthOfUnit = 2;

  // The number of requests of one group that may be at the device.
  struct Depth {
    uint32_t all;
    uint32_t background;  // requests of background classes among them
  };

  struct Options {
    bool isolation = true;  // false: FIFO
    IoShares shares = {};
    uint32_t write_gap = 0;                       // program times; 0: none, as always if all zones are one group
    std::unique_ptr<AlarmClock> clock = nullptr;  // null: the real one
  };

  // `groups` must cover the zones of the device.
  IoEngine(ZonedDevice& device, std::shared_ptr<const GroupIndex> groups, Options options);
  // Makes an engine without isolation (FIFO).
  explicit IoEngine(ZonedDevice& device);
  // All requests must be done, and their Submit must have returned. Waits until the last calls of `done` have returned,
  // so it must not be called from one, nor while holding a lock that one takes.
  ~IoEngine();
  IoEngine(const IoEngine&) = delete;
  IoEngine& operator=(const IoEngine&) = delete;

  ZonedDevice& device() { return device_; }
  Depth depth() const { return depth_; }
  // Returns the length of a slice in bytes.
  uint64_t slice() const { return slice_; }

  void Submit(IoRequest& request);

  // Submits the request, and waits until it is done. Returns its status.
  DeviceStatus Run(IoRequest& request);

  // Makes every write durable that had completed before the call.
  Status Flush(IoClass io_class);

  const IoClassCounters& counters(IoClass io_class) const { return classes_[static_cast<size_t>(io_class)]; }
  // Returns how long each slice that had to wait for a gap did so, in ns.
  const Histogram& gap_waits() const { return gap_wait_ns_; }
  const RecentReads& recent_reads() const { return recent_reads_; }

  // Returns whether users read now, as write_gaps.h defines it. False if there are no gaps.
  bool users_read() const { return write_gap_ns_ > 0 && readers_.Active(clock_->Now()); }

  struct Queue {
    uint32_t at_device = 0;  // requests
    uint32_t waiting = 0;    // requests
  };
  uint32_t group_count() const { return static_cast<uint32_t>(groups_.size()); }
  // Returns what a group has now. Without isolation nothing is queued or counted.
  Queue QueueOf(uint32_t group) const;

 private:
  using Group = IoGroup;
  struct ParallelRead;

  // Returns the group whose queue the request uses; null if it needs no place at the device.
  Group* GroupOf(const IoRequest& request) const;
  // Takes a place at the device. Returns false if none is free for the class.
  bool TryEnter(Group& group, IoClass c) const;
  void Leave(Group& group, IoClass c);
  // Returns whether the request is a write that has to keep a gap now.
  bool KeepsGap(const IoRequest& request) const;
  void Enqueue(Group& group, IoRequest& request, bool overtaken);
  // Sends requests that wait for the group, as far as there are places.
  void Dispatch(Group& group);
  // Returns the request that goes next, with a place; null if none can go. Sets `alarm_ns` to when to look again, or 0.
  IoRequest* TakeNext(Group& group, int64_t& alarm_ns);
  void OnAlarm(Group& group);
  bool HasOneSlice(const IoRequest& request) const;
  void SubmitInParallel(IoRequest& request);
  void Count(const IoRequest& request, uint64_t bytes_moved);
  // Sends the next slice, and those behind it for as long as they complete at once and keep their place.
  void SubmitSlices(IoRequest& request);
  void OnDone(IoRequest& request);
  // Accounts for a completed slice. Returns true if the next one goes at once, false if it has to wait or if this was
  // the last one.
  bool Advance(IoRequest& request);
  void Finish(IoRequest& request);

  ZonedDevice& device_;
  const std::shared_ptr<const GroupIndex> index_;
  const bool isolation_;
  const Depth depth_;
  const uint64_t slice_;  // bytes
  const int64_t write_gap_ns_;
  std::atomic<bool> alarms_fail_{false};  // no thread for alarms; then writes keep no gap
  std::vector<std::unique_ptr<Group>> groups_;
  std::array<IoClassCounters, kIoClassCount> classes_;
  RecentReads recent_reads_;  // those of background classes
  WriteGaps::Readers readers_;
  Histogram gap_wait_ns_;
  std::atomic<uint32_t> handing_over_{0};  // threads that still run after their request was queued again or done
  const std::unique_ptr<AlarmClock> clock_;
};

}  // namespace isozone
