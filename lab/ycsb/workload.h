// The six core workloads of YCSB: which operations, in what proportion, on which records.
//
//   a  half reads, half updates        zipfian       d  95 % reads, 5 % inserts    latest
//   b  95 % reads, 5 % updates         zipfian       e  95 % scans, 5 % inserts    zipfian; 1 to 100 records
//   c  reads                           zipfian       f  half reads, half read-modify-writes    zipfian
//
// Record N has the key "user" and the hash of N in 19 digits, so that records that are inserted one after the other lie
// anywhere in the database. A value is kFields fields of the same size stored as one, and begins with the hash: whoever
// reads it can tell whether it belongs to the key. An update replaces the whole value.
//
// Records that are being inserted are chosen for nothing else until they are there. As in YCSB, the zipfian workloads
// choose from the records there are and twice the inserts expected, and again where a record is not there yet: so
// inserts do not change which records are popular.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/key_distributions.h"
#include "base/mutex.h"
#include "base/random.h"
#include "base/status.h"

namespace isozone::ycsb {

enum class OperationKind : uint8_t { kRead, kUpdate, kInsert, kScan, kReadModifyWrite };
inline constexpr std::array<OperationKind, 5> kOperationKinds = {OperationKind::kRead, OperationKind::kUpdate,
                                                                 OperationKind::kInsert, OperationKind::kScan,
                                                                 OperationKind::kReadModifyWrite};
// "read", "read_modify_write".
std::string_view NameOf(OperationKind kind);

enum class Popularity : uint8_t { kZipfian, kLatest };

struct Workload {
  std::string_view name;
  OperationKind common;
  OperationKind other;
  double other_share;
  Popularity popularity;

  // The share of operations that insert a record.
  double InsertShare() const { return other == OperationKind::kInsert ? other_share : 0; }
};
std::span<const Workload> CoreWorkloads();
// kInvalidArgument where there is none of that name.
Result<Workload> FindWorkload(std::string_view name);

// Numbers the records that are inserted, and knows up to which all are there.
//
// Thread safety: any method from any thread.
class RecordCounter {
 public:
  explicit RecordCounter(uint64_t records) : next_(records), present_(records) {}

  uint64_t TakeNext() { return next_.fetch_add(1, std::memory_order_relaxed); }
  // Record `number`, which came from TakeNext, is there.
  void Acknowledge(uint64_t number) ISOZONE_EXCLUDES(mutex_);
  // The records [0, present()) are there.
  uint64_t present() const { return present_.load(std::memory_order_acquire); }

 private:
  std::atomic<uint64_t> next_;
  std::atomic<uint64_t> present_;
  Mutex mutex_;
  std::set<uint64_t> early_ ISOZONE_GUARDED_BY(mutex_);  // there, but one before them is not
};

struct Operation {
  OperationKind kind;
  uint64_t record;            // for a scan, the first
  uint64_t scan_records = 0;  // at most so many
};

// The operations of one client: a sequence that follows from `seed`, and from what other clients insert.
//
// Thread safety: none; clients share the counter only.
class OperationStream {
 public:
  // `operations` of all clients together, to expect inserts by. `counter` outlives the stream.
  OperationStream(const Workload& workload, uint64_t operations, uint64_t seed, RecordCounter& counter);
  Operation Next();

 private:
  uint64_t ExistingRecord();

  const Workload workload_;
  RecordCounter& counter_;
  Random random_;
  std::variant<ScrambledZipfian, Latest> records_;
};

// What of a client is random, each with a seed of its own.
enum class SeedOf : uint8_t { kLoadedValues, kOperations, kWrittenValues };
// For client `index` of a run with `seed`.
uint64_t ClientSeed(uint64_t seed, SeedOf what, uint64_t index);
// Share `index` of `count` in [0, total): [first, second).
std::pair<uint64_t, uint64_t> ShareOf(uint64_t total, uint64_t index, uint64_t count);

inline constexpr size_t kFields = 10;
inline constexpr size_t kMinValueSize = sizeof(uint64_t);
std::string KeyOf(uint64_t record);
// A new value of value->size() bytes (at least kMinValueSize) for `record`, random after the hash.
void FillValue(uint64_t record, Random& random, std::string* value);
// One field of it anew, but never the hash.
void FillField(Random& random, std::string* value);
// kCorruption unless `key` is of the form of KeyOf and `value` has `size` bytes and belongs to it.
Status CheckValue(std::string_view key, std::string_view value, size_t size);

}  // namespace isozone::ycsb
