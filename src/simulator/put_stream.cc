#include "simulator/put_stream.h"

#include <algorithm>
#include <utility>

#include "device/emulated/nand/servers.h"
#include "rocksdb/lsm/compaction_debt.h"
#include "store/zone/allocator/write_pace.h"

namespace isozone {

PutStream::PutStream(SimWorld& world)
    : world_(world),
      workload_(world.options.load),
      log_(world),
      memtable_records_(std::max<uint64_t>(1, world.options.tree.memtable_bytes / world.options.load.record_bytes)),
      slice_records_(std::max<uint64_t>(1, kSliceBytes / world.options.load.record_bytes)) {}

void PutStream::Proceed() {
  EndStall();
  if (!Logs()) return;
  if (memtable_.size() >= memtable_records_) SealMemtable();
  if (!MayPut() || PutSlice()) return;
  if (!memtable_.empty()) SealMemtable();
  world_.puts_ended = true;
  world_.report.put_ns = world_.loop.now_ns();
}

void PutStream::StallOn(int64_t& stall_ns) {
  stall_ns_ = &stall_ns;
  stalled_since_ns_ = world_.loop.now_ns();
}

void PutStream::WaitForTree(int64_t& stall_ns) {
  StallOn(stall_ns);
  world_.loop.CallOn(world_.tree_changed, *this);
}

void PutStream::EndStall() {
  if (stall_ns_ != nullptr) *std::exchange(stall_ns_, nullptr) += world_.loop.now_ns() - stalled_since_ns_;
  if (std::exchange(paced_, false)) world_.zones->allocator().collection().EndPaced();
}

bool PutStream::MayPut() {
  const SimTree& tree = world_.options.tree;
  const bool settles = tree.settles && memtable_.empty() && !world_.is_idle();
  if (settles || world_.memtables.count() >= tree.memtables) {
    WaitForTree(world_.report.stalls.memtables_ns);
  } else if (world_.model.tree().files(0).size() >= tree.level0_stop) {
    WaitForTree(world_.report.stalls.level0_ns);
  } else if (!tree.steering && tree.pending.hard_bytes != 0 &&
             CompactionDebt(world_.model.tree()) >= tree.pending.hard_bytes) {
    WaitForTree(world_.report.stalls.pending_ns);
  } else {
    return PaysForSlice();
  }
  return false;
}

// What was put before is in the log, or, with policies that stripe, on its way.
bool PutStream::Logs() {
  const auto taken = log_.GoOn(*this);
  if (!taken.ok()) world_.Fail(taken.status());
  if (taken.ok() && *taken) return true;
  StallOn(world_.report.stalls.log_ns);
  return false;
}

bool PutStream::IsSlowed() const {
  const SimTree& tree = world_.options.tree;
  if (world_.model.tree().files(0).size() >= tree.level0_slowdown) return true;
  return !tree.steering && tree.pending.soft_bytes != 0 &&
         CompactionDebt(world_.model.tree()) >= tree.pending.soft_bytes;
}

// Bounded: then it goes on unpaid.
bool PutStream::PaysForSlice() {
  ZoneCollection& collection = world_.zones->allocator().collection();
  const int64_t now_ns = world_.loop.now_ns();
  const int64_t since_ns = pays_since_ns_ < 0 ? now_ns : pays_since_ns_;
  const uint64_t bytes = slice_records_ * world_.options.load.record_bytes;
  if (collection.Pay(bytes) || now_ns - since_ns >= WritePace::kLongestWaitNs) {
    pays_since_ns_ = -1;
    return true;
  }
  pays_since_ns_ = since_ns;
  StallOn(world_.report.stalls.pace_ns);
  paced_ = true;
  collection.BeginPaced();
  world_.zones->NotePaced();
  world_.loop.CallAt(since_ns + WritePace::kLongestWaitNs, *this);
  world_.loop.CallOn(world_.zones->changed(), *this);
  return false;
}

bool PutStream::PutSlice() {
  const size_t before = memtable_.size();
  ModelRecord record;
  while (memtable_.size() < std::min(before + slice_records_, memtable_records_) && workload_.Next(record)) {
    memtable_.push_back(record);
  }
  const uint64_t bytes = (memtable_.size() - before) * world_.options.load.record_bytes;
  if (bytes == 0) return false;
  SimReport& report = world_.report;
  report.puts += memtable_.size() - before;
  report.put_bytes += bytes;
  const SimRates& rates = world_.options.rates;
  int64_t takes_ns = DurationOf(bytes, rates.put);
  if (IsSlowed()) {
    const int64_t slowed_ns = std::max(takes_ns, DurationOf(bytes, rates.slowed_put));
    report.stalls.slowdown_ns += slowed_ns - takes_ns;
    takes_ns = slowed_ns;
  }
  log_.Take(bytes);
  world_.loop.CallAt(world_.loop.now_ns() + takes_ns, *this);
  return true;
}

// The last put of a key is the one that counts.
void PutStream::SealMemtable() {
  std::sort(memtable_.begin(), memtable_.end(),
            [](const ModelRecord& a, const ModelRecord& b) { return a.key != b.key ? a.key < b.key : a.put > b.put; });
  const auto same_key = [](const ModelRecord& a, const ModelRecord& b) { return a.key == b.key; };
  memtable_.erase(std::unique(memtable_.begin(), memtable_.end(), same_key), memtable_.end());
  world_.memtables.Add(std::exchange(memtable_, {}));
  world_.loop.Ring(world_.tree_changed);
}

}  // namespace isozone
