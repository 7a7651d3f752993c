// ZoneUpkeep: which zones are reset and finished, when, and on whose behalf.
//
//   reset    What is dead is reset, at once or when it is asked for (ZoneLedger::reset_at_once). Whatever the durable
//            metadata may still name is reset only after the metadata was made durable: else a power cut could bring
//            back a file without its data. What nothing durable names (released zones) waits for nobody.
//   pinned   What is dead is not reset while another process reads there (store/pins). Who executes the reset
//            finds out when the metadata is durable, and says so (NotePinned). Readers are asked again every
//            kReadersPauseNs, of pinned zones only; no other zone waits.
//   reuse    A dead zone with room is gone on with, where the policy stripes, as long as empty and active zones are
//            plenty and nobody asks for it: so that it is reset when it is full, not for the little that was written to
//            it.
//   finish   Where active zones run short the fullest idle zone is finished, of a class that is short itself or holds
//            what others lack; rather one in which nothing lives. If nobody waits for that, or if all who wait are
//            served by what is under way, and data only goes where it does not belong meanwhile, the policy says how
//            much of the zone may be lost (most_lost_percent). The same holds in the background while only writers of
//            data wait: a zone of data that becomes idle wakes them, and they either take it or have it finished
//            themselves (kForWaiter). The finish of a zone of logs waits for durable metadata: it moves the write
//            pointer, by which recovery finds the end of a log.
//   bounds   kMostResets commands are at the device at most, so that it stays free for others when a database is
//            dropped. More are begun once half of them are done, so that making the metadata durable once serves many
//            zones.
//
// Every command goes through three steps: it is begun (the answer of a function here); it is confirmed, when the
// metadata is durable, or cancelled, where it has to wait for that; it has ended.
//
// Thread safety: none; the owner locks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/histogram.h"
#include "base/units.h"
#include "device/zoned_device.h"
#include "store/zone/allocator/zone_ledger.h"

namespace isozone {

// Commands for the device.
struct ZoneCommands {
  DeviceOp op = DeviceOp::kReset;  // or kFinish
  std::vector<ZoneId> zones = {};
  // Whether the metadata must be made durable first, and the commands then be confirmed or cancelled. Otherwise they
  // are confirmed already.
  bool after_durable = false;
};

// The zones that may be finished, and on whose behalf.
enum class Finishes : uint8_t {
  kAll,          // those of logs too, which wait for durable metadata
  kData,         // at once
  kForWaiter,    // at once; for one who can take no idle zone
  kForMetadata,  // at once; what waits for durable metadata waits for the metadata, and is no help to it
};

class ZoneUpkeep {
 public:
  static constexpr uint32_t kMostResets = 32;
  // The number of tries to finish a zone whose write failed.
  static constexpr uint32_t kFinishTries = 3;
  static constexpr int64_t kReadersPauseNs = 100 * kMillisecondNs;

  // `policy` says whether dead zones are reused, and most_lost_percent. `ledger` must outlive this.
  ZoneUpkeep(ZoneLedger& ledger, const PlacementPolicy& policy)
      : ledger_(ledger), reuses_dead_(policy.parallel()), most_lost_percent_(policy.most_lost_percent()) {}

  // --- What is to be done now; begun when this returns ---
  std::optional<ZoneCommands> ResetReleased();
  std::optional<ZoneCommands> ResetDead(int64_t now_ns);
  std::vector<ZoneCommands> Finish(Finishes which);
  // Returns whether one of these would do something, or commands are under way.
  bool IsDue(int64_t now_ns) const;
  // Returns whether something waits for nothing but that the metadata can be made durable again.
  bool WaitsForDurability() const;

  // --- Asking for resets, whatever reset_at_once says ---
  void AskForDead();
  // Asks for the resets of dead zones that are active.
  void AskForDeadActive();

  // --- What is to be expected ---
  // Returns an idle, active zone that is sealed: the first to be finished.
  std::optional<ZoneId> SealedActive() const;
  // Returns whether a dead zone is to be reset, as soon as the metadata is durable.
  bool ResetIsWanted() const;
  bool IsToBeReset(ZoneId zone) const;
  // Returns how many active zones become inactive by the reset of what is dead.
  uint32_t TokensToCome() const;
  // Returns whether a finish is under way, or due.
  bool FinishIsComing(Finishes which) const;

  // --- Answers of the executor ---
  // Are called for commands that wait for the metadata: Confirm if it is durable, Cancel if it is not, and they are not
  // given to the device.
  void Confirm(const ZoneCommands& commands);
  void Cancel(const ZoneCommands& commands);
  // Notes that readers were asked about the zones `asked`, which are pinned or about to be reset, and pin `pinned` of
  // them, in order. Cancels the resets of these. Ends ZoneLedger::readers_in_the_way.
  void NotePinned(std::span<const ZoneId> asked, std::span<const ZoneId> pinned, int64_t now_ns);
  void NoteReset(ZoneId zone);
  void NoteFinish(ZoneId zone);
  // Notes that the command, or a write, failed. `found` is what the device says of the zone then; none if it does not
  // answer.
  void NoteFailure(ZoneId zone, DeviceOp op, const std::optional<ZoneDescriptor>& found);

 private:
  uint32_t CommandsToStart() const;
  bool KeepsDeadIdle() const;
  // Whether the wish of data that goes where it does not belong counts as if somebody waited.
  enum class Wishes : uint8_t { kIgnore, kCount };
  uint32_t TokensWanted(BudgetClass c, Wishes wishes) const;
  bool IsShort(BudgetClass c) const;
  // Returns how many finishes should be under way.
  uint32_t FinishesWanted(Finishes which, Wishes wishes) const;
  uint32_t FinishesUnderWay(Finishes which) const;
  // Returns whether nobody waits but writers of data, and no token is missing.
  bool OnlyDataWaits() const;
  // Returns whether the finish of this idle zone would lose more of it than it is good for.
  bool LosesTooMuch(ZoneId zone, Finishes which) const;
  std::optional<ZoneId> NextFinish(Finishes which) const;
  std::optional<ZoneId> NextFailedFinish(Finishes which) const;
  // Returns an active zone of data in which nothing is live and nothing is under way.
  std::optional<ZoneId> DeadActive() const;
  template <typename Wanted>
  std::vector<ZoneId> BeginResets(uint32_t most, Wanted wanted);
  void LeaveBroken(ZoneId zone, const std::optional<ZoneDescriptor>& found);

  ZoneLedger& ledger_;
  const bool reuses_dead_;
  const uint32_t most_lost_percent_;
  uint32_t unconfirmed_finishes_ = 0;  // begun, and waiting for durable metadata
};

}  // namespace isozone
