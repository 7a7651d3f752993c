// CollectorRounds: whether it makes sense for a writer without space to wait for the collector.
//
//   rounds   ... | 5                | 6                           |
//   writer            waits                   its space is looked for   gives up, if 6 has gained nothing
//
// A round that was begun before did not know that space is wanted, and may have found nothing worth doing. So only a
// whole round that gains nothing is hopeless, and only for those who waited when it began.
//
// Thread safety: none; the owner locks.
#pragma once

#include <cstdint>

namespace isozone {

class CollectorRounds {
 public:
  // Since when somebody waits.
  class Since {
    friend class CollectorRounds;
    static constexpr uint64_t kNever = UINT64_MAX;
    uint64_t round_ = kNever;
  };

  // Only a collector that is attached is waited for.
  void Attach(bool attached) { attached_ = attached; }
  bool attached() const { return attached_; }
  void Begin() { ++round_; }
  // Of the round begun last.
  void End(bool gained) {
    if (!gained) hopeless_ = round_;
  }

  // To be asked before each wait; `since` begins with the first one.
  bool MayHelp(Since& since) const {
    if (since.round_ == Since::kNever) since.round_ = round_;
    return attached_ && hopeless_ <= since.round_;
  }

  // Brackets the wait of somebody.
  void BeginWait() { ++waiting_; }
  void EndWait() { --waiting_; }
  bool wanted() const { return waiting_ > 0; }

 private:
  bool attached_ = false;
  uint64_t round_ = 0;     // begun last
  uint64_t hopeless_ = 0;  // the last one that gained nothing
  uint32_t waiting_ = 0;
};

}  // namespace isozone
