// The commands of the command line. Each is defined in a file of its own in commands/, and listed in commands.cc: help
// and completion follow from that.
#pragma once

#include <span>

#include "isozone/program.h"

namespace isozone::cli {

// Returns all commands, in the order of --help.
std::span<const Command> Commands();

}  // namespace isozone::cli
