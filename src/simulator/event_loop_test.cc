#include "simulator/event_loop.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace isozone {
namespace {

// Notes when it is called.
class Noting final : public Actor {
 public:
  Noting(EventLoop& loop, std::vector<std::string>& calls, std::string name)
      : loop_(loop), calls_(calls), name_(std::move(name)) {}
  void Proceed() override { calls_.push_back(name_ + std::to_string(loop_.now_ns())); }

 private:
  EventLoop& loop_;
  std::vector<std::string>& calls_;
  const std::string name_;
};

class EventLoopTest : public testing::Test {
 protected:
  std::vector<std::string> RunAll() {
    while (loop_.RunNext()) {
    }
    return calls_;
  }

  EventLoop loop_;
  std::vector<std::string> calls_;
  Noting a_{loop_, calls_, "a"};
  Noting b_{loop_, calls_, "b"};
  Bell bell_;
};

TEST_F(EventLoopTest, ActorsAreCalledInTheOrderOfTimeAndThenOfAsking) {
  loop_.CallAt(20, a_);
  loop_.CallAt(10, b_);
  EXPECT_EQ((std::vector<std::string>{"b10", "a20"}), RunAll());
  loop_.CallAt(30, b_);
  loop_.CallAt(30, a_);
  EXPECT_EQ((std::vector<std::string>{"b10", "a20", "b30", "a30"}), RunAll());
}

TEST_F(EventLoopTest, WhatAnActorHasAskedForIsVoidOnceItIsCalled) {
  loop_.CallAt(10, a_);
  loop_.CallAt(20, a_);
  loop_.CallOn(bell_, a_);
  EXPECT_EQ((std::vector<std::string>{"a10"}), RunAll());
  loop_.Ring(bell_);
  EXPECT_EQ((std::vector<std::string>{"a10"}), RunAll());
}

TEST_F(EventLoopTest, ABellCallsThoseWhoWaitForItOnce) {
  loop_.CallOn(bell_, a_);
  loop_.CallOn(bell_, b_);
  EXPECT_TRUE(RunAll().empty());
  loop_.Ring(bell_);
  EXPECT_EQ((std::vector<std::string>{"a0", "b0"}), RunAll());
  loop_.Ring(bell_);
  EXPECT_EQ((std::vector<std::string>{"a0", "b0"}), RunAll());
}

TEST_F(EventLoopTest, WhatIsInThePastIsDoneNow) {
  loop_.CallAt(10, a_);
  ASSERT_TRUE(loop_.RunNext());
  loop_.CallAt(5, b_);
  loop_.CallAt(EventLoop::kNever, a_);
  EXPECT_EQ((std::vector<std::string>{"a10", "b10"}), RunAll());
}

}  // namespace
}  // namespace isozone
