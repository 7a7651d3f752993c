// A program of commands: its name, its help and its commands, and how it is run. `isozone` is one, and so are tools of
// the lab.
#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <string>

#include <CLI/CLI.hpp>

#include "base/status.h"
#include "isozone/output/console.h"

namespace isozone::cli {

// The function that a command runs once its options are parsed.
using Action = std::function<Status(Console& console)>;

struct Command {
  const char* name;
  const char* summary;
  const char* example;              // lines for --help, each with its two leading spaces
  Action (*define)(CLI::App& app);  // adds the options to `app`; the action reads the values that were parsed
};

// The commands of a program.
struct Program {
  const char* name;
  const char* summary;
  std::span<const Command> commands;
  std::string footer;  // at the end of --help
};

// Parses the command line of a process, or answers a shell that completes one (completion/completion.h), runs the
// command that it names, and converts its Status to one line on standard error and an exit code, which it returns. To
// be called once, by main().
int RunProgram(const Program& program, int argc, char** argv);

// Gives a command several parts: adds each of `parts` as a subcommand, of which exactly one must be given.
Action DefineParts(CLI::App& app, std::initializer_list<Command> parts);

// The options that many commands share.
void AddDeviceArgument(CLI::App& app, std::string& device);
void AddJsonFlag(CLI::App& app, bool& json);
// Adds an option for a size as in URIs: 4096, 192K, 1GiB.
void AddSizeOption(CLI::App& app, const std::string& name, uint64_t& bytes, const std::string& help);
// Adds the flag of benchmarks that lets them use zones that are not empty.
void AddDestroyFlag(CLI::App& app, bool& destroy);

}  // namespace isozone::cli
