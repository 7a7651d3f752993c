#include "store/pins/reader_pins.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace isozone {
namespace {

constexpr size_t kHeaderWords = sizeof(PinsHeader) / sizeof(uint64_t);

template <size_t kSize>
void SetText(std::array<char, kSize>& out, const std::string& text) {
  std::memcpy(out.data(), text.data(), std::min(text.size(), out.size() - 1));
}

// A name that no reader has, and of which no process that died has left that it was given up. A process of the same
// number may live in another container.
std::string NewName(const PageOwner& device, const std::string& directory) {
  static std::atomic<uint64_t> mounts{0};
  for (;;) {
    const std::string name = fmt::format("{}{}-{}", PinsPrefix(device), ::getpid(), ++mounts);
    const auto exists = [&](const char* suffix) {
      struct stat status {};
      return ::lstat(fmt::format("{}/{}{}", directory, name, suffix).c_str(), &status) == 0;
    };
    if (!exists("") && !exists(kRevokedSuffix)) return name;
  }
}

}  // namespace

std::string PinsPrefix(const PageOwner& device) { return device.page_name + "-reader-"; }

bool IsRevoked(const std::string& path, const struct stat& reader, const PageOwner& device) {
  struct stat revoker {};
  if (::lstat(path.c_str(), &revoker) != 0 || !S_ISREG(revoker.st_mode)) return false;
  if (revoker.st_uid == 0 || revoker.st_uid == device.uid || revoker.st_uid == reader.st_uid) return true;
  const bool of_group = revoker.st_gid == device.gid && (device.mode & S_IWGRP) != 0;
  return of_group || (device.mode & S_IWOTH) != 0;
}

Result<std::shared_ptr<ReaderPins>> ReaderPins::Make(const PageOwner& device, const std::string& directory,
                                                     const std::string& uuid, uint32_t zones) {
  PageOwner owner = device;
  owner.page_name = NewName(device, directory);
  owner.mode = S_IRUSR | S_IRGRP | S_IROTH;  // which zones are read is no secret, and the writer may be another user
  const size_t bytes = sizeof(PinsHeader) + zones * sizeof(uint64_t);
  ISOZONE_ASSIGN_OR_RETURN(auto file, PageFile::Make(owner, bytes, directory));
  std::shared_ptr<ReaderPins> pins(new ReaderPins(std::move(file), device, uuid, zones));
  ISOZONE_RETURN_IF_ERROR(pins->file_->Publish());
  pins->path_ = pins->file_->path();
  if (::lstat(pins->path_.c_str(), &pins->stat_) != 0) return Status::FromErrno(errno, pins->path_);
  return pins;
}

bool ReaderPins::is_unseen() const {
  if (IsRevoked(path_ + kRevokedSuffix, stat_, device_)) return true;
  struct stat named {};
  return ::lstat(path_.c_str(), &named) != 0 || named.st_dev != stat_.st_dev || named.st_ino != stat_.st_ino;
}

ReaderPins::ReaderPins(std::unique_ptr<PageFile> file, PageOwner device, const std::string& uuid, uint32_t zones)
    : file_(std::move(file)), device_(std::move(device)), words_(file_->words().subspan(kHeaderWords)) {
  const PageProcess self = PageProcess::Self();
  PinsHeader header{};
  header.file = {kPinsMagic, kPinsVersion, self.pid, file_->words().size_bytes(), self.started, self.pid_namespace};
  header.zones = zones;
  SetText(header.uuid, uuid);
  SetText(header.program, self.program);
  std::memcpy(file_->words().data(), &header, sizeof(header));
}

void ReaderPins::Add(std::span<const ZoneId> zones) {
  for (const ZoneId zone : zones) std::atomic_ref(words_[zone.value()]).fetch_add(1, std::memory_order_seq_cst);
  used_.fetch_add(zones.size(), std::memory_order_relaxed);
  // The metadata is read after this.
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void ReaderPins::Subtract(std::span<const ZoneId> zones) {
  for (const ZoneId zone : zones) std::atomic_ref(words_[zone.value()]).fetch_sub(1, std::memory_order_seq_cst);
  used_.fetch_sub(zones.size(), std::memory_order_relaxed);
}

ZonePins& ZonePins::operator=(ZonePins&& other) noexcept {
  std::swap(in_, other.in_);
  std::swap(zones_, other.zones_);
  return *this;
}

ZonePins::~ZonePins() {
  if (in_ != nullptr) in_->Subtract(zones_);
}

bool ZonePins::Covers(std::span<const ZoneId> zones) const {
  return in_ != nullptr && std::ranges::includes(zones_, zones);
}

void ZonePins::Add(std::span<const ZoneId> zones) {
  if (in_ == nullptr) return;
  std::vector<ZoneId> added;
  std::ranges::set_difference(zones, zones_, std::back_inserter(added));
  in_->Add(added);
  const auto middle = static_cast<ptrdiff_t>(zones_.size());
  zones_.insert(zones_.end(), added.begin(), added.end());
  std::ranges::inplace_merge(zones_, zones_.begin() + middle);
}

void ZonePins::KeepOnly(std::span<const ZoneId> zones) {
  if (in_ == nullptr) return;
  std::vector<ZoneId> gone;
  std::ranges::set_difference(zones_, zones, std::back_inserter(gone));
  if (gone.empty()) return;
  in_->Subtract(gone);
  std::erase_if(zones_, [&](ZoneId zone) { return std::ranges::binary_search(gone, zone); });
}

}  // namespace isozone
