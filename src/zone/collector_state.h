// CollectorState: what a collector does next, as a pure state machine. Its owner (gc/collector.h) reports what has
// happened, asks for a step, carries it out, and reports how that went. Time is an argument.
//
//   between rounds   Next          kWait, until a look is due: the scheme's interval has passed, or somebody waits for
//                                  space. Then a round begins: kBegin. After a round that gained something: kLook,
//                                  whether there is more to do at once.
//   in a round       NextInRound   kResetDead (where somebody has asked for the round), then for each batch
//                                      kLook -> kList -> kCopy -> BatchEnded
//                                  where kList is left out while victims of the last decision are left; and kEnd.
//   in a batch       NextInRound   after each WindowEnded: kLook -> kRest, if there is time -> kGoOn, or kCease.
//
//   round    one look, and the victims that came of it. By itself, or because somebody has asked, and then until so
//            much is free, whatever the space.
//   batch    The victims that are copied together: as many as half the empty zones, so that none needs the room that
//            another one is to give back. The first one's survivors fit into the zone that is kept for the collector.
//   pace     urgency u of the scheme, 0..1, by the space of the moment: after each window the collector rests (1 - u) /
//            u times as long as the window took.
//
// Invariants:
//  * A round ends. It decides at most kMostBatches times after it has gained something, and zones that it could not
//    empty are not chosen again in it.
//  * A zone that was handed out in a round is not handed out again in it, unless it was emptied and written anew.
//  * A zone that could not be read or copied is not chosen for kForgiveRounds rounds, one that could not be moved is
//    not chosen in this round.
//  * A rest is never longer than kLongestRestNs, and ends at once with Wake, Hurry, Ask, Change and Stop.
//  * A Wake is followed by a round that begins after it, unless nothing is collected any more, or by itself. So a
//    writer that waits for space since before a Wake is told by EndRound of a round that knew of it.
//  * After Stop no round begins, and the round under way ends with the batch under way.
//  * Where files cannot be told of their new places (`broken`), no round begins by itself any more.
//
// Thread safety: none; the owner locks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "zone/gc_scheme.h"

namespace isozone {

struct CollectorStep {
  enum class Kind : uint8_t {
    kWait,       // do nothing until `until_ns` or an event, then ask again
    kBegin,      // a round has begun: carry it out, by NextInRound
    kLook,       // report the space
    kList,       // report the candidates
    kResetDead,  // reset all zones that are dead now
    kCopy,       // empty `victims` together, then report BatchEnded
    kGoOn,       // go on with the batch
    kRest,       // in a batch: do nothing until `until_ns` or an event, then ask again
    kCease,      // stop the batch, then report BatchEnded
    kEnd,        // the round is over: tell those who wait for space whether it `gained` some, then EndRound
    kQuit,       // no round begins any more
  };
  Kind kind = Kind::kWait;
  int64_t until_ns = 0;
  std::vector<ZoneId> victims = {};  // in order
  uint64_t bytes_to_copy = 0;        // kCopy: of all victims that were chosen with these, at the time
  bool gained = false;
};

class CollectorState {
 public:
  static constexpr uint64_t kForgiveRounds = 64;
  static constexpr uint32_t kMostBatches = 16;
  static constexpr int64_t kLongestRestNs = 100'000'000;  // space may run out meanwhile
  static constexpr int64_t kForever = INT64_MAX;

  // `most_together`: victims that the memory allows to copy together; at least 1. Both apply from the next round on.
  CollectorState(std::shared_ptr<const GcScheme> scheme, size_t most_together);

  // --- Events, at any time ---
  // False: it has been started or stopped before.
  bool Start();
  void Stop() { stopping_ = true; }
  // Somebody waits for space.
  void Wake();
  // Somebody waits for the collector to go on with what it is doing.
  void Hurry() { hurry_ = true; }
  void Change(std::shared_ptr<const GcScheme> scheme, size_t most_together);
  // Somebody waits for the round under way to end, to have one of his own; BeginAsked follows.
  void Ask() { ++asking_; }

  // --- Between rounds ---
  // kWait, kBegin, kLook (report it by Consider) or kQuit.
  CollectorStep Next(int64_t now_ns);
  // The space after a round that gained something.
  void Consider(const GcSpace& space);
  // Begins the round of one who has asked. No round is under way. False: it has been stopped.
  bool BeginAsked(double free_percent);

  // --- In a round ---
  // kResetDead, kLook (report it by SpaceIs), kList, kCopy, kGoOn, kRest, kCease or kEnd.
  CollectorStep NextInRound(int64_t now_ns);
  void SpaceIs(const GcSpace& space, int64_t now_ns);
  // Those that are to be avoided may be among them.
  void CandidatesAre(std::vector<GcCandidate> candidates);
  // A window of the batch was copied. `cut`: whoever has asked for the round has enough.
  void WindowEnded(int64_t now_ns, bool cut);
  struct Batch {
    uint64_t bytes_reclaimed = 0;
    std::span<const ZoneId> failed = {};   // victims that could not be read or copied
    std::span<const ZoneId> skipped = {};  // no candidates any more, or not to be moved now
    bool error = false;                    // the copy was not finished
    bool broken = false;                   // and no other one will be
  };
  void BatchEnded(const Batch& batch);
  void EndRound();

  // --- State ---
  bool working() const { return round_.has_value(); }
  // Writers without space may wait for the collector.
  bool attached() const;
  // Of the round under way; 0: none is.
  double urgency() const { return urgency_; }
  // Takes away those that failed a short while ago, and those that this round could not move.
  void RemoveAvoided(std::vector<GcCandidate>& candidates) const;

 private:
  using Kind = CollectorStep::Kind;
  enum class Phase : uint8_t {
    kResetting,  // what is dead
    kDeciding,   // which victims are next; needs the space
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
    std::optional<double> free_percent;  // to be reached; empty: a round by itself
    Phase phase = Phase::kDeciding;
    GcSpace space;                // as reported last
    size_t together = 1;          // victims that may be copied together, by `space`
    bool chosen = false;          // victims, at least once
    std::vector<ZoneId> victims;  // not handed out yet, in order
    uint64_t bytes_to_copy = 0;   // of all that were chosen last
    uint64_t reclaimed = 0;       // bytes
    uint64_t reclaimed_then = 0;  // at the last decision
    uint32_t batches = 0;         // that gained something
    bool cut = false;             // not all was tried that there is
    bool error = false;
    int64_t since_ns = 0;  // of the window under way
    int64_t took_ns = 0;   // the last one
    int64_t rest_until_ns = 0;
    bool by_itself() const { return !free_percent.has_value(); }
    bool gained() const { return reclaimed > 0 || cut; }
  };

  void Begin(std::optional<double> free_percent);
  // No more victims are to be chosen in this round.
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
  bool wanted_ = false;                 // a round, as soon as the one under way has ended
  bool hurry_ = false;                  // no rest now
  uint32_t asking_ = 0;                 // who waits for the round under way to end
  std::optional<int64_t> look_at_ns_;   // empty: the interval begins now
  bool considering_ = false;            // whether to go on after a round
  bool goes_on_ = false;                // it does
  uint64_t looks_ = 0;                  // rounds begun
  std::map<ZoneId, uint64_t> avoided_;  // zones, and the look from which they may be tried again
  std::optional<Round> round_;          // under way
  double urgency_ = 0;
};

}  // namespace isozone
