#include "device/emulated/faults.h"

#include <algorithm>
#include <limits>
#include <random>

namespace isozone {
namespace {

uint64_t DrawSeed() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

Status TakeProbability(UriOptions& options, std::string_view key, double& probability) {
  ISOZONE_ASSIGN_OR_RETURN(const auto value, options.TakeReal(key, 0.0, 1.0));
  if (value) probability = *value;
  return Status::Ok();
}

bool ChangesData(DeviceOp op) { return op == DeviceOp::kWrite || op == DeviceOp::kAppend; }

}  // namespace

bool FaultPlan::any() const {
  return read_error > 0 || write_error > 0 || zone_read_only > 0 || zone_offline > 0 || latency_spike > 0 ||
         power_cut_after.has_value();
}

Result<FaultPlan> TakeFaultPlan(UriOptions& options) {
  constexpr uint64_t kAny = std::numeric_limits<uint64_t>::max();
  constexpr uint64_t kMaxSpikeUs = 60'000'000;
  FaultPlan plan;
  ISOZONE_ASSIGN_OR_RETURN(plan.seed, options.TakeUnsigned("fault_seed", 0, kAny));
  ISOZONE_RETURN_IF_ERROR(TakeProbability(options, "fault_read_error", plan.read_error));
  ISOZONE_RETURN_IF_ERROR(TakeProbability(options, "fault_write_error", plan.write_error));
  ISOZONE_RETURN_IF_ERROR(TakeProbability(options, "fault_zone_read_only", plan.zone_read_only));
  ISOZONE_RETURN_IF_ERROR(TakeProbability(options, "fault_zone_offline", plan.zone_offline));
  ISOZONE_RETURN_IF_ERROR(TakeProbability(options, "fault_latency_spike", plan.latency_spike));
  ISOZONE_ASSIGN_OR_RETURN(const auto spike_us, options.TakeUnsigned("fault_latency_spike_us", 1, kMaxSpikeUs));
  if (spike_us) plan.latency_spike_us = *spike_us;
  ISOZONE_ASSIGN_OR_RETURN(plan.power_cut_after, options.TakeUnsigned("fault_power_cut_after", 0, kAny));
  return plan;
}

FaultInjector::FaultInjector(const FaultPlan& plan)
    : plan_(plan),
      seed_(plan.seed ? *plan.seed : DrawSeed()),
      armed_(plan.any()),
      random_(seed_),
      commands_until_cut_(plan.power_cut_after) {}

FaultInjector::Verdict FaultInjector::JudgeArmed(const DeviceGeometry& geometry, const DeviceRequest& request) {
  const MutexLock lock(mu_);
  Verdict verdict;
  if (commands_until_cut_ && (*commands_until_cut_)-- == 0) {
    commands_until_cut_.reset();
    verdict.power_fails = true;
    return verdict;
  }
  if (random_.Chance(plan_.latency_spike)) {
    verdict.delay_ns = static_cast<int64_t>(plan_.latency_spike_us) * kMicrosecondNs;
  }
  if (const auto scripted = TakeScripted(request.op, geometry.ZoneOf(request.offset))) {
    verdict.status = *scripted;
  } else if (request.op == DeviceOp::kRead) {
    if (ReadFails(geometry, request)) verdict.status = DeviceStatus::kUnrecoveredReadError;
  } else if (ChangesData(request.op) || request.op == DeviceOp::kReset) {
    JudgeChange(request, verdict);
  }
  return verdict;
}

std::optional<DeviceStatus> FaultInjector::TakeScripted(DeviceOp op, ZoneId zone) {
  const auto hit = std::find_if(scripted_.begin(), scripted_.end(), [&](const Scripted& s) {
    return s.op == op && (s.zone == zone || op == DeviceOp::kFlush);
  });
  if (hit == scripted_.end()) return std::nullopt;
  const DeviceStatus status = hit->status;
  scripted_.erase(hit);
  return status;
}

bool FaultInjector::ReadFails(const DeviceGeometry& geometry, const DeviceRequest& request) {
  const ZoneId zone = geometry.ZoneOf(request.offset);
  const uint64_t first = geometry.OffsetInZone(request.offset) / geometry.block_size;
  const uint64_t count = request.length / geometry.block_size;
  if (random_.Chance(plan_.read_error)) bad_blocks_.emplace(zone, first + random_.Below(count));
  const auto bad = bad_blocks_.lower_bound({zone, first});
  return bad != bad_blocks_.end() && *bad < Block(zone, first + count);
}

void FaultInjector::JudgeChange(const DeviceRequest& request, Verdict& verdict) {
  if (random_.Chance(plan_.zone_offline)) {
    verdict.zone_turns = ZoneState::kOffline;
  } else if (random_.Chance(plan_.zone_read_only)) {
    verdict.zone_turns = ZoneState::kReadOnly;
  } else if (ChangesData(request.op) && random_.Chance(plan_.write_error)) {
    verdict.status = DeviceStatus::kWriteFault;
    verdict.tears_write = true;
  }
}

void FaultInjector::FailNext(DeviceOp op, ZoneId zone, DeviceStatus status) {
  const MutexLock lock(mu_);
  scripted_.push_back({op, zone, status});
  armed_.store(true, std::memory_order_relaxed);
}

void FaultInjector::CutPowerAfter(uint64_t commands) {
  const MutexLock lock(mu_);
  commands_until_cut_ = commands;
  armed_.store(true, std::memory_order_relaxed);
}

void FaultInjector::ForgetBadBlocks(ZoneId zone) {
  if (!armed_.load(std::memory_order_relaxed)) return;
  const MutexLock lock(mu_);
  bad_blocks_.erase(bad_blocks_.lower_bound({zone, 0}), bad_blocks_.lower_bound({ZoneId(zone.value() + 1), 0}));
}

uint64_t FaultInjector::Below(uint64_t bound) {
  const MutexLock lock(mu_);
  return random_.Below(bound);
}

}  // namespace isozone
