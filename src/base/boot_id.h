// BootId: which boot of the machine this is. What a process has left in memory is of use in the boot in which it was
// left.
#pragma once

#include <string>

#include "base/status.h"

namespace isozone {

// The kernel's id of this boot. kNotFound: this machine does not tell it. After any other error it is not known now, as
// where this process may open no more files: nobody may take that for another boot.
Result<std::string> BootId();

}  // namespace isozone
