// Fsck finds what the rules of one inode cannot know: where files lie beside the metadata.
#include "store/mount/fsck.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "store/metadata/journal_test_util.h"
#include "store/zone/allocator/zone_reserves.h"

namespace isozone {
namespace {

class FsckTest : public JournalTest {
 protected:
  // Makes a store with `copies` of the metadata, and a file and a log in `zone`, in blocks that no copy has.
  void PutFilesIn(ZoneId zone, uint32_t copies) {
    Format(TinyZones(), copies);
    const uint64_t block = device_->geometry().block_size;
    const uint64_t start = device_->geometry().ZoneStart(zone).value();
    Inode file = InodeOf(2, "file", FileKind::kData);
    file.extents = {FileExtent{0, DeviceOffset(start + 2 * block), block}};
    file.size = block;
    Inode log = InodeOf(3, "log", FileKind::kLog);
    log.regions = {{zone, 3 * block, 4 * block, 0}};
    auto store = OpenStore();
    const std::vector<MetadataOp> ops = {PutInode{file}, PutInode{log}};
    ISOZONE_ASSERT_OK(store->Commit(ops).status());
    ISOZONE_ASSERT_OK(store->SyncAll());
  }

  std::string Findings() {
    const auto report = Fsck(*device_, {});
    ISOZONE_EXPECT_OK(report.status());
    std::string text;
    for (const FsckFinding& finding : report->findings) text += finding.text + "\n";
    return text;
  }

 private:
  static Inode InodeOf(uint64_t id, std::string name, FileKind kind) {
    Inode inode;
    inode.id = InodeId(id);
    inode.kind = kind;
    inode.links = {{kRootInode, std::move(name)}};
    return inode;
  }
};

TEST_F(FsckTest, NoFileLiesInTheZonesThatAreTheMetadatasOwn) {
  for (uint32_t copies = 1; copies <= kMetadataCopiesMax; ++copies) {
    const uint32_t home = HomeZones(copies);
    for (uint32_t zone = 0; zone <= home; ++zone) {
      SCOPED_TRACE(fmt::format("{} copies, zone {}", copies, zone));
      PutFilesIn(ZoneId(zone), copies);
      const std::string findings = Findings();
      for (const char* name : {"/file", "/log"}) {
        const std::string finding = fmt::format("{}: lies in zone {}, which is reserved for metadata", name, zone);
        EXPECT_EQ(findings.find(finding) != std::string::npos, zone < home) << findings;
      }
    }
  }
}

}  // namespace
}  // namespace isozone
