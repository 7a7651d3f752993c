// The mapping of a conventional SSD: which flash page holds which logical page, and the collection of garbage. Pure
// state, no time; ConventionalModel gives what happens here its time.
//
// A logical page is a block of the host, 4 KiB: what conventional SSDs map, so that no write of the host has to be read
// first. (Mapping whole 64 KiB flash pages would save memory, and add write amplification that is not collection's.) A
// slot is where one lies on flash.
//
// A superblock is the erase blocks of the same number on all dies. It is written program unit by program unit, each on
// the next die, so a long write keeps all dies busy; it is collected and erased as one. Two are open at a time: one for
// the host, one for copies.
//
// Collection is greedy: the victim is the full superblock with the fewest valid pages (the lowest number of several).
// It begins when fewer than kKeptFree superblocks are free, and goes on in step with the host: for each page that is
// written it copies valid / (all - valid) pages of the victim, so that the victim is empty when its place is needed, and
// no write has to wait for a whole superblock. The fewer superblocks are free the faster it goes. It copies flash page
// by flash page, as a die reads.
//
// Physical size: capacity x (1 + over-provisioning), and kReserve superblocks. Those are not counted as
// over-provisioning, because they are 8 of some 900 on a large device, but many of the few of one scaled down.
//
// What greedy collection costs under uniform random overwriting: with alpha = physical / logical pages, a block that is
// collected after every other has been is left with the fraction u of valid pages for which alpha = (u - 1) / ln u, and
//
//     write amplification = 1 / (1 - u) = alpha / (alpha + W(-alpha e^-alpha)),  W Lambert's function, main branch
//
// (P. Desnoyers, "Analytic Modeling of SSD Write Performance", SYSTOR 2012, for the least-recently-written victim, which
// greedy comes to with large blocks: W. Bux and I. Iliadis, Performance Evaluation 67(11), 2010). 4.0 at 15 %.
//
// Invariants: a logical page is at one slot or none; that slot names it; `valid` of a superblock counts its slots that
// name a page; the open, free and full superblocks and the victim are all there are.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/units.h"
#include "nand/profile.h"

namespace isozone {

// How slots lie on flash. Slots of a superblock, counted up, fill program units one after another; unit u is on die
// u mod dies.
struct FlashLayout {
  uint32_t dies = 0;
  uint32_t page_slots = 0;   // of a flash page
  uint32_t unit_slots = 0;   // of a program unit
  uint32_t block_slots = 0;  // of the erase block of one die
  uint32_t superblocks = 0;
  uint32_t logical_pages = 0;

  // `profile` is valid and conventional.
  static FlashLayout Of(const Profile& profile);
  uint32_t superblock_slots() const { return dies * block_slots; }
  uint32_t SuperblockOf(uint32_t slot) const { return slot / superblock_slots(); }
  uint32_t UnitOf(uint32_t slot) const { return slot / unit_slots; }  // counted over all superblocks
  uint32_t PageOf(uint32_t slot) const { return slot / page_slots; }  // the same
  uint32_t DieOf(uint32_t slot) const { return UnitOf(slot) % dies; }
};

// What a change of the mapping does to the flash, in order.
struct FlashStep {
  enum class Kind : uint8_t { kWrite, kCopy, kErase } kind = Kind::kWrite;
  uint32_t from = 0;  // kCopy: the slot; kErase: the superblock
  uint32_t to = 0;    // kWrite, kCopy: the slot
  bool operator==(const FlashStep&) const = default;
};

struct FtlCounters {
  uint64_t host_pages = 0;     // written
  uint64_t copied_pages = 0;   // by collection
  uint64_t trimmed_pages = 0;  // that were mapped
  uint64_t erases = 0;         // of superblocks

  // Pages written to flash for each that the host wrote; 1 where it wrote none.
  double WriteAmplification() const {
    return host_pages == 0 ? 1 : static_cast<double>(host_pages + copied_pages) / static_cast<double>(host_pages);
  }
};

class PageMap {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  // Superblocks that collection keeps free: how far the host can be ahead of it.
  static constexpr uint32_t kKeptFree = 6;
  static constexpr uint32_t kReserve = kKeptFree + 2;  // and those that are open

  explicit PageMap(const FlashLayout& layout);

  // Writes logical page `page` to a new slot, collecting as it comes due. Appends what that takes to `steps`.
  void Write(uint32_t page, std::vector<FlashStep>& steps);
  // Forgets the content of `page`.
  void Trim(uint32_t page);
  // The slot of `page`; kNone if it was never written or was trimmed.
  uint32_t SlotOf(uint32_t page) const { return slot_of_[page]; }

  // Writes every page in order, and then `times` x all of them, each drawn at random.
  void Age(double times, uint64_t seed);

  const FlashLayout& layout() const { return layout_; }
  const FtlCounters& counters() const { return counters_; }
  // Counts from 0 again.
  void ResetCounters() { counters_ = {}; }
  // That no logical page has lost its slot, and the other invariants above. For tests: O(slots).
  bool IsConsistent() const;

 private:
  // Where slots are given out: the next one of an open superblock.
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
  std::vector<uint32_t> page_of_;  // by slot; kNone where it holds nothing that is valid
  std::vector<uint32_t> valid_;    // slots of a superblock that hold something valid
  std::vector<bool> is_free_;      // by superblock
  std::deque<uint32_t> free_;      // erased longest ago first, so that all wear alike
  Frontier host_;
  Frontier copies_;

  std::optional<uint32_t> victim_;
  uint32_t next_in_victim_ = 0;  // slot from which on it has not been looked through
  uint64_t victim_gain_ = 0;     // slots that were not valid when it was picked; more than 0
  uint64_t victim_cost_ = 0;     // the others
  int64_t due_ = 0;              // copies, times victim_gain_, that collection is behind the host; < 0: ahead

  FtlCounters counters_;
};

}  // namespace isozone
