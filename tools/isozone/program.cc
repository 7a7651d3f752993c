#include "isozone/program.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "base/suggest.h"
#include "base/uri.h"
#include "isozone/completion/completion.h"
#include "isozone/exit_code.h"

namespace isozone::cli {
namespace {

const std::map<std::string, ColorMode> kColorModes = {
    {"auto", ColorMode::kAuto}, {"always", ColorMode::kAlways}, {"never", ColorMode::kNever}};

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

int Fail(const Program& program, std::string_view command, const Status& status) {
  const std::string prefix = command.empty() ? program.name : fmt::format("{} {}", program.name, command);
  std::fputs(fmt::format("{}: {}\n", prefix, OneLine(status.message())).c_str(), stderr);
  return static_cast<int>(ExitCodeOf(status));
}

// CLI11 reports only that a subcommand is missing. This check names the word that was meant to be one.
Status CheckCommandWord(const Program& program, int argc, char** argv) {
  std::vector<std::string> names;
  for (const Command& command : program.commands) names.emplace_back(command.name);
  if (argc < 2) return Status::InvalidArgument(fmt::format("no command given; use one of {}", fmt::join(names, " ")));
  const std::string_view word = argv[1];
  if (word.starts_with('-') || std::ranges::find(names, word) != names.end()) return Status::Ok();
  return Status::InvalidArgument(fmt::format("unknown command '{}'{}", word, SuggestName(word, names)));
}

int ParseFailure(const Program& program, const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(error);  // --help, --version
  std::string command;                                                                             // such as "gc run"
  for (auto chosen = app.get_subcommands(); !chosen.empty(); chosen = chosen.front()->get_subcommands()) {
    command += (command.empty() ? "" : " ") + chosen.front()->get_name();
  }
  const std::string words = command.empty() ? command : " " + command;
  std::string what = error.what();
  std::ranges::replace(what, '\n', ' ');
  return Fail(program, command, Status::InvalidArgument(fmt::format("{}; see {}{} --help", what, program.name, words)));
}

// Opens what is closed of the standard streams, so that no other file gets their descriptors. Reading from them, or
// writing to them, fails as before.
void KeepStandardStreamsApart() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) < 0) (void)!::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

int ParseAndRun(const Program& program, int argc, char** argv) {
  KeepStandardStreamsApart();
  CLI::App app(program.summary, program.name);
  app.set_version_flag("--version", fmt::format("{} {}", program.name, ISOZONE_VERSION));
  app.footer(program.footer);
  app.require_subcommand(1);
  app.fallthrough();
  ColorMode color = ColorMode::kAuto;
  app.add_option_function<std::string>(
         "--color",
         [&color](const std::string& when) {
           const auto mode = kColorModes.find(when);
           if (mode == kColorModes.end()) throw CLI::ValidationError("--color", "write auto, always or never");
           color = mode->second;
         },
         "When to colour; auto looks at the terminal and NO_COLOR")
      ->option_text("auto|always|never");

  Action action;
  std::string chosen;
  for (const Command& command : program.commands) {
    CLI::App* sub = app.add_subcommand(command.name, command.summary);
    sub->footer(fmt::format("Example:\n{}", command.example));
    Action defined = command.define(*sub);
    sub->final_callback([&action, &chosen, &command, defined] {
      action = defined;
      chosen = command.name;
    });
  }

  if (argc >= 2 && argv[1] == std::string_view("--complete")) {
    std::fputs(CompletionsOf(app, std::span<const char* const>(argv, argc).subspan(2)).c_str(), stdout);
    return 0;
  }
  const Status word = CheckCommandWord(program, argc, argv);
  if (!word.ok()) return Fail(program, "", word);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return ParseFailure(program, app, error);
  }

  Console console(color);
  Status status = action(console);
  const Status flushed = console.Flush();
  if (status.ok()) status = flushed;
  return status.ok() ? static_cast<int>(ExitCode::kOk) : Fail(program, chosen, status);
}

}  // namespace

int RunProgram(const Program& program, int argc, char** argv) {
  try {
    return ParseAndRun(program, argc, argv);
  } catch (const std::exception& error) {
    return Fail(program, "", StatusOf(error));
  }
}

Action DefineParts(CLI::App& app, std::initializer_list<Command> parts) {
  app.require_subcommand(1);
  auto chosen = std::make_shared<Action>();
  for (const Command& part : parts) {
    CLI::App* sub = app.add_subcommand(part.name, part.summary);
    sub->footer(fmt::format("Example:\n{}", part.example));
    sub->final_callback([chosen, action = part.define(*sub)] { *chosen = action; });
  }
  return [chosen](Console& console) { return (*chosen)(console); };
}

void AddDeviceArgument(CLI::App& app, std::string& device) {
  app.add_option("DEVICE", device, "Device URI, as dev:/dev/nvme0n2 or emu:/data/ssd.img")
      ->required()
      ->option_text(" ");
}

void AddJsonFlag(CLI::App& app, bool& json) { app.add_flag("--json", json, "Write JSON"); }

void AddSizeOption(CLI::App& app, const std::string& name, uint64_t& bytes, const std::string& help) {
  app.add_option_function<std::string>(
         name,
         [name, &bytes](const std::string& text) {
           const auto size = ParseSize(text);
           if (!size.ok()) throw CLI::ValidationError(name, std::string(size.status().message()));
           bytes = *size;
         },
         help)
      ->option_text("SIZE");
}

void AddDestroyFlag(CLI::App& app, bool& destroy) {
  app.add_flag("--destroy", destroy,
               "Use the first zones of the device, whatever they hold: a file system on it is lost. Without it, only "
               "empty zones are used, and are empty again afterwards");
}

}  // namespace isozone::cli
