#include "isozone/serve/still_map.h"

#include <cstdint>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include "base/byte_text.h"
#include "insight/stats/statistics_json.h"
#include "isozone/output/report.h"
#include "isozone/serve/found_files.h"
#include "isozone/serve/zone_frames.h"
#include "isozone/web/web_files.h"
#include "store/mount/statistics_at_rest.h"

namespace isozone::cli {
namespace {

// A frame as the words that it consists of; its JSON is filled up with blanks to whole words.
Json FrameWords(const Statistics& statistics, const std::string& note) {
  std::string json =
      JsonText({{"life", LifeName(statistics)}, {"note", note}, {"reads", Json::array()}, {"waits", Json::array()}});
  json.resize((json.size() + 3) / 4 * 4, ' ');
  ZoneFrames frames(1);
  frames.Look(statistics.zones);
  const std::string bytes = frames.Encode(0, 0, json);
  Json words = Json::array();
  for (size_t at = 0; at < bytes.size(); at += sizeof(uint32_t)) {
    uint32_t word = 0;
    std::memcpy(&word, &bytes[at], sizeof(word));
    words.push_back(word);
  }
  return words;
}

// JSON within a script of HTML, which nothing in it can end.
std::string InScript(const Json& document) {
  std::string text;
  for (const char c : JsonText(document)) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

void ReplaceOnce(std::string& text, std::string_view what, std::string_view by) {
  if (const size_t at = text.find(what); at != std::string::npos) text.replace(at, what.size(), by);
}

// The page with its files in place of the links to them.
std::string PageInOne() {
  std::string page(FindWebFile("/")->content);
  ReplaceOnce(page, R"(<link rel="stylesheet" href="map.css">)",
              fmt::format("<style>\n{}</style>", FindWebFile("/map.css")->content));
  for (const char* const name : {"look.js", "history.js", "grid.js", "panel.js", "map.js"}) {
    ReplaceOnce(page, fmt::format(R"(<script src="{}"></script>)", name),
                fmt::format("<script>\n{}</script>", FindWebFile(fmt::format("/{}", name))->content));
  }
  ReplaceOnce(page, R"(<meta charset="utf-8">)",
              "<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
              "script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:\">");
  return page;
}

}  // namespace

Result<std::string> StillMapHtml(FileSystem& files) {
  const Statistics statistics = StatisticsAtRest(files, Clock::Real());
  ISOZONE_ASSIGN_OR_RETURN(const Json found, FindFiles(files, "", kMostStillFiles, ShowKeys::kYes));
  std::string note = fmt::format("The state of {} at {}", statistics.device, FormatTime(statistics.figures.taken_s));
  if (found["more"].get<bool>()) note += fmt::format(", with {} of its files", kMostStillFiles);
  const Json still = {{"stats", StatisticsJson(statistics, false)},
                      {"frame", FrameWords(statistics, note + ".")},
                      {"files", found["files"]}};
  std::string page = PageInOne();
  ReplaceOnce(page, "<script>",
              fmt::format("<script id=\"still\" type=\"application/json\">{}</script>\n<script>", InScript(still)));
  return page;
}

}  // namespace isozone::cli
