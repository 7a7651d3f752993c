#include "simulator/input_stream.h"

#include <cstdint>

#include <gtest/gtest.h>

#include "base/units.h"

namespace isozone {
namespace {

class InputStreamTest : public testing::Test {
 protected:
  static constexpr int64_t kMuchLaterNs = kSecondNs;

  InputStreamTest() : times_(SmallZones()) {}

  static Profile SmallZones() {
    const Result<Profile> profile = LoadProfile("small-zone");
    EXPECT_TRUE(profile.ok()) << profile.status().ToString();
    return *profile;
  }
  // 8 MiB in each of the zones [first, first + zones), which lie on different dies.
  static StoredFile FileIn(uint32_t first, uint32_t zones) {
    StoredFile file;
    for (uint32_t zone = first; zone < first + zones; ++zone) file.places.push_back({ZoneId(zone), 0, 8 * kMiB});
    return file;
  }
  int64_t Read(InputStream& stream, int64_t now_ns, uint64_t bytes) {
    return stream.Read(times_, now_ns, bytes, read_bytes_);
  }

  DeviceTimes times_;
  uint64_t read_bytes_ = 0;
};

TEST_F(InputStreamTest, AWindowIsWaitedForOnceAndThenInMemory) {
  InputStream stream({.bytes = 2 * kMiB});
  stream.Add(FileIn(0, 1));
  const int64_t first_ns = Read(stream, 0, kMiB);
  EXPECT_GT(first_ns, 0);
  EXPECT_EQ(2 * kMiB, read_bytes_);
  EXPECT_EQ(kMuchLaterNs, Read(stream, kMuchLaterNs, kMiB)) << "the rest of the window is there";
  EXPECT_GT(Read(stream, kMuchLaterNs, kMiB), kMuchLaterNs) << "the second window was not read ahead";
  EXPECT_EQ(4 * kMiB, read_bytes_);
}

TEST_F(InputStreamTest, TheNextWindowIsReadWhileOneIsConsumed) {
  InputStream stream({.unit_bytes = kMiB, .width = 16, .ahead = true});
  stream.Add(FileIn(0, 4));
  EXPECT_GT(Read(stream, 0, kMiB), 0);
  EXPECT_EQ(8 * kMiB, read_bytes_) << "two windows of a MiB of each of four zones";
  EXPECT_EQ(kMuchLaterNs, Read(stream, kMuchLaterNs, 4 * kMiB)) << "it goes on in the second window";
  EXPECT_EQ(12 * kMiB, read_bytes_);
}

TEST_F(InputStreamTest, TheFirstWindowOfEachFileIsWaitedFor) {
  InputStream stream({.unit_bytes = kMiB, .width = 16, .ahead = true});
  stream.Add(FileIn(0, 2));
  stream.Add(FileIn(8, 2));
  EXPECT_EQ(32 * kMiB, stream.bytes());
  Read(stream, 0, 16 * kMiB);
  EXPECT_EQ(16 * kMiB, read_bytes_) << "nothing of the second file is read ahead";
  EXPECT_GT(Read(stream, kMuchLaterNs, kMiB), kMuchLaterNs);
}

TEST_F(InputStreamTest, AWindowOfMoreZonesIsThereAsSoon) {
  InputStream narrow({.unit_bytes = kMiB, .width = 16});
  narrow.Add(FileIn(0, 1));
  InputStream wide({.unit_bytes = kMiB, .width = 16});
  wide.Add(FileIn(1, 4));
  const int64_t narrow_ns = Read(narrow, 0, 1);
  const int64_t wide_ns = Read(wide, 0, 1);
  EXPECT_LT(wide_ns, 2 * narrow_ns) << "four times as much is read at once";
}

TEST_F(InputStreamTest, WhoConsumesMuchAtATimeHasAsMuchReadAhead) {
  InputStream stream({.unit_bytes = kMiB, .width = 16, .ahead = true});
  stream.Add(FileIn(0, 4));
  Read(stream, 0, 12 * kMiB);
  EXPECT_EQ(24 * kMiB, read_bytes_);
  EXPECT_EQ(kMuchLaterNs, Read(stream, kMuchLaterNs, 12 * kMiB));
}

TEST_F(InputStreamTest, AZoneWithSeveralPlacesCountsOnce) {
  StoredFile file = FileIn(0, 1);
  file.places.push_back({ZoneId(0), 32 * kMiB, 8 * kMiB});
  InputStream stream({.unit_bytes = kMiB, .width = 16});
  stream.Add(file);
  Read(stream, 0, 1);
  EXPECT_EQ(kMiB, read_bytes_);
}

TEST_F(InputStreamTest, AFileWithoutBytesAddsNothing) {
  InputStream stream({.bytes = 2 * kMiB});
  stream.Add({});
  stream.Add(FileIn(0, 1));
  EXPECT_EQ(8 * kMiB, stream.bytes());
  EXPECT_GT(Read(stream, 0, kMiB), 0);
}

TEST_F(InputStreamTest, NoMoreIsReadThanThereIs) {
  InputStream stream({.bytes = 3 * kMiB, .ahead = true});
  stream.Add(FileIn(0, 1));
  stream.Add(FileIn(1, 1));
  Read(stream, 0, kGiB);
  EXPECT_EQ(16 * kMiB, read_bytes_);
  EXPECT_EQ(kMuchLaterNs, Read(stream, kMuchLaterNs, kMiB)) << "nothing is left";
  EXPECT_EQ(16 * kMiB, read_bytes_);
}

}  // namespace
}  // namespace isozone
