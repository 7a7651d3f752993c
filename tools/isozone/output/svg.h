// The base of all drawings: an SVG document with a white background and one sans-serif font.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace isozone::cli {

// The layout that maps of zones share, in pixels: the gap between two boxes, and where the boxes begin.
inline constexpr double kGap = 2;
inline constexpr double kMarginLeft = 64;
inline constexpr double kMarginRight = 24;
inline constexpr double kTop = 84;

struct SvgText {
  double x = 0;
  double y = 0;      // of the baseline
  double size = 13;  // pixels
  std::string_view fill = "#374151";
  std::string_view anchor = "start";  // or "middle", "end"
  bool bold = false;
};

class SvgDocument {
 public:
  SvgDocument(double width, double height, std::string_view title);

  void Text(const SvgText& where, std::string_view text);
  // Adds markup unchanged; text in it must have been passed through Escape.
  template <typename... Args>
  void Add(fmt::format_string<Args...> format, Args&&... args) {
    body_ += fmt::format(format, std::forward<Args>(args)...);
    body_ += '\n';
  }
  std::string Finish() &&;

  static std::string Escape(std::string_view text);

 private:
  std::string body_;
};

}  // namespace isozone::cli
