#include "base/latch.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace isozone {
namespace {

// A request with the fields that those of the device, the I/O engine and the file system have.
struct FakeRequest {
  void (*done)(FakeRequest& request) = nullptr;
  void* context = nullptr;
  int result = 0;
};

TEST(Latch, IsDownWhereNothingIsExpected) {
  Latch latch;
  EXPECT_TRUE(latch.down());
  latch.Wait();
}

TEST(Latch, OpensWhenEveryEventHappened) {
  Latch latch(3);
  std::atomic<int> happened = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      ++happened;
      latch.CountDown();
    });
  }
  latch.Wait();
  EXPECT_EQ(happened, 3);
  EXPECT_TRUE(latch.down());
  for (auto& thread : threads) thread.join();
}

TEST(Latch, IsNotDownBeforeTheLastEvent) {
  Latch latch(1);
  latch.Add();
  latch.CountDown();
  EXPECT_FALSE(latch.down());
  latch.CountDown();
  EXPECT_TRUE(latch.down());
}

TEST(Latch, WhatWasDoneBeforeAnEventIsSeenBehindTheWait) {
  std::array<FakeRequest, 4> requests;
  std::vector<std::thread> threads;
  Latch latch;
  for (FakeRequest& request : requests) {
    latch.Expect(request);
    threads.emplace_back([&request] {
      request.result = 1;
      request.done(request);
    });
  }
  latch.Wait();
  for (const FakeRequest& request : requests) EXPECT_EQ(request.result, 1);
  for (auto& thread : threads) thread.join();
}

TEST(Latch, ARequestThatCompletesAtOnceNeedsNoWait) {
  FakeRequest request;
  Latch latch;
  latch.Expect(request);
  request.done(request);
  EXPECT_TRUE(latch.down());
}

TEST(Latch, CanBeUsedAgain) {
  Latch latch;
  for (int i = 0; i < 100; ++i) {
    FakeRequest request;
    latch.Expect(request);
    std::thread thread([&] { request.done(request); });
    latch.Wait();
    thread.join();
  }
}

TEST(Latch, KeepsTheNumberOfEventsThatHaveStillToHappenWithinABound) {
  constexpr size_t kInFlight = 3;
  std::atomic<size_t> in_flight = 0;
  std::atomic<size_t> in_flight_max = 0;
  std::vector<std::thread> threads;
  {
    Latch latch;
    for (int i = 0; i < 50; ++i) {
      latch.WaitForAtMost(kInFlight - 1);
      latch.Add();
      in_flight_max = std::max<size_t>(in_flight_max, ++in_flight);
      threads.emplace_back([&] {
        --in_flight;
        latch.CountDown();
      });
    }
  }
  EXPECT_LE(in_flight_max, kInFlight);
  for (auto& thread : threads) thread.join();
}

TEST(Latch, ItsEndWaits) {
  for (int i = 0; i < 100; ++i) {
    FakeRequest request;
    std::thread thread;
    {
      Latch latch;
      latch.Expect(request);
      thread = std::thread([&] {
        request.result = 1;
        request.done(request);
      });
    }
    EXPECT_EQ(request.result, 1);
    thread.join();
  }
}

}  // namespace
}  // namespace isozone
