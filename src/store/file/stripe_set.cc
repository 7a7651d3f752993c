#include "store/file/stripe_set.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace isozone {

StripeSet::StripeSet(DataPath& data_path, const Options& options)
    : data_path_(data_path), options_(options), gate_(options.width), rescue_(data_path, options.use) {
  rescue_.set_cohort(options.cohort, 0);
}

StripeSet::~StripeSet() = default;

void StripeSet::SetDataClass(DataClass data) {
  if (data == data_) return;
  data_ = data;
  rescue_.set_data_class(data);
  gate_.OnChange();
}

void StripeSet::SetIoClass(IoClass io_class) {
  if (io_class == io_class_) return;
  io_class_ = io_class;
  rescue_.set_io_class(io_class);
  for (const auto& lane : lanes_) lane->stream_.set_io_class(io_class);
  gate_.OnChange();
}

// --- Lanes ---

Result<StripeSet::Lane*> StripeSet::Next(uint64_t bytes, LaneWish wish) {
  for (;;) {
    SettleDone();
    if (RetireFull(bytes) && options_.keep_retired) return nullptr;
    const LaneDecision decision = Choose(wish);
    switch (decision.kind) {
      case LaneDecision::Kind::kUse:
        return lanes_[decision.lane].get();
      case LaneDecision::Kind::kWiden:
        if (Lane* lane = Widen(bytes)) return lane;
        break;
      case LaneDecision::Kind::kOpen:
        return Open(bytes);
      case LaneDecision::Kind::kWait:
        SettleOldest();
        break;
    }
  }
}

LaneDecision StripeSet::Choose(LaneWish wish) {
  // How busy the flash is matters only where the last lane is to be kept and has ended a unit. Each look at the clock
  // delays a synced write.
  const bool paced = wish == LaneWish::kKeep && !lanes_.empty() && lanes_[last_]->unit_ended_;
  const int64_t now_ns = paced ? data_path_.clock.NowNs() : 0;
  views_.clear();
  for (const auto& lane : lanes_) {
    LaneView& view = views_.emplace_back();
    if (lane->write_ != nullptr) view.state = LaneView::State::kBusy;
    if (lane->retired_) view.state = LaneView::State::kRetired;
    if (!paced) continue;
    view.unit_ended = lane->unit_ended_;
    view.keeps_up = options_.pace->HasRoom(lane->pace_, now_ns);
    view.backlog_ns = options_.pace->BacklogNs(lane->pace_, now_ns);
  }
  return ChooseLane(views_, last_, wish, gate_.MayAsk(HeldLanes()));
}

size_t StripeSet::OpenLanes() const {
  return static_cast<size_t>(std::ranges::count_if(lanes_, [](const auto& lane) { return !lane->retired_; }));
}

size_t StripeSet::HeldLanes() const {
  return static_cast<size_t>(std::ranges::count_if(lanes_, [](const auto& lane) { return lane->stream_.held(); }));
}

Result<StripeSet::Lane*> StripeSet::Open(uint64_t bytes) {
  auto lane = MakeLane();
  ISOZONE_RETURN_IF_ERROR(lane->stream_.Reserve(bytes));
  return Add(std::move(lane));
}

StripeSet::Lane* StripeSet::Widen(uint64_t bytes) {
  std::vector<uint32_t> taken;
  for (const auto& lane : lanes_) {
    if (lane->stream_.held()) taken.push_back(lane->group_);
  }
  auto lane = MakeLane();
  if (lane->stream_.Widen(bytes, taken, options_.width)) return Add(std::move(lane));
  gate_.OnRefused();
  return nullptr;
}

std::unique_ptr<StripeSet::Lane> StripeSet::MakeLane() const {
  auto lane = std::make_unique<Lane>(data_path_, options_.use, options_.wakes);
  lane->stream_.set_data_class(data_);
  lane->stream_.set_io_class(io_class_);
  lane->stream_.set_cohort(options_.cohort, ExpectedOfLane());
  if (options_.gc) lane->stream_.set_gc(options_.confined);
  return lane;
}

uint64_t StripeSet::ExpectedOfLane() const {
  if (options_.expected_size <= started_bytes_) return 0;
  const uint64_t left = options_.expected_size - started_bytes_;
  if (options_.width == 1) return RoundUp(left, data_path_.geometry().block_size);
  return RoundUp((left + options_.width - 1) / options_.width, options_.unit);
}

StripeSet::Lane* StripeSet::Add(std::unique_ptr<Lane> lane) {
  lane->group_ = data_path_.groups->of(lane->stream_.zone());
  lanes_.push_back(std::move(lane));
  last_ = lanes_.size() - 1;
  gate_.OnChange();
  return lanes_.back().get();
}

bool StripeSet::RetireFull(uint64_t bytes) {
  bool any = false;
  for (size_t i = lanes_.size(); i-- > 0;) {
    Lane& lane = *lanes_[i];
    if (lane.retired_ || lane.write_ != nullptr || lane.room() >= bytes) continue;
    Retire(lane);
    any = true;
  }
  return any;
}

void StripeSet::Retire(Lane& lane) {
  lane.retired_ = true;
  gate_.OnChange();
  if (!options_.keep_retired) Remove(lane);
}

void StripeSet::Remove(Lane& lane) {
  assert(lane.write_ == nullptr);
  volatile_elsewhere_ |= lane.is_volatile();
  const auto it = std::ranges::find_if(lanes_, [&](const auto& other) { return other.get() == &lane; });
  const auto index = static_cast<size_t>(it - lanes_.begin());
  lanes_.erase(it);
  if (index <= last_ && last_ > 0) --last_;
  gate_.OnChange();
}

void StripeSet::Clear() {
  while (!lanes_.empty()) Remove(*lanes_.back());
  rescue_.Release();
}

// --- Writes ---

bool StripeSet::Start(Lane& lane, Write& write) {
  assert(lane.write_ == nullptr && !lane.retired_);
  write.at = lane.next();
  if (!lane.stream_.Start(write.blocks, write.live, write.durable)) {
    Retire(lane);
    return false;
  }
  write.lane = &lane;
  write.lost = false;
  lane.write_ = &write;
  lane.started_ = started_++;
  started_bytes_ += write.blocks.size();
  if (options_.pace)
    lane.unit_ended_ = options_.pace->OnWrite(lane.pace_, write.blocks.size(), data_path_.clock.NowNs());
  last_ = static_cast<size_t>(std::ranges::find_if(lanes_, [&](const auto& other) { return other.get() == &lane; }) -
                              lanes_.begin());
  gate_.OnWrite();
  return true;
}

bool StripeSet::IsDone(const Write& write) { return write.lane == nullptr || write.lane->stream_.done(); }

void StripeSet::Settle(Write& write) {
  if (write.lane == nullptr) return;
  Lane& lane = *std::exchange(write.lane, nullptr);
  lane.write_ = nullptr;
  const auto outcome = lane.stream_.Finish();
  write.lost = !outcome.ok() || *outcome == ZoneStream::Outcome::kLostZone;
  write.status = outcome.status();
  write.space = lane.stream_.TakeSpace();
  if (write.lost) Retire(lane);
}

void StripeSet::SettleDone() {
  for (size_t i = lanes_.size(); i-- > 0;) {
    const Lane& lane = *lanes_[i];
    if (lane.write_ != nullptr && lane.stream_.done()) Settle(*lane.write_);
  }
}

void StripeSet::SettleOldest() {
  Lane* oldest = nullptr;
  for (const auto& lane : lanes_) {
    if (lane->write_ == nullptr) continue;
    if (oldest == nullptr || lane->started_ < oldest->started_) oldest = lane.get();
  }
  if (oldest != nullptr) Settle(*oldest->write_);
}

Status StripeSet::WriteExtents(std::span<std::byte> blocks, size_t used, uint64_t file_offset, bool durable,
                               std::vector<FileExtent>& written, SpaceClaim& space) {
  return rescue_.WriteExtents(blocks, used, file_offset, durable, written, space);
}

// --- Durability ---

bool StripeSet::is_volatile() const {
  return volatile_elsewhere_ || rescue_.is_volatile() ||
         std::ranges::any_of(lanes_, [](const auto& lane) { return lane->is_volatile(); });
}

Status StripeSet::MakeDurable() {
  if (!is_volatile()) return Status::Ok();
  ISOZONE_RETURN_IF_ERROR(data_path_.engine.Flush(io_class_));
  volatile_elsewhere_ = false;
  rescue_.MarkDurable();
  // A write that is in flight meanwhile makes its lane volatile again when it is settled.
  for (const auto& lane : lanes_) lane->stream_.MarkDurable();
  return Status::Ok();
}

}  // namespace isozone
