#include "simulator/lane_writer.h"

#include <algorithm>

#include "base/units.h"

namespace isozone {

LaneWriter::LaneWriter(VirtualZones& zones, EventLoop& loop, const ZoneRequest& request, uint32_t width)
    : zones_(zones), loop_(loop), request_(request), expected_({.width = width}), gate_(width) {
  request_.min_room = zones.geometry().block_size;
}

void LaneWriter::SetDataClass(DataClass data) {
  if (request_.data_class() == data) return;
  request_.lifetime = data.lifetime;
  request_.level = data.level;
  request_.heat = data.heat;
  gate_.OnChange();
}

void LaneWriter::Expect(const Expected& expected) {
  expected_ = expected;
  expected_.width = std::min(expected.width, gate_.width());
  request_.cohort = expected.cohort;
}

uint64_t LaneWriter::ExpectedOfLane() const {
  if (expected_.width == 1) return RoundUp(expected_.bytes, zones_.geometry().block_size);
  return RoundUp((expected_.bytes + expected_.width - 1) / expected_.width, expected_.unit_bytes);
}

int64_t LaneWriter::ends_ns() const {
  int64_t last = loop_.now_ns();
  for (const Lane& lane : lanes_) last = std::max(last, lane.in_flight > 0 ? lane.ends_ns : 0);
  return last;
}

int64_t LaneWriter::FirstEnd() const {
  int64_t first = EventLoop::kNever;
  for (const Lane& lane : lanes_) first = std::min(first, lane.in_flight > 0 ? lane.ends_ns : EventLoop::kNever);
  return first;
}

void LaneWriter::Settle() {
  zones_.CatchUp();
  for (size_t i = lanes_.size(); i-- > 0;) {
    Lane& lane = lanes_[i];
    if (lane.ends_ns <= loop_.now_ns()) lane.in_flight = 0;
    const bool full = lane.grant.capacity - lane.grant.write_pointer < zones_.geometry().block_size;
    if (lane.in_flight == 0 && full) Retire(i);
  }
}

void LaneWriter::Retire(size_t lane) {
  zones_.Release(lanes_[lane].grant);
  lanes_.erase(lanes_.begin() + static_cast<ptrdiff_t>(lane));
  if (lane <= last_ && last_ > 0) --last_;
  gate_.OnChange();
}

void LaneWriter::Clear() {
  inquiry_.reset();
  Settle();
  while (!lanes_.empty()) Retire(lanes_.size() - 1);
}

void LaneWriter::Add(const ZoneGrant& grant) {
  lanes_.push_back({.grant = grant, .group = zones_.ledger().table.groups().of(grant.zone)});
  last_ = lanes_.size() - 1;
  gate_.OnChange();
}

bool LaneWriter::Widen() {
  groups_.clear();
  for (const Lane& lane : lanes_) groups_.push_back(lane.group);
  ZoneRequest request = request_;
  request.taken_groups = groups_;
  request.width = expected_.width;
  request.expected_size = ExpectedOfLane();
  const auto grant = zones_.Widen(request);
  if (grant) {
    Add(*grant);
  } else {
    gate_.OnRefused();
  }
  return grant.has_value();
}

Result<std::optional<LaneWriter::Started>> LaneWriter::Open() {
  if (inquiry_ == nullptr) {
    request_.expected_size = ExpectedOfLane();
    inquiry_ = std::make_unique<ZoneAllocator::Inquiry>(zones_.allocator(), request_);
  }
  ISOZONE_ASSIGN_OR_RETURN(const VirtualZones::Answer answer, zones_.Grant(*inquiry_));
  if (!answer.grant) return std::optional(Started{.until_ns = answer.until_ns, .for_zone = true});
  inquiry_.reset();
  Add(*answer.grant);
  return std::optional<Started>();
}

Result<LaneWriter::Started> LaneWriter::Start(uint64_t file, uint64_t bytes, LaneWish wish) {
  Settle();
  for (;;) {
    views_.clear();
    for (const Lane& lane : lanes_) {
      LaneView& view = views_.emplace_back();
      if (lane.in_flight > 0) view.state = LaneView::State::kBusy;
    }
    const LaneDecision decision = ChooseLane(views_, last_, wish, MayWiden());
    size_t lane = decision.lane;
    switch (decision.kind) {
      case LaneDecision::Kind::kUse:
        break;
      case LaneDecision::Kind::kWiden:
        if (!Widen()) continue;
        lane = last_;
        break;
      case LaneDecision::Kind::kOpen: {
        ISOZONE_ASSIGN_OR_RETURN(const std::optional<Started> wait, Open());
        if (wait) return *wait;
        lane = last_;
        break;
      }
      case LaneDecision::Kind::kWait:
        return Started{.until_ns = FirstEnd()};
    }
    const Started started = StartIn(lane, file, bytes);
    if (started.bytes > 0) return started;
  }
}

LaneWriter::Started LaneWriter::StartIn(size_t index, uint64_t file, uint64_t bytes) {
  Lane& lane = lanes_[index];
  const uint64_t room = RoundDown(lane.grant.capacity - lane.grant.write_pointer, zones_.geometry().block_size);
  Started started;
  started.bytes = std::min(bytes, room);
  started.place = {lane.grant.zone, lane.grant.write_pointer, started.bytes};
  const auto ends_ns = zones_.BeginWrite(lane.grant, file, started.bytes);
  if (!ends_ns) {
    Retire(index);
    return {};
  }
  expected_.bytes -= std::min(expected_.bytes, started.bytes);
  lane.in_flight = started.bytes;
  lane.ends_ns = *ends_ns;
  last_ = index;
  gate_.OnWrite();
  return started;
}

}  // namespace isozone
