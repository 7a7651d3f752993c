// Console: where a command writes. Results go to standard output, in colour if a person reads them, or as JSON for a
// script.
//
// Thread safety: none; commands run on one thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/status.h"

namespace isozone::cli {

using Json = nlohmann::ordered_json;

enum class ColorMode { kAuto, kAlways, kNever };

// Index in the 256-colour palette of terminals.
enum class Color : int {
  kRed = 203,
  kOrange = 215,
  kYellow = 221,
  kGreen = 114,
  kTeal = 80,
  kBlue = 75,
  kPurple = 176,
  kGrey = 244,
  kWhite = 255,
};

class Console {
 public:
  // With kAuto it uses colour if standard output is a terminal, TERM is not "dumb", and NO_COLOR is unset or empty.
  explicit Console(ColorMode mode);

  bool color() const { return color_; }
  // Returns the columns of the terminal; 100 if standard output is none.
  int width() const { return width_; }

  // Returns `text` in `color`, or unchanged if colour is off.
  std::string Paint(Color color, std::string_view text) const;
  std::string Bold(std::string_view text) const;

  template <typename... Args>
  void Print(fmt::format_string<Args...> format, Args&&... args) {
    Write(fmt::format(format, std::forward<Args>(args)...));
  }
  void Write(std::string_view bytes);
  void PrintJson(const Json& document);

  // Fails with kIoError if some of the output could not be written (for example, to a full disk).
  Status Flush();

 private:
  bool color_ = false;
  int width_ = 100;
};

// Returns `name` by TextOfBytes, with control characters escaped, so that a file name cannot drive the terminal.
std::string Printable(std::string_view name);

// Returns the number of columns of `text`, which is its number of code points.
size_t DisplayWidth(std::string_view text);

// Replaces the file `path` by `content`; errors name the path.
Status WriteLocalFile(const std::string& path, std::string_view content);

}  // namespace isozone::cli
