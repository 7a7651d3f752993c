// MountedZoneFiles: the files of the sequential zones of a mounted zonefs.
//
// Thread safety: that of ZoneFiles.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "base/file_descriptor.h"
#include "base/status.h"
#include "device/open_device.h"
#include "device/zonefs/zone_files.h"

namespace isozone {

class MountedZoneFiles final : public ZoneFiles {
 public:
  // Opens the zonefs that is mounted at `path`. A writer has the mount for itself (flock of the folder seq). An error
  // says in one line what to do: kNotFound, kNotSupported if no zonefs with sequential zones is mounted there,
  // kReadOnly, kPermissionDenied, kBusy.
  static Result<std::unique_ptr<MountedZoneFiles>> Open(const std::string& path, OpenMode mode);

  uint32_t count() const override { return count_; }
  int Look(uint32_t file, ZoneFileStatus& status) const override;
  int Open(uint32_t file, bool writes, FileDescriptor& opened) override;
  int Truncate(uint32_t file, uint64_t size) override;
  bool IsGone() const override;
  std::string Text() const override;

  // Returns the number of the block device below.
  dev_t number() const { return number_; }
  // Returns what zonefs tells of itself in /sys/fs/zonefs: "max_wro_seq_files", ...; 0 if the kernel does not tell.
  uint64_t Attribute(std::string_view name) const;
  // Returns the options of the mount: "rw,errors=remount-ro".
  std::string MountOptions() const;

 private:
  MountedZoneFiles(std::string path, FileDescriptor folder) : path_(std::move(path)), folder_(std::move(folder)) {}
  Status CheckRights(OpenMode mode) const;
  Status Lock() const;

  const std::string path_;
  const FileDescriptor folder_;  // the folder seq
  dev_t number_ = 0;
  uint32_t count_ = 0;
};

// Returns the options of the file system with this number in the text of /proc/self/mountinfo; empty if it is not
// there.
std::string MountOptionsOf(std::string_view mountinfo, uint32_t major, uint32_t minor);

}  // namespace isozone
