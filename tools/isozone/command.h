// A command of the command line: its name, its help and its options. The table is the only list of commands.
#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <string>

#include <CLI/CLI.hpp>

#include "base/status.h"
#include "isozone/output/console.h"

namespace isozone::cli {

// What a command does once its options are parsed.
using Action = std::function<Status(Console& console)>;

struct Command {
  const char* name;
  const char* summary;
  const char* example;              // lines for --help, each with its two leading spaces
  Action (*define)(CLI::App& app);  // adds the options to `app`; the action reads the values that were parsed
};
std::span<const Command> Commands();

Action DefineMkfs(CLI::App& app);
Action DefineInfo(CLI::App& app);
Action DefineDf(CLI::App& app);
Action DefineLs(CLI::App& app);
Action DefineStat(CLI::App& app);
Action DefineCat(CLI::App& app);
Action DefineCp(CLI::App& app);
Action DefineRm(CLI::App& app);
Action DefineZones(CLI::App& app);
Action DefineFsck(CLI::App& app);
Action DefineDump(CLI::App& app);
Action DefineIzg(CLI::App& app);
Action DefineGc(CLI::App& app);
Action DefineBench(CLI::App& app);
Action DefineStats(CLI::App& app);
Action DefineTop(CLI::App& app);
Action DefineServe(CLI::App& app);
Action DefineAdvise(CLI::App& app);
Action DefineWhy(CLI::App& app);
Action DefineMount(CLI::App& app);
Action DefineExport(CLI::App& app);
Action DefineRunProgram(CLI::App& app);
Action DefineBackup(CLI::App& app);
Action DefineImport(CLI::App& app);
Action DefineRestore(CLI::App& app);
Action DefineSimulate(CLI::App& app);

// A command with several parts: adds each of `parts` as a subcommand, of which exactly one must be given.
Action DefineParts(CLI::App& app, std::initializer_list<Command> parts);

// The options that many commands share.
void AddDeviceArgument(CLI::App& app, std::string& device);
void AddJsonFlag(CLI::App& app, bool& json);

}  // namespace isozone::cli
