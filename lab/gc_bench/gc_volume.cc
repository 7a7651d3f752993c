#include "gc_bench/gc_volume.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include <fmt/format.h>

#include "base/random.h"
#include "base/uri.h"
#include "isozone/bench/run_command.h"

namespace isozone::cli {
namespace {

constexpr uint64_t kStageBuffer = kMiB;  // bytes of a write of stages 1 and 2, and of a read of Verify
constexpr uint64_t kProgressBlocks = 1024;

uint64_t FirstWord(uint32_t logical, uint32_t version) { return Random(uint64_t{version} << 32 | logical).Next(); }
constexpr uint64_t kStep = 0x9E3779B97F4A7C15ULL;  // the difference between two words of a block

}  // namespace

void FillGcBlock(std::span<std::byte> block, uint32_t logical, uint32_t version) {
  const uint64_t name = uint64_t{version} << 32 | logical;
  std::memcpy(block.data(), &name, sizeof(name));
  uint64_t word = FirstWord(logical, version);
  for (size_t at = sizeof(name); at < block.size(); at += sizeof(word), word += kStep) {
    std::memcpy(block.data() + at, &word, sizeof(word));
  }
}

bool IsGcBlock(std::span<const std::byte> block, uint32_t logical, uint32_t version) {
  uint64_t name = 0;
  std::memcpy(&name, block.data(), sizeof(name));
  uint64_t difference = name ^ (uint64_t{version} << 32 | logical);
  uint64_t word = FirstWord(logical, version);
  for (size_t at = sizeof(name); at < block.size(); at += sizeof(word), word += kStep) {
    uint64_t found = 0;
    std::memcpy(&found, block.data() + at, sizeof(found));
    difference |= found ^ word;
  }
  return difference == 0;
}

// Volume.

Result<uint32_t> GcVolume::LogicalBlocks(const DeviceGeometry& geometry, const Shape& shape) {
  const uint64_t block = BlockSize(geometry);
  if (!IsAligned(geometry.zone_capacity, block)) {
    return Status::NotSupported(fmt::format("a zone of {} bytes is not a whole number of blocks of {}",
                                            geometry.zone_capacity, FormatSize(block)));
  }
  const uint64_t blocks = geometry.zone_capacity / block * shape.zones;
  if (blocks / shape.zones * (shape.zones + kSpareZones) >= GcMap::kNowhere) {
    return Status::InvalidArgument(fmt::format("{} zones have more than 2^32 blocks; ask for fewer", shape.zones));
  }
  const auto logical = static_cast<uint64_t>(static_cast<double>(blocks) * shape.utilisation);
  if (logical == 0 || logical >= blocks) {
    return Status::InvalidArgument(
        fmt::format("a utilisation of {} leaves no block of {} valid and invalid; give another, or more zones",
                    shape.utilisation, blocks));
  }
  return static_cast<uint32_t>(logical);
}

Result<std::unique_ptr<GcVolume>> GcVolume::Create(ZonedDevice& device, std::vector<ZoneId> zones, const Shape& shape) {
  assert(zones.size() == shape.zones + kSpareZones);
  ISOZONE_ASSIGN_OR_RETURN(const uint32_t logical_blocks, LogicalBlocks(device.geometry(), shape));
  return std::unique_ptr<GcVolume>(new GcVolume(device, std::move(zones), shape, logical_blocks));
}

GcVolume::GcVolume(ZonedDevice& device, std::vector<ZoneId> zones, const Shape& shape, uint32_t logical_blocks)
    : device_(device),
      zones_(std::move(zones)),
      shape_zones_(shape.zones),
      block_size_(BlockSize(device.geometry())),
      map_(static_cast<uint32_t>(zones_.size()), static_cast<uint32_t>(device.geometry().zone_capacity / block_size_),
           logical_blocks) {
  open_zones_.fill(GcMap::kNowhere);
}

uint64_t GcVolume::MaxTransfer(uint64_t wanted) const {
  const uint64_t most = device_.geometry().max_transfer;
  return std::max(block_size_, RoundDown(most == 0 ? wanted : std::min(most, wanted), block_size_));
}

Status GcVolume::Fill(const ProgressFunction& progress) {
  uint32_t logical = 0;
  return WriteNew(
      [&]() -> std::optional<uint32_t> {
        if (logical == map_.logical_blocks()) return std::nullopt;
        return logical++;
      },
      progress);
}

Status GcVolume::Update(UpdatePattern& pattern, const ProgressFunction& progress) {
  return WriteNew(
      [&]() -> std::optional<uint32_t> {
        if (map_.written() >= budget()) return std::nullopt;
        return pattern.Next();
      },
      progress);
}

Status GcVolume::WriteNew(const std::function<std::optional<uint32_t>()>& next, const ProgressFunction& progress) {
  std::unique_ptr<StreamWriter> stream;  // must outlive the commands in flight
  IoQueue io(device_);
  stream = std::make_unique<StreamWriter>(*this, io, kNewDataHeat, MaxTransfer(kStageBuffer), [](GcVictim&) {});
  StreamWriter& writer = *stream;
  uint64_t done = 0;
  while (const auto logical = next()) {
    while (!writer.CanAdd()) {
      writer.SubmitWrite();
      if (io.in_flight() == 0) return Status::NoSpace("no zone is free for new data");
      ISOZONE_RETURN_IF_ERROR(io.RunOne());
    }
    const std::span<std::byte> block = writer.Add(*logical, nullptr);
    FillGcBlock(block, *logical, map_.version(*logical));
    writer.SubmitWrite();
    if (++done % kProgressBlocks == 0 && progress) progress(done);
  }
  writer.Flush();
  while (writer.SubmitWrite() || io.in_flight() > 0) ISOZONE_RETURN_IF_ERROR(io.RunOne());
  return Status::Ok();
}

Status GcVolume::Verify(const ProgressFunction& progress) {
  AlignedBuffer buffer(MaxTransfer(kStageBuffer));
  const uint64_t batch = buffer.size() / block_size_;
  uint64_t done = 0;
  for (uint32_t zone = 0; zone < map_.zones(); ++zone) {
    for (uint64_t first = 0; first < map_.written(zone); first += batch) {
      const uint64_t blocks = std::min(batch, map_.written(zone) - first);
      const std::span<std::byte> data = buffer.span().first(blocks * block_size_);
      ISOZONE_RETURN_IF_ERROR(RunCommand(device_, DeviceOp::kRead, OffsetOf(zone, first), data.data(), data.size()));
      ISOZONE_RETURN_IF_ERROR(CheckRead(zone, static_cast<uint32_t>(first), data));
      if (progress) progress(done += blocks);
    }
  }
  return Status::Ok();
}

Status GcVolume::CheckRead(uint32_t zone, uint32_t first, std::span<const std::byte> data) const {
  for (uint32_t i = 0; i < data.size() / block_size_; ++i) {
    if (!map_.IsValid(zone, first + i)) continue;
    const uint32_t logical = map_.logical(zone, first + i);
    if (IsGcBlock(data.subspan(i * block_size_, block_size_), logical, map_.version(logical))) continue;
    return Status::Corruption(fmt::format("block {} of zone {} does not hold version {} of logical block {}", first + i,
                                          zones_[zone].value(), map_.version(logical), logical));
  }
  return Status::Ok();
}

// StreamWriter.

StreamWriter::StreamWriter(GcVolume& volume, IoQueue& io, ZoneHeat heat, uint64_t buffer_bytes, WrittenFunction written)
    : volume_(volume), io_(io), heat_(heat), written_(std::move(written)) {
  for (Buffer& buffer : buffers_) buffer.data = AlignedBuffer(buffer_bytes);
}

bool StreamWriter::CanAdd() {
  const Buffer& buffer = buffers_[filling_];
  if (buffer.ready) return false;
  return buffer.room > buffer.blocks || BeginBuffer();
}

// Returns false if there is no zone.
bool StreamWriter::BeginBuffer() {
  GcMap& map = volume_.map();
  uint32_t& zone = volume_.open_zone(heat_);
  if (zone == GcMap::kNowhere) {
    if (!map.HasFree()) return false;
    zone = map.Open(heat_);
  }
  Buffer& buffer = buffers_[filling_];
  buffer.zone = zone;
  buffer.first = map.written(zone);
  buffer.blocks = 0;
  buffer.room = std::min<uint64_t>(buffer.data.size() / volume_.block_size(), map.blocks_per_zone() - buffer.first);
  return true;
}

std::span<std::byte> StreamWriter::Add(uint32_t logical, GcVictim* victim) {
  Buffer& buffer = buffers_[filling_];
  assert(!buffer.ready && buffer.blocks < buffer.room);
  if (victim == nullptr) {
    volume_.map().Write(buffer.zone, logical);
  } else {
    volume_.map().Move(buffer.zone, logical);
    ++victim->unwritten;
    if (buffer.victims.empty() || buffer.victims.back().first != victim) buffer.victims.emplace_back(victim, 0);
    ++buffer.victims.back().second;
  }
  const uint64_t size = volume_.block_size();
  const std::span<std::byte> place = buffer.data.span().subspan(buffer.blocks * size, size);
  // A full zone may be collected, and opened again by another stream.
  if (volume_.map().full(buffer.zone)) volume_.open_zone(heat_) = GcMap::kNowhere;
  if (++buffer.blocks == buffer.room) Flush();
  return place;
}

void StreamWriter::Flush() {
  Buffer& buffer = buffers_[filling_];
  if (buffer.blocks == 0 || buffer.ready) return;
  buffer.ready = true;
  filling_ = (filling_ + 1) % buffers_.size();
}

bool StreamWriter::SubmitWrite() {
  Buffer& buffer = buffers_[writing_];
  if (in_flight_ || !buffer.ready) return false;
  in_flight_ = true;
  io_.Submit(DeviceOp::kWrite, volume_.OffsetOf(buffer.zone, buffer.first), buffer.data.data(),
             buffer.blocks * volume_.block_size(), [this, &buffer] { EndWrite(buffer); });
  return true;
}

void StreamWriter::EndWrite(Buffer& buffer) {
  in_flight_ = false;
  writing_ = (writing_ + 1) % buffers_.size();
  const std::vector<std::pair<GcVictim*, uint64_t>> victims = std::exchange(buffer.victims, {});
  buffer.blocks = 0;
  buffer.room = 0;
  buffer.ready = false;
  for (const auto& [victim, blocks] : victims) {
    victim->unwritten -= blocks;
    if (victim->unwritten == 0) written_(*victim);
  }
}

}  // namespace isozone::cli
