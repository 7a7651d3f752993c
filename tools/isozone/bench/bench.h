// The parts of `isozone bench`.
#pragma once

#include <cstdint>
#include <string>

#include "base/uri.h"
#include "isozone/command.h"

namespace isozone::cli {

inline constexpr uint32_t kMaxDepth = 1024;  // commands in flight at once

Action DefineBenchDevice(CLI::App& app);
Action DefineBenchIo(CLI::App& app);
Action DefineBenchGc(CLI::App& app);

// A size as in URIs: 4096, 192K, 1GiB.
void AddSizeOption(CLI::App& app, const std::string& name, uint64_t& bytes, const std::string& help);
void AddDestroyFlag(CLI::App& app, bool& destroy);

}  // namespace isozone::cli
