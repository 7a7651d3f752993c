// Paths as text: '/'-separated, for the device and the local file system alike.
#pragma once

#include <string>
#include <string_view>

namespace isozone::cli {

inline std::string_view WithoutTrailingSlashes(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  return path;
}

// Returns "/db" for "/db/CURRENT", "/" for "/db".
inline std::string ParentPath(std::string_view path) {
  path = WithoutTrailingSlashes(path);
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  const std::string_view parent = WithoutTrailingSlashes(path.substr(0, slash));
  return parent.empty() ? "/" : std::string(parent);
}

// Returns "CURRENT" for "/db/CURRENT", "" for "/".
inline std::string BaseName(std::string_view path) {
  path = WithoutTrailingSlashes(path);
  return std::string(path.substr(path.rfind('/') + 1));
}

inline std::string JoinPath(std::string_view directory, std::string_view name) {
  std::string path(directory);
  if (!path.ends_with('/')) path += '/';
  path += name;
  return path;
}

}  // namespace isozone::cli
