// Files as several programs see them at the same time: whoever reads, by read(2) or by a memory map, gets each page as
// it was written last, however the writer has the file open. Nothing here knows of Isozone:
//
//   ISOZONE_TEST_DIRECTORY=/mnt/db page_cache_test    makes and removes files in a mounted directory
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "base/file_descriptor.h"
#include "base/random.h"
#include "testing/test_seed.h"

namespace isozone {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kMostBytes = 24 * kPage;  // of a file

std::string PathOf(std::string_view name) {
  const char* directory = std::getenv("ISOZONE_TEST_DIRECTORY");
  return std::string(directory == nullptr ? "ISOZONE_TEST_DIRECTORY is not set" : directory).append("/").append(name);
}

struct WriterKind {
  std::string_view name;
  int flags;          // of open(2)
  bool appends;       // or else writes over bytes that are there
  bool maps = false;  // writes by a shared map
};

constexpr WriterKind kWriters[] = {
    {"AppendsOnly", O_WRONLY, true},
    {"AppendsByFlag", O_WRONLY | O_APPEND, true},
    {"AppendsAndReads", O_RDWR, true},
    {"AppendsDirectly", O_WRONLY | O_DIRECT, true},
    {"WritesInPlaceOnly", O_WRONLY, false},
    {"WritesInPlaceAndReads", O_RDWR, false},
    {"WritesInPlaceDirectly", O_WRONLY | O_DIRECT, false},
    {"WritesByAMap", O_RDWR, false, true},
};

// The content of an open file through a shared map, also behind its end as it is now.
class Map {
 public:
  Map(int file, int protection) : bytes_(::mmap(nullptr, kMostBytes, protection, MAP_SHARED, file, 0)) {}
  ~Map() {
    if (is_mapped()) ::munmap(bytes_, kMostBytes);
  }
  Map(const Map&) = delete;
  Map& operator=(const Map&) = delete;

  bool is_mapped() const { return bytes_ != MAP_FAILED; }
  char* bytes() const { return static_cast<char*>(bytes_); }

 private:
  void* bytes_;
};

class Writer {
 public:
  Writer(const WriterKind& kind, const std::string& path)
      : kind_(kind),
        file_(::open(path.c_str(), kind.flags | O_CLOEXEC)),
        map_(kind.maps ? file_.get() : -1, PROT_READ | PROT_WRITE) {}

  bool is_open() const { return file_.get() >= 0 && map_.is_mapped() == kind_.maps; }

  // Writes `bytes` over those of `content` that are there at `offset`, or behind them, and notes that in `content`.
  bool Write(std::string& content, size_t offset, std::string_view bytes) {
    content.resize(std::max(content.size(), offset + bytes.size()));
    content.replace(offset, bytes.size(), bytes);
    if (kind_.maps) {
      std::memcpy(map_.bytes() + offset, bytes.data(), bytes.size());
      return true;
    }
    return ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset)) ==
           static_cast<ssize_t>(bytes.size());
  }

 private:
  const WriterKind& kind_;
  const FileDescriptor file_;
  const Map map_;
};

std::string ReadAll(int file) {
  std::string content(kMostBytes, '\0');
  const ssize_t got = ::pread(file, content.data(), content.size(), 0);
  content.resize(got < 0 ? 0 : static_cast<size_t>(got));
  return content;
}

// "" where they are equal; otherwise says which pages differ.
std::string Difference(std::string_view expected, std::string_view seen) {
  std::string differences;
  if (seen.size() != expected.size()) {
    differences = std::to_string(seen.size()) + " bytes instead of " + std::to_string(expected.size());
  }
  for (size_t at = 0; at < std::min(expected.size(), seen.size()); at += kPage) {
    if (expected.substr(at, kPage) == seen.substr(at, kPage)) continue;
    if (seen.size() == expected.size()) differences += " page " + std::to_string(at / kPage);
  }
  return differences;
}

std::string ReadAnew(const std::string& path) {
  return ReadAll(FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC)).get());
}

// The kind of a file follows from its name.
constexpr std::string_view kNames[] = {"000001.log", "MANIFEST-000002", "000003.sst"};

class PageCacheTest : public testing::TestWithParam<std::tuple<std::string_view, WriterKind>> {
 protected:
  PageCacheTest() : kind_(std::get<1>(GetParam())), path_(PathOf(std::get<0>(GetParam()))) {
    (void)::unlink(path_.c_str());
    const FileDescriptor made(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    content_ = RandomBytes(kind_.appends ? 100 : kMostBytes);
    EXPECT_EQ(::write(made.get(), content_.data(), content_.size()), static_cast<ssize_t>(content_.size()));
  }
  ~PageCacheTest() override { EXPECT_EQ(::unlink(path_.c_str()), 0); }

  std::string RandomBytes(size_t size) {
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random_.Between(1, 255));  // a page that is not there is zeros
    return bytes;
  }
  // Of the kind, and mostly small; false: the file has its most bytes.
  bool WriteMore(Writer& writer) {
    const size_t size = random_.Chance(0.1) ? random_.Between(kPage, 2 * kPage) : random_.Between(1, 900);
    const size_t offset = kind_.appends ? content_.size() : random_.Below(content_.size() - size);
    if (offset + size > kMostBytes) return false;
    EXPECT_TRUE(writer.Write(content_, offset, RandomBytes(size))) << std::strerror(errno);
    return true;
  }

  static constexpr int kMostWrites = 60;
  const WriterKind kind_;
  const std::string path_;
  Random random_{TestSeed()};
  std::string content_;  // of the file
};

// One after another: writes, each of which all readers look at.
TEST_P(PageCacheTest, AReaderSeesEachWriteThatHasReturned) {
  const FileDescriptor before(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  const Map map(before.get(), PROT_READ);
  ASSERT_TRUE(map.is_mapped()) << std::strerror(errno);
  EXPECT_EQ(Difference(content_, ReadAll(before.get())), "");
  Writer writer(kind_, path_);
  ASSERT_TRUE(writer.is_open()) << std::strerror(errno);
  for (int i = 0; i < kMostWrites && WriteMore(writer); ++i) {
    EXPECT_EQ(Difference(content_, {map.bytes(), content_.size()}), "") << "by a map, write " << i;
    EXPECT_EQ(Difference(content_, ReadAll(before.get())), "") << "by the first reader, write " << i;
    EXPECT_EQ(Difference(content_, ReadAnew(path_)), "") << "by a new reader, write " << i;
    if (HasFailure()) break;
  }
}

// Side by side: what readers bring into the page cache while it is written is not older than what was written last.
TEST_P(PageCacheTest, WhatIsReadDuringAWriteIsNotKept) {
  std::atomic<bool> enough{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      while (!enough) (void)ReadAnew(path_);
    });
  }
  {
    Writer writer(kind_, path_);
    EXPECT_TRUE(writer.is_open()) << std::strerror(errno);
    for (int i = 0; i < kMostWrites && !HasFailure() && WriteMore(writer); ++i) {
      EXPECT_EQ(Difference(content_, ReadAnew(path_)), "") << "write " << i;
    }
  }
  enough = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(Difference(content_, ReadAnew(path_)), "") << "after all writes";
}

// Writers that know nothing of each other, at the same page, and a reader.
TEST_P(PageCacheTest, AWriterBesideMapsAndOtherWritersLosesNothing) {
  const WriterKind& other_kind = kWriters[kind_.maps ? 0 : std::size(kWriters) - 1];
  Writer other(other_kind, path_);
  ASSERT_TRUE(other.is_open()) << std::strerror(errno);
  Writer writer(kind_, path_);
  ASSERT_TRUE(writer.is_open()) << std::strerror(errno);
  for (int i = 0; i < kMostWrites && WriteMore(writer); ++i) {
    EXPECT_EQ(Difference(content_, ReadAnew(path_)), "") << "by the writer, write " << i;
    ASSERT_TRUE(other.Write(content_, random_.Between(content_.size() - 90, content_.size() - 10), RandomBytes(10)));
    EXPECT_EQ(Difference(content_, ReadAnew(path_)), "") << "by the other, write " << i;
    if (HasFailure()) break;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, PageCacheTest, testing::Combine(testing::ValuesIn(kNames), testing::ValuesIn(kWriters)),
                         [](const auto& info) {
                           std::string name(std::get<0>(info.param));
                           std::replace_if(
                               name.begin(), name.end(), [](char c) { return c == '.' || c == '-'; }, '_');
                           return name + "_" + std::string(std::get<1>(info.param).name);
                         });

}  // namespace
}  // namespace isozone
