// FaultGuard: lets the process survive if the host cannot deliver pages of a mapped file, because its disk has a read
// error or because the file was truncated.
//
// The kernel reports such a fault as SIGBUS in the thread that touches the page. The guard's handler replaces the page
// with zeros, so that the thread continues, and sets the flag of the mapping, so that its user stops trusting it.
// Faults elsewhere go to the previous handler, which by default ends the process.
//
// The first guard installs the handler, which stays installed. If a program installs its own SIGBUS handler later, and
// does not pass on faults that are not its own, this protection is lost.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/status.h"

namespace isozone {

// Thread safety: any thread may call faulted().
class FaultGuard {
 public:
  // Guards `mapping`, whole pages of a file, as long as this object lives. kBusy if the process already has as many
  // guards as it can (256).
  static Result<std::unique_ptr<FaultGuard>> Create(std::span<const std::byte> mapping);
  ~FaultGuard();
  FaultGuard(const FaultGuard&) = delete;
  FaultGuard& operator=(const FaultGuard&) = delete;

  // Returns whether some of the mapping reads as zeros instead of its data. Never goes back to false.
  bool faulted() const;

 private:
  explicit FaultGuard(size_t slot) : slot_(slot) {}
  const size_t slot_;
};

}  // namespace isozone
