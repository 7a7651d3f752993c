// Collector: makes space where writers will need it, in the background. It looks at the zones now and then (GcScheme says
// how often), asks the scheme for victims, and lets ZoneCopier empty them; the file system resets what is dead.
//
//   round    one look, and the victims that came of it. Whoever waits for space wakes the collector, and is told by the
//            end of a round whether waiting makes sense (GcStore::EndRound).
//   batch    The victims that are copied together. After each the scheme decides again, by the space and the zones of
//            then (GcScheme::decides_again), until nothing is left to do. A round ends at the latest after kMostBatches, so
//            that what was left aside is looked at again, and as soon as somebody else has something to collect.
//   pace     urgency u of the scheme, 0..1, by the space of the moment: after each window of copies the collector rests
//            (1 - u) / u times as long as the window took. Its requests rank below all others (IoClass::kGc), with their
//            share. Whoever begins to wait for it ends the rest, and who has ended waiting brings the rests back.
//   failure  Where files cannot be told of their new places (a read-only file system) the collector gives up for good;
//            what it copied is dead, and files are where they were. A victim that could not be read or copied is not
//            tried again for kForgiveRounds rounds; what cannot be moved now (a file is being written) makes way for the
//            scheme's next choice, and is tried again in the next round.
//
// Thread safety: any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "gc/gc_store.h"
#include "gc/zone_copier.h"
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
  static constexpr uint64_t kForgiveRounds = 64;
  static constexpr uint32_t kMostBatches = 16;

  // kInvalidArgument: an unknown scheme.
  static Result<std::unique_ptr<Collector>> Create(GcStore& store, IoEngine& engine, const GcOptions& options);
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
  // window, and when victims are done, with what is done and the bytes of all victims to be copied; false: stop. kAborted
  // after Stop.
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
    std::unique_ptr<GcScheme> scheme;
  };
  using SettingPtr = std::shared_ptr<const Setting>;

  Collector(GcStore& store, IoEngine& engine, SettingPtr setting);
  static Result<SettingPtr> MakeSetting(const GcOptions& options);
  SettingPtr setting() const;
  bool stopping() const;
  // Tells the store what the scheme of now wants of it, and whether anybody may wait for the collector. After each change
  // of these; of two at the same time the later one counts.
  void Apply() ISOZONE_EXCLUDES(apply_mu_, mu_);
  // Without those that failed a short while ago, and those that this round could not move.
  std::vector<GcCandidate> Candidates() const;

  void RunInBackground();
  // What a round has chosen.
  struct Choice {
    SettingPtr setting;
    std::vector<ZoneId> victims;  // not collected yet, in order
    uint64_t reclaimed = 0;       // bytes, before the last decision
    uint32_t batches = 0;         // that gained something
  };
  // One automatic round. True: it gained something, and there may be more.
  bool Round();
  // There may be more to do at once.
  bool GoesOn() const;
  // The next victims of a round that has gained `reclaimed` bytes so far.
  std::vector<ZoneId> NextBatch(Choice& choice, uint64_t reclaimed, size_t most);
  void Decide(Choice& choice, uint64_t reclaimed, size_t most);
  // The round of Run.
  Status RunRound(const Setting& setting, double free_percent, const Progress& progress, CopyStats& done);
  // `done`: nothing so far. `confined`: as GcScheme has it; who asks for a collection gets all of it.
  Status Collect(const Setting& setting, bool confined, const ZoneCopier::Next& next,
                 const std::function<bool()>& pause, CopyStats& done);
  // Counts what was done since `before`, and leaves aside what could not be done.
  void Note(const CopyStats& before, const CopyStats& done, ZoneCopier::Left& left);
  // After a window that took `took_ns`. False: stop.
  bool Rest(const GcScheme& scheme, int64_t took_ns);
  void BeginLook();
  // One round at a time.
  void BeginWork();
  void EndWork();

  GcStore& store_;
  IoEngine& engine_;

  Mutex apply_mu_;  // before mu_ and the store's
  mutable Mutex mu_;
  CondVar wake_;  // for the thread
  CondVar idle_;  // for who waits for a round to end
  SettingPtr setting_ ISOZONE_GUARDED_BY(mu_);
  bool working_ ISOZONE_GUARDED_BY(mu_) = false;
  bool wanted_ ISOZONE_GUARDED_BY(mu_) = false;  // a look, as soon as the round under way has ended
  bool hurry_ ISOZONE_GUARDED_BY(mu_) = false;   // no rest now
  uint32_t asking_ ISOZONE_GUARDED_BY(mu_) = 0;  // who waits for the work under way to end
  bool started_ ISOZONE_GUARDED_BY(mu_) = false;
  bool stopping_ ISOZONE_GUARDED_BY(mu_) = false;
  bool broken_ ISOZONE_GUARDED_BY(mu_) = false;  // files can no longer be moved
  uint64_t looks_ ISOZONE_GUARDED_BY(mu_) = 0;   // rounds, those without victims included
  std::map<ZoneId, uint64_t> avoided_
      ISOZONE_GUARDED_BY(mu_);  // zones, and the look from which they may be tried again
  GcStats stats_ ISOZONE_GUARDED_BY(mu_);
  std::thread thread_;  // touched by Start and Stop only
};

}  // namespace isozone
