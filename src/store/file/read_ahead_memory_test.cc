#include "store/file/read_ahead_memory.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

namespace isozone {
namespace {

constexpr uint64_t kLimit = 1000;

class Scan final : public ReadAheadMemory::Holder {
 public:
  std::vector<std::shared_ptr<void>> GiveUp() override {
    asked_ = true;
    return {};
  }
  bool asked() const { return asked_; }

 private:
  bool asked_ = false;
};

TEST(ReadAheadMemory, IsNoMoreThanItsLimit) {
  ReadAheadMemory memory(kLimit);
  EXPECT_TRUE(memory.Take(600));
  EXPECT_FALSE(memory.Take(401));
  EXPECT_TRUE(memory.Take(400));
  memory.Give(600);
  EXPECT_FALSE(memory.Take(601));
  EXPECT_TRUE(memory.Take(600));
}

TEST(ReadAheadMemory, IsGivenUpByThoseWhoHaveNotUsedItForLong) {
  ReadAheadMemory memory(kLimit);
  Scan stopped, slow, closed;
  for (Scan* scan : {&stopped, &slow, &closed}) memory.Add(*scan);
  memory.NoteRead(1);
  memory.NoteUse(slow);
  memory.NoteRead(ReadAheadMemory::kPatience * kLimit - 1);
  memory.Remove(closed);
  memory.Reclaim();
  EXPECT_TRUE(stopped.asked());
  EXPECT_FALSE(slow.asked()) << "one byte is missing";
  EXPECT_FALSE(closed.asked());
}

}  // namespace
}  // namespace isozone
