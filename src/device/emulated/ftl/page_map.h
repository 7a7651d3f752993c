// PageMap: the mapping of a conventional SSD, that is, which flash page holds which logical page, and its GC.
// Pure state without time; ConventionalModel adds the time.
//
// A logical page is a block of the host of 4 KiB. Conventional SSDs map this unit, so that no write of the host
// requires a read first. (Mapping whole 64 KiB flash pages would save memory, but add write amplification that does not
// come from GC.) A slot is the place of a logical page on flash.
//
// A superblock consists of the erase blocks of the same number on all dies. It is written one program unit after
// another, each on the next die, so a long write keeps all dies busy. It is collected and erased as a whole. Two are
// open at a time: one for the host, one for copies.
//
// GC is greedy: the victim is the full superblock with the fewest valid pages (of several, the lowest number).
// It begins when fewer than kKeptFree superblocks are free, and keeps step with the host: for each page written it
// copies valid / (all - valid) pages of the victim. So the victim is empty when its space is needed, and no write waits
// for a whole superblock. GC speeds up as free superblocks run out. It copies flash page by flash page, the
// unit in which a die reads.
//
// Physical size: capacity x (1 + over-provisioning), and kReserve superblocks. The reserve does not count as
// over-provisioning, because it is 8 of some 900 superblocks on a large device, but many of the few of a scaled one.
//
// The cost of greedy GC under uniform random overwriting: with alpha = physical / logical pages, a block that
// is collected after all others have been keeps the fraction u of valid pages for which alpha = (u - 1) / ln u, and
//
//     write amplification = 1 / (1 - u) = alpha / (alpha + W(-alpha e^-alpha)),  W Lambert's function, main branch
//
// (P. Desnoyers, "Analytic Modeling of SSD Write Performance", SYSTOR 2012, for the least-recently-written victim,
// which greedy GC approaches with large blocks: W. Bux and I. Iliadis, Performance Evaluation 67(11), 2010).
// 4.0 at 15 %.
//
// Invariants: a logical page is at one slot or none, and that slot names it; `valid` of a superblock counts its slots
// that name a page; every superblock is open, free, full or the victim.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/units.h"
#include "device/emulated/nand/profile.h"

namespace isozone {

// The order of slots on flash. Slots of a superblock, counted up, fill program units one after another; unit u is on
// die u mod dies.
struct FlashLayout {
  uint32_t dies = 0;
  uint32_t page_slots = 0;   // of a flash page
  uint32_t unit_slots = 0;   // of a program unit
  uint32_t block_slots = 0;  // of the erase block of one die
  uint32_t superblocks = 0;
  uint32_t logical_pages = 0;

  // `profile` must be valid and conventional.
  static FlashLayout Of(const Profile& profile);
  uint32_t superblock_slots() const { return dies * block_slots; }
  uint32_t SuperblockOf(uint32_t slot) const { return slot / superblock_slots(); }
  uint32_t UnitOf(uint32_t slot) const { return slot / unit_slots; }  // counted over all superblocks
  uint32_t PageOf(uint32_t slot) const { return slot / page_slots; }  // counted over all superblocks as well
  uint32_t DieOf(uint32_t slot) const { return UnitOf(slot) % dies; }
};

// One effect of a change of the mapping on the flash. Steps are in order.
struct FlashStep {
  enum class Kind : uint8_t { kWrite, kCopy, kErase } kind = Kind::kWrite;
  uint32_t from = 0;  // kCopy: the slot; kErase: the superblock
  uint32_t to = 0;    // kWrite, kCopy: the slot
  bool operator==(const FlashStep&) const = default;
};

struct FtlCounters {
  uint64_t host_pages = 0;     // written
  uint64_t copied_pages = 0;   // by GC
  uint64_t trimmed_pages = 0;  // mapped pages that were trimmed
  uint64_t erases = 0;         // of superblocks

  // Returns the pages written to flash for each page that the host wrote; 1 if it wrote none.
  double WriteAmplification() const {
    return host_pages == 0 ? 1 : static_cast<double>(host_pages + copied_pages) / static_cast<double>(host_pages);
  }
};

class PageMap {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  // Superblocks that GC keeps free; the host can be ahead of GC by this many.
  static constexpr uint32_t kKeptFree = 6;
  static constexpr uint32_t kReserve = kKeptFree + 2;  // and the two open ones

  explicit PageMap(const FlashLayout& layout);

  // Writes logical page `page` to a new slot, and collects as much as is due. Appends the resulting steps to `steps`.
  void Write(uint32_t page, std::vector<FlashStep>& steps);
  // Forgets the content of `page`.
  void Trim(uint32_t page);
  // Returns the slot of `page`; kNone if it was never written or was trimmed.
  uint32_t SlotOf(uint32_t page) const { return slot_of_[page]; }

  // Writes every page in order, and then overwrites random pages, `times` times as many as there are.
  void Age(double times, uint64_t seed);

  const FlashLayout& layout() const { return layout_; }
  const FtlCounters& counters() const { return counters_; }
  // Sets all counters to 0.
  void ResetCounters() { counters_ = {}; }
  // Returns whether no logical page has lost its slot, and the other invariants above hold. For tests: O(slots).
  bool IsConsistent() const;

 private:
  // The next slot of an open superblock, from which slots are allocated.
  struct Frontier {
    uint32_t next = 0;
    uint32_t end = 0;
    bool full() const { return next == end; }
  };

  uint32_t Place(Frontier& frontier, uint32_t page);
  void Open(Frontier& frontier);
  void Unmap(uint32_t page);
  void Collect(std::vector<FlashStep>& steps);
  void PickVictim();
  void CopyFlashPage(std::vector<FlashStep>& steps);
  void EraseVictim(std::vector<FlashStep>& steps);
  bool IsOpen(uint32_t superblock) const;

  const FlashLayout layout_;
  std::vector<uint32_t> slot_of_;  // by logical page
  std::vector<uint32_t> page_of_;  // by slot; kNone if it holds nothing valid
  std::vector<uint32_t> valid_;    // by superblock: slots that hold valid pages
  std::vector<bool> is_free_;      // by superblock
  std::deque<uint32_t> free_;      // the one erased longest ago first, for even wear
  Frontier host_;
  Frontier copies_;

  std::optional<uint32_t> victim_;
  uint32_t next_in_victim_ = 0;  // the first slot that was not examined yet
  uint64_t victim_gain_ = 0;     // slots that were not valid when the victim was picked; more than 0
  uint64_t victim_cost_ = 0;     // slots that were valid then
  int64_t due_ = 0;              // how many copies, times victim_gain_, GC is behind the host; < 0: ahead

  FtlCounters counters_;
};

}  // namespace isozone
