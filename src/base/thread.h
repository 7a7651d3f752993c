// StartThread: the one way in which Isozone makes a thread. A process may be allowed no more of them (the limit of its
// user or of its container, or memory for a stack), and then whoever needs one gets a Status, in place of an exception
// that would end the process where it crosses a completion or a destructor.
#pragma once

#include <functional>
#include <string_view>
#include <thread>

#include "base/status.h"

namespace isozone {

// Starts a thread that runs `run`, which must not throw. `what` names the thread in the error: "the journal". kIoError:
// the system gives no further thread.
Result<std::thread> StartThread(std::string_view what, std::function<void()> run);

}  // namespace isozone
