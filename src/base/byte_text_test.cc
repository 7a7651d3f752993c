#include "base/byte_text.h"

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace isozone {
namespace {

TEST(ByteTextTest, OnlyWhatIsNoUtf8AndTheBackslashAreEscaped) {
  EXPECT_EQ(TextOfBytes(""), "");
  EXPECT_EQ(TextOfBytes("/db/000012.sst \"quoted\" %E4 caf\xC3\xA9 \xF0\x9F\x98\x80"),
            "/db/000012.sst \"quoted\" %E4 caf\xC3\xA9 \xF0\x9F\x98\x80");
  EXPECT_EQ(TextOfBytes("\xE4"), "\\xE4");
  EXPECT_EQ(TextOfBytes("\\xE4"), "\\\\xE4");
  EXPECT_EQ(TextOfBytes("a\xC3"), "a\\xC3");
  EXPECT_EQ(TextOfBytes("\xC0\x80 \xED\xA0\x80 \xF4\x90\x80\x80"), "\\xC0\\x80 \\xED\\xA0\\x80 \\xF4\\x90\\x80\\x80");
  EXPECT_EQ(TextOfBytes("a\nb\x1B"), "a\nb\x1B");
  EXPECT_EQ(TextOfBytes("a\nb\x1B \x7F \xC2\x9B caf\xC3\xA9", ControlCharacters::kEscaped),
            "a\\x0Ab\\x1B \\x7F \\xC2\\x9B caf\xC3\xA9");
}

// Reads \xHH and two backslashes back.
std::string BytesOf(const std::string& text) {
  std::string bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      bytes += text[i];
    } else if (text[++i] == '\\') {
      bytes += '\\';
    } else {
      bytes += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
      i += 2;
    }
  }
  return bytes;
}

TEST(ByteTextTest, AllNamesStayApartAndCanBeHadBack) {
  const std::string parts[] = {"\xC3", "\xA9", "\\", "x", "C3", "a", "\n", "\xE2\x82\xAC", "\xC2\x85"};
  for (const auto controls : {ControlCharacters::kKept, ControlCharacters::kEscaped}) {
    std::set<std::string> texts;
    size_t names = 0;
    std::set<std::string> seen;
    for (const std::string& a : parts) {
      for (const std::string& b : parts) {
        for (const std::string& c : parts) {
          std::string bytes = a;
          bytes.append(b).append(c);
          if (!seen.insert(bytes).second) continue;
          ++names;
          const std::string text = TextOfBytes(bytes, controls);
          texts.insert(text);
          EXPECT_EQ(BytesOf(text), bytes);
        }
      }
    }
    EXPECT_EQ(texts.size(), names);
  }
}

TEST(ByteTextTest, JsonTakesAnyBytes) {
  EXPECT_EQ(JsonText({{"names", {"\xE4", "\xE5", "\\", "a\nb"}}, {"size", 1}}),
            R"({"names":["\\xE4","\\xE5","\\\\","a\nb"],"size":1})");
}

}  // namespace
}  // namespace isozone
