// A backup as an archive: a tar stream in the pax format. The manifest is its last entry, so an archive without one was
// cut off. What the tar format does not know of a file, it carries as the extended attribute `user.isozone.kind`.
// Attributes are there for programs that read tar; whoever restores a backup takes those of the manifest.
//
// Beside a running writer, a file may be written again later in the archive, as tar has it, or may have been removed
// before it was read to its end. The manifest tells which entries count: for each name the last one.
//
// Thread safety: none.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "isozone/backup/manifest.h"

struct archive;
struct archive_entry;

namespace isozone::cli {

class ArchiveWriter {
 public:
  // Writes to `descriptor`, which stays open.
  static Result<ArchiveWriter> Open(int descriptor);

  // Begins an entry: a directory, a symbolic link, or a file of `file.size` bytes.
  Status Begin(const BackupFile& file);
  Status Append(std::span<const std::byte> data);
  // Ends the file; what is missing is filled up with zeros.
  Status End();
  // Adds `path` as another name of a file.
  Status AddLink(const std::string& path, const BackupFile& file);
  // Ends the archive.
  Status Finish(const Manifest& manifest);

 private:
  struct Closer {
    void operator()(archive* opened) const;
  };

  explicit ArchiveWriter(archive* opened) : archive_(opened) {}
  Status Check(ssize_t result) const;

  std::unique_ptr<archive, Closer> archive_;
};

class ArchiveReader {
 public:
  struct Entry {
    BackupFile file;          // without what only the manifest has: attributes, inode, checksum; paths holds one path
    std::string link_target;  // a path, if the entry is another name of that file
    bool is_manifest = false;
    uint64_t data = 0;  // bytes of the file that are in no hole
  };
  struct Part {
    uint64_t hole = 0;                // bytes in front of the data
    std::span<const std::byte> data;  // there until the next call
  };

  // Reads from `descriptor`, which stays open. Knows gzip, bzip2, xz and zstd.
  static Result<ArchiveReader> Open(int descriptor);

  // Returns whether everything in front of an entry must be read to get to it.
  bool is_compressed() const;
  // Returns the next entry; none at the end. kCorruption for anything that no backup has.
  Result<std::optional<Entry>> Next();
  // Reads what the entry has at `offset`, where the last part ended. The part is empty at its end.
  Result<Part> Read(uint64_t offset);
  // Reads all of the entry, which may have 4 GiB at most.
  Result<std::string> ReadText();

 private:
  struct Closer {
    void operator()(archive* opened) const;
  };

  explicit ArchiveReader(archive* opened) : archive_(opened) {}
  Status Failure() const;
  Result<Entry> Decode(archive_entry* entry) const;

  std::unique_ptr<archive, Closer> archive_;
};

}  // namespace isozone::cli
