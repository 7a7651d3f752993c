#include "insight/stats/page_reader.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"

namespace isozone {
namespace {

constexpr int kReadTries = 20;

// The object at `offset` of a copy; zeros where the copy is short.
template <typename T>
T At(std::span<const std::byte> copy, size_t offset) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value{};
  if (offset <= copy.size() && sizeof(T) <= copy.size() - offset) std::memcpy(&value, &copy[offset], sizeof(T));
  return value;
}

template <size_t kSize>
std::string Text(const std::array<char, kSize>& text) {
  return {text.data(), ::strnlen(text.data(), kSize)};
}

// Takes records out of the copies, and counts those that were being written.
class RecordReader {
 public:
  explicit RecordReader(const PageCopies& copies) : copies_(copies) {}

  // Nothing if it was never written, or is torn.
  template <typename Record>
  std::optional<Record> Take(size_t section, size_t index) {
    const size_t offset = section + index * sizeof(Record);
    const auto first = At<uint64_t>(copies_.fixed[0], offset);
    const auto last = At<uint64_t>(copies_.fixed[2], offset);
    if (first != last || first % 2 != 0) {
      ++torn_;
      return std::nullopt;
    }
    if (first == 0) return std::nullopt;
    return At<Record>(copies_.fixed[1], offset);
  }
  uint32_t torn() const { return torn_; }

 private:
  const PageCopies& copies_;
  uint32_t torn_ = 0;
};

std::optional<PageFigures> TakeFigures(RecordReader& records) {
  std::optional<PageFigures> latest;
  for (size_t i = 0; i < PageLayout::kLatest; ++i) {
    const auto figures = records.Take<PageFigures>(PageLayout::kFigures, i);
    if (figures && (!latest || figures->sequence > latest->sequence)) latest = figures;
  }
  return latest;
}

std::vector<PageFigures> TakeHistory(RecordReader& records) {
  std::vector<PageFigures> history;
  for (size_t i = 0; i < PageLayout::kHistory; ++i) {
    if (const auto figures = records.Take<PageFigures>(PageLayout::kPast, i)) history.push_back(*figures);
  }
  std::ranges::sort(history, {}, &PageFigures::sequence);
  return history;
}

// Nothing if it is no wait.
std::optional<WaitView> WaitOf(uint64_t who_and_why, int64_t since_ns) {
  const uint64_t who = who_and_why >> 8 & 0xFF;
  const uint64_t reason = who_and_why & 0xFF;
  if (who_and_why >> 16 != 1 || who >= kZoneWriterCount || reason >= kWaitReasonCount) return std::nullopt;
  return WaitView{static_cast<ZoneWriter>(who), static_cast<WaitReason>(reason), since_ns};
}

void TakeWaits(RecordReader& records, Statistics& statistics) {
  for (size_t i = 0; i < PageLayout::kWaits; ++i) {
    const auto wait = records.Take<PageWait>(PageLayout::kWaiting, i);
    if (!wait) continue;
    if (const auto view = WaitOf(wait->who_and_why, wait->since_ns)) statistics.waits.push_back(*view);
  }
  std::ranges::sort(statistics.waits, {}, &WaitView::since_ns);
}

void TakeEvents(RecordReader& records, Statistics& statistics) {
  for (size_t i = 0; i < PageLayout::kEvents; ++i) {
    const auto event = records.Take<PageEvent>(PageLayout::kHappened, i);
    if (!event) continue;
    const uint64_t kind = event->kind_and_zone >> 32;
    if (kind == 0 || kind > kPageEventKinds) continue;
    statistics.events.push_back({event->sequence / 2 - 1, static_cast<PageEventKind>(kind), event->at_ns,
                                 static_cast<uint32_t>(event->kind_and_zone), event->a, event->b, event->c});
  }
  std::ranges::sort(statistics.events, {}, &EventView::number);
  for (size_t i = 0; i < PageLayout::kMessages; ++i) {
    const auto message = records.Take<PageMessage>(PageLayout::kErrors, i);
    if (message) statistics.messages.push_back({message->sequence / 2 - 1, message->at_s, Text(message->text)});
  }
  std::ranges::sort(statistics.messages, {}, &MessageView::number);
}

void TakeGroupsAndReads(std::span<const std::byte> copy, uint32_t groups, Statistics& statistics) {
  statistics.groups.resize(groups);
  for (size_t i = 0; i < groups; ++i) {
    const auto word = At<uint64_t>(copy, PageLayout::kGroups + i * sizeof(uint64_t));
    statistics.groups[i] = {static_cast<uint32_t>(word >> 32), static_cast<uint32_t>(word)};
  }
  for (size_t i = 0; i < PageLayout::kReads; ++i) {
    const ZoneRead read = UnpackRead(At<uint64_t>(copy, PageLayout::kRecentReads + i * sizeof(uint64_t)));
    if (read.any) statistics.reads.push_back(read);
  }
}

bool HasEnded(int fd) {
  uint64_t state = 0;
  return ::pread(fd, &state, sizeof(state), static_cast<off_t>(PageLayout::kState)) == sizeof(state) &&
         state == static_cast<uint64_t>(PageState::kUnmounted);
}

}  // namespace

Result<PageHeader> CheckHeader(std::span<const std::byte> bytes, uint64_t file_bytes) {
  const auto header = At<PageHeader>(bytes, 0);
  if (header.magic != kPageMagic) return Status::Corruption("not a statistics page");
  if (header.version != kPageVersion) {
    return Status::NotSupported(
        fmt::format("a statistics page of version {}; this isozone reads version {}", header.version, kPageVersion));
  }
  const bool sane = header.zone_count <= PageLayout::kMostZones && header.group_count <= PageLayout::kMostGroups;
  if (!sane || header.bytes != PageLayout::Size(header.zone_count, header.group_count) || header.bytes > file_bytes) {
    return Status::Corruption("a statistics page that is damaged or cut off");
  }
  return header;
}

Result<Statistics> DecodePage(const PageHeader& header, const PageCopies& copies) {
  RecordReader records(copies);
  const auto figures = TakeFigures(records);
  if (!figures) return Status::Busy("a statistics page of which the figures are being written");
  Statistics statistics;
  statistics.process = {header.pid, header.process_started, header.pid_namespace, Text(header.program)};
  statistics.mounted_s = header.mounted_s;
  statistics.mounted_ns = header.mounted_ns;
  statistics.device = Text(header.device);
  statistics.uuid = Text(header.uuid);
  statistics.label = Text(header.label);
  statistics.policy = Text(header.policy);
  statistics.gc_scheme = Text(header.gc_scheme);
  statistics.block_size = header.block_size;
  statistics.zone_size = header.zone_size;
  statistics.zone_capacity = header.zone_capacity;
  statistics.max_open_zones = header.max_open_zones;
  statistics.max_active_zones = header.max_active_zones;
  statistics.groups_measured = header.groups_measured == 1;
  statistics.age_unit = header.age_unit;
  statistics.figures = *figures;
  statistics.history = TakeHistory(records);
  for (size_t i = 0; i < kHistograms; ++i) {
    const size_t offset = PageLayout::kLatencies + i * sizeof(PageHistogram);
    statistics.latencies[i] = LatencyFigures::Of(At<PageHistogram>(copies.fixed[1], offset));
  }
  TakeWaits(records, statistics);
  TakeEvents(records, statistics);
  TakeGroupsAndReads(copies.fixed[1], header.group_count, statistics);
  statistics.zones.reserve(header.zone_count);
  for (size_t i = 0; i < header.zone_count; ++i) {
    statistics.zones.push_back(UnpackZone(At<ZoneWords>(copies.zones, i * PageLayout::kZoneBytes)));
  }
  statistics.torn = records.torn();
  return statistics;
}

// ---------------------------------------------------------------------------------------------------------------------
// Files
// ---------------------------------------------------------------------------------------------------------------------

Result<Statistics> ReadPage(int fd, const PageHeader& header) {
  Status status;
  for (int tries = 0; tries < kReadTries; ++tries) {
    // Each is complete before the next one begins, because each is a system call.
    std::array<std::vector<std::byte>, 3> fixed;
    for (auto& copy : fixed) {
      ISOZONE_ASSIGN_OR_RETURN(copy, ReadSharedFile(fd, 0, PageLayout::Zones(header.group_count)));
    }
    ISOZONE_ASSIGN_OR_RETURN(
        const std::vector<std::byte> zones,
        ReadSharedFile(fd, PageLayout::Zones(header.group_count), header.zone_count * PageLayout::kZoneBytes));
    auto statistics = DecodePage(header, {{fixed[0], fixed[1], fixed[2]}, zones});
    if (statistics.ok()) {
      if (HasEnded(fd)) statistics->life = PageLife::kUnmounted;
      statistics->read_ns = MonotonicNs();
      return statistics;
    }
    status = statistics.status();
  }
  return status;
}

StatisticsReader::StatisticsReader(std::string path, FileDescriptor fd, const PageHeader& header)
    : path_(std::move(path)), fd_(std::move(fd)), header_(header) {}

Result<std::unique_ptr<StatisticsReader>> StatisticsReader::OpenPage(const std::string& path, const PageOwner& owner,
                                                                     const std::string& device) {
  FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (fd.get() < 0 && errno == ENOENT) return Status::NotFound(fmt::format("{} is not mounted", device));
  if (fd.get() < 0) return Status::FromErrno(errno, fmt::format("cannot read the statistics of {}, {}", device, path));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return Status::Corruption(fmt::format("{}: not a statistics page", path));
  }
  if (!MayHaveMounted(status, owner)) {
    return Status::PermissionDenied(
        fmt::format("{} belongs to user {}, who may not write {}; it is not believed", path, status.st_uid, device));
  }
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, ReadSharedFile(fd.get(), 0, sizeof(PageHeader)));
  const auto header = CheckHeader(bytes, static_cast<uint64_t>(status.st_size));
  if (!header.ok()) return header.status().WithContext(path);
  return std::unique_ptr<StatisticsReader>(new StatisticsReader(path, std::move(fd), *header));
}

Result<std::unique_ptr<StatisticsReader>> StatisticsReader::Open(const std::string& device,
                                                                 const std::string& directory) {
  ISOZONE_ASSIGN_OR_RETURN(const PageOwner owner, PageOwner::Of(device));
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<std::string> paths, PagePaths(directory, owner.page_name));
  auto best = OpenPage(paths.front(), owner, device);
  // What a process of another user has left must not hide the page of one that lives.
  for (size_t i = 1; i < paths.size() && !(best.ok() && (*best)->Life() == PageLife::kMounted); ++i) {
    auto other = OpenPage(paths[i], owner, device);
    if (other.ok() && (!best.ok() || (*other)->Life() == PageLife::kMounted)) best = std::move(other);
  }
  return best;
}

Result<Statistics> StatisticsReader::Read() const {
  auto statistics = ReadPage(fd_.get(), header_);
  if (!statistics.ok()) return statistics.status().WithContext(path_);
  statistics->life = Life();
  return statistics;
}

PageLife StatisticsReader::Life() const {
  if (HasEnded(fd_.get())) return PageLife::kUnmounted;
  if (::flock(fd_.get(), LOCK_SH | LOCK_NB) == 0) {
    ::flock(fd_.get(), LOCK_UN);
    return PageLife::kDied;
  }
  const PageProcess process{header_.pid, header_.process_started, header_.pid_namespace, {}};
  return process.MayLive() ? PageLife::kMounted : PageLife::kDied;
}

Status StatisticsReader::RemoveDead() const {
  if (Life() == PageLife::kMounted) return Status::Ok();
  // A mount that replaces the page has the lock meanwhile, so that its new one is not removed in place of this.
  const bool locked = ::flock(fd_.get(), LOCK_EX | LOCK_NB) == 0;
  struct stat own {};
  struct stat named {};
  Status status;
  if (locked && ::fstat(fd_.get(), &own) == 0 && ::lstat(path_.c_str(), &named) == 0 && own.st_dev == named.st_dev &&
      own.st_ino == named.st_ino && ::unlink(path_.c_str()) != 0 && errno != ENOENT) {
    status = Status::FromErrno(errno, fmt::format("cannot remove {}", path_));
  }
  if (locked) ::flock(fd_.get(), LOCK_UN);
  return status;
}

}  // namespace isozone
