// What a process that was killed has left in memory is taken over by the next mount, which is killed at any point of
// that, again and again.
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <string>

#include "device/passing_device.h"
#include "model/fine.h"
#include "torture/kill_test_util.h"
#include "torture/scribbler.h"

namespace isozone::torture {
namespace {

// A device that ends the process when it is given a certain command, or just when it has done that.
class DeadlyDevice final : public PassingDevice {
 public:
  DeadlyDevice(std::unique_ptr<ZonedDevice> device, uint64_t command, bool after)
      : PassingDevice(*device), own_(std::move(device)), command_(command), after_(after) {}

  void Submit(DeviceRequest& request) override {
    const bool deadly = commands_.fetch_add(1) == command_;
    if (deadly && !after_) kill(getpid(), SIGKILL);
    if (deadly) {
      SubmitAndWait(*own_, request);
      kill(getpid(), SIGKILL);
    }
    own_->Submit(request);
  }

 private:
  const std::unique_ptr<ZonedDevice> own_;
  const uint64_t command_;
  const bool after_;
  std::atomic<uint64_t> commands_{0};
};

class KillTakingOverTest : public KillTest {
 protected:
  // A process has written, and was killed. Others take over what it has left: `take_over` runs one that is killed at a
  // certain point, and returns its outcome, as waitpid has it; the last comes to its end. After each of them another
  // mount takes over, and nothing is missing. Returns how many points there were.
  uint64_t KillAtEachPoint(const std::function<int(uint64_t point)>& take_over) {
    SCOPED_TRACE("ISOZONE_TEST_SEED=" + std::to_string(seed_));
    WriteAndDie();
    const std::filesystem::path kept_file = KeptFile();
    const std::string image = Read(path_);
    const std::string kept = Read(kept_file);
    uint64_t points = 0;
    for (bool ended = false; !ended && !HasFatalFailure(); ++points) {
      SCOPED_TRACE("point " + std::to_string(points));
      std::ofstream(path_, std::ios::binary) << image;
      std::filesystem::remove(kept_file);
      std::ofstream(kept_file, std::ios::binary) << kept;
      const int outcome = take_over(points);
      ended = WIFEXITED(outcome);
      EXPECT_TRUE(!ended || WEXITSTATUS(outcome) == 0) << WEXITSTATUS(outcome);
      ExpectAllIsThere();
    }
    return points - 1;
  }

  // In a child.
  template <typename Wrap>
  void MountAndExit(Wrap wrap) const {
    auto device = EmulatedDevice::Open(path_, OpenMode::kReadWrite, {});
    if (!device.ok()) _exit(2);
    const auto mounted = FileSystem::Mount(wrap(*std::move(device)), Options());
    _exit(mounted.ok() ? 0 : 1);
  }

 private:
  void WriteAndDie() {
    ASSERT_FINE(MakeImage());
    const uint64_t made = RunAndKill(30, [&](int pipe_end) {
      auto fs = MountImage(Options());
      if (!fs.ok()) return;
      Scribbler scribbler(seed_);
      while (scribbler.Step(fs->get()).ok()) Tell(pipe_end);
    });
    Scribbler model(seed_);
    for (uint64_t i = 0; i < made; ++i) ASSERT_FINE(model.Step(nullptr));
    before_ = model.Contents();
    ASSERT_FINE(model.Step(nullptr));
    after_ = model.Contents();
  }
  void ExpectAllIsThere() {
    auto fs = MountImage(Options());
    ASSERT_FINE(fs.status());
    ExpectBetween(before_, after_, ContentsOf(**fs));
    ASSERT_FINE((*fs)->Unmount());
    fs->reset();
    ASSERT_FINE(CheckImage());
  }
  static std::string Read(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  std::map<std::string, std::string> before_;  // the step in which it was killed
  std::map<std::string, std::string> after_;
};

// In each command that it gives the device, before the command or after it.
TEST_F(KillTakingOverTest, InEachCommand) {
  const uint64_t points = KillAtEachPoint([&](uint64_t point) {
    const pid_t pid = fork();
    if (pid == 0) {
      MountAndExit(
          [&](auto device) { return std::make_unique<DeadlyDevice>(std::move(device), point / 2, point % 2 == 1); });
    }
    int outcome = 0;
    waitpid(pid, &outcome, 0);
    return outcome;
  });
  EXPECT_GT(points, 20U);
}

// Whether it changes a name, the size or the room of a file.
bool ChangesFiles(uint64_t call) {
#ifdef SYS_unlink
  if (call == SYS_unlink || call == SYS_link || call == SYS_rename) return true;
#endif
  return call == SYS_unlinkat || call == SYS_linkat || call == SYS_renameat2 || call == SYS_fallocate ||
         call == SYS_ftruncate;
}

// Follows a child that wants to be traced, and has stopped, to its end; kills it when it has come to the `point`-th
// point, from 0, at which it is about to change files of the machine, or has just changed some.
int KillAtChange(pid_t pid, uint64_t point) {
  int outcome = 0;
  waitpid(pid, &outcome, 0);
  ptrace(PTRACE_SETOPTIONS, pid, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
  bool changes = false;
  uint64_t points = 0;
  int signal = 0;
  while (WIFSTOPPED(outcome) && ptrace(PTRACE_SYSCALL, pid, nullptr, signal) == 0) {
    waitpid(pid, &outcome, 0);
    const bool is_call = WIFSTOPPED(outcome) && WSTOPSIG(outcome) == (SIGTRAP | 0x80);
    signal = is_call || !WIFSTOPPED(outcome) ? 0 : WSTOPSIG(outcome);
    if (!is_call) continue;
    __ptrace_syscall_info call{};
    ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(call), &call);
    if (call.op == PTRACE_SYSCALL_INFO_ENTRY) changes = ChangesFiles(call.entry.nr);
    if (!changes || points++ != point) continue;
    kill(pid, SIGKILL);
    waitpid(pid, &outcome, 0);
  }
  return outcome;
}

// Between the commands: while the memory of the next mount is made, gets its name, and the old one goes.
TEST_F(KillTakingOverTest, AtEachChangeOfFilesOfTheMachine) {
  bool may_trace = true;
  const uint64_t points = KillAtEachPoint([&](uint64_t point) {
    const pid_t pid = fork();
    if (pid == 0) {
      if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0 || raise(SIGSTOP) != 0) _exit(0);
      MountAndExit([](auto device) { return device; });
    }
    const int outcome = KillAtChange(pid, point);
    if (WIFEXITED(outcome) && point == 0) may_trace = false;
    return outcome;
  });
  if (!may_trace) GTEST_SKIP() << "needs the right to trace a child";
  EXPECT_GE(points, 6U) << "memory is made and named, and the old one goes";
}

}  // namespace
}  // namespace isozone::torture
