// Collector makes space in the background before writers need it. CollectorState (store/zone/collector_state.h)
// decides what it does next, and knows rounds, batches, pace, and zones to avoid. One thread executes these decisions:
// it looks at the space and the zones, lets ZoneCopier empty the victims, and rests. The file system resets dead zones.
// A thread that calls Run executes a round of its own, between those of the collector's thread.
//
//   waiting  A writer that waits for space wakes the collector, and learns from the end of a round whether waiting
//            makes sense (GcZones::EndRound). The collector does not rest while a writer waits. Its requests rank below
//            all others (IoClass::kGc), with their share.
//   failure  If files cannot be told of their new places (a read-only file system), the collector gives up for good.
//            The copies are then dead, and the files stay where they were.
//
// Locks: `mu_`, which is never held while the store, the files or the device are called.
//
// Thread safety: any thread may call any method.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "store/gc/gc_round.h"
#include "store/gc/gc_store.h"
#include "store/gc/zone_copier.h"
#include "store/zone/collector_state.h"
#include "store/zone/gc_scheme.h"

namespace isozone {

class Collector {
 public:
  // Makes a collector, whose thread Start begins. kInvalidArgument for an unknown scheme.
  static Result<std::unique_ptr<Collector>> Create(GcZones& zones, GcFiles& files, IoEngine& engine,
                                                   const GcOptions& options, Clock& clock = Clock::Real());
  ~Collector();
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  // Starts the thread that collects by itself.
  Status Start();
  // Stops after the window under way, gives up the copies of unfinished victims, and makes writers stop waiting for the
  // collector.
  void Stop();
  // Reports that a writer waits for space. The call is short.
  void Wake();
  // Reports that a thread waits for the collector to proceed, and so ends its rest. The call is short.
  void Hurry();

  // Collects now, whatever the space, in the calling thread: all victims, in the scheme's order, until `free_percent`
  // is free; none if it is already. Waits for a batch that is under way. `progress` (may be empty) is called after each
  // window, and when victims are done, with what is done and the bytes of all victims to be copied. If it returns
  // false, the round stops. kAborted after Stop.
  Result<CopyStats> Run(double free_percent, const GcProgress& progress);

  // Returns the victims of the scheme as of now; with `all`, the victims that Run would take.
  GcPlan Plan(bool all) const;

  // Sets options, which take effect with the next round. kInvalidArgument for an unknown scheme.
  Status SetOptions(const GcOptions& options);
  GcOptions options() const;
  GcStats Stats() const;

 private:
  struct Setting {
    GcOptions options;
    std::shared_ptr<const GcScheme> scheme;
    // Returns how many victims can be copied together within the memory.
    size_t most_together() const;
    ZoneCopier::Options copier(bool confined) const;
  };
  using SettingPtr = std::shared_ptr<const Setting>;

  Collector(GcZones& zones, GcFiles& files, IoEngine& engine, SettingPtr setting, Clock& clock);
  static Result<SettingPtr> MakeSetting(const GcOptions& options);
  SettingPtr setting() const;
  // Tells the store what the current scheme needs of it, and whether writers may wait for the collector. Called after
  // each change of these; of two changes at the same time, the later one counts.
  void Apply() ISOZONE_EXCLUDES(mu_);
  // Returns the candidates of which collecting gains something.
  std::vector<GcCandidate> Candidates() const;

  void RunInBackground();
  // Waits until a round of the collector's own has begun, and returns its setting. Null: no round begins any more.
  SettingPtr AwaitRound();
  // Executes the round that has begun. `confined` is that of GcScheme; false for a round that Run has asked for. `done`
  // must be empty.
  Status CarryOut(const Setting& setting, bool confined, const GcProgress& progress, CopyStats& done);
  // Executes the batches of a round. `gained` returns whether the round gained something.
  Status CopyBatches(const Setting& setting, bool confined, const GcProgress& progress, CopyStats& done, bool& gained);
  // Executes one batch, and reports its outcome to CollectorState.
  Status CopyBatch(ZoneCopier& copier, const CollectorStep& batch, const GcScheme& scheme, const GcProgress& progress,
                   CopyStats& done);
  // Looks, lists and rests as `state_` says, until there is another kind of step, which it returns.
  CollectorStep Proceed();

  GcZones& zones_;
  GcFiles& files_;
  IoEngine& engine_;
  Clock& clock_;

  mutable Mutex mu_;
  CondVar wake_;  // for the collector's thread, and for a thread that rests
  CondVar idle_;  // for threads that wait for a round, or for another Apply, to end
  SettingPtr setting_ ISOZONE_GUARDED_BY(mu_);
  CollectorState state_ ISOZONE_GUARDED_BY(mu_);
  bool applying_ ISOZONE_GUARDED_BY(mu_) = false;
  GcStats stats_ ISOZONE_GUARDED_BY(mu_);
  std::thread thread_;  // used by Start and Stop only
};

}  // namespace isozone
