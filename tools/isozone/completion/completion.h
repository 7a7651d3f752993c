// What a shell offers for a word of the command line that is being typed. It follows from the commands and options
// themselves, so no list of them is kept for a shell: the scripts beside this file ask the program, by
//
//   isozone --complete WORD...        (the words behind the name of the program; the last one is being typed)
//
// The answer is lines of a candidate, a tab and what it means, for the shell to choose from by what is typed already;
// or one line, `:files` or `:directories`, if the word is the name of such. The value that an option takes is told by
// its text in --help: `on|off` are the words themselves, FILE, BACKUP, TARGET and DIRECTORY are names.
#pragma once

#include <span>
#include <string>

#include <CLI/CLI.hpp>

namespace isozone::cli {

// Returns the answer for `words`, which may be wrong or half typed: nothing is offered then.
std::string CompletionsOf(const CLI::App& program, std::span<const char* const> words);

}  // namespace isozone::cli
