#include "device/emulated/fault_guard.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <mutex>

#include "base/mutex.h"

namespace isozone {
namespace {

// The signal handler reads this, so all fields are atomic. A slot is free while `begin` is 0.
struct Slot {
  std::atomic<uintptr_t> begin{0};
  std::atomic<uintptr_t> end{0};
  std::atomic<bool> faulted{false};
};
std::array<Slot, 256> g_slots;
Mutex g_slots_mu;  // held to change which slots are free
uintptr_t g_page_size = 0;
struct sigaction g_previous {};

bool PatchPage(uintptr_t address) {
  const auto slot = std::find_if(g_slots.begin(), g_slots.end(),
                                 [&](const Slot& s) { return s.begin <= address && address < s.end; });
  if (slot == g_slots.end()) return false;
  void* page = reinterpret_cast<void*>(address / g_page_size * g_page_size);  // NOLINT(performance-no-int-to-ptr)
  slot->faulted = true;
  return ::mmap(page, g_page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page;
}

void OnBusError(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  const bool patched = info->si_code == BUS_ADRERR && PatchPage(reinterpret_cast<uintptr_t>(info->si_addr));
  errno = saved_errno;
  if (patched) return;
  if ((g_previous.sa_flags & SA_SIGINFO) != 0) {
    g_previous.sa_sigaction(signal, info, context);
  } else if (g_previous.sa_handler != SIG_DFL && g_previous.sa_handler != SIG_IGN) {
    g_previous.sa_handler(signal);
  } else {
    ::sigaction(SIGBUS, &g_previous, nullptr);  // the fault repeats when the handler returns, and ends the process
  }
}

Status InstallHandler() {
  static std::once_flag once;
  static int error = 0;
  std::call_once(once, [] {
    g_page_size = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
    struct sigaction action {};
    action.sa_sigaction = OnBusError;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    ::sigemptyset(&action.sa_mask);
    if (::sigaction(SIGBUS, &action, &g_previous) != 0) error = errno;
  });
  return error == 0 ? Status::Ok() : Status::FromErrno(error, "cannot guard a mapped image");
}

}  // namespace

Result<std::unique_ptr<FaultGuard>> FaultGuard::Create(std::span<const std::byte> mapping) {
  ISOZONE_RETURN_IF_ERROR(InstallHandler());
  const MutexLock lock(g_slots_mu);
  const auto slot = std::find_if(g_slots.begin(), g_slots.end(), [](const Slot& s) { return s.begin == 0; });
  if (slot == g_slots.end()) return Status::Busy("this process has too many images open; close some");
  slot->faulted = false;
  slot->begin = reinterpret_cast<uintptr_t>(mapping.data());
  slot->end = reinterpret_cast<uintptr_t>(mapping.data() + mapping.size());
  return std::unique_ptr<FaultGuard>(new FaultGuard(static_cast<size_t>(slot - g_slots.begin())));
}

FaultGuard::~FaultGuard() {
  const MutexLock lock(g_slots_mu);
  g_slots[slot_].end = 0;
  g_slots[slot_].begin = 0;
}

bool FaultGuard::faulted() const { return g_slots[slot_].faulted.load(std::memory_order_relaxed); }

}  // namespace isozone
