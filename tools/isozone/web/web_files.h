// The files of the live map, which are part of the program: web_files.cmake puts them there as they are.
//
// Thread safety: pure functions.
#pragma once

#include <string_view>

namespace isozone::cli {

struct WebFile {
  std::string_view path;  // "/map.css"; "/" for the page itself
  const char* type;
  std::string_view content;
};

// Returns the file of this path; null if there is none.
const WebFile* FindWebFile(std::string_view path);

}  // namespace isozone::cli
