// CollectorState: what a collector does next, as a pure state machine. Its owner (store/gc/collector.h) reports events,
// asks for a step, executes it, and reports the outcome. Time is an argument.
//
//   between rounds   Next          kWait until a look is due: the scheme's interval has passed, or a writer waits for
//                                  space. Then a round begins: kBegin. After a round that gained something: kLook,
//                                  to see whether there is more to do at once.
//   in a round       NextInRound   kResetDead (if the round was asked for), then for each batch
//                                      kLook -> kList -> kCopy -> BatchEnded
//                                  without kList while victims of the last decision are left; finally kEnd.
//   in a batch       NextInRound   after each WindowEnded: kLook -> kRest, if there is time -> kGoOn, or kCease.
//
//   round    One look at the zones, and the emptying of the victims that it found. The collector begins rounds by
//            itself. If a thread asks for a round, it lasts until that thread's percentage is free, whatever the space.
//   batch    The victims that are copied together: as many as half the empty zones, so that none needs the room that
//            another one will give back. The survivors of the first one fit into the collector's reserved zone.
//   pace     The scheme computes an urgency u, 0..1, from the current space. After each window the collector rests
//            (1 - u) / u times as long as the window took.
//
// Invariants:
//  * A round ends. After it has gained something, it decides at most kMostBatches times, and it does not choose zones
//    again that it could not empty.
//  * A zone is handed out only once in a round, unless it was emptied and written again.
//  * A zone that could not be read or copied is avoided for kAvoidRounds rounds, one that could not be moved until this
//    round ends.
//  * A rest is never longer than kLongestRestNs, and Wake, Hurry, Ask, Change and Stop end it at once.
//  * A round of the collector's own begins after every Wake, unless GC has ended. So EndRound tells a writer
//    that has waited for space since before a Wake about a round that knew of it.
//  * After Stop no round begins, and the round under way ends with the batch under way.
//  * Once files cannot be told of their new places (`broken`), no round begins by itself any more.
//
// Thread safety: none; the owner locks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "store/zone/gc_scheme.h"

namespace isozone {

struct CollectorStep {
  enum class Kind : uint8_t {
    kWait,       // do nothing until `until_ns` or an event, then ask again
    kBegin,      // a round has begun: execute the steps of NextInRound
    kLook,       // report the space
    kList,       // report the candidates
    kResetDead,  // reset all zones that are dead now
    kCopy,       // empty `victims` together, then report BatchEnded
    kGoOn,       // go on with the batch
    kRest,       // in a batch: do nothing until `until_ns` or an event, then ask again
    kCease,      // stop the batch, then report BatchEnded
    kEnd,        // the round is over: tell writers that wait for space whether it `gained` some, then call EndRound
    kQuit,       // no round begins any more
  };
  Kind kind = Kind::kWait;
  int64_t until_ns = 0;
  std::vector<ZoneId> victims = {};  // in order
  uint64_t bytes_to_copy = 0;        // kCopy: of all victims of the last decision, at that time
  bool gained = false;
};

class CollectorState {
 public:
  static constexpr uint64_t kAvoidRounds = 64;
  static constexpr uint32_t kMostBatches = 16;
  static constexpr int64_t kLongestRestNs = 100'000'000;  // space may run out during a rest
  static constexpr int64_t kForever = INT64_MAX;

  // `most_together` is the number of victims, at least 1, that can be copied together within the memory. Both arguments
  // take effect with the next round.
  CollectorState(std::shared_ptr<const GcScheme> scheme, size_t most_together);

  // --- Events, at any time ---
  // Starts. Returns false if it was started or stopped before.
  bool Start();
  void Stop() { stopping_ = true; }
  // Says that a writer waits for space.
  void Wake();
  // Says that a thread waits for the collector to proceed.
  void Hurry() { hurry_ = true; }
  void Change(std::shared_ptr<const GcScheme> scheme, size_t most_together);
  // Says that a thread waits for the round under way to end, to begin a round with BeginAsked.
  void Ask() { ++asking_; }

  // --- Between rounds ---
  // Returns kWait, kBegin, kLook (report it by Consider) or kQuit.
  CollectorStep Next(int64_t now_ns);
  // Reports the space after a round that gained something.
  void Consider(const GcSpace& space);
  // Begins a round that a thread has asked for. No round may be under way. Returns false if the collector was stopped.
  bool BeginAsked(double free_percent);

  // --- In a round ---
  // Returns kResetDead, kLook (report it by SpaceIs), kList, kCopy, kGoOn, kRest, kCease or kEnd.
  CollectorStep NextInRound(int64_t now_ns);
  void SpaceIs(const GcSpace& space, int64_t now_ns);
  // Reports the candidates, possibly with zones that are to be avoided.
  void CandidatesAre(std::vector<GcCandidate> candidates);
  // Reports that a window of the batch was copied. `cut`: the thread that asked for the round wants to stop.
  void WindowEnded(int64_t now_ns, bool cut);
  struct Batch {
    uint64_t bytes_reclaimed = 0;
    std::span<const ZoneId> failed = {};   // victims that could not be read or copied
    std::span<const ZoneId> skipped = {};  // victims that are no candidates any more, or cannot be moved now
    bool error = false;                    // the copy was not finished
    bool broken = false;                   // no later copy will be finished either
  };
  void BatchEnded(const Batch& batch);
  void EndRound();

  // --- State ---
  bool working() const { return round_.has_value(); }
  // Returns whether writers without space may wait for the collector.
  bool attached() const;
  // Returns the urgency of the round under way; 0 if there is none.
  double urgency() const { return urgency_; }
  // Removes the zones that failed in the last kAvoidRounds rounds, and those that this round could not move.
  void RemoveAvoided(std::vector<GcCandidate>& candidates) const;

 private:
  using Kind = CollectorStep::Kind;
  enum class Phase : uint8_t {
    kResetting,  // resets dead zones
    kDeciding,   // decides on the next victims; needs the space
    kListing,    // needs the candidates
    kHandingOut,
    kCopying,
    kPacing,  // after a window; needs the space
    kResting,
    kCeasing,
    kEnding,
  };
  struct Round {
    std::shared_ptr<const GcScheme> scheme;
    size_t most_together = 1;
    // The goal of a round that was asked for; empty for a round of the collector's own.
    std::optional<double> free_percent;
    Phase phase = Phase::kDeciding;
    GcSpace space;                // as it was last reported
    size_t together = 1;          // victims that may be copied together, given `space`
    bool chosen = false;          // victims were chosen at least once
    std::vector<ZoneId> victims;  // not handed out yet, in order
    uint64_t bytes_to_copy = 0;   // of all victims of the last decision
    uint64_t reclaimed = 0;       // bytes
    uint64_t reclaimed_then = 0;  // at the last decision
    uint32_t batches = 0;         // batches that gained something
    bool cut = false;             // the round ends before all victims were tried
    bool error = false;
    int64_t since_ns = 0;  // when the window under way began
    int64_t took_ns = 0;   // how long the last window took
    int64_t rest_until_ns = 0;
    bool by_itself() const { return !free_percent.has_value(); }
    bool gained() const { return reclaimed > 0 || cut; }
  };

  void Begin(std::optional<double> free_percent);
  // Returns whether no more victims are to be chosen in this round.
  bool Enough();
  void Choose(std::vector<GcCandidate> candidates);
  void HandOut() { round_->phase = round_->victims.empty() ? Phase::kEnding : Phase::kHandingOut; }
  CollectorStep NextBatch();
  CollectorStep End() const;
  CollectorStep Victims(int64_t now_ns);
  CollectorStep Rest(int64_t now_ns);
  void SetPace(int64_t now_ns);

  std::shared_ptr<const GcScheme> scheme_;
  size_t most_together_;
  bool started_ = false;
  bool stopping_ = false;
  bool broken_ = false;                 // files can no longer be moved
  bool wanted_ = false;                 // a round begins as soon as the one under way has ended
  bool hurry_ = false;                  // the next rest is skipped
  uint32_t asking_ = 0;                 // threads that wait for the round under way to end
  std::optional<int64_t> look_at_ns_;   // empty: the interval begins now
  bool considering_ = false;            // whether to go on after a round
  bool goes_on_ = false;                // it does
  uint64_t looks_ = 0;                  // rounds begun
  std::map<ZoneId, uint64_t> avoided_;  // zones, and the look from which they may be tried again
  std::optional<Round> round_;          // under way
  double urgency_ = 0;
};

}  // namespace isozone
