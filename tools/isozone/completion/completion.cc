#include "isozone/completion/completion.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace isozone::cli {
namespace {

bool TakesValue(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

// What has been typed before the current word.
struct Typed {
  const CLI::App* command = nullptr;     // the innermost command that is named
  const CLI::Option* pending = nullptr;  // the option whose value comes next
  size_t positionals = 0;                // words for its positional arguments
};

const CLI::Option* FindOption(const CLI::App& program, const CLI::App& command, std::string_view word) {
  const std::string name(word.substr(0, word.find('=')));
  const auto* own = command.get_option_no_throw(name);
  return own != nullptr ? own : program.get_option_no_throw(name);
}

void Take(const CLI::App& program, std::string_view word, Typed& typed) {
  if (typed.pending != nullptr) {
    typed.pending = nullptr;
    return;
  }
  if (word.starts_with('-') && word.size() > 1) {
    const auto* option = FindOption(program, *typed.command, word);
    if (option != nullptr && TakesValue(*option) && word.find('=') == std::string_view::npos) typed.pending = option;
    return;
  }
  const auto named = typed.command->get_subcommands([&](const CLI::App* sub) { return sub->get_name() == word; });
  if (named.empty()) {
    ++typed.positionals;
  } else {
    typed.command = named.front();
  }
}

std::string Line(std::string_view candidate, std::string_view meaning) {
  return fmt::format("{}\t{}\n", candidate, meaning.substr(0, meaning.find('\n')));
}

// The value of an option or positional argument, of which --help says `text`.
std::string ValuesOf(std::string_view text) {
  static constexpr std::string_view kFiles[] = {"FILE", "BACKUP", "TARGET", "PROGRAM"};
  if (text == "DIRECTORY") return ":directories\n";
  if (std::ranges::find(kFiles, text) != std::end(kFiles)) return ":files\n";
  std::string values;
  if (text.find('|') == std::string_view::npos) return values;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('|', at), text.size());
    values += Line(text.substr(at, end - at), "");
    at = end + 1;
  }
  return values;
}

std::string OptionsOf(const CLI::App& command) {
  std::string options;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) options += Line("--" + name, option->get_description());
  }
  return options;
}

std::string PositionalOf(const CLI::App& command, size_t index) {
  const auto positionals = command.get_options([](const CLI::Option* option) { return option->get_positional(); });
  if (positionals.empty()) return "";
  // The last one may take many words.
  return ValuesOf(positionals[std::min(index, positionals.size() - 1)]->get_name(/*positional=*/true));
}

}  // namespace

std::string CompletionsOf(const CLI::App& program, std::span<const char* const> words) {
  if (words.empty()) return "";
  Typed typed{&program};
  for (const char* word : words.first(words.size() - 1)) Take(program, word, typed);
  const std::string_view current = words.back();
  if (typed.pending != nullptr) return ValuesOf(typed.pending->get_option_text());
  if (current.starts_with('-')) {
    const auto* option = FindOption(program, *typed.command, current);
    if (current.find('=') != std::string_view::npos)
      return option == nullptr ? "" : ValuesOf(option->get_option_text());
    if (typed.command == &program) return OptionsOf(program);
    const auto* color = program.get_option_no_throw("--color");
    return OptionsOf(*typed.command) + (color == nullptr ? "" : Line("--color", color->get_description()));
  }
  const auto parts = typed.command->get_subcommands([](const CLI::App*) { return true; });
  if (parts.empty()) return PositionalOf(*typed.command, typed.positionals);
  std::string names;
  if (typed.positionals > 0) return names;  // a word that is no command
  for (const CLI::App* part : parts) names += Line(part->get_name(), part->get_description());
  return names;
}

}  // namespace isozone::cli
