// What a shell offers for a word of the command line that is being typed. It follows from the commands and options
// themselves, so no list of them is kept for a shell: the scripts beside this file ask the program, by
//
//   isozone --complete WORD...        (the words behind the name of the program; the last one is being typed)
//
// The answer has a line for each candidate, with a tab and what it means; the shell chooses by what is typed already.
// If the word names a file or a directory, the answer is the one line `:files` or `:directories`. An option tells its
// values by its text in --help: `on|off` are the words themselves, FILE, BACKUP, TARGET and DIRECTORY are names.
#pragma once

#include <span>
#include <string>

#include <CLI/CLI.hpp>

namespace isozone::cli {

// Returns the answer for `words`, which may be wrong or half typed: nothing is offered then.
std::string CompletionsOf(const CLI::App& program, std::span<const char* const> words);

}  // namespace isozone::cli
