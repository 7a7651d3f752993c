#include "store/file/open_writers.h"

#include <array>
#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "base/units.h"
#include "testing/assert_ok.h"
#include "testing/manual_clock.h"

namespace isozone {
namespace {

class FakeWriter final : public OpenWriter {
 public:
  bool is_durable() const override { return durable; }
  Status SaveAll() override {
    ++saves;
    durable = true;
    return Status::Ok();
  }
  void Advance(bool) override { ++advances; }

  std::atomic<bool> durable{false};
  std::atomic<int> saves{0};
  std::atomic<int> advances{0};
};

class OpenWritersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ISOZONE_ASSERT_OK(
        writers_.Start(clock_, {[] { return false; }, [this] { return ++prepared_ < 3; }, [this] { ++metadata_; }}));
  }
  // The thread has slept until its next look, and looks.
  void LookAgain() {
    const int64_t next = clock_.AwaitWaiter(clock_.NowNs());
    clock_.Advance(next - clock_.NowNs());
    clock_.AwaitWaiter(clock_.NowNs());
  }

  ManualClock clock_;
  std::atomic<int> metadata_{0};
  std::atomic<int> prepared_{0};
  OpenWriters writers_;
};

TEST_F(OpenWritersTest, WhatNobodySyncsIsMadeDurableAfterTwoLooks) {
  FakeWriter writer;
  FakeWriter synced;
  auto place = writers_.Add(writer, InodeId(1), nullptr);
  auto other = writers_.Add(synced, InodeId(2), nullptr);
  LookAgain();
  EXPECT_EQ(writer.saves, 0) << "it may be new";
  synced.durable = true;
  LookAgain();
  EXPECT_EQ(writer.saves, 1);
  EXPECT_EQ(synced.saves, 0);
  EXPECT_EQ(clock_.NowNs(), 2 * OpenWriters::kWriteBackNs);
  LookAgain();
  EXPECT_EQ(writer.saves, 1) << "nothing has come";
  writers_.Remove(place);
  writers_.Remove(other);
}

TEST_F(OpenWritersTest, TheMemoryIsPreparedToItsEnd) {
  clock_.AwaitWaiter(clock_.NowNs());
  EXPECT_EQ(prepared_, 3);
}

TEST_F(OpenWritersTest, NamesAreMadeDurableThoughNoFileIsOpen) {
  LookAgain();
  LookAgain();
  EXPECT_EQ(metadata_, 2);
}

TEST_F(OpenWritersTest, TheThreadDoesNothingUnlessItIsWoken) {
  FakeWriter writer;
  auto place = writers_.Add(writer, InodeId(1), nullptr);
  LookAgain();
  EXPECT_EQ(writer.advances, 0);
  writers_.Wake();
  while (writer.advances == 0) std::this_thread::yield();
  clock_.AwaitWaiter(clock_.NowNs());
  EXPECT_EQ(writer.advances, 1);
  writers_.Remove(place);
}

TEST_F(OpenWritersTest, WhatComesBeforeInTheSameDirectoryIsSavedFirst) {
  const OpenWriters::Order order{InodeId(9), Lifetime::kShort};
  const OpenWriters::Order elsewhere{InodeId(8), Lifetime::kShort};
  FakeWriter first;
  FakeWriter second;
  FakeWriter other;
  auto places = std::array{writers_.Add(second, InodeId(2), &order), writers_.Add(other, InodeId(3), &elsewhere),
                           writers_.Add(first, InodeId(1), &order)};
  EXPECT_TRUE(writers_.HasLater(places[2]));
  EXPECT_FALSE(writers_.HasLater(places[0]));
  ISOZONE_EXPECT_OK(writers_.SaveEarlier(places[0]));
  EXPECT_EQ(first.saves, 1);
  EXPECT_EQ(second.saves, 0);
  EXPECT_EQ(other.saves, 0);
  ISOZONE_EXPECT_OK(writers_.SaveEarlier(places[0]));
  EXPECT_EQ(first.saves, 1) << "it was durable";
  for (auto& place : places) writers_.Remove(place);
}

}  // namespace
}  // namespace isozone
