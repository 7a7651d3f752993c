#include "rocksdb/steering/pointers_file.h"

#include <unistd.h>

#include <filesystem>

#include <gtest/gtest.h>

#include "testing/assert_ok.h"

namespace isozone {
namespace {

class PointersFileTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  rocksdb::FileSystem& fs_ = *rocksdb::FileSystem::Default();
  const std::string path_ = testing::TempDir() + "isozone_pointers_file." + std::to_string(getpid());
};

TEST_F(PointersFileTest, WhatWasStoredLastIsLoaded) {
  EXPECT_EQ(LoadPointers(fs_, path_), CompactionPointers()) << "there is no file";
  CompactionPointers pointers;
  for (const char* key : {"first", "second"}) {
    pointers.Set(2, key);
    StorePointers(fs_, path_, pointers);
    EXPECT_EQ(LoadPointers(fs_, path_), pointers);
  }
}

TEST_F(PointersFileTest, SweepsBeginAnewWhereTheFileCannotBeUsed) {
  ISOZONE_ASSERT_OK(rocksdb::WriteStringToFile(&fs_, "no pointers\n", path_));
  EXPECT_EQ(LoadPointers(fs_, path_), CompactionPointers());
}

}  // namespace
}  // namespace isozone
