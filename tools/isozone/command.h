// The commands of the command line. The table in commands.cc is the only list of them.
#pragma once

#include <span>

#include "isozone/program.h"

namespace isozone::cli {

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

}  // namespace isozone::cli
