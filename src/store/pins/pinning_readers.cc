#include "store/pins/pinning_readers.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/file_descriptor.h"
#include "base/log.h"

namespace isozone {
namespace {

template <size_t kSize>
std::string TextOf(const std::array<char, kSize>& field) {
  return {field.data(), strnlen(field.data(), field.size())};
}

// Whether the user of `file` may read the device: of others, nothing is pinned.
bool MayRead(const struct stat& file, const PageOwner& device) {
  if (MayHaveMounted(file, device) || (device.mode & S_IROTH) != 0) return true;
  return file.st_gid == device.gid && (device.mode & S_IRGRP) != 0;
}

bool IsGone(int error) { return error == ENOENT || error == ENXIO || error == ELOOP; }

bool Lives(int fd, const PageProcess& process) {
  // A shared lock, so that nobody who looks at the same time takes the reader for one that runs.
  if (::flock(fd, LOCK_SH | LOCK_NB) != 0) return process.MayLive();
  ::flock(fd, LOCK_UN);
  return false;
}

// Adds the reader that tells what it reads in `path`, if it lives. An error: nobody knows.
Status AddReader(const std::string& path, const PageOwner& device, const std::string& uuid, uint32_t zones,
                 std::vector<PinningReader>& readers) {
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  PinningReader reader;
  if (fd.get() < 0) {
    const int error = errno;
    const bool counts = !IsGone(error) && ::lstat(path.c_str(), &reader.file) == 0 && MayRead(reader.file, device);
    if (counts) return Status::FromErrno(error, path);
    return Status::Ok();
  }
  if (::fstat(fd.get(), &reader.file) != 0) return Status::FromErrno(errno, path);
  if (!S_ISREG(reader.file.st_mode) || !MayRead(reader.file, device)) return Status::Ok();
  PinsHeader header{};
  ISOZONE_ASSIGN_OR_RETURN(const auto begin, ReadSharedFile(fd.get(), 0, sizeof(header)));
  if (begin.size() == sizeof(header)) std::memcpy(&header, begin.data(), sizeof(header));
  if (header.file.magic != kPinsMagic || header.file.version != kPinsVersion) return Status::Ok();
  reader.process = {header.file.pid, header.file.process_started, header.file.pid_namespace, TextOf(header.program)};
  if (!Lives(fd.get(), reader.process)) {
    ::unlink(path.c_str());  // its name is never used again
    return Status::Ok();
  }
  if (TextOf(header.uuid) != uuid || header.zones != zones) return Status::Ok();
  if (IsRevoked(path + kRevokedSuffix, reader.file, device)) return Status::Ok();
  ISOZONE_ASSIGN_OR_RETURN(const auto words, ReadSharedFile(fd.get(), sizeof(header), zones * sizeof(uint64_t)));
  reader.words.resize(zones);
  std::memcpy(reader.words.data(), words.data(), words.size());
  reader.path = path;
  readers.push_back(std::move(reader));
  return Status::Ok();
}

// Removes the files that give up readers which have gone.
void RemoveUseless(const std::string& directory, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (!name.ends_with(kRevokedSuffix)) continue;
    const std::string path = fmt::format("{}/{}", directory, name);
    struct stat status {};
    const std::string reader = path.substr(0, path.size() - std::strlen(kRevokedSuffix));
    if (::lstat(reader.c_str(), &status) != 0 && errno == ENOENT) ::unlink(path.c_str());
  }
}

std::vector<ZoneId> PinnedOf(std::span<const PinningReader> readers, std::span<const ZoneId> zones) {
  std::vector<ZoneId> pinned;
  std::ranges::copy_if(zones, std::back_inserter(pinned), [&](ZoneId zone) {
    return std::ranges::any_of(readers, [zone](const PinningReader& reader) { return reader.Pins(zone); });
  });
  return pinned;
}

// False: it cannot be, and goes on to hold what it holds.
bool GiveUp(const PinningReader& reader, const PageOwner& device, size_t zones) {
  const std::string path = reader.path + kRevokedSuffix;
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR));
  // Where that is not possible, the user of this process may be enough.
  [[maybe_unused]] const int refused = ::fchown(fd.get(), static_cast<uid_t>(-1), device.gid);
  if (!IsRevoked(path, reader.file, device)) {
    if (fd.get() >= 0) ::unlink(path.c_str());
    return false;
  }
  Log().warn(
      "process {} ({}) reads files that were removed, which hold {} zones, more than reader_hold leaves readers:"
      " it gets errors for these files from now on",
      reader.process.pid, reader.process.program, zones);
  return true;
}

}  // namespace

Result<std::vector<PinningReader>> FindPinningReaders(const PageOwner& device, const std::string& directory,
                                                      const std::string& uuid, uint32_t zones) {
  // What the caller did before is done before the words are read.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  ISOZONE_ASSIGN_OR_RETURN(const auto names, NamesWith(directory, PinsPrefix(device)));
  std::vector<PinningReader> readers;
  for (const std::string& name : names) {
    if (name.ends_with(kRevokedSuffix)) continue;
    ISOZONE_RETURN_IF_ERROR(AddReader(fmt::format("{}/{}", directory, name), device, uuid, zones, readers));
  }
  RemoveUseless(directory, names);
  return readers;
}

std::vector<ZoneId> PinnedZones(const ZonedDevice& device, const std::string& uuid, const std::string& directory) {
  std::vector<ZoneId> pinned;
  const auto owner = PageOwner::Of(device.name());
  if (!owner.ok() || !owner->has_name) return pinned;
  const uint32_t zone_count = device.geometry().zone_count;
  const auto readers = FindPinningReaders(*owner, directory, uuid, zone_count);
  for (uint32_t i = 0; i < zone_count; ++i) {
    const auto pins = [i](const PinningReader& reader) { return reader.Pins(ZoneId(i)); };
    if (!readers.ok() || std::ranges::any_of(*readers, pins)) pinned.emplace_back(i);
  }
  return pinned;
}

std::vector<ZoneId> FindPinned(const PageOwner& device, const std::string& directory, const std::string& uuid,
                               uint32_t zone_count, std::span<const ZoneId> zones, uint64_t most_zones) {
  auto readers = FindPinningReaders(device, directory, uuid, zone_count);
  if (!readers.ok()) return {zones.begin(), zones.end()};
  std::vector<ZoneId> pinned = PinnedOf(*readers, zones);
  const auto held = [&](const PinningReader& reader) { return PinnedOf({&reader, 1}, zones).size(); };
  while (pinned.size() > most_zones) {
    const auto most = std::ranges::max_element(*readers, {}, held);
    if (!GiveUp(*most, device, held(*most))) break;
    readers->erase(most);
    pinned = PinnedOf(*readers, zones);
  }
  return pinned;
}

}  // namespace isozone
