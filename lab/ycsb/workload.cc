#include "ycsb/workload.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include <fmt/format.h>

namespace isozone::ycsb {
namespace {

constexpr std::string_view kKeyPrefix = "user";
constexpr size_t kKeyDigits = 19;  // of the greatest hash, 2^63
constexpr uint64_t kMaxScanRecords = 100;
constexpr double kSpareInserts = 2.0;  // how many times the inserts that are expected

void FillRandom(std::span<char> bytes, Random& random) {
  while (!bytes.empty()) {
    const uint64_t word = random.Next();
    const size_t length = std::min(sizeof(word), bytes.size());
    std::memcpy(bytes.data(), &word, length);
    bytes = bytes.subspan(length);
  }
}

// Nothing where `key` is not of the form of KeyOf.
std::optional<uint64_t> HashIn(std::string_view key) {
  if (key.size() != kKeyPrefix.size() + kKeyDigits || !key.starts_with(kKeyPrefix)) return std::nullopt;
  uint64_t hash = 0;
  const char* end = key.data() + key.size();
  const auto [parsed, error] = std::from_chars(key.data() + kKeyPrefix.size(), end, hash);
  if (error != std::errc() || parsed != end) return std::nullopt;
  return hash;
}

std::variant<ScrambledZipfian, Latest> RecordsOf(const Workload& workload, uint64_t operations, uint64_t records) {
  if (workload.popularity == Popularity::kLatest) return Latest(records);
  const double inserts = static_cast<double>(operations) * workload.InsertShare();
  return ScrambledZipfian(records + static_cast<uint64_t>(kSpareInserts * inserts));
}

}  // namespace

std::string_view NameOf(OperationKind kind) {
  switch (kind) {
    case OperationKind::kRead:
      return "read";
    case OperationKind::kUpdate:
      return "update";
    case OperationKind::kInsert:
      return "insert";
    case OperationKind::kScan:
      return "scan";
    case OperationKind::kReadModifyWrite:
      return "read_modify_write";
  }
  return "unknown";
}

std::span<const Workload> CoreWorkloads() {
  using enum OperationKind;
  static constexpr std::array<Workload, 6> kWorkloads = {{
      {"a", kRead, kUpdate, 0.5, Popularity::kZipfian},
      {"b", kRead, kUpdate, 0.05, Popularity::kZipfian},
      {"c", kRead, kRead, 0, Popularity::kZipfian},
      {"d", kRead, kInsert, 0.05, Popularity::kLatest},
      {"e", kScan, kInsert, 0.05, Popularity::kZipfian},
      {"f", kRead, kReadModifyWrite, 0.5, Popularity::kZipfian},
  }};
  return kWorkloads;
}

Result<Workload> FindWorkload(std::string_view name) {
  const auto workloads = CoreWorkloads();
  const auto found = std::ranges::find(workloads, name, &Workload::name);
  if (found != workloads.end()) return *found;
  return Status::InvalidArgument(fmt::format("unknown workload '{}'; there are a to f", name));
}

void RecordCounter::Acknowledge(uint64_t number) {
  MutexLock lock(mutex_);
  early_.insert(number);
  uint64_t present = present_.load(std::memory_order_relaxed);
  while (!early_.empty() && *early_.begin() == present) {
    early_.erase(early_.begin());
    ++present;
  }
  present_.store(present, std::memory_order_release);
}

OperationStream::OperationStream(const Workload& workload, uint64_t operations, uint64_t seed, RecordCounter& counter)
    : workload_(workload),
      counter_(counter),
      random_(seed),
      records_(RecordsOf(workload, operations, counter.present())) {}

Operation OperationStream::Next() {
  const OperationKind kind = random_.Chance(workload_.other_share) ? workload_.other : workload_.common;
  if (kind == OperationKind::kInsert) return {.kind = kind, .record = counter_.TakeNext()};
  Operation operation{.kind = kind, .record = ExistingRecord()};
  if (kind == OperationKind::kScan) operation.scan_records = Uniform(1, kMaxScanRecords).Next(random_);
  return operation;
}

uint64_t OperationStream::ExistingRecord() {
  const uint64_t present = counter_.present();
  if (auto* latest = std::get_if<Latest>(&records_)) return latest->Next(random_, present);
  uint64_t record = 0;
  do {
    record = std::get<ScrambledZipfian>(records_).Next(random_);
  } while (record >= present);
  return record;
}

uint64_t ClientSeed(uint64_t seed, SeedOf what, uint64_t index) {
  const uint64_t hash = Random(seed).Next() ^ FnvHash64(static_cast<uint64_t>(what));
  return Random(Random(hash).Next() ^ FnvHash64(index)).Next();
}

std::pair<uint64_t, uint64_t> ShareOf(uint64_t total, uint64_t index, uint64_t count) {
  const uint64_t least = total / count;
  const uint64_t longer = total % count;  // the first so many shares have one more
  const uint64_t first = index * least + std::min(index, longer);
  return {first, first + least + (index < longer ? 1 : 0)};
}

std::string KeyOf(uint64_t record) { return fmt::format("{}{:0{}}", kKeyPrefix, FnvHash64(record), kKeyDigits); }

void FillValue(uint64_t record, Random& random, std::string* value) {
  const uint64_t hash = FnvHash64(record);
  std::memcpy(value->data(), &hash, sizeof(hash));
  FillRandom(std::span(*value).subspan(sizeof(hash)), random);
}

void FillField(Random& random, std::string* value) {
  const size_t length = value->size() / kFields;
  const size_t field = length * random.Below(kFields);
  const size_t begin = std::max(kMinValueSize, field);
  const size_t end = std::max(begin, field + length);
  FillRandom(std::span(*value).subspan(begin, end - begin), random);
}

Status CheckValue(std::string_view key, std::string_view value, size_t size) {
  const std::optional<uint64_t> hash = HashIn(key);
  if (!hash) return Status::Corruption(fmt::format("'{}' is not the key of a record", key));
  if (value.size() != size) {
    return Status::Corruption(fmt::format("the value of {} has {} bytes and not {}", key, value.size(), size));
  }
  if (std::memcmp(value.data(), &*hash, sizeof(*hash)) != 0) {
    return Status::Corruption(fmt::format("the value of {} belongs to another key", key));
  }
  return Status::Ok();
}

}  // namespace isozone::ycsb
