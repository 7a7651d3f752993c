// IoEngine: the one door to the device for file data. It counts every request by class, bytes and latency, lets a
// thread wait for requests that complete on another, and decides which request goes to the device when.
//
//   groups   Each independent zone group has a queue of its own (class_queues.h says who goes first). At the device it
//            has kDepthOfUnit requests for each unit of flash that a zone lies on: one is served and one is on its way,
//            and all that waits behind can still be overtaken; and no fewer than its part of kDeviceDepth. Where no zone
//            slows another, a group has so many for each of its zones, up to kDeviceDepth, and the background one for each
//            unit. Where nothing was measured, only the background is held back, at kDeviceDepth: what the device can do
//            at once it knows best.
//   slices   What is longer than a slice goes to the device in slices, each of which competes for its place: so nothing
//            waits for more than a slice of what ranks lower. Writes go slice by slice, as a zone is written; the slices
//            of a read go side by side. A slice is what the medium programs at once; where all zones are one group, the
//            longest transfer that the device takes.
//   gaps     While users read, background writes of a group keep a distance (write_gaps.h). Who has to wait for that is
//            queued; an alarm sends him when it is over, if nobody else's coming and going has.
//   FIFO     Without isolation everything goes to the device at once.
//
// While nothing waits, a request costs two atomic operations more than on the bare device, and a user's read two more
// where gaps are kept.
//
// Thread safety: any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/histogram.h"
#include "base/mutex.h"
#include "device/zoned_device.h"
#include "io/alarm_clock.h"
#include "io/class_queues.h"
#include "io/io_class.h"
#include "io/write_gaps.h"
#include "izg/group_index.h"

namespace isozone {

class IoEngine;
struct IoGroup;  // the engine's

// One request. The submitter owns it and keeps it until `done` was called; the rules of DeviceRequest hold, but a read or
// write may be longer than the device's longest transfer.
struct IoRequest : private ClassQueues::Waiting {
  DeviceRequest device;  // op, fua, offset, data, length; `done` and `context` belong to the engine
  IoClass io_class = IoClass::kOther;
  bool awaited = false;  // a write that somebody waits for to be durable, by itself or with a flush: it keeps no gap
  void (*done)(IoRequest& request) = nullptr;
  void* context = nullptr;  // the submitter's

 private:
  friend class IoEngine;
  IoEngine* engine_ = nullptr;
  IoGroup* group_ = nullptr;  // null: it needs no place
  int64_t submitted_ns_ = 0;
  int64_t held_since_ns_ = 0;  // when it began to wait for a gap; 0: it does not
  uint64_t length_ = 0;        // of all slices
  uint64_t completed_ = 0;     // bytes in slices that are done; behind them lies device.data
  bool fua_ = false;
  // Where a slice is between its submitter and its completion: who comes second goes on with the next slice. So slices
  // that are done before Submit returns make a loop, not a recursion.
  enum class Handoff : uint8_t { kSubmitting, kSubmitted, kDone };
  std::atomic<Handoff> handoff_{Handoff::kSubmitting};
  bool is_part_ = false;  // a slice of a longer read, which is counted
};

struct IoClassStats {
  uint64_t bytes_read = 0;
  uint64_t bytes_written = 0;
  Histogram::Snapshot read_latency_ns;
  Histogram::Snapshot write_latency_ns;
};

class IoEngine {
 public:
  static constexpr uint32_t kDeviceDepth = 64;
  static constexpr uint32_t kDepthOfUnit = 2;

  // How many requests of one group may be at the device.
  struct Depth {
    uint32_t all;
    uint32_t background;  // of these, of background classes
  };

  struct Options {
    bool isolation = true;  // false: FIFO
    IoShares shares = {};
    uint32_t write_gap = 0;                       // program times; 0: none, as where all zones are one group
    std::unique_ptr<AlarmClock> clock = nullptr;  // null: the real one
  };

  // `groups`: of the device's zones.
  IoEngine(ZonedDevice& device, std::shared_ptr<const GroupIndex> groups, Options options);
  // FIFO.
  explicit IoEngine(ZonedDevice& device);
  // All requests must be done, and their Submit returned. Waits for `done` of the last ones to return: not to be called
  // from one, nor holding what one takes.
  ~IoEngine();
  IoEngine(const IoEngine&) = delete;
  IoEngine& operator=(const IoEngine&) = delete;

  ZonedDevice& device() { return device_; }
  Depth depth() const { return depth_; }
  // Bytes of one slice.
  uint64_t slice() const { return slice_; }

  void Submit(IoRequest& request);

  // Submits and waits; the outcome is in request.device.status.
  DeviceStatus Run(IoRequest& request);

  // Every write that completed before is durable when this returns OK.
  Status Flush(IoClass io_class);

  IoClassStats Stats(IoClass io_class) const;
  // Of every slice that waited for a gap: for how long.
  Histogram::Snapshot GapWaits() const { return gap_wait_ns_.Take(); }

 private:
  struct PerClass {
    std::atomic<uint64_t> bytes_read{0};
    std::atomic<uint64_t> bytes_written{0};
    Histogram read_latency_ns;
    Histogram write_latency_ns;
  };

  using Group = IoGroup;
  struct ParallelRead;

  // Null where the request needs no place at the device.
  Group* GroupOf(const IoRequest& request) const;
  // Takes a place at the device, where one is free for the class.
  bool TryEnter(Group& group, IoClass c) const;
  void Leave(Group& group, IoClass c);
  // It is a write that has to keep a gap now.
  bool KeepsGap(const IoRequest& request) const;
  void Enqueue(Group& group, IoRequest& request, bool overtaken);
  // Sends what waits for the group, as far as there are places.
  void Dispatch(Group& group);
  // Who goes next, with a place; null: nobody can. `alarm_ns`: when to look again, or 0.
  IoRequest* TakeNext(Group& group, int64_t& alarm_ns);
  void OnAlarm(Group& group);
  bool HasOneSlice(const IoRequest& request) const;
  void SubmitInParallel(IoRequest& request);
  void Count(const IoRequest& request, uint64_t bytes_moved);
  // Sends the next slice, and those behind it for as long as they are done at once and keep their place.
  void SubmitSlices(IoRequest& request);
  void OnDone(IoRequest& request);
  // A slice is done. True: the next one goes at once; false: it has to wait, or this was the last.
  bool Advance(IoRequest& request);
  void Finish(IoRequest& request);

  ZonedDevice& device_;
  const std::shared_ptr<const GroupIndex> index_;
  const bool isolation_;
  const Depth depth_;
  const uint64_t slice_;  // bytes
  const int64_t write_gap_ns_;
  std::vector<std::unique_ptr<Group>> groups_;
  std::array<PerClass, kIoClassCount> classes_;
  WriteGaps::Readers readers_;
  Histogram gap_wait_ns_;
  std::atomic<uint32_t> handing_over_{0};  // threads that go on after a request was queued again or done
  const std::unique_ptr<AlarmClock> clock_;
};

}  // namespace isozone
