#include "rocksdb/adapter/adapter_uri.h"

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "base/uri.h"
#include "rocksdb/adapter/stats_file.h"

namespace isozone {
namespace {

bool IsOurs(std::string_view key) { return key == "read_only" || key == "log_dir" || key == "stats_file"; }

// Moves the adapter's KEY=VALUE pairs from the query of `uri` to `ours`; returns the rest of the URI.
std::string WithoutOurs(std::string_view uri, std::vector<std::pair<std::string, std::string>>& ours) {
  const size_t query_start = uri.find('?');
  std::string rest(uri.substr(0, query_start));
  if (query_start == std::string_view::npos) return rest;
  char separator = '?';
  std::string_view query = uri.substr(query_start + 1);
  for (bool more = true; more;) {
    const size_t end = query.find('&');
    const std::string_view pair = query.substr(0, end);
    more = end != std::string_view::npos;
    if (more) query.remove_prefix(end + 1);

    const std::string_view key = pair.substr(0, pair.find('='));
    if (IsOurs(key)) {
      ours.emplace_back(key, key.size() < pair.size() ? pair.substr(key.size() + 1) : "");
    } else {
      rest += separator;
      rest += pair;
      separator = '&';
    }
  }
  return rest;
}

Result<std::string> TakeAbsolutePath(UriOptions& options, std::string_view key) {
  std::string path = options.Take(key).value_or("");
  if (!path.empty() && path.front() != '/') {
    return Status::InvalidArgument(std::string(key) + "=" + path + ": give an absolute path");
  }
  return path;
}

// Below `directory`, apart from those of other devices.
Result<std::string> LogsOf(const std::string& device, const std::string& directory) {
  if (directory.empty()) return directory;
  ISOZONE_ASSIGN_OR_RETURN(const Uri uri, ParseUri(device));
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(uri.path, error).lexically_normal();
  if (error) return Status::FromErrno(error.value(), "cannot tell where " + uri.path + " is");
  return (std::filesystem::path(directory) / uri.scheme / path.relative_path()).string();
}

}  // namespace

Result<AdapterUri> AdapterUri::Parse(std::string_view uri) {
  std::vector<std::pair<std::string, std::string>> ours;
  AdapterUri parsed;
  parsed.rest = WithoutOurs(uri, ours);
  UriOptions options(std::move(ours));
  ISOZONE_ASSIGN_OR_RETURN(const std::optional<bool> read_only, options.TakeBool("read_only"));
  parsed.read_only = read_only.value_or(false);
  ISOZONE_ASSIGN_OR_RETURN(const std::string log_dir, TakeAbsolutePath(options, "log_dir"));
  ISOZONE_ASSIGN_OR_RETURN(parsed.log_dir, LogsOf(parsed.rest, log_dir));
  ISOZONE_ASSIGN_OR_RETURN(parsed.stats_file, TakeAbsolutePath(options, "stats_file"));
  if (!parsed.stats_file.empty()) ISOZONE_RETURN_IF_ERROR(StatsFile::Check(parsed.stats_file));
  return parsed;
}

}  // namespace isozone
