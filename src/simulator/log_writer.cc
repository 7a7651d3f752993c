#include "simulator/log_writer.h"

#include <algorithm>

namespace isozone {
namespace {

constexpr uint32_t kLogWidth = 8;  // as log_width of a mount

ZoneRequest LogRequest() {
  ZoneRequest request;
  request.use = ZoneUse::kLog;
  request.lifetime = Lifetime::kShort;
  return request;
}

// A log leaves at least half of the groups to others.
uint32_t LogWidthOf(const SimWorld& world) {
  if (!world.zones->parallel()) return 1;
  return std::min(kLogWidth, std::max(1U, world.zones->ledger().table.groups().count() / 2));
}

}  // namespace

LogWriter::LogWriter(SimWorld& world)
    : world_(world), writer_(*world.zones, world.loop, LogRequest(), LogWidthOf(world)) {}

void LogWriter::Take(uint64_t bytes) {
  if (!world_.options.tree.log) return;
  const uint64_t log = FullMemtables::LogOf(world_.memtables.next());
  if (log != log_) world_.zones->AddFile(log, {Lifetime::kShort});
  log_ = log;
  pending_ = bytes;
  world_.report.log_bytes += bytes;
}

Result<bool> LogWriter::GoOn(Actor& actor) {
  while (pending_ > 0) {
    ISOZONE_ASSIGN_OR_RETURN(const LaneWriter::Started started, writer_.Start(log_, pending_, LaneWish::kInTurn));
    pending_ -= started.bytes;
    if (started.bytes > 0) continue;
    world_.loop.CallAt(started.until_ns, actor);
    if (started.for_zone) world_.loop.CallOn(world_.zones->changed(), actor);
    return false;
  }
  if (world_.zones->parallel() || writer_.ends_ns() <= world_.loop.now_ns()) return true;
  world_.loop.CallAt(writer_.ends_ns(), actor);
  return false;
}

}  // namespace isozone
