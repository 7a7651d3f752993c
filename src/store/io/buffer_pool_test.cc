#include "store/io/buffer_pool.h"

#include <gtest/gtest.h>

namespace isozone {
namespace {

TEST(BufferPool, GivesBackWhatItWasGiven) {
  BufferPool pool(64 * kKiB);
  AlignedBuffer buffer = pool.Take(8192);
  const std::byte* data = buffer.data();
  pool.Give(std::move(buffer));
  EXPECT_EQ(buffer.size(), 0U) << "what was moved from is empty";  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(pool.bytes(), 8192U);
  EXPECT_NE(pool.Take(4096).data(), data) << "of another size";
  EXPECT_EQ(pool.Take(8192).data(), data);
  EXPECT_EQ(pool.bytes(), 0U);
}

TEST(BufferPool, KeepsNoMoreThanItsLimit) {
  BufferPool pool(10000);
  pool.Give(AlignedBuffer(8192));
  pool.Give(AlignedBuffer(4096));
  EXPECT_EQ(pool.bytes(), 4096U);
  pool.Give(AlignedBuffer());
  pool.Give(AlignedBuffer(12288));
  EXPECT_EQ(pool.bytes(), 4096U);
}

TEST(BufferPool, KeepsTheBuffersThatWereGivenLast) {
  BufferPool pool(16 * kKiB);
  for (int i = 0; i < 4; ++i) pool.Give(AlignedBuffer(4096));  // of a size that is no longer used
  AlignedBuffer buffer(8192);
  const std::byte* data = buffer.data();
  pool.Give(std::move(buffer));
  EXPECT_EQ(pool.bytes(), 16 * kKiB);
  EXPECT_EQ(pool.Take(8192).data(), data);
}

}  // namespace
}  // namespace isozone
