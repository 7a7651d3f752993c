#include "ycsb/workload.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace isozone::ycsb {
namespace {

constexpr uint64_t kRecords = 1000;
constexpr uint64_t kOperations = 100'000;
constexpr uint64_t kSeed = 20261122;

// The operations of one client, each insert done before the next operation.
std::vector<Operation> Operations(const Workload& workload, uint64_t seed) {
  RecordCounter counter(kRecords);
  OperationStream stream(workload, kOperations, seed, counter);
  std::vector<Operation> operations;
  for (uint64_t i = 0; i < kOperations; ++i) {
    operations.push_back(stream.Next());
    if (operations.back().kind == OperationKind::kInsert) counter.Acknowledge(operations.back().record);
  }
  return operations;
}

std::vector<Operation> Operations(std::string_view name) {
  const auto workload = FindWorkload(name);
  EXPECT_TRUE(workload.ok());
  return Operations(*workload, kSeed);
}

std::map<OperationKind, double> MixOf(const std::vector<Operation>& operations) {
  std::map<OperationKind, double> mix;
  for (const Operation& operation : operations) mix[operation.kind] += 1.0 / static_cast<double>(operations.size());
  return mix;
}

TEST(Workload, TheCoreSixHaveTheirMix) {
  using enum OperationKind;
  const std::map<std::string_view, std::map<OperationKind, double>> mixes = {
      {"a", {{kRead, 0.5}, {kUpdate, 0.5}}},
      {"b", {{kRead, 0.95}, {kUpdate, 0.05}}},
      {"c", {{kRead, 1}}},
      {"d", {{kRead, 0.95}, {kInsert, 0.05}}},
      {"e", {{kScan, 0.95}, {kInsert, 0.05}}},
      {"f", {{kRead, 0.5}, {kReadModifyWrite, 0.5}}},
  };
  ASSERT_EQ(CoreWorkloads().size(), mixes.size());
  for (const auto& [name, expected] : mixes) {
    const auto mix = MixOf(Operations(name));
    ASSERT_EQ(mix.size(), expected.size()) << name;
    for (const auto& [kind, share] : expected) {
      const double sigma = std::sqrt(share * (1 - share) / kOperations);
      EXPECT_NEAR(mix.at(kind), share, 4 * sigma + 1e-9) << name << " " << NameOf(kind) << ", seed " << kSeed;
    }
  }
}

TEST(Workload, UnknownNamesAreRefused) {
  for (const std::string_view name : {"", "g", "A", "ab"}) {
    EXPECT_TRUE(FindWorkload(name).status().Is(StatusCode::kInvalidArgument)) << name;
  }
}

TEST(Workload, OnlyRecordsThatAreThereAreChosenAndInsertsFollowOneAnother) {
  for (const Workload& workload : CoreWorkloads()) {
    uint64_t present = kRecords;
    for (const Operation& operation : Operations(workload, kSeed)) {
      if (operation.kind == OperationKind::kInsert) {
        ASSERT_EQ(operation.record, present++) << workload.name;
      } else {
        ASSERT_LT(operation.record, present) << workload.name;
      }
    }
  }
}

TEST(Workload, ScansAreOneToAHundredRecordsLong) {
  std::vector<uint64_t> counts(101);
  for (const Operation& operation : Operations("e")) {
    if (operation.kind != OperationKind::kScan) continue;
    ASSERT_GE(operation.scan_records, 1u);
    ASSERT_LE(operation.scan_records, 100u);
    ++counts[operation.scan_records];
  }
  const double even = 0.95 * kOperations / 100;
  for (size_t length = 1; length <= 100; ++length) {
    EXPECT_NEAR(static_cast<double>(counts[length]), even, 5 * std::sqrt(even)) << length;
  }
}

TEST(Workload, DReadsWhatIsNew) {
  uint64_t present = kRecords;
  uint64_t reads = 0;
  uint64_t of_the_newest_tenth = 0;
  for (const Operation& operation : Operations("d")) {
    if (operation.kind == OperationKind::kInsert) {
      ++present;
      continue;
    }
    ++reads;
    if (operation.record >= present - present / 10) ++of_the_newest_tenth;
  }
  EXPECT_GT(static_cast<double>(of_the_newest_tenth), 0.65 * static_cast<double>(reads));
}

TEST(Workload, AReadsPopularRecordsMoreOften) {
  std::map<uint64_t, uint64_t> counts;
  for (const Operation& operation : Operations("a")) ++counts[operation.record];
  const uint64_t most_popular = FnvHash64(0) % kRecords;
  for (const auto& [record, count] : counts) EXPECT_LE(count, counts[most_popular]) << record;
  EXPECT_NEAR(static_cast<double>(counts[most_popular]) / kOperations, 1 / ScrambledZipfian::kZeta, 0.005);
}

TEST(Workload, TheSameSeedGivesTheSameOperations) {
  const auto words = [](const std::vector<Operation>& operations) {
    std::vector<uint64_t> all;
    for (const Operation& operation : operations) {
      all.insert(all.end(), {static_cast<uint64_t>(operation.kind), operation.record, operation.scan_records});
    }
    return all;
  };
  for (const Workload& workload : CoreWorkloads()) {
    const auto operations = words(Operations(workload, kSeed));
    EXPECT_EQ(operations, words(Operations(workload, kSeed))) << workload.name;
    EXPECT_NE(operations, words(Operations(workload, kSeed + 1))) << workload.name;
  }
}

TEST(RecordCounter, ARecordIsThereWhenAllBeforeItAre) {
  RecordCounter counter(10);
  EXPECT_EQ(counter.TakeNext(), 10u);
  EXPECT_EQ(counter.TakeNext(), 11u);
  EXPECT_EQ(counter.TakeNext(), 12u);
  counter.Acknowledge(12);
  counter.Acknowledge(11);
  EXPECT_EQ(counter.present(), 10u);
  counter.Acknowledge(10);
  EXPECT_EQ(counter.present(), 13u);
}

TEST(RecordCounter, ManyClientsLeaveNoGap) {
  RecordCounter counter(0);
  std::vector<std::thread> clients;
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back([&] {
      for (int n = 0; n < 10000; ++n) counter.Acknowledge(counter.TakeNext());
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(counter.present(), 40000u);
}

TEST(Clients, HaveSeedsOfTheirOwn) {
  std::set<uint64_t> seeds;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    for (const SeedOf what : {SeedOf::kLoadedValues, SeedOf::kOperations, SeedOf::kWrittenValues}) {
      for (uint64_t index = 0; index < 100; ++index) seeds.insert(ClientSeed(seed, what, index));
    }
  }
  EXPECT_EQ(seeds.size(), 3000u);
}

TEST(Clients, ShareAllOperations) {
  for (const uint64_t total : {0, 1, 7, 100}) {
    uint64_t next = 0;
    for (uint64_t i = 0; i < 7; ++i) {
      const auto [first, last] = ShareOf(total, i, 7);
      EXPECT_EQ(first, next);
      EXPECT_NEAR(static_cast<double>(last - first), static_cast<double>(total) / 7, 1);
      next = last;
    }
    EXPECT_EQ(next, total);
  }
}

TEST(Keys, AreHashesOfOneLength) {
  EXPECT_EQ(KeyOf(0), "user6284781860667377211");
  std::set<std::string> keys;
  for (uint64_t record = 0; record < 10000; ++record) {
    keys.insert(KeyOf(record));
    ASSERT_EQ(keys.begin()->size(), KeyOf(record).size());
  }
  EXPECT_EQ(keys.size(), 10000u);
}

TEST(Values, BelongToTheirKey) {
  Random random(kSeed);
  for (const size_t size : {kMinValueSize, size_t{9}, size_t{99}, size_t{1000}}) {
    std::string value(size, '\0');
    FillValue(7, random, &value);
    EXPECT_TRUE(CheckValue(KeyOf(7), value, size).ok());
    EXPECT_TRUE(CheckValue(KeyOf(8), value, size).Is(StatusCode::kCorruption));
    EXPECT_TRUE(CheckValue(KeyOf(7), value, size + 1).Is(StatusCode::kCorruption));
    EXPECT_TRUE(CheckValue(KeyOf(7), std::string_view(value).substr(1), size).Is(StatusCode::kCorruption));
  }
}

TEST(Values, OfOtherKeysAreRefused) {
  const std::string value(1000, '\0');
  for (const std::string_view key : {"", "user", "user123", "name6284781860667377211", "user62847818606673772x1"}) {
    EXPECT_TRUE(CheckValue(key, value, 1000).Is(StatusCode::kCorruption)) << key;
  }
}

TEST(Values, AFieldChangesAtATime) {
  Random random(kSeed);
  std::string value(1000, '\0');
  FillValue(7, random, &value);
  std::set<size_t> fields;
  for (int i = 0; i < 200; ++i) {
    const std::string before = value;
    FillField(random, &value);
    ASSERT_TRUE(CheckValue(KeyOf(7), value, 1000).ok());
    std::set<size_t> changed;
    for (size_t at = 0; at < value.size(); ++at) {
      if (value[at] != before[at]) changed.insert(at / (value.size() / kFields));
    }
    ASSERT_EQ(changed.size(), 1u);
    fields.insert(*changed.begin());
  }
  EXPECT_EQ(fields.size(), kFields);
}

TEST(Values, SmallOnesKeepTheirHash) {
  Random random(kSeed);
  for (size_t size = kMinValueSize; size < 30; ++size) {
    std::string value(size, '\0');
    FillValue(7, random, &value);
    for (int i = 0; i < 100; ++i) FillField(random, &value);
    EXPECT_TRUE(CheckValue(KeyOf(7), value, size).ok()) << size;
  }
}

}  // namespace
}  // namespace isozone::ycsb
