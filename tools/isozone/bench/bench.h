// The parts of `isozone bench`.
#pragma once

#include <cstdint>

#include "isozone/command.h"

namespace isozone::cli {

inline constexpr uint32_t kMaxDepth = 1024;  // commands in flight at once

Action DefineBenchDevice(CLI::App& app);
Action DefineBenchIo(CLI::App& app);

}  // namespace isozone::cli
