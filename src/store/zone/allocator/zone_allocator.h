// ZoneAllocator: decides who may write which zone, and what is done so that there is one. It does nothing else: no I/O,
// no clock, no lock. The file system executes its answers on a device in real time (store/space/zone_pool.h), a
// simulator may in virtual time, and a test in none.
//
//   Ask    "granted" | "execute these commands" | "this lease was revoked" | "ask for a checkpoint" | "wake the
//          collector" | "wait for a change, or until then" | "nothing can help, for lack of ..."; whoever asks does
//          what the answer says, and asks again, until it is the first or the last one
//   Work   the same for whoever keeps zones flowing in the background
//
// The order of remedies when no zone can be given goes from what costs nobody anything to giving up:
//
//    1. what nothing durable names is reset; where active zones run short, idle ones are finished (zone_upkeep.h), but
//       for a log only if it cannot take over the zone of another one
//    2. dead zones that wait for the collector are asked for; a reset or finish under way is waited for
//    3. the collector asks for a checkpoint, which gives back zones of metadata
//    4. the lease that is idle for longest is revoked, of those whose going helps
//    5. where others hold active zones of the device, they are given time
//    6. users wait for the collector, until a round of it, begun after the wait, has gained nothing; the wait begins
//       anew after 1, 2 and 4, and after a user's write in a zone that the collector could take but for the write
//    7. users ask for a checkpoint
//    8. zones that readers in other processes pin are waited for, a second at most; readers that hold too much lose
//       them
//    9. a writer in the middle of a write is between writes soon
//
// Whoever is to know that room is left, and wants no zone, asks likewise (Inquiry::Room). Of the remedies it has those
// that free space. Idle leases are revoked, and users' writes waited for, only of zones in which something has died,
// for the collector.
//
// Invariants (ZoneAllocatorModelTest drives them):
//  * A zone is leased once at a time; never while it is reset, finished, collected, broken, or of others' metadata.
//  * Active zones never exceed the device's limit, nor leased ones its limit of open zones; the reserves of metadata,
//    logs and the collector hold at all times (active_budget.h).
//  * Data of a cohort with own zones is mixed with other data only if no other zone can be had at once. No request is
//    refused, or waits, because of cohorts (cohort.h).
//  * Of the empty zones those are reserved that metadata, logs and the collector may still need (zone_reserves.h).
//  * Only what is dead and not pinned is reset, and, where a durable record may name it, only after the metadata was
//    made durable.
//  * The collector leaves no zone to be finished for another class while no more zones are empty than are reserved: it
//    mixes classes instead. So what a round has gained is not lost by the next one.
//  * Whoever is told to wait waits for something that is under way, or due, or bounded by time.
//
// Thread safety: none; the owner locks. Only a write begins without it (lease_state.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/units.h"
#include "store/zone/allocator/zone_choice.h"
#include "store/zone/allocator/zone_collection.h"
#include "store/zone/allocator/zone_ledger.h"
#include "store/zone/allocator/zone_request.h"
#include "store/zone/allocator/zone_upkeep.h"
#include "store/zone/placement_policy.h"

namespace isozone {

// The empty zones that a reserve for metadata may count on.
enum class MetadataClaim : uint8_t {
  kNew,      // those that are left beside the reserves of logs and GC
  kRenewed,  // all: it was granted before a mount, and logs and GC may have used their reserves since
  kForced,   // it is granted whatever there is
};

class ZoneAllocator {
 public:
  static constexpr int64_t kNever = INT64_MAX;
  // The time after a passing error until the metadata is made durable again, and the interval at which a request that
  // waits for space looks again.
  static constexpr int64_t kDurablePauseNs = 100 * kMillisecondNs;
  static constexpr uint64_t kDurableTries = 3;
  // The time for which active zones of others are taken into account after the device has refused one.
  static constexpr int64_t kOthersNs = kSecondNs;
  // The longest time that a request for space waits for readers that pin some.
  static constexpr int64_t kReadersNs = kSecondNs;

  // One request for a zone, which is asked until a zone is granted or nothing can help. Its writer counts as waiting
  // from one answer to the next. A request of compaction or GC counts as making space as long as it exists. The
  // allocator must outlive it.
  class Inquiry {
   public:
    // The purpose of a zone.
    enum class Purpose : uint8_t {
      kFiles,
      kBegin,     // a copy of the metadata begins in it
      kSetAside,  // a copy goes on in it later: it is not active yet
      kReopen,    // it is of metadata, idle or reserved, and is written on
      kRoom,      // no zone is wanted: so many bytes are to be free for data
    };
    struct Room {
      uint64_t bytes = 0;
    };
    // Asks for a zone for files. The spans of `request` must stay valid.
    Inquiry(ZoneAllocator& allocator, const ZoneRequest& request);
    // Asks for a zone for a copy of the metadata (kBegin, kSetAside), of another group than `apart_from` if possible.
    Inquiry(ZoneAllocator& allocator, Purpose purpose, std::span<const ZoneId> apart_from);
    // Asks to reopen `zone`.
    Inquiry(ZoneAllocator& allocator, ZoneId zone);
    // Asks until there is so much room. What is granted then is no zone.
    Inquiry(ZoneAllocator& allocator, Room room);
    ~Inquiry();
    Inquiry(const Inquiry&) = delete;
    Inquiry& operator=(const Inquiry&) = delete;

    bool confined() const { return request_.confined; }
    // Returns who is to write the zone.
    ZoneWriter writer() const { return class_ == BudgetClass::kMetadata ? ZoneWriter::kMetadata : WriterOf(request_); }

    // Kept here for whoever asks: the number of the checkpoint that Answer::kCheckpoint asks for, whether that has
    // ended, and since when the request has waited.
    std::optional<uint64_t> checkpoint = {};
    bool checkpoint_ended = false;
    std::optional<int64_t> waits_since_ns = {};

   private:
    friend class ZoneAllocator;
    void WaitForToken();
    void WaitForCollector();
    void EndWait();

    ZoneAllocator& allocator_;
    const Purpose purpose_;
    const BudgetClass class_;
    const ZoneRequest request_ = {};                 // kFiles
    const std::span<const ZoneId> apart_from_ = {};  // kBegin, kSetAside
    const ZoneId zone_ = {};                         // kReopen
    const Room room_ = {};                           // kRoom
    bool waits_for_token_ = false;
    bool waits_for_collector_ = false;
    bool space_wait_counted_ = false;
    std::optional<int64_t> others_deadline_ns_ = {};        // while others hold active zones
    std::optional<int64_t> readers_deadline_ns_ = {};       // while readers pin zones
    CollectorRounds::Since no_space_;                       // and nothing but the collector to wait for
    std::optional<uint64_t> durable_failures_before_ = {};  // those of making the metadata durable
  };

  struct Answer {
    enum class Action : uint8_t {
      kGranted,     // `grant`
      kExecute,     // give `commands` to the device
      kRevoked,     // a lease was taken away, so that others may go on: tell them
      kCheckpoint,  // ask for a checkpoint, or whether it has ended; wait a moment while it has not
      kCollector,   // wake the collector, and wait for a change
      kWait,        // wait for a change, until `until_ns` at the latest
      kNothing,     // nothing can help: give up, for `lack`
    };
    Action action = Action::kNothing;
    ZoneGrant grant = {};
    std::vector<ZoneCommands> commands = {};
    int64_t until_ns = kNever;
    Lack lack = Lack::kSpace;  // of any answer but kGranted: why no zone could be given
  };

  // The next work of the background thread.
  struct Work {
    bool count_others = false;             // look how many zones the device calls active, and NoteOthers
    std::vector<ZoneId> ask_readers = {};  // ask whether readers still pin these zones: ZoneUpkeep::NotePinned
    std::vector<ZoneCommands> commands = {};
    // If there is nothing to do: when to look again, unless something changes before.
    int64_t until_ns = kNever;
    bool is_over = false;  // stopping, and nothing is under way
  };

  ZoneAllocator(std::span<const ZoneDescriptor> report, AllocatorOptions options,
                std::unique_ptr<PlacementPolicy> policy);

  // --- Asking ---
  Answer Ask(Inquiry& inquiry, int64_t now_ns);
  // Returns one more zone for a file that has some, or nothing; never waits (ZoneChoice::Wider).
  std::optional<ZoneGrant> Widen(const ZoneRequest& request);
  // Seals the zones of the cohort, which is not 0 (cohort.h). Writers that hold one of them keep it.
  void Seal(uint64_t cohort);
  ZoneRoom RoomOf(const DataClass& data, uint64_t cohort) const { return choice_.RoomOf(data, cohort); }

  // --- Leases ---
  // Notes that a write, which LeaseState::BeginWrite began, has ended and has put `bytes` into the zone, of which
  // `live` are of files.
  void EndWrite(const ZoneGrant& lease, uint64_t bytes, uint64_t live);
  // Notes that the device refused a write after `bytes`. The zone is as these leave it, and no longer leased.
  void EndRefusedWrite(const ZoneGrant& lease, uint64_t bytes);
  void Release(const ZoneGrant& lease);

  // --- Metadata ---
  // Notes that the metadata in `zone` is no longer needed, durably.
  void ReleaseMetadata(ZoneId zone);
  // Reserves so many zones for metadata in all: those that it has and, beyond these, empty ones. Returns false where
  // too few are empty for `claim`; the reserve then stays as it was.
  bool ReserveForMetadata(uint32_t zones, MetadataClaim claim);

  // --- Background ---
  Work NextWork(int64_t now_ns);
  void NoteDurability(const Status& status, int64_t now_ns);
  // Notes that the device had no active zone left for a write, because others hold some. The next Work looks at it.
  void NoteRefusal() { refused_ = true; }
  // Notes that the device calls so many zones active, those of others among them.
  void NoteOthers(uint32_t active_zones, int64_t now_ns);
  // Returns true, and counts on their zones again, if others are believed to have given these back by now.
  bool ForgetOthers(int64_t now_ns);

  ZoneLedger& ledger() { return ledger_; }
  const ZoneLedger& ledger() const { return ledger_; }
  ZoneUpkeep& upkeep() { return upkeep_; }
  const ZoneUpkeep& upkeep() const { return upkeep_; }
  ZoneCollection& collection() { return collection_; }
  const ZoneCollection& collection() const { return collection_; }

 private:
  // A zone, or what is lacking.
  struct Attempt {
    std::optional<ZoneGrant> grant = {};
    Lack lack = Lack::kSpace;
  };
  void NoteWritten(ZoneId zone, uint64_t bytes, uint64_t live);
  Attempt Try(const Inquiry& inquiry);
  Attempt TryFiles(const ZoneRequest& request);
  Attempt TryMetadata(std::span<const ZoneId> apart_from);
  Attempt TrySetAside(std::span<const ZoneId> apart_from);
  Attempt TryReopen(ZoneId zone);
  Attempt TryRoom(Inquiry::Room room) const;
  Placement PlaceForCollector(const ZoneRequest& request, PlacementQuery query, Placement placement);

  // These functions are the remedies for what is lacking. Each returns nothing where it does not help.
  Answer Remedy(Inquiry& inquiry, Lack lack, int64_t now_ns);
  Answer RemedyForRoom(Inquiry& inquiry, int64_t now_ns);
  std::optional<Answer> TakeOverLog(const Inquiry& inquiry, Lack lack);
  std::optional<Answer> Commands(BudgetClass c);
  std::optional<Answer> AwaitUpkeep(Inquiry& inquiry, Lack lack);
  std::optional<Answer> Checkpoint(const Inquiry& inquiry) const;
  std::optional<Answer> RevokeIdleLease(BudgetClass c, Lack lack);
  std::optional<Answer> AwaitOthers(Inquiry& inquiry, Lack lack, int64_t now_ns) const;
  std::optional<Answer> AwaitCollector(Inquiry& inquiry, Lack lack);
  std::optional<Answer> AwaitReaders(Inquiry& inquiry, Lack lack, int64_t now_ns);
  std::optional<Answer> AwaitWriter(BudgetClass c, Lack lack) const;

  void AskForResets(Lack lack);
  bool HelpIsComing(Inquiry& inquiry, Lack lack) const;
  bool ResetIsComing(Inquiry& inquiry) const;
  bool DurableMaySucceed(Inquiry& inquiry) const;
  // Takes away the lease of `c` that is idle for longest, of those of which `wanted` is true. Returns its zone.
  template <typename Wanted>
  std::optional<ZoneId> RevokeLongestIdle(BudgetClass c, Wanted wanted);

  ZoneLedger ledger_;
  const std::unique_ptr<PlacementPolicy> policy_;
  const ZoneChoice choice_;
  ZoneUpkeep upkeep_;
  ZoneCollection collection_;
  bool refused_ = false;         // the device refused a write, and has not been looked at since
  int64_t others_until_ns_ = 0;  // when others are believed to have given their active zones back
};

}  // namespace isozone
