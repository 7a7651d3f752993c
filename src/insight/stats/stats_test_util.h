// What the tests of this layer share: pages in memory and in files, with headers that are valid.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "insight/stats/page_reader.h"
#include "insight/stats/published_page.h"
#include "testing/assert_ok.h"

namespace isozone {

inline PageHeader TestHeader(uint32_t zones = 8, uint32_t groups = 2) {
  const PageProcess self = PageProcess::Self();
  PageHeader header{};
  header.pid = self.pid;
  header.process_started = self.started;
  header.pid_namespace = self.pid_namespace;
  header.zone_count = zones;
  header.group_count = groups;
  header.block_size = 4096;
  header.zone_size = header.zone_capacity = 1 << 20;
  header.age_unit = 1 << 20;
  return header;
}

// A page in the memory of the test.
class MemoryPage {
 public:
  explicit MemoryPage(const PageHeader& header = TestHeader())
      : words_(PageLayout::Size(header.zone_count, header.group_count) / sizeof(uint64_t)), writer_(words_, header) {}

  StatisticsWriter& writer() { return writer_; }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(words_)); }
  std::vector<std::byte> Copy() const { return {bytes().begin(), bytes().end()}; }
  // As one look finds it that finds `first`, `middle` and `last` in this order.
  static Result<Statistics> Decode(std::span<const std::byte> first, std::span<const std::byte> middle,
                                   std::span<const std::byte> last) {
    ISOZONE_ASSIGN_OR_RETURN(const PageHeader header, CheckHeader(first, first.size()));
    const size_t zones = PageLayout::Zones(header.group_count);
    return DecodePage(header, {{first.first(zones), middle.first(zones), last.first(zones)}, middle.subspan(zones)});
  }
  Result<Statistics> Read() const { return Decode(bytes(), bytes(), bytes()); }

 private:
  std::vector<uint64_t> words_;
  StatisticsWriter writer_;
};

// An image that is there as long as this, and a name for it.
class TestImage {
 public:
  explicit TestImage(const std::string& name) : path_(testing::TempDir() + name + std::to_string(::getpid())) {
    std::ofstream(path_) << "image";
    std::remove(page_path().c_str());  // a killed process may have left that of an image with the same inode
  }
  ~TestImage() { std::remove(path_.c_str()); }
  TestImage(const TestImage&) = delete;
  TestImage& operator=(const TestImage&) = delete;

  const std::string& path() const { return path_; }
  std::string device() const { return "emu:" + path_; }
  PageOwner owner() const {
    auto owner = PageOwner::Of(device());
    EXPECT_TRUE(owner.ok()) << owner.status().ToString();
    return owner.ok() ? *owner : PageOwner();
  }
  std::string page_path() const { return std::string(kPageDirectory) + "/" + owner().page_name; }
  // Its page, published.
  std::unique_ptr<PublishedPage> Publish(const PageHeader& header = TestHeader()) const {
    auto page = PublishedPage::Make(owner(), header);
    EXPECT_TRUE(page.ok()) << page.status().ToString();
    if (!page.ok()) return nullptr;
    (*page)->writer().Publish({});
    const Status named = (*page)->Publish();
    EXPECT_TRUE(named.ok()) << named.ToString();
    return std::move(page).value();
  }

 private:
  const std::string path_;
};

}  // namespace isozone
