#include "store/file/zone_stream.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace isozone {

ZoneStream::~ZoneStream() {
  if (in_flight_) (void)Finish();
}

Status ZoneStream::Reserve(uint64_t bytes) {
  if (lease_.held() && lease_.room() >= bytes) return Status::Ok();
  LeaveZone();
  ZoneRequest request = RequestFor(bytes);
  request.gc = gc_;
  request.confined = confined_;
  ISOZONE_ASSIGN_OR_RETURN(lease_, data_path_.pool->Acquire(request));
  return Status::Ok();
}

bool ZoneStream::Widen(uint64_t bytes, std::span<const uint32_t> taken_groups, uint32_t width) {
  assert(!lease_.held());
  ZoneRequest request = RequestFor(bytes);
  request.taken_groups = taken_groups;
  request.width = width;
  std::optional<ZoneLease> lease = data_path_.pool->TryAcquire(request);
  if (!lease) return false;
  lease_ = std::move(*lease);
  return true;
}

ZoneRequest ZoneStream::RequestFor(uint64_t bytes) const {
  ZoneRequest request;
  request.use = use_;
  request.lifetime = data_.lifetime;
  request.min_room = bytes;
  request.urgent = io_class_ <= IoClass::kFlush;
  request.level = data_.level;
  request.heat = data_.heat;
  request.cohort = cohort_;
  request.expected_size = expected_size_;
  request.compaction = io_class_ == IoClass::kCompactionWrite;
  return request;
}

void ZoneStream::LeaveZone() {
  lease_.Release();
  volatile_elsewhere_ |= volatile_here_;
  volatile_here_ = false;
}

void ZoneStream::Release() { LeaveZone(); }

bool ZoneStream::Start(std::span<std::byte> blocks, uint64_t live, bool durable) {
  if (io_class_ == IoClass::kFlush) data_path_.pool->PaceFlush(blocks.size());
  const DeviceOffset where = lease_.held() ? lease_.next() : DeviceOffset(0);
  if (!lease_.BeginWrite(live)) {
    LeaveZone();
    return false;
  }
  in_flight_ = true;
  latch_.Add();
  request_.io_class = io_class_;
  request_.awaited = durable;
  request_.context = this;
  request_.done = [](IoRequest& request) {
    auto& stream = *static_cast<ZoneStream*>(request.context);
    // Whoever waits for the write needs no other thread.
    OpenWriters* const woken = stream.wakes_ && !request.awaited ? &stream.data_path_.writers : nullptr;
    stream.lease_.CompleteWrite(request.written(), request.device.status);
    stream.latch_.CountDown();  // the stream may go from here on
    if (woken != nullptr) woken->Wake();
  };
  request_.device.op = DeviceOp::kWrite;
  request_.device.fua = durable && (!volatile_here_ || data_path_.geometry().fua_covers_zone);
  request_.device.offset = where;
  request_.device.data = blocks.data();
  request_.device.length = blocks.size();
  data_path_.engine.Submit(request_);
  return true;
}

Result<ZoneStream::Outcome> ZoneStream::Finish() {
  latch_.Wait();
  in_flight_ = false;
  const DeviceStatus device_status = request_.device.status;
  space_ = lease_.Settle(request_.device.length, device_status);
  if (device_status == DeviceStatus::kSuccess) {
    volatile_here_ = !request_.device.fua;  // after it, nothing before it is volatile either: see Start
    failures_ = 0;
    // The collector can have it, however long the file stays open. That of a log is left when its end is known.
    if (use_ == ZoneUse::kData && lease_.room() == 0) LeaveZone();
    return Outcome::kWritten;
  }
  LeaveZone();
  if (device_status == DeviceStatus::kPowerLoss || device_status == DeviceStatus::kNamespaceWriteProtected ||
      IsForLack(device_status) || ++failures_ >= kMaxAttempts) {
    return ToStatus(data_path_.geometry(), request_.device);
  }
  data_path_.write_retries.fetch_add(1, std::memory_order_relaxed);
  return Outcome::kLostZone;
}

Status ZoneStream::WriteExtents(std::span<std::byte> blocks, size_t used, uint64_t file_offset, bool durable,
                                std::vector<FileExtent>& written, SpaceClaim& space) {
  const uint64_t block = data_path_.geometry().block_size;
  for (size_t at = 0; at < blocks.size();) {
    ISOZONE_RETURN_IF_ERROR(Reserve(block));
    const size_t piece = std::min<uint64_t>(blocks.size() - at, RoundDown(room(), block));
    const size_t live = std::min(piece, used - at);
    const DeviceOffset where = next();
    ISOZONE_ASSIGN_OR_RETURN(const auto outcome, Write(blocks.subspan(at, piece), live, durable));
    if (outcome == Outcome::kLostZone) continue;
    space.Merge(TakeSpace());
    AppendExtent(written, {file_offset + at, where, live}, data_path_.geometry().zone_size);
    at += piece;
  }
  return Status::Ok();
}

Status ZoneStream::MakeDurable() {
  if (!is_volatile()) return Status::Ok();
  ISOZONE_RETURN_IF_ERROR(data_path_.engine.Flush(io_class_));
  MarkDurable();
  return Status::Ok();
}

}  // namespace isozone
