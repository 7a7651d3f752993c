// StatisticsReader: reads the statistics page of a device that is mounted by any process of this machine.
//
//   auto reader = StatisticsReader::Open("emu:/data/ssd.img");
//   if (reader.ok()) Show((*reader)->Read());
//
// The page is copied with pread(2) and not mapped, so that one that shrinks cannot end the reader (SIGBUS). It is taken
// three times: a record counts if its sequence is the same, and even, in the first and the last copy; its words are
// those of the one in between. Figures that were being written each time are read again.
//
// Nothing in a page is believed: any content gives Statistics, of which numbers may be nonsense, enumerators are valid,
// sizes of vectors are bounded by the size of the file, and text is printable or not (the caller's task).
//
// Thread safety: any thread may call any method of StatisticsReader. Statistics are values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/file_descriptor.h"
#include "base/status.h"
#include "insight/stats/page_file.h"
#include "insight/stats/page_layout.h"
#include "insight/stats/statistics.h"

namespace isozone {

// The copies of a page that one look takes: three times the part before the zones, and the zones once.
struct PageCopies {
  std::array<std::span<const std::byte>, 3>
      fixed;  // each PageLayout::Zones(groups) bytes, or fewer where the file is short
  std::span<const std::byte> zones;
};
// Whether `bytes`, the beginning of a file of `file_bytes` bytes, is that of a page of this version: kCorruption,
// kNotSupported. Pure.
Result<PageHeader> CheckHeader(std::span<const std::byte> bytes, uint64_t file_bytes);
// What the copies say; `life`, `process.program` and `read_ns` are the caller's. kBusy if the figures were being
// written in each. Pure.
Result<Statistics> DecodePage(const PageHeader& header, const PageCopies& copies);
// Takes one look at the page in the file `fd`, whose header is `header`. `life` says whether the mount has ended; it
// never says kDied. kBusy after many vain tries; kIoError.
Result<Statistics> ReadPage(int fd, const PageHeader& header);

class StatisticsReader {
 public:
  // `device`: as PageOwner::Of. kNotFound: nobody has it mounted, or it does not exist. kNotSupported: a page of
  // another version. kPermissionDenied; kCorruption. Each message is one line.
  static Result<std::unique_ptr<StatisticsReader>> Open(const std::string& device,
                                                        const std::string& directory = kPageDirectory);

  // A look now. kBusy after many vain tries; kIoError.
  Result<Statistics> Read() const;
  PageLife Life() const;
  // Removes the page of a process that died; nothing if it lives, or if another page has taken its place. An error
  // means that this user may not.
  Status RemoveDead() const;

 private:
  static Result<std::unique_ptr<StatisticsReader>> OpenPage(const std::string& path, const PageOwner& owner,
                                                            const std::string& device);
  StatisticsReader(std::string path, FileDescriptor fd, const PageHeader& header);

  const std::string path_;
  const FileDescriptor fd_;
  const PageHeader header_;
};

}  // namespace isozone
