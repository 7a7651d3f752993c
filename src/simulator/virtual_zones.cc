#include "simulator/virtual_zones.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include <fmt/format.h>

#include "store/zone/allocator/zone_reserves.h"

namespace isozone {
namespace {

AllocatorOptions VirtualAllocatorOptions(const VirtualZones::Options& options, const DeviceTimes& times) {
  AllocatorOptions allocator;
  allocator.geometry = options.geometry;
  allocator.groups = times.Groups();
  // As a mount chooses it (mount_file_system.cc).
  allocator.keep_away = allocator.groups->count() >= 2 * options.stripe_width;
  allocator.metadata_copies = kMetadataCopiesMax;
  allocator.asks_for_space = options.collects;
  return allocator;
}

}  // namespace

Result<std::unique_ptr<VirtualZones>> VirtualZones::Create(EventLoop& loop, DeviceTimes& times, Options options) {
  ISOZONE_RETURN_IF_ERROR(CheckDeviceFits(options.geometry));
  ISOZONE_ASSIGN_OR_RETURN(auto policy, MakePlacementPolicy(options.policy));
  std::vector<ZoneDescriptor> report;
  for (uint32_t zone = 0; zone < options.geometry.zone_count; ++zone) {
    report.push_back({ZoneId(zone), ZoneState::kEmpty, options.geometry.zone_capacity, 0});
  }
  return std::unique_ptr<VirtualZones>(new VirtualZones(loop, times, std::move(options), std::move(policy), report));
}

VirtualZones::VirtualZones(EventLoop& loop, DeviceTimes& times, Options options,
                           std::unique_ptr<PlacementPolicy> policy, std::span<const ZoneDescriptor> report)
    : loop_(loop),
      times_(times),
      options_(std::move(options)),
      parallel_(policy->parallel()),
      allocator_(report, VirtualAllocatorOptions(options_, times), std::move(policy)),
      pieces_(report.size()) {
  allocator_.ledger().started = true;
}

// --- Writing ---

Result<VirtualZones::Answer> VirtualZones::Grant(ZoneAllocator::Inquiry& inquiry) {
  using Action = ZoneAllocator::Answer::Action;
  for (;;) {
    const ZoneAllocator::Answer answer = allocator_.Ask(inquiry, loop_.now_ns());
    switch (answer.action) {
      case Action::kGranted:
        if (allocator_.ledger().data_token_wanted) NoteWork();
        return Answer{answer.grant};
      case Action::kNothing:
        if (inquiry.confined()) return Status::NoSpace("no zone that is partly written has room for what is collected");
        return NothingLeft(answer.lack);
      case Action::kExecute:
        Execute(answer.commands);
        break;
      case Action::kRevoked:
        loop_.Ring(changed_);
        break;
      case Action::kCheckpoint:  // never asked for: metadata is not written
      case Action::kWait:
        NoteWork();
        return Answer{{}, answer.until_ns};
      case Action::kCollector:
        options_.want_space();
        NoteWork();
        return Answer{{}, answer.until_ns};
    }
  }
}

Status VirtualZones::NothingLeft(Lack lack) const {
  if (lack != Lack::kSpace) {
    return Status::NoSpace(
        fmt::format("all {} active zones that the device allows are in use; simulate fewer workers, "
                    "or a device that allows more",
                    options_.geometry.max_active_zones));
  }
  const ZoneTotals& totals = ledger().table.totals();
  return Status::NoSpace(
      fmt::format("the device is full: {} bytes of tables on {}; put less, or simulate a larger device "
                  "or another GC scheme",
                  totals.live, totals.capacity));
}

std::optional<int64_t> VirtualZones::BeginWrite(ZoneGrant& grant, uint64_t file, uint64_t bytes) {
  if (!grant.state->BeginWrite()) return std::nullopt;
  allocator_.ledger().table.Edit(grant.zone)->AddLive(bytes);
  auto& pieces = pieces_[grant.zone.value()];
  auto& places = files_.at(file).places;
  const auto before = std::ranges::find_if(places, [&](const FilePlace& place) {
    return place.zone == grant.zone && place.offset + place.length == grant.write_pointer;
  });
  if (before != places.end()) {
    before->length += bytes;
    pieces.back().length += bytes;
  } else {
    places.push_back({grant.zone, grant.write_pointer, bytes});
    pieces.push_back({file, grant.write_pointer, bytes});
  }
  grant.write_pointer += bytes;
  const int64_t ends_ns = times_.Write(loop_.now_ns(), grant.zone, bytes);
  Start({.ends_ns = ends_ns, .zone = grant.zone, .op = DeviceOp::kWrite, .lease = grant.state, .bytes = bytes});
  return ends_ns;
}

void VirtualZones::Release(const ZoneGrant& grant) {
  allocator_.Release(grant);
  loop_.Ring(changed_);
  if (ledger().table.at(grant.zone).dead() || ledger().data_token_wanted) NoteWork();
}

// --- Files ---

void VirtualZones::RemoveFile(uint64_t file) {
  const auto found = files_.find(file);
  for (const FilePlace& place : found->second.places) {
    std::erase_if(pieces_[place.zone.value()], [file](const ZonePiece& piece) { return piece.file == file; });
    allocator_.ledger().table.Edit(place.zone)->RemoveLive(place.length);
  }
  files_.erase(found);
  NoteWork();
}

size_t VirtualZones::FindPiece(ZoneId zone, uint64_t file, uint64_t offset) const {
  const auto& pieces = pieces_[zone.value()];
  const auto found = std::ranges::find_if(pieces, [&](const ZonePiece& piece) {
    return piece.file == file && piece.offset <= offset && offset < piece.end();
  });
  return static_cast<size_t>(found - pieces.begin());
}

// Takes a range out of a piece, of which up to two parts are left.
void VirtualZones::CutPiece(ZoneId zone, size_t index, uint64_t offset, uint64_t length) {
  auto& pieces = pieces_[zone.value()];
  const ZonePiece piece = pieces[index];
  std::vector<ZonePiece> left;
  if (piece.offset < offset) left.push_back({piece.file, piece.offset, offset - piece.offset});
  if (offset + length < piece.end()) left.push_back({piece.file, offset + length, piece.end() - (offset + length)});
  const auto at = pieces.erase(pieces.begin() + static_cast<ptrdiff_t>(index));
  pieces.insert(at, left.begin(), left.end());
  auto& places = files_.at(piece.file).places;
  std::erase_if(places, [&](const FilePlace& place) { return place.zone == zone && place.offset == piece.offset; });
  for (const ZonePiece& part : left) places.push_back({zone, part.offset, part.length});
  allocator_.ledger().table.Edit(zone)->RemoveLive(length);
}

void VirtualZones::Remove(uint64_t file, const FilePlace& place) {
  const size_t index = FindPiece(place.zone, file, place.offset);
  if (index < pieces_[place.zone.value()].size()) CutPiece(place.zone, index, place.offset, place.length);
}

// --- Background ---

void VirtualZones::Proceed() {
  CatchUp();
  while (std::exchange(work_is_due_, false)) {
    const ZoneAllocator::Work work = allocator_.NextWork(loop_.now_ns());
    work_is_due_ = !work.commands.empty();
    Execute(work.commands);
  }
  if (!commands_.empty()) loop_.CallAt(commands_.top().ends_ns, *this);
}

void VirtualZones::Execute(const std::vector<ZoneCommands>& commands) {
  const int64_t now_ns = loop_.now_ns();
  for (const ZoneCommands& next : commands) {
    if (next.after_durable) allocator_.upkeep().Confirm(next);
    for (const ZoneId zone : next.zones) {
      const uint64_t written = ledger().table.at(zone).write_pointer;
      const bool reset = next.op == DeviceOp::kReset;
      const int64_t ends_ns = reset ? times_.Reset(now_ns, zone, written) : times_.Finish(now_ns, zone, written);
      Start({.ends_ns = ends_ns, .zone = zone, .op = next.op});
    }
  }
}

void VirtualZones::Start(Command command) {
  command.order = ++commands_begun_;
  commands_.push(command);
  if (commands_.top().order == command.order) loop_.CallAt(command.ends_ns, *this);
}

void VirtualZones::CatchUp() {
  while (!commands_.empty() && commands_.top().ends_ns <= loop_.now_ns()) {
    const Command command = commands_.top();
    commands_.pop();
    End(command);
  }
}

void VirtualZones::End(const Command& command) {
  switch (command.op) {
    case DeviceOp::kWrite:
      // What is written lives from its beginning on: its file may be removed before its end.
      allocator_.EndWrite({.zone = command.zone, .state = command.lease}, command.bytes, /*live=*/0);
      break;
    case DeviceOp::kReset:
      allocator_.upkeep().NoteReset(command.zone);
      NoteWork();
      break;
    default:
      allocator_.upkeep().NoteFinish(command.zone);
      NoteWork();
      break;
  }
  loop_.Ring(changed_);
}

}  // namespace isozone
