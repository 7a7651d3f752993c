// ActiveBudget: shares the few zones that a device allows to be active (or open) at a time among the classes of
// writers.
//
// A class may take a token while it holds fewer than its reserve, or while something is left of what no reserve covers
// (the rest). So a class can borrow from the rest, never from another's reserve:
//
//   metadata 4   the zones that the two copies are written to, the one that a new copy is written to, and that of the
//                copy before, which stays active until it is reset
//   log      2   WAL and MANIFEST: a sync never waits for writers of tables
//   GC       1   a collector that must wait for a zone could not make room for those it waits for
//   data     2   one flush beside one compaction
//
// Zones found active at mount are adopted even beyond a reserve; Overcommitted() says how many must go.
//
// Thread safety: none; the owner locks, tokens included. A budget outlives its tokens.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

namespace isozone {

enum class BudgetClass : uint8_t { kMetadata, kLog, kGc, kData };
inline constexpr int kBudgetClassCount = 4;

class ActiveBudget {
 public:
  static constexpr std::array<uint32_t, kBudgetClassCount> kReserve = {4, 2, 1, 2};  // by BudgetClass
  static constexpr uint32_t kReserveTotal = 9;                                       // no device can have less

  static constexpr uint32_t ReserveOf(BudgetClass c) { return kReserve[static_cast<size_t>(c)]; }

  // One zone's share of the budget. Its destructor gives it back. Move-only.
  class Token {
   public:
    Token(Token&& other) noexcept : budget_(std::exchange(other.budget_, nullptr)), class_(other.class_) {}
    Token& operator=(Token&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(class_, other.class_);
      return *this;
    }
    ~Token() {
      if (budget_ != nullptr) --budget_->used_[static_cast<size_t>(class_)];
    }

    BudgetClass budget_class() const { return class_; }

   private:
    friend class ActiveBudget;
    Token(ActiveBudget& budget, BudgetClass c) : budget_(&budget), class_(c) { ++budget.used_[static_cast<size_t>(c)]; }
    ActiveBudget* budget_;
    BudgetClass class_;
  };

  // `limit` is that of the device, at least kReserveTotal; 0: none.
  explicit ActiveBudget(uint32_t limit);
  ActiveBudget(const ActiveBudget&) = delete;
  ActiveBudget& operator=(const ActiveBudget&) = delete;

  // Takes a token; empty if the class may have no more now.
  std::optional<Token> TryTake(BudgetClass c);
  // Returns a token for a zone that is active already, even beyond the limit.
  Token Adopt(BudgetClass c) { return {*this, c}; }

  // Returns how many tokens the class could take now.
  uint32_t Available(BudgetClass c) const;
  // Returns whether the class holds more than its reserve, so that others can take what it gives back.
  bool Borrows(BudgetClass c) const { return used(c) > ReserveOf(c); }
  // Withholds so many tokens of the limit, which are somebody else's now.
  void Withhold(uint32_t tokens) { withheld_ = tokens; }
  uint32_t withheld() const { return static_cast<uint32_t>(withheld_); }

  // Returns by how much adopted or withheld tokens cut into reserves.
  uint32_t Overcommitted() const;
  uint32_t used(BudgetClass c) const { return used_[static_cast<size_t>(c)]; }
  uint32_t used() const;

 private:
  int64_t Rest() const;  // not reserved and not taken; negative when overcommitted

  const int64_t limit_;
  int64_t withheld_ = 0;
  std::array<uint32_t, kBudgetClassCount> used_{};
};

}  // namespace isozone
