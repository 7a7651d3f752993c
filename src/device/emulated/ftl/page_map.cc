#include "device/emulated/ftl/page_map.h"

#include <algorithm>
#include <cassert>

#include "base/random.h"

namespace isozone {

FlashLayout FlashLayout::Of(const Profile& profile) {
  const auto slots = [&](uint64_t bytes) { return static_cast<uint32_t>(bytes / profile.block_size); };
  FlashLayout layout;
  layout.dies = profile.dies;
  layout.page_slots = slots(profile.page_size);
  layout.unit_slots = slots(profile.program_unit);
  layout.block_slots = slots(profile.erase_block);
  layout.logical_pages = slots(profile.capacity);
  const uint64_t spare = uint64_t{layout.logical_pages} * profile.over_provisioning_permille / 1000;
  const uint64_t superblock = layout.superblock_slots();
  layout.superblocks = static_cast<uint32_t>(RoundUp(layout.logical_pages + spare, superblock) / superblock);
  layout.superblocks += PageMap::kReserve;
  return layout;
}

PageMap::PageMap(const FlashLayout& layout)
    : layout_(layout),
      slot_of_(layout.logical_pages, kNone),
      page_of_(size_t{layout.superblocks} * layout.superblock_slots(), kNone),
      valid_(layout.superblocks),
      is_free_(layout.superblocks, true) {
  for (uint32_t i = 0; i < layout.superblocks; ++i) free_.push_back(i);
  Open(host_);
  Open(copies_);
}

void PageMap::Write(uint32_t page, std::vector<FlashStep>& steps) {
  if (host_.full()) {
    // GC speeds up as free superblocks run out, so only a device with few superblocks gets here.
    while (free_.size() < 2) {
      if (!victim_) PickVictim();
      while (victim_) CopyFlashPage(steps);
    }
    Open(host_);
  }
  Unmap(page);
  steps.push_back({FlashStep::Kind::kWrite, 0, Place(host_, page)});
  ++counters_.host_pages;
  Collect(steps);
}

void PageMap::Trim(uint32_t page) {
  if (slot_of_[page] == kNone) return;
  Unmap(page);
  ++counters_.trimmed_pages;
}

void PageMap::Age(double times, uint64_t seed) {
  std::vector<FlashStep> steps;
  for (uint32_t page = 0; page < layout_.logical_pages; ++page) {
    steps.clear();
    Write(page, steps);
  }
  Random random(seed);
  const auto writes = static_cast<uint64_t>(times * layout_.logical_pages);
  for (uint64_t i = 0; i < writes; ++i) {
    steps.clear();
    Write(static_cast<uint32_t>(random.Below(layout_.logical_pages)), steps);
  }
}

uint32_t PageMap::Place(Frontier& frontier, uint32_t page) {
  const uint32_t slot = frontier.next++;
  page_of_[slot] = page;
  slot_of_[page] = slot;
  ++valid_[layout_.SuperblockOf(slot)];
  return slot;
}

void PageMap::Open(Frontier& frontier) {
  assert(!free_.empty());
  const uint32_t superblock = free_.front();
  free_.pop_front();
  is_free_[superblock] = false;
  frontier.next = superblock * layout_.superblock_slots();
  frontier.end = frontier.next + layout_.superblock_slots();
}

void PageMap::Unmap(uint32_t page) {
  const uint32_t slot = slot_of_[page];
  if (slot == kNone) return;
  page_of_[slot] = kNone;
  slot_of_[page] = kNone;
  --valid_[layout_.SuperblockOf(slot)];
}

// GC.

void PageMap::Collect(std::vector<FlashStep>& steps) {
  if (!victim_) {
    if (free_.size() >= kKeptFree) return;
    PickVictim();
  }
  const auto missing = static_cast<int64_t>(kKeptFree) - static_cast<int64_t>(free_.size());
  due_ += static_cast<int64_t>(victim_cost_) * std::max<int64_t>(missing, 1);
  // An empty victim costs nothing and is erased at once.
  while (victim_ && (due_ > 0 || valid_[*victim_] == 0)) CopyFlashPage(steps);
}

void PageMap::PickVictim() {
  uint32_t best = kNone;
  for (uint32_t i = 0; i < layout_.superblocks; ++i) {
    if (is_free_[i] || IsOpen(i)) continue;
    if (best == kNone || valid_[i] < valid_[best]) best = i;
  }
  assert(best != kNone && valid_[best] < layout_.superblock_slots());
  victim_ = best;
  next_in_victim_ = best * layout_.superblock_slots();
  victim_cost_ = valid_[best];
  victim_gain_ = layout_.superblock_slots() - victim_cost_;
  due_ = 0;
}

// Copies the valid pages of the victim's next flash page that has any; erases the victim if there are no more.
void PageMap::CopyFlashPage(std::vector<FlashStep>& steps) {
  const uint32_t end = (*victim_ + 1) * layout_.superblock_slots();
  while (next_in_victim_ < end && valid_[*victim_] > 0 && page_of_[next_in_victim_] == kNone) ++next_in_victim_;
  const uint32_t page_end = (layout_.PageOf(next_in_victim_) + 1) * layout_.page_slots;
  for (; valid_[*victim_] > 0 && next_in_victim_ < page_end; ++next_in_victim_) {
    const uint32_t page = page_of_[next_in_victim_];
    if (page == kNone) continue;
    if (copies_.full()) Open(copies_);
    Unmap(page);
    steps.push_back({FlashStep::Kind::kCopy, next_in_victim_, Place(copies_, page)});
    ++counters_.copied_pages;
    due_ -= static_cast<int64_t>(victim_gain_);
  }
  if (valid_[*victim_] == 0) EraseVictim(steps);
}

void PageMap::EraseVictim(std::vector<FlashStep>& steps) {
  steps.push_back({FlashStep::Kind::kErase, *victim_, 0});
  free_.push_back(*victim_);
  is_free_[*victim_] = true;
  victim_.reset();
  ++counters_.erases;
}

bool PageMap::IsOpen(uint32_t superblock) const {
  const auto holds = [&](const Frontier& f) { return !f.full() && layout_.SuperblockOf(f.next) == superblock; };
  return holds(host_) || holds(copies_);
}

bool PageMap::IsConsistent() const {
  std::vector<uint32_t> valid(layout_.superblocks);
  uint64_t mapped = 0;
  for (uint32_t slot = 0; slot < page_of_.size(); ++slot) {
    if (page_of_[slot] == kNone) continue;
    if (slot_of_[page_of_[slot]] != slot) return false;
    ++valid[layout_.SuperblockOf(slot)];
    ++mapped;
  }
  uint64_t known = 0;
  for (const uint32_t slot : slot_of_) known += slot == kNone ? 0 : 1;
  if (known != mapped || valid != valid_) return false;
  for (const uint32_t superblock : free_) {
    if (!is_free_[superblock] || valid_[superblock] != 0 || IsOpen(superblock)) return false;
  }
  return static_cast<size_t>(std::count(is_free_.begin(), is_free_.end(), true)) == free_.size();
}

}  // namespace isozone
