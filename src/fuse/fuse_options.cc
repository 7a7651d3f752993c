#include "fuse/fuse_options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <span>

#include <fmt/format.h>

#include "base/suggest.h"

namespace isozone {
namespace {

// What the kernel knows of a mount. The right to more than nosuid and nodev is checked by the kernel and fusermount3.
constexpr std::array<std::string_view, 10> kKernelWords = {"suid",   "nosuid",  "dev",  "nodev", "exec",
                                                           "noexec", "noatime", "sync", "async", "dirsync"};
// What mount(8), systemd or other file systems of /etc/fstab mean by an option, and what is so anyway.
constexpr std::array<std::string_view, 20> kIgnoredWords = {
    "defaults", "auto",       "noauto",      "user",     "nouser",
    "users",    "owner",      "group",       "nofail",   "_netdev",
    "relatime", "norelatime", "strictatime", "lazytime", "atime",
    "diratime", "nodiratime", "loud",        "silent",   "default_permissions"};
constexpr std::array<std::string_view, 3> kIgnoredPrefixes = {"x-", "X-", "comment="};

bool Has(std::span<const std::string_view> words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

Result<uint32_t> ParseNumber(std::string_view option, std::string_view text, int base, uint32_t least, uint32_t most) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc() || end != text.data() + text.size() || number < least || number > most) {
    const std::string range = base == 8 ? fmt::format("an octal number up to {:o}", most)
                                        : fmt::format("a number from {} to {}", least, most);
    return Status::InvalidArgument(fmt::format("-o {}={}: give {}", option, text, range));
  }
  return number;
}

Result<bool> ParseSwitch(std::string_view option, std::string_view text) {
  if (text == "on" || text.empty()) return true;
  if (text == "off") return false;
  return Status::InvalidArgument(fmt::format("-o {}={}: give on or off", option, text));
}

Status Unknown(std::string_view option) {
  std::vector<std::string> known = {"ro", "allow_other"};
  for (const FuseOptionHelp& help : ListFuseOptions())
    known.emplace_back(help.example.substr(0, help.example.find('=')));
  const std::string_view name = option.substr(0, option.find('='));
  return Status::InvalidArgument(
      fmt::format("unknown option '-o {}'{}; see isozone mount --help", option, SuggestName(name, known)));
}

// An option KEY=VALUE, or a KEY alone with an empty value.
Status SetValue(FuseOptions& options, std::string_view key, std::string_view value, std::string_view option) {
  constexpr uint32_t kMostId = std::numeric_limits<uint32_t>::max() - 1;
  if (key == "writeback") {
    ISOZONE_ASSIGN_OR_RETURN(options.writeback, ParseSwitch(key, value));
  } else if (key == "io_uring") {
    ISOZONE_ASSIGN_OR_RETURN(options.io_uring, ParseSwitch(key, value));
  } else if (key == "inplace" && (value == "refuse" || value == "copy")) {
    options.refuse_in_place = value == "refuse";
  } else if (key == "inplace") {
    return Status::InvalidArgument(fmt::format("-o {}: give inplace=copy or inplace=refuse", option));
  } else if (key == "uid") {
    ISOZONE_ASSIGN_OR_RETURN(options.uid, ParseNumber(key, value, 10, 0, kMostId));
  } else if (key == "gid") {
    ISOZONE_ASSIGN_OR_RETURN(options.gid, ParseNumber(key, value, 10, 0, kMostId));
  } else if (key == "umask") {
    ISOZONE_ASSIGN_OR_RETURN(options.umask, ParseNumber(key, value, 8, 0, 0777));
  } else if (key == "threads") {
    ISOZONE_ASSIGN_OR_RETURN(options.threads, ParseNumber(key, value, 10, 2, FuseOptions::kMostThreads));
  } else {
    return Unknown(option);
  }
  return Status::Ok();
}

Status AddOne(FuseOptions& options, std::string_view option) {
  const bool ignored =
      Has(kIgnoredWords, option) ||
      std::ranges::any_of(kIgnoredPrefixes, [&](std::string_view prefix) { return option.starts_with(prefix); });
  if (option == "ro") {
    options.read_only = true;
  } else if (option == "rw") {
    options.read_only = false;
  } else if (option == "allow_other") {
    options.allow_other = true;
  } else if (option == "remount") {
    return Status::InvalidArgument("-o remount: unmount it, and mount it with other options");
  } else if (Has(kKernelWords, option)) {
    options.kernel.emplace_back(option);
  } else if (!ignored) {
    const size_t equals = option.find('=');
    const std::string_view value = equals == std::string_view::npos ? std::string_view() : option.substr(equals + 1);
    return SetValue(options, option.substr(0, equals), value, option);
  }
  return Status::Ok();
}

}  // namespace

Status FuseOptions::Add(std::string_view list) {
  while (!list.empty()) {
    const size_t comma = list.find(',');
    const std::string_view option = list.substr(0, comma);
    if (!option.empty()) ISOZONE_RETURN_IF_ERROR(AddOne(*this, option));
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
  return Status::Ok();
}

std::vector<FuseOptionHelp> ListFuseOptions() {
  return {{"ro", "read-only, also beside a process that writes"},
          {"allow_other", "for all users, as the modes of files allow; otherwise only for the one who mounts"},
          {"uid=N", "all files are shown as owned by this user"},
          {"gid=N", "all files are shown as of this group"},
          {"umask=M", "permissions that all files are shown without, octal"},
          {"writeback=on",
           "the kernel keeps unsynced writes and sends them later; on a full device only fsync and close fail (off)"},
          {"inplace=refuse", "writes over bytes that are there fail with EOPNOTSUPP (copy: they work, slowly)"},
          {"io_uring=off", "requests come by /dev/fuse (on: by io_uring, where the kernel offers it)"},
          {"threads=N", "requests that are served at once (8)"}};
}

}  // namespace isozone
