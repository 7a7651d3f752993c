// run: starts a program whose RocksDB keeps the mapped directories on devices. What is preloaded into it, and does the
// work, is libisozone_run.so (rocksdb/library/preload.cc). What can be known to fail is found here, before the program
// starts and before anything is made.
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/uri.h"
#include "isozone/command.h"
#include "isozone/path.h"
#include "isozone/run/program.h"
#include "isozone/session.h"

namespace isozone::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kShell[] = "/bin/sh";

struct RunArguments {
  std::vector<std::string> maps;
  std::vector<std::string> command;
};

struct Mapping {
  std::string directory;  // absolute
  std::string resolved;   // that, without symbolic links
  std::string device;     // SCHEME:PATH, without symbolic links
  std::string uri;        // with an absolute path, and with options
};

std::string Absolute(const std::string& path) {
  return std::string(WithoutTrailingSlashes(fs::absolute(path).lexically_normal().string()));
}

// `path`, absolute, without symbolic links, where they can be followed.
std::string Resolve(const std::string& path) {
  std::error_code error;
  const fs::path resolved = fs::weakly_canonical(path, error);
  return error ? path : Absolute(resolved.string());
}

// Whether `path` is `directory` or below it.
bool IsIn(std::string_view path, std::string_view directory) {
  return path.starts_with(directory) && (path.size() == directory.size() || path[directory.size()] == '/');
}

Result<Mapping> ParseMapping(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos || text.find('\n') != std::string::npos) {
    return Status::InvalidArgument(
        fmt::format("--map takes DIRECTORY=DEVICE, as /var/lib/app=dev:/dev/nvme0n2, not '{}'", text));
  }
  ISOZONE_ASSIGN_OR_RETURN(const Uri uri, ParseUri(text.substr(equals + 1)));
  if (uri.path.empty()) {
    return Status::InvalidArgument(fmt::format("'{}' names no device behind {}:", text, uri.scheme));
  }
  const std::string directory = Absolute(text.substr(0, equals));
  const std::string path = Absolute(uri.path);
  if (directory.empty() || Resolve(directory).empty()) {
    return Status::InvalidArgument("the root directory cannot be mapped; map the directory that the databases lie in");
  }
  Mapping mapping{directory, Resolve(directory), fmt::format("{}:{}", uri.scheme, Resolve(path)),
                  fmt::format("{}:{}", uri.scheme, path)};
  const std::string options = uri.options.Rest();
  if (!options.empty()) mapping.uri += fmt::format("?{}", options);
  return mapping;
}

// Whether RocksDB would miss the file, which may be all that a database has in a directory of tables or logs.
bool IsOfDatabase(const std::string& name) {
  if (name == "CURRENT") return true;
  const size_t dot = name.find_first_not_of("0123456789");
  if (dot != 6 && dot != 7) return false;  // other programs name logs by dates, for example
  const std::string suffix = name.substr(dot);
  return suffix == ".log" || suffix == ".sst" || suffix == ".blob";
}

// A database that lies in the local directory, however deep, would not be seen any more.
Status CheckHoldsNoDatabase(const std::string& directory) {
  const auto found_in = [](const fs::path& place) {
    return Status::NotEmpty(fmt::format(
        "{} holds a database, which the program would not find on the device; move it there with 'isozone cp "
        "-r', or map another directory",
        place.string()));
  };
  std::error_code error;
  fs::recursive_directory_iterator entry(directory, fs::directory_options::skip_permission_denied, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (IsOfDatabase(entry->path().filename().string())) return found_in(entry->path().parent_path());
    std::error_code ignored;
    if (entry->is_symlink(ignored) && fs::exists(entry->path() / "CURRENT", ignored)) return found_in(entry->path());
  }
  if (error) return Status::FromErrno(error.value(), fmt::format("cannot look for databases in {}", directory));
  return Status::Ok();
}

Status PrepareDirectory(const std::string& directory) {
  std::error_code error;
  if (!fs::exists(directory, error)) {
    if (!fs::create_directory(directory, error)) {
      return Status::FromErrno(error ? error.value() : EIO, fmt::format("cannot create {}", directory));
    }
  }
  if (!fs::is_directory(directory, error)) return Status::NotDirectory(fmt::format("{} is no directory", directory));
  return CheckHoldsNoDatabase(directory);
}

// Whether there is a file system on it, without taking it from a process that writes to it.
Status CheckDevice(const Mapping& mapping) { return MountByUri(mapping.uri, OpenMode::kReadOnly).status(); }

Result<std::vector<Mapping>> ParseMappings(const std::vector<std::string>& texts) {
  std::vector<Mapping> mappings;
  for (const std::string& text : texts) {
    ISOZONE_ASSIGN_OR_RETURN(Mapping mapping, ParseMapping(text));
    for (const Mapping& other : mappings) {
      if (IsIn(mapping.resolved, other.resolved) || IsIn(other.resolved, mapping.resolved)) {
        return Status::InvalidArgument(
            fmt::format("{} and {} lie in each other; map one of them", other.directory, mapping.directory));
      }
      if (mapping.device != other.device) continue;
      return Status::InvalidArgument(
          fmt::format("{} and {} are mapped to one device; map the directory that both lie in", other.directory,
                      mapping.directory));
    }
    mappings.push_back(std::move(mapping));
  }
  return mappings;
}

// The libraries lie where they are installed, or in the build directory that this program lies in.
Result<std::string> FindLibraries() {
  std::error_code error;
  const fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* folder : {ISOZONE_BIN_TO_LIB, "../../src/rocksdb/library"}) {
    const fs::path libraries = (here / folder).lexically_normal();
    if (!fs::exists(libraries / "libisozone_run.so", error)) continue;
    if (libraries.string().find_first_of(" \t\n:$") == std::string::npos) return libraries.string();
    return Status::NotSupported(
        fmt::format("nothing can be preloaded from '{}'; install Isozone below a path without spaces, ':' and '$'",
                    libraries.string()));
  }
  return Status::NotFound(fmt::format("libisozone_run.so is not in {}; install Isozone again",
                                      (here / ISOZONE_BIN_TO_LIB).lexically_normal().string()));
}

Status Run(const RunArguments& arguments) {
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<Mapping> mappings, ParseMappings(arguments.maps));
  ISOZONE_ASSIGN_OR_RETURN(const std::string program, FindProgram(arguments.command.front()));
  ISOZONE_ASSIGN_OR_RETURN(const std::string libraries, FindLibraries());
  ISOZONE_RETURN_IF_ERROR(CheckCanBePreloaded(program, JoinPath(libraries, "libisozone.so")));
  for (const Mapping& mapping : mappings) ISOZONE_RETURN_IF_ERROR(CheckDevice(mapping));
  std::string lines;
  for (const Mapping& mapping : mappings) {
    ISOZONE_RETURN_IF_ERROR(PrepareDirectory(mapping.directory));
    lines += fmt::format("{}{}=isozone://{}", lines.empty() ? "" : "\n", mapping.directory, mapping.uri);
  }
  const char* const preloaded = std::getenv("LD_PRELOAD");
  std::string preload = JoinPath(libraries, "libisozone_run.so");
  if (preloaded != nullptr && *preloaded != '\0') preload += fmt::format(":{}", preloaded);
  ::setenv("LD_PRELOAD", preload.c_str(), 1);
  ::setenv("ISOZONE_MAP", lines.c_str(), 1);

  std::vector<char*> words;
  for (const std::string& word : arguments.command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execv(program.c_str(), words.data());
  if (errno == ENOEXEC) {  // a script without #!, which the shell runs, as env(1) has it
    words.front() = const_cast<char*>(program.c_str());
    words.insert(words.begin(), const_cast<char*>(kShell));
    ::execv(kShell, words.data());
  }
  return Status::FromErrno(errno, program);
}

Action DefineRunProgram(CLI::App& app) {
  auto arguments = std::make_shared<RunArguments>();
  app.add_option("--map", arguments->maps, "Keep what RocksDB has in DIRECTORY on DEVICE; may be given again")
      ->required()
      ->option_text("DIRECTORY=DEVICE")
      ->allow_extra_args(false);
  app.add_option("PROGRAM", arguments->command, "The program and its arguments, behind --")
      ->required()
      ->option_text("[ARGUMENT ...]");
  return [arguments](Console&) { return Run(*arguments); };
}

}  // namespace

extern const Command kRunCommand = {"run", "Run a program whose RocksDB keeps a directory on a device",
                                    "  isozone run --map /var/lib/app=dev:/dev/nvme0n2 -- app --data /var/lib/app/db",
                                    DefineRunProgram};

}  // namespace isozone::cli
