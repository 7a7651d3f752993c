#include "base/thread.h"

#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/no_thread.h"

namespace isozone {

Result<std::thread> StartThread(std::string_view what, std::function<void()> run) {
  try {
    return std::thread(std::move(run));
  } catch (const std::system_error& error) {
    return NoThread(fmt::format("cannot start a thread for {}", what), error.code());
  }
}

}  // namespace isozone
