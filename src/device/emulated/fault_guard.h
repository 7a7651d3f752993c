// Survives a mapped file whose pages the host cannot deliver: a read error of its disk, or somebody cut the file off.
//
// The kernel reports that by SIGBUS in whatever thread touches the page. The guard's handler puts a page of zeros in
// its place, so that the thread goes on, and sets the flag of the mapping, by which its user learns not to trust it any
// more. Faults elsewhere go to the handler that was there before, which by default ends the process.
//
// The handler is installed with the first guard and stays. A program that installs its own SIGBUS handler later, and
// does not pass on what is not its own, is without this protection.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>

#include "base/status.h"

namespace isozone {

// Thread safety: faulted() from any thread.
class FaultGuard {
 public:
  // Guards `mapping`, whole pages of a file, from now until this object goes. kBusy where the process guards as many
  // as it can (256).
  static Result<std::unique_ptr<FaultGuard>> Create(std::span<const std::byte> mapping);
  ~FaultGuard();
  FaultGuard(const FaultGuard&) = delete;
  FaultGuard& operator=(const FaultGuard&) = delete;

  // Something in the mapping is zeros that should be data. Never goes back to false.
  bool faulted() const;

 private:
  explicit FaultGuard(size_t slot) : slot_(slot) {}
  const size_t slot_;
};

}  // namespace isozone
