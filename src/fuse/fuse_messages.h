// Collects what libfuse, and fusermount3, which it starts, say on standard error, because a failed mount says only
// there why.
//
// Thread safety: one call at a time in a process. Others may write to standard error meanwhile.
#pragma once

#include <functional>
#include <string>

#include "base/status.h"

namespace isozone {

// Calls `call`, and returns the lines that began with "fuse" on standard error meanwhile, with "; " between them. Every
// other line, such as those of the log, comes to standard error after the call. If this process may open no more files,
// returns an error and does not call.
Result<std::string> CollectFuseMessages(const std::function<void()>& call);

}  // namespace isozone
