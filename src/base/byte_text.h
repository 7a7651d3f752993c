// Names as text. A name is any bytes, and JSON, Prometheus and terminals want UTF-8. Here a byte that begins no
// character of UTF-8 becomes \xHH, and a backslash becomes two, so that all names stay apart and the bytes can be had
// back; a name in UTF-8 without a backslash is its own text.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace isozone {

enum class ControlCharacters : bool {
  kKept,
  kEscaped,  // also written as \xHH, byte by byte, so that they cannot drive a terminal
};
std::string TextOfBytes(std::string_view bytes, ControlCharacters controls = ControlCharacters::kKept);

// Returns `document` as JSON, in one line, or with `indent` spaces for each level. Its strings may hold any bytes, and
// are written as TextOfBytes does.
std::string JsonText(nlohmann::ordered_json document, int indent = -1);

}  // namespace isozone
