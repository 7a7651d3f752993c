#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/crc32c.h"
#include "base/histogram.h"
#include "base/log.h"
#include "base/random.h"
#include "base/status.h"
#include "base/units.h"
#include "base/uri.h"

namespace isozone {
namespace {

TEST(Status, CarriesCodeAndMessage) {
  EXPECT_TRUE(Status().ok());
  EXPECT_EQ(Status().ToString(), "OK");
  const Status s = Status::NoSpace("no empty zone").WithContext("writing /a");
  EXPECT_EQ(s.code(), StatusCode::kNoSpace);
  EXPECT_EQ(s.ToString(), "No space: writing /a: no empty zone");
  EXPECT_EQ(Status::FromErrno(ENOENT, "cannot open /x").ToString(),
            "Not found: cannot open /x: No such file or directory");
  EXPECT_EQ(Status::FromErrno(EIO, "x").code(), StatusCode::kIoError);
  EXPECT_EQ(Status::FromErrno(EMFILE, "cannot open /x").ToString(),
            "I/O error: cannot open /x: Too many open files; allow this process more open files (ulimit -n)");
}

Result<int> Half(int v) {
  if (v % 2 != 0) return Status::InvalidArgument("odd");
  return v / 2;
}
Status QuarterInto(int v, int* out) {
  ISOZONE_ASSIGN_OR_RETURN(const int half, Half(v));
  ISOZONE_ASSIGN_OR_RETURN(*out, Half(half));
  return Status::Ok();
}
TEST(Status, MacrosPropagate) {
  int out = 0;
  EXPECT_TRUE(QuarterInto(8, &out).ok());
  EXPECT_EQ(out, 2);
  EXPECT_EQ(QuarterInto(6, &out).code(), StatusCode::kInvalidArgument);
}

TEST(Crc32c, Rfc3720Vectors) {
  const std::vector<uint8_t> zeros(32, 0);
  EXPECT_EQ(Crc32c(zeros.data(), zeros.size()), 0x8A9136AAu);
  const std::vector<uint8_t> ones(32, 0xFF);
  EXPECT_EQ(Crc32c(ones.data(), ones.size()), 0x62A8AB43u);
  const std::string digits = "123456789";
  EXPECT_EQ(Crc32c(digits.data(), 9), 0xE3069283u);
  EXPECT_EQ(Crc32c(digits.data() + 4, 5, Crc32c(digits.data(), 4)), 0xE3069283u);
}

TEST(Histogram, PercentilesAreWithinBucketPrecision) {
  Histogram h;
  EXPECT_EQ(h.Take().Percentile(50), 0u);
  for (uint64_t v = 1; v <= 100000; ++v) h.Add(v);
  const auto s = h.Take();
  EXPECT_EQ(s.count, 100000u);
  EXPECT_EQ(s.max, 100000u);
  EXPECT_DOUBLE_EQ(s.Mean(), 50000.5);
  for (double p : {1.0, 50.0, 99.0, 99.9}) {
    EXPECT_NEAR(static_cast<double>(s.Percentile(p)), p * 1000, p * 1000 * 0.033) << p;
  }
  EXPECT_EQ(s.Percentile(100), 100000u);
  h.Add(UINT64_MAX);
  EXPECT_EQ(h.Take().Percentile(100), UINT64_MAX);
}

TEST(Histogram, CountsEveryAddFromManyThreads) {
  Histogram h;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&h] {
      for (uint64_t i = 0; i < 10000; ++i) h.Add(i);
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(h.Take().count, 40000u);
}

TEST(Random, ReplaysFromItsSeed) {
  Random a(7);
  Random b(7);
  for (int i = 0; i < 1000; ++i) {
    const uint64_t v = a.Between(3, 9);
    EXPECT_EQ(v, b.Between(3, 9));
    EXPECT_GE(v, 3u);
    EXPECT_LE(v, 9u);
  }
}

TEST(Size, ParsesAndFormats) {
  EXPECT_EQ(ParseSize("4096").value(), 4096u);
  EXPECT_EQ(ParseSize("64K").value(), 65536u);
  EXPECT_EQ(ParseSize("16MiB").value(), 16u << 20);
  EXPECT_EQ(ParseSize("2G").value(), uint64_t{2} << 30);
  for (const char* bad : {"", "K", "-1", "1.5G", "12Q", "99999999999999999999", "18446744073709551615T", " 1"}) {
    EXPECT_EQ(ParseSize(bad).status().code(), StatusCode::kInvalidArgument) << bad;
  }
  EXPECT_EQ(FormatSize(512), "512 B");
  EXPECT_EQ(FormatSize(64 << 20), "64.0 MiB");
}

TEST(Log, LeavesStandardOutputToTheProgram) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Log().warn("zone {} failed", 7);
  Log().flush();
  EXPECT_NE(testing::internal::GetCapturedStderr().find("zone 7 failed"), std::string::npos);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

TEST(Uri, Parses) {
  auto uri = ParseUri("isozone://emu:/a/b.img?timing=off&zones=512&zone_size=16MiB&speed=0.5");
  ASSERT_TRUE(uri.ok());
  EXPECT_EQ(uri->scheme, "emu");
  EXPECT_EQ(uri->path, "/a/b.img");
  EXPECT_EQ(uri->options.TakeBool("timing").value(), false);
  EXPECT_EQ(uri->options.TakeUnsigned("zones", 1, 1000).value(), 512u);
  EXPECT_EQ(uri->options.TakeSize("zone_size", 1, kGiB).value(), 16u << 20);
  EXPECT_EQ(uri->options.TakeReal("speed", 0, 1).value(), 0.5);
  EXPECT_EQ(uri->options.Take("absent"), std::nullopt);
  EXPECT_TRUE(uri->options.RejectUnknown().ok());
}

TEST(Uri, SaysWhatIsWrong) {
  EXPECT_EQ(ParseUri("/dev/nvme0n1").status().message(),
            "device '/dev/nvme0n1' has no scheme; write emu:/path/ssd.img");
  EXPECT_EQ(ParseUri("emu:/x?zones").status().message(), "option 'zones' is not of the form key=value");
  auto uri = ParseUri("emu:/x?zonse=1&zones=70&speed=fast");
  ASSERT_TRUE(uri.ok());
  EXPECT_EQ(uri->options.TakeUnsigned("zones", 1, 64).status().message(), "option zones=70 is outside 1..64");
  EXPECT_EQ(uri->options.TakeReal("speed", 0, 1).status().message(), "option speed: 'fast' is not a number");
  EXPECT_EQ(uri->options.RejectUnknown().message(), "unknown option 'zonse' (did you mean 'zones'?)");
}

}  // namespace
}  // namespace isozone
