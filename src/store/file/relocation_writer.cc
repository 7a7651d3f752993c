#include "store/file/relocation_writer.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "store/zone/segment_plan.h"

namespace isozone {
namespace {

// Returns the part of a piece that lies in [begin, end) of its blocks. Its length is 0 if there is none.
ByteRange PartOf(const GcBlocks::Piece& piece, uint64_t begin, uint64_t end) {
  const uint64_t from = std::max(piece.offset, begin);
  const uint64_t to = std::min(piece.offset + piece.length, end);
  return {from, to > from ? to - from : 0};
}

uint32_t RelocationWidth(const DataPath& data_path, bool confined) {
  return data_path.parallel && !confined ? std::min(data_path.options.stripe_width, data_path.groups->count()) : 1;
}

}  // namespace

RelocationWriter::RelocationWriter(DataPath& data_path, Catalog& catalog, bool confined)
    : data_path_(data_path),
      catalog_(catalog),
      confined_(confined),
      unit_size_(std::max<uint64_t>(RoundDown(data_path.options.stripe_unit, data_path.geometry().block_size),
                                    data_path.geometry().block_size)),
      lanes_(data_path,
             {.use = ZoneUse::kData, .width = RelocationWidth(data_path, confined), .gc = true, .confined = confined}) {
  lanes_.SetIoClass(IoClass::kGc);
}

Status RelocationWriter::Write(std::span<const GcBlocks> blocks, DataClass data, std::vector<GcMove>& moves) {
  // Another writer may get a zone as soon as it is let go half full, and the collector might then be left without any.
  if (data != data_ && (confined_ || data_path_.pool->collected().Look().empty_zones > 0)) lanes_.Clear();
  data_ = data;
  lanes_.SetDataClass(data);
  CutIntoUnits(blocks);
  Status status;
  while (status.ok() && !(units_.empty() && started_.empty())) {
    if (!units_.empty()) status = StartNext();
    if (status.ok()) status = Collect(/*wait=*/units_.empty(), moves);
  }
  const Status rest = Collect(/*wait=*/true, moves);
  units_.clear();
  const MutexLock lock(catalog_.namespace_mutex);
  catalog_.copies.Merge(std::exchange(written_, {}));
  return status.ok() ? rest : status;
}

void RelocationWriter::CutIntoUnits(std::span<const GcBlocks> blocks) {
  for (const GcBlocks& some : blocks) {
    for (uint64_t at = 0; at < some.blocks.size(); at += unit_size_) {
      units_.push_back({&some, at, std::min<uint64_t>(unit_size_, some.blocks.size() - at)});
    }
  }
  std::ranges::reverse(units_);
}

Status RelocationWriter::StartNext() {
  const uint64_t block = data_path_.geometry().block_size;
  ISOZONE_ASSIGN_OR_RETURN(StripeSet::Lane * lane, lanes_.Next(block, LaneWish::kSpread));
  Unit unit = units_.back();
  units_.pop_back();
  const uint64_t fits = std::min(unit.length, RoundDown(lane->room(), block));
  if (fits < unit.length) {
    units_.push_back({unit.blocks, unit.offset + fits, unit.length - fits});
    unit.length = fits;
  }
  Started& started = started_.emplace_back();
  started.unit = unit;
  started.write.blocks = unit.blocks->blocks.subspan(unit.offset, unit.length);
  for (const GcBlocks::Piece& piece : unit.blocks->pieces) {
    started.write.live += PartOf(piece, unit.offset, unit.end()).length;
  }
  if (lanes_.Start(*lane, started.write)) return Status::Ok();
  started_.pop_back();
  units_.push_back(unit);  // the zone was taken away
  return Status::Ok();
}

Status RelocationWriter::Collect(bool wait, std::vector<GcMove>& moves) {
  Status first;
  for (; !started_.empty() && (wait || StripeSet::IsDone(started_.front().write)); started_.pop_front()) {
    Started& started = started_.front();
    lanes_.Settle(started.write);
    const Status status = TakeOver(started, moves);
    if (first.ok()) first = status;
  }
  return first;
}

Status RelocationWriter::TakeOver(Started& started, std::vector<GcMove>& moves) {
  auto& [unit, write] = started;
  ISOZONE_RETURN_IF_ERROR(write.status);
  if (write.lost) {
    units_.push_back(unit);
    if (++failures_ < ZoneStream::kMaxAttempts) return Status::Ok();
    return Status::IoError(fmt::format("writes to {} zones in a row have failed", failures_));
  }
  failures_ = 0;
  written_.Merge(std::move(write.space));
  for (const GcBlocks::Piece& piece : unit.blocks->pieces) {
    const ByteRange part = PartOf(piece, unit.offset, unit.end());
    if (part.length == 0) continue;
    moves.push_back({piece.file, DeviceOffset(piece.from.value() + (part.offset - piece.offset)),
                     DeviceOffset(write.at.value() + (part.offset - unit.offset)), part.length});
  }
  return Status::Ok();
}

}  // namespace isozone
