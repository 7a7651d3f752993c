// Copies of the metadata that are lost at any command: nothing that was acknowledged is missing then, or it is noticed.
#include <array>
#include <atomic>
#include <bit>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "store/metadata/journal_test_util.h"

namespace isozone {
namespace {

// How a copy is lost: from some command on, its first zone is offline or read-only, or the next write to it fails.
enum class Loss : uint8_t { kOffline, kReadOnly, kWriteError };

class LosingDevice final : public PassingDevice {
 public:
  LosingDevice(EmulatedDevice& device, Loss loss, ZoneId zone, uint64_t after)
      : LosingDevice(device, device, loss, zone, after) {}
  // Passes commands on to `below`, which passes them on to `device`.
  LosingDevice(ZonedDevice& below, EmulatedDevice& device, Loss loss, ZoneId zone, uint64_t after)
      : PassingDevice(below), emulated_(device), loss_(loss), zone_(zone), left_(after) {}

  void Submit(DeviceRequest& request) override {
    {
      const MutexLock lock(mu_);
      if (left_ == 0) Lose();
      if (left_ <= kNever) --left_;
    }
    PassingDevice::Submit(request);
  }

 private:
  static constexpr uint64_t kNever = UINT64_MAX / 2;
  void Lose() ISOZONE_REQUIRES(mu_) {
    left_ = UINT64_MAX;
    if (loss_ == Loss::kOffline) emulated_.SetZoneState(zone_, ZoneState::kOffline);
    if (loss_ == Loss::kReadOnly) emulated_.SetZoneState(zone_, ZoneState::kReadOnly);
    if (loss_ == Loss::kWriteError) emulated_.FailNext(DeviceOp::kWrite, zone_, DeviceStatus::kWriteFault);
  }

  EmulatedDevice& emulated_;
  const Loss loss_;
  const ZoneId zone_;
  Mutex mu_;
  uint64_t left_ ISOZONE_GUARDED_BY(mu_);
};

class LossTest : public JournalTest, public testing::WithParamInterface<Loss> {};

std::string NameOf(const testing::TestParamInfo<Loss>& info) {
  constexpr std::array<const char*, 3> kNames = {"Offline", "ReadOnly", "WriteError"};
  return kNames[static_cast<size_t>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(Losses, LossTest, testing::Values(Loss::kOffline, Loss::kReadOnly, Loss::kWriteError), NameOf);

TEST_P(LossTest, OfEitherCopyAtAnyCommandStopsNobody) {
  for (const uint32_t zone : {0U, 1U, 2U}) {
    for (uint64_t commands = 0; commands < 60; ++commands) {
      SCOPED_TRACE(fmt::format("zone {} lost after {} commands", zone, commands));
      ASSERT_NO_FATAL_FAILURE(Format(TinyZones(4096, 8)));
      LosingDevice losing(*device_, GetParam(), ZoneId(zone), commands);
      auto store = Store::Open(losing, 12 * kKiB);
      ISOZONE_ASSERT_OK(store.status());
      ASSERT_NO_FATAL_FAILURE(Work(**store, 25));
      ISOZONE_ASSERT_OK((*store)->journal().RestoreCopies());
      EXPECT_EQ((*store)->journal().Copies().size(), 2U);
      ASSERT_NO_FATAL_FAILURE(Work(**store, 5));
      store->reset();
      ASSERT_NO_FATAL_FAILURE(ExpectRecovers(30));
      EXPECT_EQ(RecoverMetadata(*device_).value().whole_copies(), 2U);
    }
  }
}

TEST_P(LossTest, AfterAPowerCutAtAnyCommandTakesNothingThatWasDurable) {
  for (uint64_t commands = 0; commands < 110; ++commands) {
    for (const size_t copy : {0U, 1U}) {
      SCOPED_TRACE(fmt::format("power cut after {} commands, then copy {} lost", commands, copy));
      ASSERT_NO_FATAL_FAILURE(Format(TinyZones(4096, 6)));
      EmulatedOptions options;
      options.faults.seed = seed_ + commands;
      OpenDevice(options);
      device_->CutPowerAfter(commands);
      uint64_t durable = 0;
      if (auto store = Store::Open(*device_, 12 * kKiB); store.ok()) {
        for (int i = 0; i < 40; ++i) {
          const uint64_t sequence = (*store)->Append(*maker_, *history_);
          if (!(*store)->journal().Sync(sequence).ok()) break;
          durable = sequence;
        }
      }
      device_->CutPower();
      OpenDevice();
      const RecoveredMetadata found = RecoverMetadata(*device_).value();
      if (found.position->copies.size() <= copy) continue;  // the power cut has left only one whole copy
      const ZoneId head = found.position->copies[copy].superblock.zone;
      if (GetParam() == Loss::kOffline) device_->SetZoneState(head, ZoneState::kOffline);
      if (GetParam() == Loss::kReadOnly) device_->SetZoneState(head, ZoneState::kReadOnly);
      if (GetParam() == Loss::kWriteError) device_->FailNext(DeviceOp::kWrite, head, DeviceStatus::kWriteFault);
      if (found.position->copies.size() == 1 && GetParam() == Loss::kOffline) continue;
      ASSERT_NO_FATAL_FAILURE(ExpectRecovers(durable));
      const uint64_t recovered = RecoverMetadata(*device_).value().sequence;
      history_->ForgetBehind(recovered);
      auto store = OpenStore(12 * kKiB);
      ASSERT_NE(store, nullptr);
      ASSERT_NO_FATAL_FAILURE(Work(*store, 10));
      ISOZONE_ASSERT_OK(store->journal().RestoreCopies());
      store.reset();
      ASSERT_NO_FATAL_FAILURE(ExpectRecovers(recovered + 10));
    }
  }
}

// What is left may then be older, but not in silence.
TEST_P(LossTest, OfOneCopyAndThenOfTheOtherIsNoticedOrTakesNothing) {
  int noticed = 0;
  for (const uint32_t first : {0U, 1U}) {
    for (uint64_t commands = 0; commands < 40; ++commands) {
      for (const uint64_t between : {0U, 1U, 2U, 3U, 5U, 8U}) {
        SCOPED_TRACE(fmt::format("zone {} lost after {} commands, the other {} later", first, commands, between));
        ASSERT_NO_FATAL_FAILURE(Format(TinyZones(4096, 8)));
        LosingDevice first_loss(*device_, GetParam(), ZoneId(first), commands);
        LosingDevice second_loss(first_loss, *device_, Loss::kOffline, ZoneId(1 - first), commands + between);
        uint64_t durable = 0;
        if (auto store = Store::Open(second_loss, 12 * kKiB); store.ok()) {
          for (int i = 0; i < 12; ++i) {
            const uint64_t sequence = (*store)->Append(*maker_, *history_);
            if (!(*store)->journal().Sync(sequence).ok()) break;
            durable = sequence;
          }
        }
        const auto recovered = RecoverMetadata(*device_);
        const bool refused = !recovered.ok() || !recovered->newest.ok();
        noticed += refused ? 1 : 0;
        if (!refused) {
          ASSERT_NO_FATAL_FAILURE(ExpectRecovers(durable));
        }
      }
    }
  }
  EXPECT_GT(noticed, 0);
}

// --- Whatever is lost, before every command ---

// Calls `look` before every command that changes something, one at a time.
class WatchedDevice final : public PassingDevice {
 public:
  WatchedDevice(ZonedDevice& device, std::function<void()> look) : PassingDevice(device), look_(std::move(look)) {}

  void Submit(DeviceRequest& request) override {
    if (request.op == DeviceOp::kRead) return PassingDevice::Submit(request);
    const MutexLock lock(mu_);
    look_();
    PassingDevice::Submit(request);
  }

 private:
  Mutex mu_;
  const std::function<void()> look_;
};

// Copies of a file system at one moment, of which any but not all may be lost.
class MomentTest : public JournalTest {
 protected:
  // Loses every proper subset of the copies on the device.
  void LookAtLosses() {
    const FrozenDevice now(*device_);
    FrozenDevice whole = now;
    const auto found = FindSuperblocks(whole, /*everywhere=*/true);
    ISOZONE_ASSERT_OK(found.status());
    const uint32_t all = (1U << found->size()) - 1;
    for (uint32_t lost = 0; lost < all; ++lost) {
      FrozenDevice left = now;
      std::string heads;
      for (size_t i = 0; i < found->size(); ++i) {
        if ((lost >> i & 1U) == 0) continue;
        left.SetState((*found)[i].zone, ZoneState::kOffline);
        heads += fmt::format(" {}", (*found)[i].zone.value());
      }
      const auto recovered = RecoverMetadata(left);
      const bool noticed = !recovered.ok() || !recovered->newest.ok();
      if (!noticed) {
        EXPECT_GE(recovered->sequence, durable_) << where_ << ", then zones" << heads << " are lost";
      }
      const bool is_one_loss = std::popcount(lost) + faults_ <= 1 && std::popcount(lost) < static_cast<int>(copies_);
      EXPECT_FALSE(noticed && is_one_loss)
          << where_ << ", then zones" << heads
          << " are lost: " << (recovered.ok() ? recovered->newest.ToString() : recovered.status().ToString());
    }
  }

  // Writes records, with a loss at some command, and looks before each.
  void Write(uint32_t copies, Loss loss, int faults, uint32_t zone, uint64_t after, uint64_t checkpoint_after) {
    copies_ = copies;
    faults_ = faults;
    durable_ = 0;
    LosingDevice losing(*device_, loss, ZoneId(zone), faults == 0 ? UINT64_MAX : after);
    std::atomic<bool> looking = true;
    WatchedDevice watched(losing, [&] {
      if (looking) LookAtLosses();
    });
    if (auto store = Store::Open(watched, checkpoint_after); store.ok()) {
      for (int i = 0; i < 25; ++i) {
        const uint64_t sequence = (*store)->Append(*maker_, *history_);
        if (!(*store)->journal().Sync(sequence).ok()) break;
        durable_ = sequence;
      }
      looking = false;
    }
  }

  uint32_t copies_ = 0;
  int faults_ = 0;  // before the loss
  std::atomic<uint64_t> durable_ = 0;
  std::string where_;
};

TEST_F(MomentTest, NothingIsMissingInSilenceWhateverIsLost) {
  for (const uint32_t copies : {1U, 2U}) {
    for (const uint64_t checkpoint_after : {12 * kKiB, kGiB}) {
      ASSERT_NO_FATAL_FAILURE(Format(TinyZones(4096, 8), copies));
      where_ = fmt::format("{} copies, no fault", copies);
      Write(copies, Loss::kOffline, 0, 0, 0, checkpoint_after);
      for (const Loss loss : {Loss::kReadOnly, Loss::kWriteError}) {
        for (uint32_t zone = 0; zone < 4; ++zone) {
          for (uint64_t after = zone; after < 60; after += 7) {
            ASSERT_NO_FATAL_FAILURE(Format(TinyZones(4096, 8), copies));
            where_ = fmt::format("{} copies, zone {} fails after {} commands", copies, zone, after);
            Write(copies, loss, 1, zone, after, checkpoint_after);
          }
        }
      }
    }
  }
}

// A mount goes on behind it.
TEST_F(MomentTest, NothingIsMissingInSilenceWhateverIsLostAfterAPowerCut) {
  for (const uint32_t copies : {1U, 2U}) {
    for (uint64_t cut = 5; cut < 60; ++cut) {
      ASSERT_NO_FATAL_FAILURE(Format(TinyZones(4096, 8), copies));
      EmulatedOptions options;
      options.faults.seed = seed_ + cut;
      OpenDevice(options);
      device_->CutPowerAfter(cut);
      if (auto store = Store::Open(*device_, 12 * kKiB); store.ok()) {
        for (int i = 0; i < 25; ++i) {
          if (!(*store)->journal().Sync((*store)->Append(*maker_, *history_)).ok()) break;
        }
      }
      device_->CutPower();
      OpenDevice();
      history_->ForgetBehind(RecoverMetadata(*device_).value().sequence);
      where_ = fmt::format("{} copies, a power cut after {} commands", copies, cut);
      Write(copies, Loss::kOffline, 0, 0, 0, 12 * kKiB);
    }
  }
}

}  // namespace
}  // namespace isozone
