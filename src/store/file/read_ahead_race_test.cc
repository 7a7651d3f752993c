// Scans at random beside one thread that changes the file and one that moves it, against the contents that the file has
// had: a read sees for each byte one of those between its beginning and its end.
#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/mutex.h"
#include "store/file/stripe_test_util.h"
#include "store/inode_files.h"
#include "store/positional_file.h"
#include "testing/test_seed.h"

namespace isozone {
namespace {

constexpr uint64_t kMost = 2 * kMiB;  // bytes of the file
constexpr size_t kReaders = 4;

// Thread safety: any thread; one changes.
class Contents {
 public:
  // The file may have this content from now on.
  void Begin(std::string content) {
    const MutexLock lock(mu_);
    versions_.emplace(++last_, std::make_shared<const std::string>(std::move(content)));
    while (!versions_.empty() && versions_.begin()->first < Oldest()) versions_.erase(versions_.begin());
  }
  // It has the last of them, and no earlier one.
  void End() {
    const MutexLock lock(mu_);
    acknowledged_ = last_;
  }

  void BeginRead(size_t reader) {
    const MutexLock lock(mu_);
    since_[reader] = acknowledged_;
  }
  // What `reader` found may be found by the end of its read.
  testing::AssertionResult EndRead(size_t reader, uint64_t offset, std::string_view found, size_t wanted) {
    std::vector<std::shared_ptr<const std::string>> seen;
    {
      const MutexLock lock(mu_);
      for (auto it = versions_.lower_bound(since_[reader]); it != versions_.end(); ++it) seen.push_back(it->second);
      since_[reader] = kNever;
    }
    const bool may_end = found.size() == wanted || std::ranges::any_of(seen, [&](const auto& version) {
                           return version->size() <= offset + found.size();
                         });
    if (!may_end) return testing::AssertionFailure() << found.size() << " of " << wanted << " bytes at " << offset;
    const bool is_one = std::ranges::any_of(seen, [&](const auto& version) {
      return offset + found.size() <= version->size() && version->compare(offset, found.size(), found) == 0;
    });
    for (size_t i = 0; i < found.size() && !is_one; ++i) {
      const bool may_be = std::ranges::any_of(seen, [&](const auto& version) {
        return offset + i < version->size() && (*version)[offset + i] == found[i];
      });
      if (may_be) continue;
      return testing::AssertionFailure() << "byte " << offset + i << ", number " << i << " of " << found.size()
                                         << ", is none of the last " << seen.size() << " versions";
    }
    return testing::AssertionSuccess();
  }

 private:
  static constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();
  uint64_t Oldest() const ISOZONE_REQUIRES(mu_) {
    return std::min(acknowledged_, *std::min_element(since_.begin(), since_.end()));
  }

  Mutex mu_;
  std::map<uint64_t, std::shared_ptr<const std::string>> versions_ ISOZONE_GUARDED_BY(mu_);
  uint64_t last_ ISOZONE_GUARDED_BY(mu_) = 0;
  uint64_t acknowledged_ ISOZONE_GUARDED_BY(mu_) = 0;
  std::vector<uint64_t> since_ ISOZONE_GUARDED_BY(mu_) = std::vector<uint64_t>(kReaders, kNever);
};

class ReadAheadRaceTest : public StripeTest {
 protected:
  ReadAheadRaceTest() : StripeTest(/*max_active=*/32, /*zone_size=*/kMiB, /*latency_us=*/50) {}

  using Reads = std::function<Result<size_t>(uint64_t offset, std::span<std::byte> buffer, IoClass io_class)>;

  void Mount() {
    MountOptions options = Striped();
    options.read_ahead_memory = 3 * kMiB + kMiB / 2;  // less than all readers want
    MountWithGroups(options);
  }

  // Goes through the file from front to back, from a random place, or jumps, until all changes are made.
  void Scan(size_t reader, Random random, const Reads& read) {
    std::string buffer;
    uint64_t at = 0;
    while (!changed_ && !HasFailure()) {
      if (random.Chance(0.02)) at = random.Chance(0.5) ? 0 : random.Below(kMost);
      buffer.resize(random.Between(1, random.Chance(0.1) ? kMost / 3 : 50000));
      const IoClass io_class = random.Chance(0.95) ? IoClass::kCompactionRead : IoClass::kUserRead;
      contents_.BeginRead(reader);
      const auto n = read(at, std::as_writable_bytes(std::span(buffer)), io_class);
      ISOZONE_ASSERT_OK(n.status());
      EXPECT_TRUE(contents_.EndRead(reader, at, std::string_view(buffer).substr(0, *n), buffer.size()));
      at = *n < buffer.size() ? 0 : at + *n;
    }
  }

  // `change` runs `changes` times in this thread while the others scan and collect.
  void Race(uint64_t seed, int changes, const std::vector<Reads>& reads, const std::function<void()>& change) {
    std::vector<std::thread> threads;
    for (size_t i = 0; i < kReaders; ++i) {
      threads.emplace_back([&, i] { Scan(i, Random(seed + i + 1), reads[i % reads.size()]); });
    }
    threads.emplace_back([&] {
      while (!changed_) ISOZONE_EXPECT_OK(fs().collection().Run(100, {}).status());
    });
    for (int i = 0; i < changes && !HasFailure(); ++i) change();
    changed_ = true;
    for (std::thread& thread : threads) thread.join();
  }

  // What now_ has at [offset, ...) is to be `data`.
  void Place(uint64_t offset, std::string_view data) {
    now_.resize(std::max<size_t>(now_.size(), offset + data.size()), '\0');
    now_.replace(offset, data.size(), data);
    contents_.Begin(now_);
  }
  void Cut(uint64_t size) {
    now_.resize(size, '\0');
    contents_.Begin(now_);
  }
  void ExpectOk(const Status& status) {
    ISOZONE_EXPECT_OK(status);
    contents_.End();
  }
  static Reads ReadsOf(FileReader& reader) {
    return
        [&reader](uint64_t offset, std::span<std::byte> buffer, IoClass c) { return reader.Read(offset, buffer, c); };
  }

  const uint64_t seed_ = TestSeed();
  const testing::ScopedTrace trace_{__FILE__, __LINE__, "ISOZONE_TEST_SEED=" + std::to_string(seed_)};
  Contents contents_;
  std::string now_;  // what the last version is
  std::atomic<bool> changed_{false};
};

TEST_F(ReadAheadRaceTest, ReadersOfAPositionalFileSeeWhatItHas) {
  Mount();
  Random random(seed_);
  const auto file = fs().inodes().Create(InodeFiles::kRoot, "f", {}, {}).value();
  Place(0, Content(kMost / 2));
  ExpectOk(file->Append(Bytes(now_)).status());
  ISOZONE_ASSERT_OK(file->Sync());
  const auto reader = fs().OpenForRead("/f").value();
  const Reads through_file = [&](uint64_t offset, std::span<std::byte> buffer, IoClass io_class) {
    return file->Read(offset, buffer, io_class);
  };
  const Reads through_new_reader = [&](uint64_t offset, std::span<std::byte> buffer, IoClass io_class) {
    return fs().OpenForRead("/f").value()->Read(offset, buffer, io_class);
  };
  Race(seed_, 150, {through_file, through_file, ReadsOf(*reader), through_new_reader}, [&] {
    const uint64_t what = random.Below(20);
    if (what == 0) return ExpectOk(file->Sync());
    if (what == 1) {
      Cut(random.Below(kMost));
      return ExpectOk(file->Truncate(now_.size()));
    }
    const std::string data = RandomBytes(random, random.Between(1, random.Chance(0.2) ? 100000 : 5000));
    if (what < 8) {
      if (now_.size() + data.size() > kMost) {
        Cut(now_.size() / 3);
        ExpectOk(file->Truncate(now_.size()));
      }
      Place(now_.size(), data);
      return ExpectOk(file->Append(Bytes(data)).status());
    }
    const uint64_t offset = random.Below(std::min<uint64_t>(now_.size() + 3000, kMost - data.size()));
    if (offset > now_.size()) Cut(offset);  // a hole
    Place(offset, data);
    ExpectOk(file->Write(offset, Bytes(data)));
  });
}

TEST_F(ReadAheadRaceTest, ReadersOfAFileThatIsOverwrittenAndCutSeeWhatItHas) {
  Mount();
  Random random(seed_);
  Place(0, Content(kMost / 2));
  ExpectOk(volume_.WriteFile("/f", now_));
  const auto one = fs().OpenForRead("/f").value(), other = fs().OpenForRead("/f").value();
  Race(seed_, 100, {ReadsOf(*one), ReadsOf(*one), ReadsOf(*other)}, [&] {
    if (random.Chance(0.1)) {
      Cut(random.Below(now_.size()));
      return ExpectOk(fs().Truncate("/f", now_.size()));
    }
    const std::string data = RandomBytes(random, random.Between(1, random.Chance(0.3) ? 300000 : 5000));
    const uint64_t offset = random.Below(std::min<uint64_t>(now_.size(), kMost - data.size()) + 1);
    Place(offset, data);
    ExpectOk(fs().Overwrite("/f", offset, Bytes(data)));
  });
}

}  // namespace
}  // namespace isozone
