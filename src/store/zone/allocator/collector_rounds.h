// CollectorRounds: whether it makes sense for a writer without space to wait for the collector.
//
//   rounds   ... | 5                | 6                           |
//   writer            waits                   its space is looked for   gives up, if 6 has gained nothing
//
// A round that was begun before did not know that space is wanted, and may have found nothing worth doing. So only a
// whole round that gains nothing is hopeless, and only for those who have waited since before it began. Who does
// something itself meanwhile, such as a reset, is not known to a round that begins then, and begins another wait.
//
// Thread safety: none; the owner locks.
#pragma once

#include <cstdint>

namespace isozone {

class CollectorRounds {
 public:
  // The round since which somebody waits for the collector and for nothing else.
  class Since {
    friend class CollectorRounds;
    static constexpr uint64_t kNever = UINT64_MAX;
    uint64_t round_ = kNever;
  };

  // Says whether there is a collector. Only an attached one is waited for.
  void Attach(bool attached) { attached_ = attached; }
  bool attached() const { return attached_; }
  void Begin() { ++round_; }
  // Ends the round that was begun last.
  void End(bool gained) {
    if (!gained) hopeless_ = round_;
  }

  // Returns whether waiting makes sense. To be asked before each wait; `since` is set by the first one.
  bool MayHelp(Since& since) const {
    if (since.round_ == Since::kNever) since.round_ = round_;
    return attached_ && hopeless_ <= since.round_;
  }

  // Bracket the wait of somebody.
  void BeginWait() { ++waiting_; }
  void EndWait() { --waiting_; }
  bool wanted() const { return waiting_ > 0; }

 private:
  bool attached_ = false;
  uint64_t round_ = 0;     // number of the round that was begun last
  uint64_t hopeless_ = 0;  // number of the last round that gained nothing
  uint32_t waiting_ = 0;
};

}  // namespace isozone
