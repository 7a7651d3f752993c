#include "store/gc/collector.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/log.h"
#include "base/thread.h"

namespace isozone {

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

size_t Collector::Setting::most_together() const {
  const ZoneCopier::Options of_copier = copier(/*confined=*/false);
  return SegmentsOfWindow(of_copier.memory, of_copier.rules);
}

ZoneCopier::Options Collector::Setting::copier(bool confined) const {
  ZoneCopier::Options copier;
  copier.memory = options.memory;
  copier.verify = options.verify;
  copier.confined = confined;
  return copier;
}

Result<std::unique_ptr<Collector>> Collector::Create(GcZones& zones, GcFiles& files, IoEngine& engine,
                                                     const GcOptions& options, Clock& clock) {
  ISOZONE_ASSIGN_OR_RETURN(SettingPtr setting, MakeSetting(options));
  return std::unique_ptr<Collector>(new Collector(zones, files, engine, std::move(setting), clock));
}

Collector::Collector(GcZones& zones, GcFiles& files, IoEngine& engine, SettingPtr setting, Clock& clock)
    : zones_(zones),
      files_(files),
      engine_(engine),
      clock_(clock),
      setting_(std::move(setting)),
      state_(setting_->scheme, setting_->most_together()) {}

Collector::~Collector() { Stop(); }

Result<Collector::SettingPtr> Collector::MakeSetting(const GcOptions& options) {
  ISOZONE_ASSIGN_OR_RETURN(auto scheme, MakeGcScheme(options.scheme, options.start_percent));
  auto setting = std::make_shared<Setting>();
  setting->options = options;
  setting->scheme = std::move(scheme);
  return SettingPtr(std::move(setting));
}

Collector::SettingPtr Collector::setting() const {
  const MutexLock lock(mu_);
  return setting_;
}

GcOptions Collector::options() const { return setting()->options; }

void Collector::Apply() {
  const MutexLock lock(mu_);
  while (applying_) idle_.Wait(mu_);
  applying_ = true;
  const SettingPtr now = setting_;
  const bool attached = state_.attached();
  {
    const MutexUnlock unlock(mu_);
    zones_.ResetAtOnce(now->scheme->resets_at_once());
    zones_.ThrottleBelow([scheme = now->scheme](const GcSpace& space) { return scheme->ThrottleBelow(space); });
    zones_.Attach(attached);
  }
  applying_ = false;
  idle_.SignalAll();
}

Status Collector::Start() {
  {
    const MutexLock lock(mu_);
    if (!state_.Start()) return Status::Ok();
  }
  Apply();
  ISOZONE_ASSIGN_OR_RETURN(thread_, StartThread("garbage collection", [this] { RunInBackground(); }));
  return Status::Ok();
}

void Collector::Stop() {
  {
    const MutexLock lock(mu_);
    state_.Stop();
    wake_.SignalAll();
    while (state_.working()) idle_.Wait(mu_);
  }
  Apply();
  if (thread_.joinable()) thread_.join();
}

void Collector::Wake() {
  const MutexLock lock(mu_);
  state_.Wake();
  wake_.SignalAll();
}

void Collector::Hurry() {
  const MutexLock lock(mu_);
  state_.Hurry();
  wake_.SignalAll();
}

Status Collector::SetOptions(const GcOptions& options) {
  ISOZONE_ASSIGN_OR_RETURN(SettingPtr setting, MakeSetting(options));
  {
    const MutexLock lock(mu_);
    setting_ = std::move(setting);
    state_.Change(setting_->scheme, setting_->most_together());
    wake_.SignalAll();
  }
  Apply();
  return Status::Ok();
}

GcStats Collector::Stats() const {
  const MutexLock lock(mu_);
  GcStats stats = stats_;
  stats.urgency = state_.urgency();
  stats.working = state_.working();
  return stats;
}

std::vector<GcCandidate> Collector::Candidates() const {
  std::vector<GcCandidate> candidates = zones_.Candidates();
  files_.CountBlocks(candidates);
  std::erase_if(candidates, [](const GcCandidate& candidate) { return candidate.valid >= candidate.written; });
  return candidates;
}

// ---------------------------------------------------------------------------------------------------------------------
// Rounds
// ---------------------------------------------------------------------------------------------------------------------

void Collector::RunInBackground() {
  while (const SettingPtr setting = AwaitRound()) {
    CopyStats done;
    (void)CarryOut(*setting, setting->scheme->confined(), {}, done);
  }
}

Collector::SettingPtr Collector::AwaitRound() {
  for (;;) {
    {
      const MutexLock lock(mu_);
      const CollectorStep step = state_.Next(clock_.NowNs());
      if (step.kind == CollectorStep::Kind::kQuit) return nullptr;
      if (step.kind == CollectorStep::Kind::kBegin) return setting_;
      if (step.kind == CollectorStep::Kind::kWait) {
        clock_.WaitUntil(wake_, mu_, step.until_ns);
        continue;
      }
    }
    const GcSpace space = zones_.Look();
    const MutexLock lock(mu_);
    state_.Consider(space);
  }
}

Result<CopyStats> Collector::Run(double free_percent, const GcProgress& progress) {
  SettingPtr now;
  {
    const MutexLock lock(mu_);
    state_.Ask();
    wake_.SignalAll();
    while (state_.working()) idle_.Wait(mu_);
    if (!state_.BeginAsked(free_percent)) return Status::Aborted("the collector has been stopped");
    now = setting_;
  }
  CopyStats done;
  ISOZONE_RETURN_IF_ERROR(CarryOut(*now, /*confined=*/false, progress, done));
  return done;
}

Status Collector::CarryOut(const Setting& setting, bool confined, const GcProgress& progress, CopyStats& done) {
  zones_.BeginRound();
  bool gained = false;
  const Status status = CopyBatches(setting, confined, progress, done, gained);
  {
    const MutexLock lock(mu_);
    stats_.rounds += done.bytes_read > 0 ? 1 : 0;
  }
  zones_.EndRound(gained);
  const MutexLock lock(mu_);
  stats_.round_copied = stats_.round_to_copy = 0;
  state_.EndRound();
  idle_.SignalAll();
  wake_.SignalAll();
  return status;
}

Status Collector::CopyBatches(const Setting& setting, bool confined, const GcProgress& progress, CopyStats& done,
                              bool& gained) {
  ZoneCopier copier(zones_, files_, engine_, setting.copier(confined));
  Status status;
  for (;;) {
    const CollectorStep step = Proceed();
    if (step.kind == CollectorStep::Kind::kResetDead) {
      zones_.ResetDead();
    } else if (step.kind == CollectorStep::Kind::kCopy) {
      status = CopyBatch(copier, step, *setting.scheme, progress, done);
    } else {
      gained = step.gained;
      return status;
    }
  }
}

Status Collector::CopyBatch(ZoneCopier& copier, const CollectorStep& batch, const GcScheme& scheme,
                            const GcProgress& progress, CopyStats& done) {
  CopyStats of_batch;
  const auto pause = [&] {
    CopyStats so_far = done;
    so_far += of_batch;
    const bool cut = progress && !progress(so_far, batch.bytes_to_copy);
    {
      const MutexLock lock(mu_);
      stats_.round_copied = so_far.bytes_copied;
      stats_.round_to_copy = batch.bytes_to_copy;
      state_.WindowEnded(clock_.NowNs(), cut);
    }
    return Proceed().kind == CollectorStep::Kind::kGoOn;
  };
  ZoneCopier::Left left;
  const Status status = copier.Copy(batch.victims, scheme, pause, of_batch, left);
  done += of_batch;
  CollectorState::Batch outcome;
  outcome.bytes_reclaimed = of_batch.bytes_reclaimed;
  outcome.failed = left.failed;
  outcome.skipped = left.skipped;
  outcome.error = !status.ok();
  outcome.broken = !status.ok() && !status.Is(StatusCode::kNoSpace) && !status.Is(StatusCode::kAborted);
  {
    const MutexLock lock(mu_);
    stats_.copies += of_batch;
    state_.BatchEnded(outcome);
  }
  if (!status.ok()) Log().warn("garbage collection: {}", status.ToString());
  if (outcome.broken) Apply();
  return status;
}

CollectorStep Collector::Proceed() {
  for (;;) {
    CollectorStep step;
    {
      const MutexLock lock(mu_);
      step = state_.NextInRound(clock_.NowNs());
      if (step.kind == CollectorStep::Kind::kRest) {
        clock_.WaitUntil(wake_, mu_, step.until_ns);
        continue;
      }
    }
    if (step.kind == CollectorStep::Kind::kLook) {
      const GcSpace space = zones_.Look();
      const MutexLock lock(mu_);
      state_.SpaceIs(space, clock_.NowNs());
    } else if (step.kind == CollectorStep::Kind::kList) {
      std::vector<GcCandidate> candidates = Candidates();
      const MutexLock lock(mu_);
      state_.CandidatesAre(std::move(candidates));
    } else {
      return step;
    }
  }
}

GcPlan Collector::Plan(bool all) const {
  const SettingPtr now = setting();
  GcPlan plan;
  plan.scheme = now->options.scheme;
  plan.space = zones_.Look();
  std::vector<GcCandidate> candidates = Candidates();
  {
    const MutexLock lock(mu_);
    state_.RemoveAvoided(candidates);
  }
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
