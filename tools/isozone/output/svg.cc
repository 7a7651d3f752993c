#include "isozone/output/svg.h"

#include "isozone/output/console.h"

namespace isozone::cli {

SvgDocument::SvgDocument(double width, double height, std::string_view title) {
  Add(R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}" )"
      R"(font-family="Helvetica, Arial, sans-serif" role="img">)",
      width, height);
  Add("<title>{}</title>", Escape(title));
  Add(R"(<rect width="{}" height="{}" rx="8" fill="#ffffff"/>)", width, height);
}

void SvgDocument::Text(const SvgText& where, std::string_view text) {
  Add(R"(<text x="{:.1f}" y="{:.1f}" font-size="{}" fill="{}" text-anchor="{}"{}>{}</text>)", where.x, where.y,
      where.size, where.fill, where.anchor, where.bold ? R"( font-weight="bold")" : "", Escape(text));
}

std::string SvgDocument::Finish() && {
  body_ += "</svg>\n";
  return std::move(body_);
}

std::string SvgDocument::Escape(std::string_view text) {
  std::string escaped;
  for (const char c : Printable(text)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

}  // namespace isozone::cli
