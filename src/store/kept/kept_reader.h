// KeptReader: reads the kept memory of a mount (kept_layout.h). The next mount does so after the process has died, and
// other processes while it lives.
//
// Nothing in it is believed: of any bytes only records and pieces are taken whose CRCs are right, and sizes are bounded
// by the size of the file.
//
// Thread safety: any thread may call any method.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "base/status.h"
#include "insight/stats/page_file.h"
#include "store/kept/kept_layout.h"

namespace isozone {

struct KeptRecordBytes {
  uint64_t sequence = 0;
  std::vector<std::byte> body;
};

// A piece of a file that the device may not have.
struct KeptPiece {
  uint64_t inode = 0;
  uint64_t file_offset = 0;
  std::vector<std::byte> bytes;
};

class KeptReader {
 public:
  // Opens the kept memory of the mount `mount_number` of the file system `uuid`, on the device `name`
  // (ZonedDevice::name), in this boot of the machine. kNotFound if there is none. After any other error there may be
  // one, for example one that only another user may read (kPermissionDenied), or if this process may open no more
  // files.
  static Result<std::unique_ptr<KeptReader>> Open(const std::string& name, const std::string& directory,
                                                  const std::string& uuid, uint64_t mount_number);

  // Returns the sequence of a record that the device must have if this memory belongs to it.
  Result<uint64_t> DurableSequence() const;
  // Returns the records behind `after`, one after another without a gap.
  Result<std::vector<KeptRecordBytes>> RecordsAfter(uint64_t after) const;
  // Returns the pieces of all files, in order of inode and offset; those of a file may overlap. `uuid_seed` is
  // LogFrameSeed.
  Result<std::vector<KeptPiece>> Pieces(uint32_t uuid_seed) const;
  // Returns the pieces of one file.
  Result<std::vector<KeptPiece>> PiecesOf(uint64_t inode, uint32_t uuid_seed) const;
  // Returns a number that changes when records are added.
  Result<uint64_t> Version() const;
  // Returns whether `file` is the file that is read here.
  bool IsFile(const struct stat& file) const;

 private:
  KeptReader(FileDescriptor fd, const KeptHeader& header);
  static Result<std::unique_ptr<KeptReader>> OpenFile(const std::string& path, const PageOwner& owner);
  // Fails with kNotFound if it is of another mount, file system or boot.
  Status CheckIsOf(const std::string& uuid, uint64_t mount_number) const;
  Result<std::vector<KeptUnit>> Units() const;
  Result<std::vector<KeptPiece>> Read(std::span<const KeptUnit> units, uint32_t uuid_seed) const;
  Result<std::vector<std::byte>> ReadRing(uint64_t begin, uint64_t end) const;

  const FileDescriptor fd_;
  const KeptHeader header_;
  const KeptLayout layout_;
};

// Returns those bytes of `pieces`, all of one file and in order of offset, that follow its first `size` bytes without a
// gap.
std::vector<std::byte> JoinKept(std::span<const KeptPiece> pieces, uint64_t size);

// Removes the kept memories of a device that are of no use: those of another file system, boot or mount than these.
// Says nothing of those that it may not remove. Removes none if it is not known which are of use.
void RemoveUselessKeptMemory(const std::string& name, const std::string& directory, const std::string& uuid,
                             uint64_t mount_number);

}  // namespace isozone
