// isozone: the command line. Parses it, runs one command, and converts its Status to one line and an exit code.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/suggest.h"
#include "isozone/command.h"
#include "isozone/exit_code.h"
#include "store/mount_options.h"

namespace isozone::cli {
namespace {

const std::map<std::string, ColorMode> kColorModes = {
    {"auto", ColorMode::kAuto}, {"always", ColorMode::kAlways}, {"never", ColorMode::kNever}};

std::vector<std::string> CommandNames() {
  std::vector<std::string> names;
  for (const Command& command : Commands()) names.emplace_back(command.name);
  return names;
}

std::string ExitCodeHelp() {
  std::string text = "Exit codes:\n";
  for (const ExitCodeEntry& entry : ExitCodes()) {
    text += fmt::format("  {:>2}  {}\n", static_cast<int>(entry.code), entry.meaning);
  }
  return text + "\nisozone COMMAND --help explains a command; man isozone explains them all.";
}

std::string MountOptionHelp() {
  std::string text = "Options of a mount, behind DEVICE as ?KEY=VALUE&KEY=VALUE, and their defaults:\n";
  for (const auto& [example, default_value, meaning] : ListMountOptions()) {
    text += fmt::format("  {:<27}  {:<9}  {}\n", example, default_value, meaning);
  }
  return text + "\n";
}

// `message` without what could end the line or drive the terminal: names in it may be any bytes. Its backslashes stay.
std::string OneLine(std::string_view message) {
  std::string line;
  for (size_t at = 0; at < message.size();) {
    const size_t end = std::min(message.find('\\', at), message.size());
    line += Printable(message.substr(at, end - at)) + std::string(message.substr(end, 1));
    at = end + 1;
  }
  return line;
}

int Fail(std::string_view command, const Status& status) {
  const std::string prefix = command.empty() ? "isozone" : fmt::format("isozone {}", command);
  std::fputs(fmt::format("{}: {}\n", prefix, OneLine(status.message())).c_str(), stderr);
  return static_cast<int>(ExitCodeOf(status));
}

// CLI11 reports only that a subcommand is missing. This check names the word that was meant to be one.
Status CheckCommandWord(int argc, char** argv) {
  const std::vector<std::string> names = CommandNames();
  if (argc < 2) return Status::InvalidArgument(fmt::format("no command given; use one of {}", fmt::join(names, " ")));
  const std::string_view word = argv[1];
  if (word.starts_with("-") || std::ranges::find(names, word) != names.end()) return Status::Ok();
  return Status::InvalidArgument(fmt::format("unknown command '{}'{}", word, SuggestName(word, names)));
}

int ParseFailure(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(error);  // --help, --version
  std::string command;  // such as "bench gc collect"
  for (auto chosen = app.get_subcommands(); !chosen.empty(); chosen = chosen.front()->get_subcommands()) {
    command += (command.empty() ? "" : " ") + chosen.front()->get_name();
  }
  const std::string help = command.empty() ? "isozone --help" : fmt::format("isozone {} --help", command);
  std::string what = error.what();
  std::ranges::replace(what, '\n', ' ');
  return Fail(command, Status::InvalidArgument(fmt::format("{}; see {}", what, help)));
}

// Opens what is closed of the standard streams, so that no other file gets their descriptors. Reading from them, or
// writing to them, fails as before.
void KeepStandardStreamsApart() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) < 0) (void)!::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

int Main(int argc, char** argv) {
  KeepStandardStreamsApart();
  CLI::App app("Isozone: RocksDB on zoned flash. Formats, inspects and measures devices.", "isozone");
  app.set_version_flag("--version", "isozone " ISOZONE_VERSION);
  app.footer(MountOptionHelp() + ExitCodeHelp());
  app.require_subcommand(1);
  app.fallthrough();
  ColorMode color = ColorMode::kAuto;
  app.add_option("--color", color, "auto, always or never; auto looks at the terminal and NO_COLOR")
      ->transform(CLI::CheckedTransformer(kColorModes).description(""))
      ->option_text("WHEN");

  Action action;
  std::string chosen;
  for (const Command& command : Commands()) {
    CLI::App* sub = app.add_subcommand(command.name, command.summary);
    sub->footer(fmt::format("Example:\n{}", command.example));
    Action defined = command.define(*sub);
    sub->final_callback([&action, &chosen, &command, defined] {
      action = defined;
      chosen = command.name;
    });
  }

  const Status word = CheckCommandWord(argc, argv);
  if (!word.ok()) return Fail("", word);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return ParseFailure(app, error);
  }

  Console console(color);
  Status status = action(console);
  const Status flushed = console.Flush();
  if (status.ok()) status = flushed;
  return status.ok() ? static_cast<int>(ExitCode::kOk) : Fail(chosen, status);
}

}  // namespace
}  // namespace isozone::cli

int main(int argc, char** argv) {
  try {
    return isozone::cli::Main(argc, argv);
  } catch (const std::exception& error) {
    return isozone::cli::Fail("", isozone::cli::StatusOf(error));
  }
}
