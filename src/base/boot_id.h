// BootId tells one boot of the machine from another: what a process has left in memory is of use in the same boot only.
#pragma once

#include <string>

#include "base/status.h"

namespace isozone {

// Returns the kernel's id of this boot. kNotFound: the machine has none. Any other error (this process may open no more
// files, for instance) leaves it unknown, and must not be taken for another boot.
Result<std::string> BootId();

}  // namespace isozone
