// Collector: makes space where writers will need it, in the background. What it does next is decided by CollectorState
// (zone/collector_state.h), which knows rounds, batches, pace, and zones to avoid; one thread carries that out: it
// looks at the space and the zones, lets ZoneCopier empty the victims, and rests. The file system resets what is dead.
// Whoever asks for a collection carries out a round of his own in his thread, between those.
//
//   waiting  Whoever waits for space wakes the collector, and is told by the end of a round whether waiting makes sense
//            (GcZones::EndRound). Whoever begins to wait for it ends its rest, and who has ended waiting brings the
//            rests back. Its requests rank below all others (IoClass::kGc), with their share.
//   failure  Where files cannot be told of their new places (a read-only file system) the collector gives up for good;
//            what it copied is dead, and files are where they were.
//
// Locks: `mu_`, never while the store, the files or the device are called.
//
// Thread safety: any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "gc/gc_store.h"
#include "gc/zone_copier.h"
#include "zone/collector_state.h"
#include "zone/gc_scheme.h"

namespace isozone {

struct GcOptions {
  std::string scheme = "isozone";  // by name (zone/gc_scheme.h)
  GcTuning tuning;
  uint64_t memory = 16 * kMiB;  // bytes of buffers, at most; 8 MiB .. 1 GiB
  bool verify = true;           // reads copies back before files have them
};

struct GcStats {
  CopyStats copies;
  uint64_t rounds = 0;       // in which something was read
  uint64_t space_waits = 0;  // filled in by the file system
  double urgency = 0;        // of the round under way; 0: none is
  std::string scheme;
};

// What a collection would do.
struct GcPlan {
  std::string scheme;
  GcSpace space;
  double urgency = 0;                // 0: the scheme sees nothing to do now
  std::vector<GcCandidate> victims;  // in order
  uint64_t copied() const;           // bytes
  uint64_t reclaimed() const;        // bytes
};

class Collector {
 public:
  // kInvalidArgument: an unknown scheme.
  static Result<std::unique_ptr<Collector>> Create(GcZones& zones, GcFiles& files, IoEngine& engine,
                                                   const GcOptions& options, Clock& clock = Clock::Real());
  ~Collector();
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  // Starts the thread that collects by itself.
  void Start();
  // Stops after the window under way, gives up what it copied of unfinished victims, and lets nobody wait for the
  // collector any more.
  void Stop();
  // Somebody waits for space. Short.
  void Wake();
  // Somebody waits for the collector to go on with what it is doing. Ends its rest. Short.
  void Hurry();

  // Collects now, whatever the space, in the caller's thread: all there is, in the scheme's order, until `free_percent`
  // is free; nothing, where it is. Waits for a batch that is under way. `progress` (may be empty) is called after each
  // window, and when victims are done, with what is done and the bytes of all victims to be copied; false: stop.
  // kAborted after Stop.
  using Progress = std::function<bool(const CopyStats& done, uint64_t bytes_to_copy)>;
  Result<CopyStats> Run(double free_percent, const Progress& progress);

  // Victims of the scheme as of now; `all`: as Run would take them.
  GcPlan Plan(bool all) const;

  // From the next round on. kInvalidArgument: an unknown scheme.
  Status SetOptions(const GcOptions& options);
  GcOptions options() const;
  GcStats Stats() const;

 private:
  struct Setting {
    GcOptions options;
    std::shared_ptr<const GcScheme> scheme;
    // Victims that the memory allows to copy together.
    size_t most_together() const;
    ZoneCopier::Options copier(bool confined) const;
  };
  using SettingPtr = std::shared_ptr<const Setting>;

  Collector(GcZones& zones, GcFiles& files, IoEngine& engine, SettingPtr setting, Clock& clock);
  static Result<SettingPtr> MakeSetting(const GcOptions& options);
  SettingPtr setting() const;
  // Tells the store what the scheme of now wants of it, and whether anybody may wait for the collector. After each
  // change of these; of two at the same time the later one counts.
  void Apply() ISOZONE_EXCLUDES(mu_);
  // Those of which collecting gains something.
  std::vector<GcCandidate> Candidates() const;

  void RunInBackground();
  // Waits until a round by itself has begun, and returns the setting that it has. Null: none begins any more.
  SettingPtr AwaitRound();
  // Carries out the round that has begun. `confined`: as GcScheme has it; who asks for a collection gets all of it.
  // `done`: nothing so far.
  Status CarryOut(const Setting& setting, bool confined, const Progress& progress, CopyStats& done);
  // The batches of a round. Returns whether it gained something in `gained`.
  Status CopyBatches(const Setting& setting, bool confined, const Progress& progress, CopyStats& done, bool& gained);
  // One batch: what CollectorState is told of it.
  Status CopyBatch(ZoneCopier& copier, const CollectorStep& batch, const GcScheme& scheme, const Progress& progress,
                   CopyStats& done);
  // Looks, lists and rests as `state_` says, until the next step is another one.
  CollectorStep Proceed();

  GcZones& zones_;
  GcFiles& files_;
  IoEngine& engine_;
  Clock& clock_;

  mutable Mutex mu_;
  CondVar wake_;  // for the thread, and for who rests
  CondVar idle_;  // for who waits for a round, or for another Apply, to end
  SettingPtr setting_ ISOZONE_GUARDED_BY(mu_);
  CollectorState state_ ISOZONE_GUARDED_BY(mu_);
  bool applying_ ISOZONE_GUARDED_BY(mu_) = false;
  GcStats stats_ ISOZONE_GUARDED_BY(mu_);
  std::thread thread_;  // touched by Start and Stop only
};

}  // namespace isozone
