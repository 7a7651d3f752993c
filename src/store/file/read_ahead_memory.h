// ReadAheadMemory: the memory that all scans of a mount hold ahead of time, within a limit.
//
// A scan that has stopped may hold some of it while its file stays open: its compaction was cancelled, or never reads
// the index behind the data. So if memory runs out, holders give up theirs that have used none of it while scans have
// read kPatience times the limit. A scan that had not stopped reads again what it gave up, which is at most one byte
// for kPatience bytes of all scans.
//
// Thread safety: any thread may call any method. The lock of a holder comes after the one here; Take, Give and NoteRead
// take none.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "base/mutex.h"

namespace isozone {

class ReadAheadMemory {
 public:
  // A scan counts as stopped when it has used nothing of what it holds while all scans have read this many times the
  // limit; or while other scans of its reader have read this many times what it holds.
  static constexpr uint64_t kPatience = 2;

  class Holder {
   public:
    // Gives up all that it holds, which is given back when the result is destroyed. That may wait for the device.
    virtual std::vector<std::shared_ptr<void>> GiveUp() = 0;

   protected:
    ~Holder() = default;

   private:
    friend class ReadAheadMemory;
    std::atomic<uint64_t> used_at_{0};  // read_ at its last use
  };

  explicit ReadAheadMemory(uint64_t limit) : limit_(limit) {}

  // Takes `bytes`. Returns false, and changes nothing, if there are no more so many.
  bool Take(uint64_t bytes) {
    if (bytes_.fetch_add(bytes) + bytes <= limit_) return true;
    bytes_.fetch_sub(bytes);
    return false;
  }
  void Give(uint64_t bytes) { bytes_.fetch_sub(bytes); }

  // Notes that a scan has read `bytes`.
  void NoteRead(uint64_t bytes) { read_.fetch_add(bytes, std::memory_order_relaxed); }
  // Notes that `holder` has used what it holds.
  void NoteUse(Holder& holder) {
    holder.used_at_.store(read_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  }

  // Notes that `holder` holds some from now on until Remove. It may be added already.
  void Add(Holder& holder) ISOZONE_EXCLUDES(mu_);
  void Remove(Holder& holder) ISOZONE_EXCLUDES(mu_);
  // Lets those who have stopped give up theirs. To be called when Take has failed.
  void Reclaim() ISOZONE_EXCLUDES(mu_);

 private:
  const uint64_t limit_;            // bytes
  std::atomic<uint64_t> bytes_{0};  // held
  std::atomic<uint64_t> read_{0};   // bytes, by all scans, ever
  Mutex mu_;
  std::set<Holder*> holders_ ISOZONE_GUARDED_BY(mu_);
};

}  // namespace isozone
