#include "device/linux/signatures.h"

#include <blkid/blkid.h>
#include <fcntl.h>

#include <cerrno>
#include <memory>

#include <fmt/format.h>

#include "base/file_descriptor.h"

namespace isozone {
namespace {

struct FreeProbe {
  void operator()(blkid_probe probe) const { ::blkid_free_probe(probe); }
};
using Probe = std::unique_ptr<std::remove_pointer_t<blkid_probe>, FreeProbe>;

// Steps to the next signature; false if there is none.
Result<bool> Step(blkid_probe probe, const std::string& name) {
  const int result = ::blkid_do_probe(probe);
  if (result < 0) return Status::IoError(fmt::format("cannot read all of the signatures on {}", name));
  return result == 0;
}

// A probe that steps from one signature to the next.
Result<Probe> MakeProbe(int fd, const std::string& name) {
  Probe probe(::blkid_new_probe());
  if (probe == nullptr || ::blkid_probe_set_device(probe.get(), fd, 0, 0) != 0) {
    return Status::FromErrno(errno, fmt::format("cannot look for file systems on {}", name));
  }
  ::blkid_probe_enable_superblocks(probe.get(), 1);
  ::blkid_probe_set_superblocks_flags(probe.get(), BLKID_SUBLKS_MAGIC | BLKID_SUBLKS_TYPE | BLKID_SUBLKS_LABEL |
                                                       BLKID_SUBLKS_UUID | BLKID_SUBLKS_BADCSUM);
  ::blkid_probe_enable_partitions(probe.get(), 1);
  ::blkid_probe_set_partitions_flags(probe.get(), BLKID_PARTS_MAGIC);
  return probe;
}

std::string Lookup(blkid_probe probe, const char* name) {
  const char* value = nullptr;
  return ::blkid_probe_lookup_value(probe, name, &value, nullptr) == 0 ? value : "";
}

// What tells one signature from another: its kind, and where it lies.
std::string PlaceOf(blkid_probe probe) {
  return fmt::format("{} {} {} {}", Lookup(probe, "TYPE"), Lookup(probe, "SBMAGIC_OFFSET"), Lookup(probe, "PTTYPE"),
                     Lookup(probe, "PTMAGIC_OFFSET"));
}

Signature Current(blkid_probe probe) {
  Signature signature{Lookup(probe, "TYPE"), Lookup(probe, "LABEL"), Lookup(probe, "UUID")};
  if (signature.type.empty()) signature.type = Lookup(probe, "PTTYPE") + " partition table";
  return signature;
}

}  // namespace

std::string Signature::Text() const {
  std::string text = type;
  if (!label.empty()) text += fmt::format(", label '{}'", label);
  if (!uuid.empty()) text += fmt::format(", UUID {}", uuid);
  return text;
}

Result<std::vector<Signature>> FindSignatures(const std::string& path, const std::string& name) {
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return Status::FromErrno(errno, fmt::format("cannot open {}", name));
  ISOZONE_ASSIGN_OR_RETURN(const Probe probe, MakeProbe(fd.get(), name));
  std::vector<Signature> found;
  for (;;) {
    ISOZONE_ASSIGN_OR_RETURN(const bool more, Step(probe.get(), name));
    if (!more) return found;
    found.push_back(Current(probe.get()));
  }
}

Status EraseSignatures(const std::string& path, const std::string& name) {
  const FileDescriptor fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (fd.get() < 0) return Status::FromErrno(errno, fmt::format("cannot open {} for writing", name));
  ISOZONE_ASSIGN_OR_RETURN(const Probe probe, MakeProbe(fd.get(), name));
  for (std::string last;;) {
    ISOZONE_ASSIGN_OR_RETURN(const bool more, Step(probe.get(), name));
    if (!more) return {};
    const Signature signature = Current(probe.get());
    const std::string place = PlaceOf(probe.get());
    if (place == last) {
      return Status::IoError(fmt::format("the signature of {} on {} does not go away", signature.type, name));
    }
    last = place;
    // This also steps back, so that what lies in the same place underneath is found next.
    if (::blkid_do_wipe(probe.get(), 0) != 0) {
      return Status::FromErrno(errno, fmt::format("cannot erase the signature of {} on {}", signature.type, name));
    }
  }
}

}  // namespace isozone
