#include "base/byte_text.h"

#include <algorithm>

#include <fmt/format.h>

namespace isozone {
namespace {

// The bytes of the character of UTF-8 that `text`, which is not empty, begins with; 0: it begins with none. Overlong
// forms, surrogates and what is beyond U+10FFFF are none.
size_t CharacterBytes(std::string_view text) {
  const auto byte = [&](size_t at) { return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U; };
  const auto follow = [&](size_t count, unsigned low, unsigned high) {
    if (byte(1) < low || byte(1) > high) return size_t{0};
    for (size_t at = 2; at <= count; ++at) {
      if (byte(at) < 0x80 || byte(at) > 0xBF) return size_t{0};
    }
    return count + 1;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follow(1, 0x80, 0xBF);
  if (first >= 0xE0 && first <= 0xEF) return follow(2, first == 0xE0 ? 0xA0 : 0x80, first == 0xED ? 0x9F : 0xBF);
  if (first >= 0xF0 && first <= 0xF4) return follow(3, first == 0xF0 ? 0x90 : 0x80, first == 0xF4 ? 0x8F : 0xBF);
  return 0;
}

// Of C0, C1, and delete.
bool IsControl(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  return first < 0x20 || first == 0x7F || (first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0);
}

void EscapeStrings(nlohmann::ordered_json& document) {
  if (document.is_string()) document = TextOfBytes(document.get_ref<const std::string&>());
  if (!document.is_structured()) return;
  for (auto& part : document) EscapeStrings(part);
}

}  // namespace

std::string TextOfBytes(std::string_view bytes, ControlCharacters controls) {
  std::string text;
  while (!bytes.empty()) {
    const size_t length = CharacterBytes(bytes);
    const std::string_view character = bytes.substr(0, std::max<size_t>(1, length));
    bytes.remove_prefix(character.size());
    if (character == "\\") {
      text += "\\\\";
    } else if (length > 0 && (controls == ControlCharacters::kKept || !IsControl(character))) {
      text += character;
    } else {
      for (const char c : character) text += fmt::format("\\x{:02X}", static_cast<unsigned char>(c));
    }
  }
  return text;
}

std::string JsonText(nlohmann::ordered_json document, int indent) {
  EscapeStrings(document);
  return document.dump(indent);
}

}  // namespace isozone
