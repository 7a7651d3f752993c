# Writes OUTPUT, a C++ file that holds the files of the live map: cmake -D DIRECTORY=web -D OUTPUT=web_files.cc -P ...
set(names index.html map.css look.js history.js grid.js panel.js map.js)
set(tables "")
set(entries "")
foreach(name ${names})
  file(READ ${DIRECTORY}/${name} hex HEX)
  string(LENGTH "${hex}" length)
  math(EXPR bytes "${length} / 2")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," values "${hex}")
  string(MAKE_C_IDENTIFIER ${name} identifier)
  string(APPEND tables "constexpr unsigned char k_${identifier}[] = {${values}};\n")
  set(path /${name})
  if(name STREQUAL "index.html")
    set(path /)
    set(type "text/html; charset=utf-8")
  elseif(name MATCHES "[.]css$")
    set(type "text/css; charset=utf-8")
  else()
    set(type "text/javascript; charset=utf-8")
  endif()
  string(APPEND entries "    {\"${path}\", \"${type}\", {reinterpret_cast<const char*>(k_${identifier}), ${bytes}}},\n")
endforeach()
file(WRITE ${OUTPUT} "#include \"isozone/web/web_files.h\"

#include <algorithm>
#include <array>

namespace isozone::cli {
namespace {

${tables}
const std::array kFiles = std::to_array<WebFile>({
${entries}});

}  // namespace

const WebFile* FindWebFile(std::string_view path) {
  const auto found = std::ranges::find(kFiles, path, &WebFile::path);
  return found == kFiles.end() ? nullptr : &*found;
}

}  // namespace isozone::cli
")
