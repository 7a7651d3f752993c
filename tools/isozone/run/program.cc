#include "isozone/run/program.h"

#include <elf.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "base/file_descriptor.h"
#include "isozone/path.h"

namespace isozone::cli {
namespace {

constexpr std::string_view kLibrary = "librocksdb.so";
// In every RocksDB, and in two pieces here, so that this program does not contain it.
constexpr std::string_view kCounterBegins = "rocksdb.block.cache";
constexpr std::string_view kCounterEnds = ".data.bytes.insert";
constexpr char kUseAMount[] = "put its directory on the device with 'isozone mount' instead";

// Up to `size` bytes at `offset`; fewer at the end of the file.
std::string ReadPiece(int fd, uint64_t offset, size_t size) {
  std::string piece(size, '\0');
  const ssize_t read = ::pread(fd, piece.data(), size, static_cast<off_t>(offset));
  piece.resize(read > 0 ? static_cast<size_t>(read) : 0);
  return piece;
}

// A T at `offset` of the file; empty: the file ends before.
template <typename T>
std::optional<T> ReadAs(int fd, uint64_t offset) {
  T value;
  const std::string piece = ReadPiece(fd, offset, sizeof(value));
  if (piece.size() < sizeof(value)) return std::nullopt;
  std::memcpy(&value, piece.data(), sizeof(value));
  return value;
}

struct ProgramKind {
  bool elf = false;         // of this machine's kind
  std::string interpreter;  // of a script, or the dynamic linker of an ELF file; empty: none
};

// "/bin/sh" of "#!/bin/sh -e".
std::string ScriptInterpreter(const std::string& head) {
  const std::string line = head.substr(0, head.find('\n'));
  const size_t begin = line.find_first_not_of(" \t", 2);
  if (begin == std::string::npos) return {};
  return line.substr(begin, line.find_first_of(" \t", begin) - begin);
}

ProgramKind KindOf(int fd) {
  constexpr size_t kHead = 256;
  ProgramKind kind;
  const std::string head = ReadPiece(fd, 0, kHead);
  if (head.starts_with("#!")) {
    kind.interpreter = ScriptInterpreter(head);
    return kind;
  }
  const auto header = ReadAs<Elf64_Ehdr>(fd, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64) {
    return kind;
  }
  kind.elf = true;
  for (uint64_t i = 0; i < header->e_phnum; ++i) {
    const auto segment = ReadAs<Elf64_Phdr>(fd, header->e_phoff + i * header->e_phentsize);
    if (!segment) break;
    if (segment->p_type != PT_INTERP) continue;
    const std::string name = ReadPiece(fd, segment->p_offset, std::min<uint64_t>(segment->p_filesz, PATH_MAX));
    kind.interpreter = name.substr(0, name.find('\0'));
  }
  return kind;
}

bool HasRocksDbInside(const std::string& path) {
  constexpr size_t kPiece = size_t{1} << 20;
  const std::string counter = std::string(kCounterBegins) + std::string(kCounterEnds);
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  for (uint64_t offset = 0;; offset += kPiece) {
    const std::string piece = ReadPiece(file.get(), offset, kPiece + counter.size());
    if (piece.find(counter) != std::string::npos) return true;
    if (piece.size() <= kPiece) return false;
  }
}

// What `command` prints; empty if it cannot be run.
std::string OutputOf(std::vector<const char*> command) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  const FileDescriptor output(ends[0]);
  FileDescriptor input(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.get(), STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  command.push_back(nullptr);
  pid_t child = 0;
  const int error = ::posix_spawn(&child, command[0], &actions, nullptr, const_cast<char**>(command.data()), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return {};
  input = FileDescriptor();
  std::string text;
  std::array<char, 4096> piece{};
  for (ssize_t size = 0; (size = ::read(output.get(), piece.data(), piece.size())) > 0;) {
    text.append(piece.data(), static_cast<size_t>(size));
  }
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return text;
}

struct NeededLibrary {
  std::string name;  // "librocksdb.so.7.8"
  std::string path;  // empty: it is not found
};

// The libraries that `file` needs, as its dynamic linker lists them: "\tlibc.so.6 => /lib/libc.so.6 (0x7f...)".
std::vector<NeededLibrary> LibrariesOf(const std::string& dynamic_linker, const std::string& file) {
  std::vector<NeededLibrary> libraries;
  std::string text = OutputOf({dynamic_linker.c_str(), "--list", file.c_str()});
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    const size_t arrow = line.find(" => ");
    if (arrow == std::string::npos) continue;
    const std::string target = line.substr(arrow + 4);
    libraries.push_back({BaseName(line.substr(line.find_first_not_of(" \t"), arrow - 1)),
                         target.starts_with('/') ? target.substr(0, target.rfind(" (")) : ""});
  }
  return libraries;
}

// The name of the RocksDB among `libraries`; empty: none.
std::string RocksDbAmong(const std::vector<NeededLibrary>& libraries) {
  for (const NeededLibrary& library : libraries) {
    if (library.name.starts_with(kLibrary)) return library.name;
  }
  return {};
}

Status CheckLibraries(const std::string& program, const std::string& dynamic_linker,
                      const std::string& isozone_library) {
  const std::vector<NeededLibrary> libraries = LibrariesOf(dynamic_linker, program);
  if (const std::string theirs = RocksDbAmong(libraries); !theirs.empty()) {
    const std::string ours = RocksDbAmong(LibrariesOf(dynamic_linker, isozone_library));
    if (theirs == ours) return Status::Ok();
    return Status::NotSupported(
        fmt::format("{} uses {}, but this Isozone is built for {}; build Isozone for that "
                    "release, or {}",
                    program, theirs, ours, kUseAMount));
  }
  std::vector<std::string> files{program};
  for (const NeededLibrary& library : libraries) files.push_back(library.path);
  const auto inside = std::ranges::find_if(files, HasRocksDbInside);
  if (inside == files.end()) return Status::Ok();
  return Status::NotSupported(
      fmt::format("RocksDB is linked into {}, where a preloaded library does not reach it; {}", *inside, kUseAMount));
}

Status CheckRights(const std::string& program) {
  struct stat found {};
  if (::stat(program.c_str(), &found) != 0) return Status::FromErrno(errno, program);
  const bool by_mode = (found.st_mode & (S_ISUID | S_ISGID)) != 0;
  if (!by_mode && ::getxattr(program.c_str(), "security.capability", nullptr, 0) <= 0) return Status::Ok();
  return Status::NotSupported(
      fmt::format("{} gets rights from its file, so that nothing can be preloaded into it; {}", program, kUseAMount));
}

}  // namespace

Result<std::string> FindProgram(const std::string& name) {
  std::vector<std::string> candidates;
  if (name.find('/') != std::string::npos) {
    candidates.push_back(name);
  } else {
    const char* const path = std::getenv("PATH");
    std::string folders = path != nullptr ? path : "/usr/bin:/bin";
    for (size_t begin = 0; begin <= folders.size();) {
      const size_t end = std::min(folders.find(':', begin), folders.size());
      candidates.push_back(JoinPath(begin == end ? "." : folders.substr(begin, end - begin), name));
      begin = end + 1;
    }
  }
  bool denied = false;
  for (const std::string& candidate : candidates) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(candidate, ignored)) continue;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    denied = true;
  }
  if (denied) return Status::PermissionDenied(fmt::format("'{}' cannot be executed", name));
  return Status::NotFound(fmt::format("no such program: '{}'", name));
}

Status CheckCanBePreloaded(const std::string& program, const std::string& isozone_library) {
  constexpr int kMostScripts = 5;  // as in Linux: an interpreter may be a script
  std::string file = program;
  for (int depth = 0; depth < kMostScripts; ++depth) {
    ISOZONE_RETURN_IF_ERROR(CheckRights(file));
    const FileDescriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    if (opened.get() < 0 && errno == EACCES) return Status::Ok();  // it can be run, but not looked at
    if (opened.get() < 0) return Status::FromErrno(errno, file);
    const ProgramKind kind = KindOf(opened.get());
    if (kind.elf && kind.interpreter.empty()) {
      return Status::NotSupported(
          fmt::format("{} is linked statically, so that nothing can be preloaded into it; {}", file, kUseAMount));
    }
    if (kind.elf) return CheckLibraries(file, kind.interpreter, isozone_library);
    if (kind.interpreter.empty()) return Status::Ok();  // the kernel says what it thinks of it
    file = kind.interpreter;
  }
  return Status::Ok();
}

}  // namespace isozone::cli
