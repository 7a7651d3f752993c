#include "fs/file/relocation_writer.h"

#include <algorithm>

#include <fmt/format.h>

namespace isozone {

RelocationWriter::RelocationWriter(MountContext& context, bool confined)
    : context_(context),
      confined_(confined),
      width_(context.parallel && !confined ? std::min(context.options.stripe_width, context.groups->count()) : 1),
      unit_size_(std::max<uint64_t>(RoundDown(context.options.stripe_unit, context.geometry().block_size),
                                    context.geometry().block_size)) {}

uint64_t RelocationWriter::LiveIn(const GcBlocks& blocks, uint64_t offset, uint64_t length) {
  uint64_t live = 0;
  for (const GcBlocks::Piece& piece : blocks.pieces) {
    const uint64_t begin = std::max(piece.offset, offset);
    const uint64_t end = std::min(piece.offset + piece.length, offset + length);
    live += end > begin ? end - begin : 0;
  }
  return live;
}

Status RelocationWriter::Write(std::span<const GcBlocks> blocks, DataClass data, std::vector<GcMove>& moves) {
  // A zone that is let go half full may be another writer's at once, and the collector without any.
  if (data != data_ && (confined_ || context_.pool->SpaceForGc().empty_zones > 0)) lanes_.clear();
  data_ = data;
  std::vector<Unit> units;
  for (const GcBlocks& some : blocks) {
    for (uint64_t at = 0; at < some.blocks.size(); at += unit_size_) {
      units.push_back({&some, at, std::min<uint64_t>(unit_size_, some.blocks.size() - at), 0});
    }
  }
  std::reverse(units.begin(), units.end());
  Status status;
  while (status.ok() && (!units.empty() || !lost_.empty())) {
    std::vector<Unit>& from = lost_.empty() ? units : lost_;
    Unit unit = from.back();
    from.pop_back();
    const auto lane = NextLane(moves);
    if (!lane.ok()) {
      status = lane.status();
      break;
    }
    ZoneStream& stream = (*lane)->stream;
    const uint64_t fits = std::min(unit.length, RoundDown(stream.room(), context_.geometry().block_size));
    if (fits < unit.length) {
      units.push_back({unit.blocks, unit.offset + fits, unit.length - fits, 0});
      unit.length = fits;
    }
    unit.live = LiveIn(*unit.blocks, unit.offset, unit.length);
    (*lane)->where = stream.next();
    if (stream.Start(unit.blocks->blocks.subspan(unit.offset, unit.length), unit.live, /*durable=*/false)) {
      (*lane)->unit = unit;
    } else {
      lost_.push_back(unit);  // the zone was taken away
    }
    if (units.empty() && lost_.empty()) status = SettleAll(moves);
  }
  const Status settled = SettleAll(moves);
  lost_.clear();
  return status.ok() ? settled : status;
}

Result<RelocationWriter::Lane*> RelocationWriter::NextLane(std::vector<GcMove>& moves) {
  for (;;) {
    for (const auto& lane : lanes_) {
      if (lane->unit && lane->stream.done()) ISOZONE_RETURN_IF_ERROR(Settle(*lane, moves));
    }
    std::erase_if(lanes_, [this](const auto& lane) {
      return !lane->unit && (!lane->stream.held() || lane->stream.room() < context_.geometry().block_size);
    });
    if (lanes_.empty()) {
      ISOZONE_RETURN_IF_ERROR(OpenFirst());
      return lanes_.back().get();
    }
    if (lanes_.size() < width_ && Widen()) return lanes_.back().get();
    for (size_t i = 0; i < lanes_.size(); ++i) {
      turn_ = (turn_ + 1) % lanes_.size();
      if (!lanes_[turn_]->unit) return lanes_[turn_].get();
    }
    turn_ = (turn_ + 1) % lanes_.size();
    ISOZONE_RETURN_IF_ERROR(Settle(*lanes_[turn_], moves));
  }
}

std::unique_ptr<RelocationWriter::Lane> RelocationWriter::MakeLane() const {
  auto lane = std::make_unique<Lane>(context_);
  lane->stream.set_data_class(data_);
  lane->stream.set_io_class(IoClass::kGc);
  lane->stream.set_gc(confined_);
  return lane;
}

Status RelocationWriter::OpenFirst() {
  auto lane = MakeLane();
  ISOZONE_RETURN_IF_ERROR(lane->stream.Reserve(context_.geometry().block_size));
  Add(std::move(lane));
  return Status::Ok();
}

void RelocationWriter::Add(std::unique_ptr<Lane> lane) {
  lane->group = context_.groups->of(lane->stream.zone());
  lanes_.push_back(std::move(lane));
}

bool RelocationWriter::Widen() {
  std::vector<uint32_t> taken;
  for (const auto& lane : lanes_) taken.push_back(lane->group);
  auto lane = MakeLane();
  if (!lane->stream.Widen(context_.geometry().block_size, taken)) return false;
  Add(std::move(lane));
  return true;
}

Status RelocationWriter::Settle(Lane& lane, std::vector<GcMove>& moves) {
  if (!lane.unit) return Status::Ok();
  const Unit unit = *lane.unit;
  lane.unit.reset();
  ISOZONE_ASSIGN_OR_RETURN(const auto outcome, lane.stream.Finish());
  if (outcome == ZoneStream::Outcome::kLostZone) {
    lost_.push_back(unit);
    if (++failures_ < ZoneStream::kMaxAttempts) return Status::Ok();
    return Status::IoError(fmt::format("writes to {} zones in a row have failed", failures_));
  }
  failures_ = 0;
  for (const GcBlocks::Piece& piece : unit.blocks->pieces) {
    const uint64_t begin = std::max(piece.offset, unit.offset);
    const uint64_t end = std::min(piece.offset + piece.length, unit.offset + unit.length);
    if (begin >= end) continue;
    moves.push_back({piece.file, DeviceOffset(piece.from.value() + (begin - piece.offset)),
                     DeviceOffset(lane.where.value() + (begin - unit.offset)), end - begin});
  }
  return Status::Ok();
}

Status RelocationWriter::SettleAll(std::vector<GcMove>& moves) {
  Status first;
  for (const auto& lane : lanes_) {
    const Status status = Settle(*lane, moves);
    if (first.ok()) first = status;
  }
  return first;
}

}  // namespace isozone
