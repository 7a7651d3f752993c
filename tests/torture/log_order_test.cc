// Logs that nobody syncs, written one after another as the WALs of a database are, and a power cut in each command:
// what is left is a prefix of what was appended, over all logs.
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/client.h"
#include "model/fine.h"
#include "model/quiet_log.h"
#include "model/volume.h"

namespace isozone::torture {
namespace {

using model::Volume;

constexpr int kLogs = 6;
constexpr int kRecords = 40;  // of each log

std::string RecordOf(int log, int record) {
  std::string text = fmt::format("{}:{}:", log, record);
  text.resize(static_cast<size_t>(300 + (log * 977 + record * 1553) % 4000), static_cast<char>('a' + record % 26));
  return text;
}
std::string NameOf(int log) { return fmt::format("/{:06}.log", log); }

MountOptions Options() {
  MountOptions options;
  options.write_buffer = 16 * kKiB;
  options.statistics_page = false;
  return options;
}

// A log goes on for a while before the one before it is closed; two later that is removed, as RocksDB does. Ends with
// the first error.
Status WriteLogs(FileSystem& fs) {
  std::unique_ptr<FileWriter> before;
  for (int log = 0; log < kLogs; ++log) {
    ISOZONE_ASSIGN_OR_RETURN(auto writer, fs.Create(NameOf(log), {FileKind::kLog, IoClass::kWal, Lifetime::kShort}));
    for (int record = 0; record < kRecords; ++record) {
      if (record == kRecords / 2 && before != nullptr) ISOZONE_RETURN_IF_ERROR(before->Close());
      if (record % 16 == 5) ISOZONE_RETURN_IF_ERROR(writer->WriteOut());  // as wal_bytes_per_sync does
      const std::string text = RecordOf(log, record);
      ISOZONE_RETURN_IF_ERROR(writer->Append(std::as_bytes(std::span(text))));
    }
    before = std::move(writer);
    if (log >= 3) ISOZONE_RETURN_IF_ERROR(fs.Unlink(NameOf(log - 3)));
  }
  return before->Close();
}

// Returns the bytes of each log that is there.
Result<std::map<int, std::string>> ReadLogs(FileSystem& fs) {
  std::map<int, std::string> logs;
  ISOZONE_ASSIGN_OR_RETURN(const model::Found found, model::Collect(fs, ""));
  for (const auto& [name, inode] : found.names) {
    if (name.ends_with(".log")) logs[std::stoi(name.substr(1))] = found.files.at(inode).bytes;
  }
  return logs;
}

void ExpectPrefix(const std::map<int, std::string>& logs) {
  bool ended = false;
  for (const auto& [log, bytes] : logs) {
    std::string all;
    for (int record = 0; record < kRecords; ++record) all += RecordOf(log, record);
    EXPECT_TRUE(all.starts_with(bytes)) << "log " << log << " has other bytes than were appended";
    EXPECT_TRUE(!ended || bytes.empty()) << "log " << log << " has bytes, but one before it has lost its end";
    ended |= bytes.size() < all.size();
  }
  if (logs.empty()) return;
  EXPECT_EQ(static_cast<size_t>(logs.rbegin()->first - logs.begin()->first + 1), logs.size()) << "a log is missing";
}

class LogOrder : public ::testing::TestWithParam<std::tuple<bool, bool>> {};

TEST_P(LogOrder, APowerCutLeavesAPrefixOverAllLogs) {
  const auto [in_file, fua_covers_zone] = GetParam();
  DeviceGeometry geometry;
  geometry.zone_count = 32;
  geometry.zone_size = geometry.zone_capacity = 256 * kKiB;
  geometry.max_open_zones = geometry.max_active_zones = 12;
  geometry.optimal_write = geometry.block_size;
  geometry.fua_covers_zone = fua_covers_zone;
  const QuietLog quiet;
  std::set<std::string> outcomes;
  bool ended = false;
  for (uint64_t cut = 0; !ended; ++cut) {
    SCOPED_TRACE("cut " + std::to_string(cut));
    auto volume = in_file ? Volume::CreateInFile(geometry) : Volume::Create(geometry);
    ASSERT_FINE(volume.status());
    ASSERT_FINE(volume->Format());
    FaultPlan faults;
    faults.seed = cut + 1;
    ASSERT_FINE(volume->Mount(Options(), faults));
    volume->device().CutPowerAfter(cut);
    ended = WriteLogs(volume->fs()).ok() && volume->powered();
    ASSERT_FINE(volume->Unmount());
    ASSERT_FINE(volume->Check());
    ASSERT_FINE(volume->Mount(Options()));
    const auto logs = ReadLogs(volume->fs());
    ASSERT_FINE(logs.status());
    ExpectPrefix(*logs);
    std::string outcome;
    for (const auto& [log, bytes] : *logs) outcome += fmt::format("{}:{} ", log, bytes.size());
    outcomes.insert(outcome);
    ASSERT_FINE(volume->Unmount());
    if (HasFailure()) return;
  }
  EXPECT_GT(outcomes.size(), 8U) << "the cuts are to leave different states";
}

INSTANTIATE_TEST_SUITE_P(All, LogOrder, ::testing::Combine(::testing::Bool(), ::testing::Bool()), [](const auto& info) {
  return std::string(std::get<0>(info.param) ? "Kept" : "NotKept") +
         (std::get<1>(info.param) ? "FuaCoversZone" : "FuaCoversItself");
});

}  // namespace
}  // namespace isozone::torture
