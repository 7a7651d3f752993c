// LeaseState: whether the holder of a lease is writing. The holder begins a write without the lock of the allocator;
// the allocator, under that lock, ends writes and leases. So a write takes the lock once, when it ends.
//
//          BeginWrite (holder)               EndIfIdle
//   idle -------------------------> writing  idle -----> ended     another writer needs the zone
//        <-------------------------          any --End-> ended
//          EndWrite (under the lock)
//
// While the lock is held, an idle lease may become a writing one, and nothing else changes. So whoever takes leases
// away calls EndIfIdle and looks at what it returns.
//
// Thread safety: BeginWrite is for the holder, without a lock; the rest is for whoever has the lock of the allocator.
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>

namespace isozone {

class LeaseState {
 public:
  // Begins a write. Returns false if the lease has ended.
  bool BeginWrite() {
    State found = State::kIdle;
    const bool begun = state_.compare_exchange_strong(found, State::kWriting);
    assert(begun || found == State::kEnded);
    return begun;
  }
  void EndWrite() {
    assert(writing());
    state_.store(State::kIdle);
  }
  // Ends an idle lease. Returns false if the holder is writing, and the lease goes on.
  [[nodiscard]] bool EndIfIdle() {
    State found = State::kIdle;
    return state_.compare_exchange_strong(found, State::kEnded);
  }
  void End() { state_.store(State::kEnded); }

  bool writing() const { return state_.load() == State::kWriting; }
  bool ended() const { return state_.load() == State::kEnded; }

 private:
  enum class State : uint8_t { kIdle, kWriting, kEnded };
  std::atomic<State> state_{State::kIdle};
};

}  // namespace isozone
