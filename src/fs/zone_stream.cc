#include "fs/zone_stream.h"

#include <algorithm>
#include <cstring>

namespace isozone {

Status ZoneStream::Reserve(uint64_t bytes, bool& changed) {
  changed = false;
  if (lease_.held() && lease_.room() >= bytes) return Status::Ok();
  LeaveZone();
  changed = true;
  ISOZONE_ASSIGN_OR_RETURN(lease_, core_.pool->Acquire({use_, lifetime_, bytes}));
  return Status::Ok();
}

void ZoneStream::LeaveZone() {
  lease_.Release();
  volatile_elsewhere_ |= volatile_here_;
  volatile_here_ = false;
}

void ZoneStream::Release() { LeaveZone(); }

Result<ZoneStream::Outcome> ZoneStream::Write(std::span<std::byte> blocks, uint64_t live, bool durable) {
  const ZoneId zone = lease_.zone();
  if (!lease_.BeginWrite()) {
    LeaveZone();
    return Outcome::kLostZone;
  }
  core_.pool->AddLive(zone, live);
  DeviceStatus device_status = DeviceStatus::kSuccess;
  const Status status = WriteBlocks(blocks, durable, device_status);
  if (status.ok()) {
    lease_.EndWrite(blocks.size());
    volatile_here_ = !durable;
    failures_ = 0;
    return Outcome::kWritten;
  }
  lease_.EndFailedWrite(device_status);
  core_.pool->RemoveLive(zone, live);
  LeaveZone();
  if (device_status == DeviceStatus::kPowerLoss || device_status == DeviceStatus::kNamespaceWriteProtected ||
      ++failures_ >= kMaxAttempts) {
    return status;
  }
  core_.write_retries.fetch_add(1, std::memory_order_relaxed);
  return Outcome::kLostZone;
}

Status ZoneStream::WriteBlocks(std::span<std::byte> blocks, bool durable, DeviceStatus& device_status) {
  const uint64_t limit = core_.geometry().max_transfer;
  uint64_t written = 0;
  while (written < blocks.size()) {
    const uint64_t left = blocks.size() - written;
    const uint64_t piece = limit == 0 ? left : std::min(left, limit);
    IoRequest request;
    request.io_class = io_class_;
    request.device.op = DeviceOp::kWrite;
    request.device.fua = durable && piece == left;
    request.device.offset = DeviceOffset(lease_.next().value() + written);
    request.device.data = blocks.data() + written;
    request.device.length = piece;
    device_status = core_.engine.Run(request);
    ISOZONE_RETURN_IF_ERROR(ToStatus(core_.geometry(), request.device));
    written += piece;
  }
  return Status::Ok();
}

Status ZoneStream::WriteExtents(AlignedBuffer& buffer, size_t used, uint64_t file_offset, bool durable,
                                std::vector<FileExtent>& written) {
  const uint64_t block = core_.geometry().block_size;
  const size_t padded = RoundUp(used, block);
  std::memset(buffer.data() + used, 0, padded - used);
  for (size_t at = 0; at < padded;) {
    bool changed = false;
    ISOZONE_RETURN_IF_ERROR(Reserve(block, changed));
    const size_t piece = std::min<uint64_t>(padded - at, RoundDown(room(), block));
    const size_t live = std::min(piece, used - at);
    const DeviceOffset where = next();
    ISOZONE_ASSIGN_OR_RETURN(const auto outcome, Write(buffer.span().subspan(at, piece), live, durable));
    if (outcome == Outcome::kLostZone) continue;
    AppendExtent(written, {file_offset + at, where, live}, core_.geometry().zone_size);
    at += piece;
  }
  return Status::Ok();
}

Status ZoneStream::MakeDurable() {
  if (!volatile_here_ && !volatile_elsewhere_) return Status::Ok();
  ISOZONE_RETURN_IF_ERROR(core_.engine.Flush(io_class_));
  volatile_here_ = volatile_elsewhere_ = false;
  return Status::Ok();
}

}  // namespace isozone
