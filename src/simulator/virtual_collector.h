// VirtualCollector: collects zones in virtual time. CollectorState decides what it does next, as for the real collector
// (store/gc/collector.h), GcScheme what it collects, and PlanSegments what it reads.
//
//   window   a segment of each victim, as many as the memory allows. The next window is read while one is written. What
//            was written is read back, as the real one verifies it
//   victim   It is emptied when all of it is copied: its files then lie at their new places. If the space runs out
//            before that, the copies are given up; a confined collector keeps what it has moved
//
// Copies of tables that a compaction has removed meanwhile are dropped.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "simulator/lane_writer.h"
#include "simulator/sim_world.h"
#include "store/zone/collector_state.h"
#include "store/zone/segment_plan.h"

namespace isozone {

class VirtualCollector final : public Actor {
 public:
  // `world.zones` may be null until Start.
  VirtualCollector(SimWorld& world, std::shared_ptr<const GcScheme> scheme);
  void Start();
  void Proceed() override;
  // See CollectorState::Wake and CollectorState::Hurry.
  void Wake();
  void Hurry();

 private:
  // A run of bytes of a victim, and the class that its copy gets.
  struct Copy {
    size_t victim = 0;  // index of the victim
    uint64_t file = 0;
    FilePlace from;
    DataClass data;
  };
  struct Segment {
    uint64_t read_bytes = 0;
    std::vector<Copy> copies;
  };
  struct Victim {
    GcCandidate zone;
    std::deque<Segment> segments = {};  // those that are not read yet
    struct Moved {
      uint64_t file = 0;
      FilePlace from;
      FilePlace to;
    };
    std::vector<Moved> moved = {};
  };
  struct Window {
    int64_t read_ns = 0;  // when it is read
    std::vector<Copy> copies;
  };
  enum class Mode : uint8_t { kBetweenRounds, kInRound, kReading, kWriting, kVerifying };

  // One step of a mode. Each returns false if the actor waits.
  bool BetweenRounds();
  bool InRound();
  bool Read();
  bool Write();
  bool Verify();
  bool GiveUp();

  void BeginBatch(std::span<const ZoneId> zones);
  void Plan(Victim& victim, size_t index);
  std::optional<Window> StartReading();
  // Starts to write as much of `copy` as one lane takes. Returns false if it has to wait. Fails with kNoSpace.
  Result<bool> StartCopy(Copy& copy);
  void TakeWriter(DataClass data);
  void GoOn();
  void Settle(Victim& victim, bool whole);
  void EndBatch();
  void EndRound(bool gained);
  bool WaitUntil(int64_t time_ns);

  SimWorld& world_;
  const std::shared_ptr<const GcScheme> scheme_;
  const SegmentRules rules_;
  const size_t window_segments_;
  CollectorState state_;
  Mode mode_ = Mode::kBetweenRounds;

  // The batch under way.
  std::vector<Victim> victims_;
  std::vector<ZoneId> skipped_;
  std::optional<Window> window_;
  std::optional<Window> ahead_;
  std::vector<FilePlace> written_;  // places of the window, to be read back
  size_t next_copy_ = 0;
  bool settled_ = false;
  bool error_ = false;
  uint64_t reclaimed_ = 0;

  std::unique_ptr<LaneWriter> writer_;  // the writer of the round under way
  DataClass data_;                      // the class that it writes
};

}  // namespace isozone
