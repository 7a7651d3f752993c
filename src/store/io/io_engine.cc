#include "store/io/io_engine.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/latch.h"

namespace isozone {
namespace {

bool Transfers(DeviceOp op) { return op == DeviceOp::kRead || op == DeviceOp::kWrite || op == DeviceOp::kAppend; }

uint64_t SliceOf(const DeviceGeometry& geometry, const GroupIndex& groups, bool isolation) {
  const uint64_t limit = geometry.max_transfer == 0 ? UINT64_MAX : geometry.max_transfer;
  const bool one_group = !isolation || groups.count() == 1;
  return one_group ? limit : std::min<uint64_t>(limit, std::max<uint64_t>(geometry.optimal_write, 64 * kKiB));
}

IoEngine::Depth DepthOf(const GroupIndex& groups, uint32_t zones) {
  const uint32_t of_zone = IoEngine::kDepthOfUnit * groups.zone_width();
  uint32_t all = std::max(of_zone, IoEngine::kDeviceDepth / groups.count());
  switch (groups.kind()) {
    case GroupIndex::Kind::kMeasured:
      return {all, ClassQueues::BackgroundDepth(all)};
    case GroupIndex::Kind::kNotMeasured:
      return {UINT32_MAX, ClassQueues::BackgroundDepth(IoEngine::kDeviceDepth)};
    case GroupIndex::Kind::kIndependentZones:
      break;
  }
  const uint64_t of_group = uint64_t{of_zone} * std::max(1U, zones / groups.count());
  all = std::max(all, static_cast<uint32_t>(std::min<uint64_t>(of_group, IoEngine::kDeviceDepth)));
  // Arbitrary groups may all lie on the same flash: one request of each group for each unit of flash is enough.
  return {all, groups.zone_width()};
}

}  // namespace

// `places` and `waiting` are the two halves of a handshake. A thread that finds no place first announces that it waits,
// and then looks for a place again (Dispatch). A thread that leaves a place first gives it back, and then looks whether
// another waits. Both are sequentially consistent, so at least one of the two threads sees the other.
struct alignas(64) IoGroup {
  IoGroup(const IoShares& shares, uint32_t number_) : number(number_), queues(shares) {}

  // Those of the classes `gaps` that have to wait at `now_ns`, while users read. `opens_at_ns` is the first time at
  // which one of them need not wait any longer.
  IoClassSet OpenGaps(IoClassSet gaps, int64_t now_ns, int64_t gap_ns, int64_t& opens_at_ns) const
      ISOZONE_REQUIRES(mu) {
    opens_at_ns = INT64_MAX;
    for (int c = 0; c < kIoClassCount; ++c) {
      if (!gaps[static_cast<size_t>(c)]) continue;
      const int64_t at_ns = gate.OpensAt(static_cast<IoClass>(c), gap_ns);
      gaps[static_cast<size_t>(c)] = now_ns < at_ns;
      if (now_ns < at_ns) opens_at_ns = std::min(opens_at_ns, at_ns);
    }
    return gaps;
  }

  const uint32_t number;
  std::atomic<uint64_t> places{0};  // taken ones: by background classes in the upper half, by all in the lower
  std::atomic<uint32_t> waiting{0};
  Mutex mu;
  ClassQueues queues ISOZONE_GUARDED_BY(mu);
  WriteGaps::Gate gate ISOZONE_GUARDED_BY(mu);
  int64_t alarm_at_ns ISOZONE_GUARDED_BY(mu) = INT64_MAX;  // the time of the next alarm; INT64_MAX: none is set
};

namespace {

constexpr uint64_t kOnePlace = 1;
constexpr uint64_t kOneBackgroundPlace = (uint64_t{1} << 32) + kOnePlace;

uint64_t PlaceOf(IoClass c) { return ClassQueues::IsBackground(c) ? kOneBackgroundPlace : kOnePlace; }

}  // namespace

IoEngine::IoEngine(ZonedDevice& device, std::shared_ptr<const GroupIndex> groups, Options options)
    : device_(device),
      index_(std::move(groups)),
      isolation_(options.isolation),
      depth_(DepthOf(*index_, device.geometry().zone_count)),
      slice_(SliceOf(device.geometry(), *index_, options.isolation)),
      write_gap_ns_(isolation_ && index_->count() > 1
                        ? WriteGaps::GapNs(options.write_gap, slice_, index_->zone_bandwidth())
                        : 0),
      readers_(write_gap_ns_),
      clock_(options.clock ? std::move(options.clock) : std::make_unique<ThreadAlarmClock>()) {
  groups_.reserve(index_->count());
  for (uint32_t i = 0; i < index_->count(); ++i) groups_.push_back(std::make_unique<Group>(options.shares, i));
  clock_->OnRing([this](uint32_t group) { OnAlarm(*groups_[group]); });
}

IoEngine::IoEngine(ZonedDevice& device)
    : IoEngine(device, std::make_shared<GroupIndex>(device.geometry().zone_count, nullptr), {.isolation = false}) {}

IoEngine::~IoEngine() {
  clock_->Stop();
  while (handing_over_.load() > 0) std::this_thread::yield();  // until `done` returns, and an empty Dispatch
}

IoEngine::Group* IoEngine::GroupOf(const IoRequest& request) const {
  if (!isolation_ || !Transfers(request.device.op)) return nullptr;
  return groups_[groups_.size() == 1 ? 0 : index_->of(device_.geometry().ZoneOf(request.device.offset))].get();
}

void IoEngine::Submit(IoRequest& request) {
  request.engine_ = this;
  request.submitted_ns_ = clock_->Now();
  request.length_ = request.device.length;
  request.completed_ = 0;
  if (request.device.op == DeviceOp::kRead && ClassQueues::IsBackground(request.io_class) && !request.is_part_) {
    recent_reads_.Note(device_.geometry().ZoneOf(request.device.offset).value(), request.io_class,
                       request.submitted_ns_);
  }
  if (request.device.op == DeviceOp::kRead && request.length_ > slice_) return SubmitInParallel(request);
  request.fua_ = request.device.fua;
  request.device.context = &request;
  request.device.done = [](DeviceRequest& device) {
    auto& done = *static_cast<IoRequest*>(device.context);
    done.engine_->OnDone(done);
  };
  request.group_ = GroupOf(request);
  request.held_since_ns_ = 0;
  if (write_gap_ns_ > 0 && request.io_class == IoClass::kUserRead && !request.is_part_) {
    readers_.Note(request.submitted_ns_);
  }
  const bool has_place = request.group_ == nullptr || (request.group_->waiting.load() == 0 && !KeepsGap(request) &&
                                                       TryEnter(*request.group_, request.io_class));
  if (has_place) {
    SubmitSlices(request);
  } else {
    Enqueue(*request.group_, request, /*overtaken=*/false);
  }
}

// The slices of a read, which are in flight together.
struct IoEngine::ParallelRead {
  ParallelRead(IoRequest& whole_, size_t count_)
      : whole(whole_), count(count_), parts(std::make_unique<IoRequest[]>(count_)), left(count_) {}

  static void OnPartDone(IoRequest& part) {
    auto* read = static_cast<ParallelRead*>(part.context);
    if (read->left.fetch_sub(1) == 1) Finish(std::unique_ptr<ParallelRead>(read));
  }

  static void Finish(std::unique_ptr<ParallelRead> read) {
    IoRequest& whole = read->whole;
    whole.device.status = DeviceStatus::kSuccess;
    uint64_t moved = 0;
    for (size_t i = read->count; i-- > 0;) {
      const DeviceRequest& part = read->parts[i].device;
      if (part.status != DeviceStatus::kSuccess) whole.device.status = part.status;  // the first failed one is set last
      if (part.status == DeviceStatus::kSuccess) moved += part.length;
    }
    read.reset();
    whole.engine_->Count(whole, moved);
    whole.done(whole);
  }

  IoRequest& whole;
  const size_t count;
  const std::unique_ptr<IoRequest[]> parts;
  std::atomic<size_t> left;
};

void IoEngine::SubmitInParallel(IoRequest& request) {
  const size_t count = (request.length_ + slice_ - 1) / slice_;
  auto* const read = new ParallelRead(request, count);  // deleted when its last part is done
  IoRequest* const parts = read->parts.get();
  for (size_t i = 0; i < count; ++i) {
    const uint64_t at = i * slice_;
    IoRequest& part = parts[i];
    part.is_part_ = true;
    part.io_class = request.io_class;
    part.context = read;
    part.done = ParallelRead::OnPartDone;
    part.device.op = DeviceOp::kRead;
    part.device.offset = DeviceOffset(request.device.offset.value() + at);
    part.device.data = request.device.data + at;
    part.device.length = std::min(slice_, request.length_ - at);
    part.device.may_block = request.device.may_block && i + 1 == count;
  }
  if (write_gap_ns_ > 0 && request.io_class == IoClass::kUserRead) readers_.Note(request.submitted_ns_);
  for (size_t i = 0; i < count; ++i) Submit(parts[i]);
}

bool IoEngine::TryEnter(Group& group, IoClass c) const {
  uint64_t places = group.places.load();
  do {
    if (static_cast<uint32_t>(places) >= depth_.all) return false;
    if (ClassQueues::IsBackground(c) && (places >> 32) >= depth_.background) return false;
  } while (!group.places.compare_exchange_weak(places, places + PlaceOf(c)));
  return true;
}

void IoEngine::Leave(Group& group, IoClass c) {
  group.places.fetch_sub(PlaceOf(c));
  if (group.waiting.load() > 0) Dispatch(group);
}

bool IoEngine::KeepsGap(const IoRequest& request) const {
  return request.device.op != DeviceOp::kRead && WriteGaps::Keeps(request.io_class, request.fua_ || request.awaited) &&
         users_read();
}

void IoEngine::Enqueue(Group& group, IoRequest& request, bool overtaken) {
  request.device.may_block = false;  // another thread may send it
  {
    const MutexLock lock(group.mu);
    const uint64_t next = std::min(slice_, request.length_ - request.completed_);
    request.ClassQueues::Waiting::io_class = request.io_class;
    request.cost = request.device.op == DeviceOp::kRead ? next : next * ClassQueues::kWriteCost;
    request.keeps_gap = KeepsGap(request);
    if (request.keeps_gap) {
      const int64_t now_ns = clock_->Now();
      request.held_since_ns_ = now_ns < group.gate.OpensAt(request.io_class, write_gap_ns_) ? now_ns : 0;
    }
    if (overtaken) {
      group.queues.PushFront(request);
    } else {
      group.queues.PushBack(request);
    }
    group.waiting.fetch_add(1);
  }
  Dispatch(group);
}

void IoEngine::Dispatch(Group& group) {
  // A request that a device completes inside Submit gives its place to the next one in the loop below, not in a nested
  // loop.
  thread_local const Group* dispatching = nullptr;
  if (dispatching == &group) return;
  const Group* const before = std::exchange(dispatching, &group);
  for (;;) {
    int64_t alarm_ns = 0;
    while (IoRequest* next = TakeNext(group, alarm_ns)) SubmitSlices(*next);
    if (alarm_ns == 0 || clock_->RingAt(alarm_ns, group.number)) break;
    alarms_fail_ = true;  // so that nothing waits for one
  }
  dispatching = before;
}

IoRequest* IoEngine::TakeNext(Group& group, int64_t& alarm_ns) {
  const MutexLock lock(group.mu);
  // First a place for any class; if there is none, a place that background classes may not take.
  const bool background_too = TryEnter(group, IoClass::kGc);
  if (!background_too && !TryEnter(group, IoClass::kWal)) return nullptr;
  int64_t opens_at_ns = INT64_MAX;
  const IoClassSet keeping = group.queues.KeepingGaps();
  const int64_t now_ns = keeping.any() ? clock_->Now() : 0;
  IoClassSet gaps;
  if (keeping.any() && !alarms_fail_ && readers_.Active(now_ns))
    gaps = group.OpenGaps(keeping, now_ns, write_gap_ns_, opens_at_ns);
  auto* next = static_cast<IoRequest*>(group.queues.Next(background_too, gaps));
  if (background_too && (next == nullptr || !ClassQueues::IsBackground(next->io_class))) {
    group.places.fetch_sub(kOneBackgroundPlace - kOnePlace);
  }
  if (next == nullptr) {
    group.places.fetch_sub(kOnePlace);
    if (opens_at_ns < group.alarm_at_ns) alarm_ns = group.alarm_at_ns = opens_at_ns;
    return nullptr;
  }
  group.waiting.fetch_sub(1);
  if (next->keeps_gap) {
    group.gate.OnStart(next->io_class, now_ns);
    if (next->held_since_ns_ != 0) gap_wait_ns_.Add(static_cast<uint64_t>(now_ns - next->held_since_ns_));
  }
  return next;
}

void IoEngine::OnAlarm(Group& group) {
  {
    const MutexLock lock(group.mu);
    if (clock_->Now() < group.alarm_at_ns) return;  // an earlier alarm has replaced this one
    group.alarm_at_ns = INT64_MAX;
  }
  Dispatch(group);
}

bool IoEngine::HasOneSlice(const IoRequest& request) const {
  const bool divisible = request.device.op == DeviceOp::kRead || request.device.op == DeviceOp::kWrite;
  return !divisible || request.length_ <= slice_;
}

void IoEngine::SubmitSlices(IoRequest& request) {
  if (HasOneSlice(request)) {
    device_.Submit(request.device);
    return;
  }
  do {
    request.device.length = std::min(slice_, request.length_ - request.completed_);
    const bool last = request.completed_ + request.device.length == request.length_;
    request.device.fua = request.fua_ && (last || !device_.geometry().fua_covers_zone);
    request.handoff_.store(IoRequest::Handoff::kSubmitting);
    device_.Submit(request.device);
    if (request.handoff_.exchange(IoRequest::Handoff::kSubmitted) == IoRequest::Handoff::kSubmitting) return;
  } while (Advance(request));
}

void IoEngine::OnDone(IoRequest& request) {
  if (HasOneSlice(request)) {
    Finish(request);
    return;
  }
  if (request.handoff_.exchange(IoRequest::Handoff::kDone) == IoRequest::Handoff::kSubmitting) return;
  if (Advance(request)) SubmitSlices(request);
}

bool IoEngine::Advance(IoRequest& request) {
  DeviceRequest& device = request.device;
  if (device.status != DeviceStatus::kSuccess || request.completed_ + device.length == request.length_) {
    Finish(request);
    return false;
  }
  request.completed_ += device.length;
  device.offset = DeviceOffset(device.offset.value() + device.length);
  device.data += device.length;
  if (request.group_ == nullptr || (request.group_->waiting.load() == 0 && !KeepsGap(request))) return true;
  // As soon as the request is queued, other threads may complete it, and its owner may then destroy the engine.
  handing_over_.fetch_add(1);
  request.group_->places.fetch_sub(PlaceOf(request.io_class));
  Enqueue(*request.group_, request, /*overtaken=*/true);
  handing_over_.fetch_sub(1);
  return false;
}

void IoEngine::Finish(IoRequest& request) {
  DeviceRequest& device = request.device;
  device.offset = DeviceOffset(device.offset.value() - request.completed_);
  device.data -= request.completed_;
  device.length = request.length_;
  device.fua = request.fua_;
  if (!request.is_part_) Count(request, device.status == DeviceStatus::kSuccess ? request.length_ : request.completed_);
  Group* group = request.group_;
  if (group == nullptr) return request.done(request);
  // The owner comes first, then the requests that wait for the place. The owner may then destroy the engine.
  const IoClass io_class = request.io_class;
  handing_over_.fetch_add(1);
  request.done(request);
  Leave(*group, io_class);
  handing_over_.fetch_sub(1);
}

void IoEngine::Count(const IoRequest& request, uint64_t bytes_moved) {
  IoClassCounters& counts = classes_[static_cast<size_t>(request.io_class)];
  const auto latency_ns = static_cast<uint64_t>(clock_->Now() - request.submitted_ns_);
  if (request.device.op == DeviceOp::kRead) {
    counts.bytes_read.fetch_add(bytes_moved, std::memory_order_relaxed);
    counts.read_latency_ns.Add(latency_ns);
  } else if (Transfers(request.device.op)) {
    counts.bytes_written.fetch_add(bytes_moved, std::memory_order_relaxed);
    counts.write_latency_ns.Add(latency_ns);
  }
}

DeviceStatus IoEngine::Run(IoRequest& request) {
  Latch latch;
  latch.Expect(request);
  request.device.may_block = true;
  Submit(request);
  latch.Wait();
  return request.device.status;
}

Status IoEngine::Flush(IoClass io_class) {
  IoRequest request;
  request.device.op = DeviceOp::kFlush;
  request.io_class = io_class;
  Run(request);
  return ToStatus(device_.geometry(), request.device);
}

IoEngine::Queue IoEngine::QueueOf(uint32_t group) const {
  const Group& of = *groups_[group];
  return {static_cast<uint32_t>(of.places.load(std::memory_order_relaxed)), of.waiting.load(std::memory_order_relaxed)};
}

}  // namespace isozone
