// What libfuse says on standard error, and fusermount3, which it starts: the line that a failed mount says holds it.
//
// Thread safety: one call at a time in a process. Others may write to standard error meanwhile.
#pragma once

#include <functional>
#include <string>

#include "base/status.h"

namespace isozone {

// Calls `call`, and gives the lines that began with "fuse" on standard error meanwhile, with "; " between them. Every
// other line, such as those of the log, comes to standard error after the call. An error, without a call: this process
// may open no more files.
Result<std::string> CollectFuseMessages(const std::function<void()>& call);

}  // namespace isozone
