#include "gc/collector.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"

namespace isozone {
namespace {

// A rest is never longer: space may run out meanwhile.
constexpr int64_t kLongestRestNs = 100'000'000;

}  // namespace

uint64_t GcPlan::copied() const {
  uint64_t bytes = 0;
  for (const GcCandidate& victim : victims) bytes += victim.valid;
  return bytes;
}

uint64_t GcPlan::reclaimed() const {
  uint64_t bytes = 0;
  for (const GcCandidate& victim : victims) bytes += victim.written - victim.valid;
  return bytes;
}

Result<std::unique_ptr<Collector>> Collector::Create(GcStore& store, IoEngine& engine, const GcOptions& options) {
  ISOZONE_ASSIGN_OR_RETURN(SettingPtr setting, MakeSetting(options));
  return std::unique_ptr<Collector>(new Collector(store, engine, std::move(setting)));
}

Collector::Collector(GcStore& store, IoEngine& engine, SettingPtr setting)
    : store_(store), engine_(engine), setting_(std::move(setting)) {}

Collector::~Collector() { Stop(); }

Result<Collector::SettingPtr> Collector::MakeSetting(const GcOptions& options) {
  ISOZONE_ASSIGN_OR_RETURN(auto scheme, MakeGcScheme(options.scheme, options.tuning));
  auto setting = std::make_shared<Setting>();
  setting->options = options;
  setting->scheme = std::move(scheme);
  return SettingPtr(std::move(setting));
}

Collector::SettingPtr Collector::setting() const {
  const MutexLock lock(mu_);
  return setting_;
}

bool Collector::stopping() const {
  const MutexLock lock(mu_);
  return stopping_;
}

GcOptions Collector::options() const { return setting()->options; }

void Collector::Apply() {
  const MutexLock apply(apply_mu_);
  SettingPtr now;
  bool attached = false;
  {
    const MutexLock lock(mu_);
    now = setting_;
    attached = started_ && !stopping_ && !broken_ && now->scheme->automatic() && now->scheme->writers_wait();
  }
  store_.ResetAtOnce(now->scheme->resets_at_once());
  store_.ThrottleBelow(now->scheme->throttle_below());
  store_.Attach(attached);
}

void Collector::Start() {
  {
    const MutexLock lock(mu_);
    if (started_ || stopping_) return;
    started_ = true;
  }
  Apply();
  thread_ = std::thread([this] { RunInBackground(); });
}

void Collector::Stop() {
  {
    const MutexLock lock(mu_);
    stopping_ = true;
    wake_.SignalAll();
    while (working_) idle_.Wait(mu_);
  }
  Apply();
  if (thread_.joinable()) thread_.join();
}

void Collector::Wake() {
  const MutexLock lock(mu_);
  wanted_ = true;
  hurry_ = true;
  wake_.SignalAll();
}

void Collector::Hurry() {
  const MutexLock lock(mu_);
  hurry_ = true;
  wake_.SignalAll();
}

Status Collector::SetOptions(const GcOptions& options) {
  ISOZONE_ASSIGN_OR_RETURN(SettingPtr setting, MakeSetting(options));
  {
    const MutexLock lock(mu_);
    setting_ = std::move(setting);
    wanted_ = true;  // to look at once
    hurry_ = true;
    wake_.SignalAll();
  }
  Apply();
  return Status::Ok();
}

GcStats Collector::Stats() const {
  const MutexLock lock(mu_);
  GcStats stats = stats_;
  stats.scheme = setting_->options.scheme;
  return stats;
}

void Collector::BeginWork() {
  const MutexLock lock(mu_);
  ++asking_;
  wake_.SignalAll();
  while (working_) idle_.Wait(mu_);
  --asking_;
  working_ = true;
}

void Collector::EndWork() {
  const MutexLock lock(mu_);
  working_ = false;
  idle_.SignalAll();
}

std::vector<GcCandidate> Collector::Candidates() const {
  std::vector<GcCandidate> candidates = store_.Candidates();
  const MutexLock lock(mu_);
  std::erase_if(candidates, [this](const GcCandidate& c) ISOZONE_REQUIRES(mu_) { return avoided_.contains(c.zone); });
  return candidates;
}

void Collector::BeginLook() {
  store_.BeginRound();
  const MutexLock lock(mu_);
  ++looks_;
  std::erase_if(avoided_, [this](const auto& zone) ISOZONE_REQUIRES(mu_) { return zone.second <= looks_; });
}

void Collector::RunInBackground() {
  for (;;) {
    {
      const MutexLock lock(mu_);
      const int64_t next_ns = MonotonicNs() + setting_->scheme->interval_ns();
      while (!stopping_ && !wanted_ && MonotonicNs() < next_ns) wake_.WaitUntil(mu_, next_ns);
      if (stopping_) return;
      wanted_ = false;
      if (broken_ || !setting_->scheme->automatic()) continue;
    }
    bool more = true;
    while (more) {
      BeginWork();
      more = Round();
      EndWork();
      more = more && GoesOn();
    }
  }
}

bool Collector::GoesOn() const {
  const SettingPtr now = setting();
  const GcSpace space = store_.Space();
  return space.wanted || (now->scheme->decides_again() && now->scheme->Due(space));
}

bool Collector::Round() {
  Choice choice;
  choice.setting = setting();
  const GcScheme& scheme = *choice.setting->scheme;
  BeginLook();
  CopyStats done;
  int64_t since_ns = MonotonicNs();
  const auto next = [&](size_t most) {
    std::vector<ZoneId> victims = NextBatch(choice, done.bytes_reclaimed, most);
    since_ns = MonotonicNs();
    return victims;
  };
  const auto pause = [&] {
    const bool go_on = Rest(scheme, MonotonicNs() - since_ns);
    since_ns = MonotonicNs();
    return go_on;
  };
  const Status status = Collect(*choice.setting, scheme.confined(), next, pause, done);
  const bool gained = done.bytes_reclaimed > 0;
  {
    const MutexLock lock(mu_);
    stats_.rounds += done.bytes_read > 0 ? 1 : 0;
    stats_.urgency = 0;
  }
  store_.EndRound(gained);
  return gained && status.ok() && !stopping();
}

std::vector<ZoneId> Collector::NextBatch(Choice& choice, uint64_t reclaimed, size_t most) {
  if (choice.victims.empty()) Decide(choice, reclaimed, most);
  const auto end = choice.victims.begin() + static_cast<ptrdiff_t>(std::min(most, choice.victims.size()));
  std::vector<ZoneId> batch(choice.victims.begin(), end);
  choice.victims.erase(choice.victims.begin(), end);
  return batch;
}

void Collector::Decide(Choice& choice, uint64_t reclaimed, size_t most) {
  const GcScheme& scheme = *choice.setting->scheme;
  {
    const MutexLock lock(mu_);
    const bool superseded = asking_ > 0 || setting_ != choice.setting;
    const bool gained = reclaimed > std::exchange(choice.reclaimed, reclaimed);
    if (gained) ++choice.batches;
    // What could not be moved makes way for the next choice, until something was gained or nothing is left to choose.
    const bool enough = !scheme.decides_again() || superseded || choice.batches >= kMostBatches;
    if (stopping_ || (choice.batches > 0 && enough)) return;
  }
  const GcSpace space = store_.Space();
  if (!scheme.Due(space)) return;
  choice.victims = scheme.Decide(space, Candidates());
  if (choice.victims.empty()) return;
  if (scheme.decides_again()) choice.victims.resize(std::min(most, choice.victims.size()));
  const MutexLock lock(mu_);
  stats_.urgency = scheme.Urgency(space);
}

Status Collector::Collect(const Setting& setting, bool confined, const ZoneCopier::Next& next,
                          const std::function<bool()>& pause, CopyStats& done) {
  ZoneCopier::Options options;
  options.memory = setting.options.memory;
  options.verify = setting.options.verify;
  options.confined = confined;
  options.rules.cold_utilisation = setting.options.tuning.cold_threshold;
  options.rules.group_blocks = setting.options.tuning.group_blocks;
  ZoneCopier copier(store_, engine_, options);
  ZoneCopier::Left left;
  const CopyStats before = Stats().copies;
  const auto noted_next = [&](size_t most) {
    Note(before, done, left);
    return next(most);
  };
  const Status status = copier.Collect(noted_next, *setting.scheme, pause, done, left);
  Note(before, done, left);
  if (status.ok()) return status;
  Log().warn("garbage collection: {}", status.ToString());
  if (status.Is(StatusCode::kNoSpace) || status.Is(StatusCode::kAborted)) return status;
  {
    const MutexLock lock(mu_);
    broken_ = true;
  }
  Apply();
  return status;
}

void Collector::Note(const CopyStats& before, const CopyStats& done, ZoneCopier::Left& left) {
  const MutexLock lock(mu_);
  for (const ZoneId zone : left.failed) avoided_[zone] = looks_ + kForgiveRounds;
  for (const ZoneId zone : left.skipped) avoided_[zone] = looks_ + 1;
  left = {};
  stats_.copies = before;
  stats_.copies += done;
}

bool Collector::Rest(const GcScheme& scheme, int64_t took_ns) {
  {
    const MutexLock lock(mu_);
    hurry_ = false;  // whoever waits since before is in the space
  }
  const double urgency = scheme.Urgency(store_.Space());
  const MutexLock lock(mu_);
  stats_.urgency = urgency;
  if (urgency < 1) {
    const auto rest = static_cast<int64_t>(static_cast<double>(took_ns) * (1 - urgency) / urgency);
    const int64_t until_ns = MonotonicNs() + std::min(rest, kLongestRestNs);
    while (!stopping_ && !hurry_ && asking_ == 0 && MonotonicNs() < until_ns) wake_.WaitUntil(mu_, until_ns);
  }
  return !stopping_;
}

Result<CopyStats> Collector::Run(double free_percent, const Progress& progress) {
  BeginWork();
  const SettingPtr now = setting();
  CopyStats done;
  Status status = Status::Aborted("the collector has been stopped");
  if (!stopping()) {
    BeginLook();
    store_.ResetDead();
    status = RunRound(*now, free_percent, progress, done);
  }
  EndWork();
  ISOZONE_RETURN_IF_ERROR(status);
  return done;
}

Status Collector::RunRound(const Setting& setting, double free_percent, const Progress& progress, CopyStats& done) {
  const GcPlan plan = Plan(/*all=*/true);
  bool cut = plan.space.free_percent() >= free_percent;
  size_t next = 0;
  const auto next_victims = [&](size_t most) {
    std::vector<ZoneId> victims;
    for (; !cut && next < plan.victims.size() && victims.size() < most; ++next) {
      victims.push_back(plan.victims[next].zone);
    }
    return victims;
  };
  {
    const MutexLock lock(mu_);
    stats_.urgency = 1;
  }
  const auto pause = [&] {
    cut |= progress && !progress(done, plan.copied());
    cut |= stopping() || store_.Space().free_percent() >= free_percent;
    return !cut;
  };
  const Status status = Collect(setting, /*confined=*/false, next_victims, pause, done);
  {
    const MutexLock lock(mu_);
    stats_.rounds += done.bytes_read > 0 ? 1 : 0;
    stats_.urgency = 0;
  }
  // A round that did not try all there is says nothing about what is to be had.
  store_.EndRound(done.bytes_reclaimed > 0 || cut);
  return status;
}

GcPlan Collector::Plan(bool all) const {
  const SettingPtr now = setting();
  GcPlan plan;
  plan.scheme = now->options.scheme;
  plan.space = store_.Space();
  const std::vector<GcCandidate> candidates = Candidates();
  std::vector<ZoneId> order;
  if (all) {
    order = now->scheme->Order(candidates);
    plan.urgency = 1;
  } else {
    order = now->scheme->Decide(plan.space, candidates);
    plan.urgency = order.empty() ? 0 : now->scheme->Urgency(plan.space);
  }
  std::map<ZoneId, const GcCandidate*> by_zone;
  for (const GcCandidate& candidate : candidates) by_zone[candidate.zone] = &candidate;
  for (const ZoneId zone : order) plan.victims.push_back(*by_zone.at(zone));
  return plan;
}

}  // namespace isozone
