// Figures, from where a mount counts them to every output, schema and document that shows them.
//
// ISOZONE_WRITE_FIGURES=1 in the environment brings schemas and documents up to date with figures.def, instead of
// comparing them.
#include "insight/stats/figures.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "insight/stats/statistics_json.h"
#include "insight/stats/stats_test_util.h"
#include "isozone/output/console.h"
#include "isozone/output/prometheus.h"
#include "store/mount/figure_sources.h"

namespace isozone::cli {
namespace {

template <typename Source>
void Set(Source& source, uint64_t value) {
  if constexpr (std::is_floating_point_v<Source>) {
    source = (static_cast<Source>(value) + 0.5) / 1e6;
  } else {
    source = static_cast<Source>(value);
  }
}
void Set(std::atomic<uint64_t>& source, uint64_t value) { source = value; }

struct SettableSources : FigureSources {
  explicit SettableSources(FileCounters& counters) : FigureSources(counters), files(counters) {}
  FileCounters& files;
};

// As if the source of the figure at place `i` of FigureTable had `value(i)`.
template <typename ValueAt>
Figures FiguresFrom(const ValueAt& value) {
  FileCounters counters;
  SettableSources sources(counters);
  size_t i = 0;
#define ISOZONE_FIGURE(name, source, ...) Set(sources.source, value(i++));
#define ISOZONE_PAGE_FIGURE(...) ++i;
#include "insight/stats/figures.def"
#undef ISOZONE_FIGURE
#undef ISOZONE_PAGE_FIGURE
  return FiguresOf(sources);
}

// A look at a page on which `figures` were published.
Statistics Published(const Figures& figures) {
  MemoryPage page;
  PageFigures published;
  static_cast<Figures&>(published) = figures;
  page.writer().Publish(published);
  const auto read = page.Read();
  EXPECT_TRUE(read.ok()) << read.status().ToString();
  return read.ok() ? *read : Statistics();
}

double NumberAt(const Json& document, std::string_view key) {
  std::string pointer = fmt::format("/{}", key);
  std::ranges::replace(pointer, '.', '/');
  const Json& value = document.at(Json::json_pointer(pointer));
  return value.is_boolean() ? static_cast<double>(value.get<bool>()) : value.get<double>();
}

double Metric(const std::string& text, std::string_view name) {
  const std::string head = fmt::format("\nisozone_{}{{device=\"\"}} ", name);
  const size_t at = text.find(head);
  EXPECT_NE(at, std::string::npos) << name;
  return at == std::string::npos ? -1 : std::strtod(&text[at + head.size()], nullptr);
}

void ExpectInEveryOutput(const Figures& figures, const std::string& context) {
  const Statistics statistics = Published(figures);
  const Json document = StatisticsJson(statistics, false);
  const std::string metrics = PrometheusText({&statistics, 1});
  for (const Figure& figure : FigureTable()) {
    SCOPED_TRACE(fmt::format("{}, {}", context, figure.key));
    EXPECT_EQ(NumberAt(document, figure.key), figure.Of(figures));
    if (!figure.metric.empty()) {
      EXPECT_EQ(Metric(metrics, figure.metric), figure.Of(figures));
    }
  }
}

TEST(FiguresTest, EverySourceIsAtItsPlaceInEveryOutput) {
  const Figures figures = FiguresFrom([](size_t i) { return 1000 + i; });
  for (size_t i = 0; i < FigureTable().size(); ++i) {
    const Figure& figure = FigureTable()[i];
    const bool flag = figure.unit == FigureUnit::kFlag;
    EXPECT_EQ(figures.*figure.value, figure.source.empty() ? 0 : flag ? 1 : 1000 + i) << figure.key;
  }
  ExpectInEveryOutput(figures, "all");
  // Flags are told apart where only one is up.
  for (size_t i = 0; i < FigureTable().size(); ++i) {
    if (FigureTable()[i].unit != FigureUnit::kFlag) continue;
    ExpectInEveryOutput(FiguresFrom([i](size_t j) { return j == i ? 1 : 0; }), std::string(FigureTable()[i].key));
  }
}

std::set<std::string> WordsOf(std::string_view name) {
  std::set<std::string> words;
  std::istringstream stream{std::string(name.substr(name.rfind('.') + 1))};
  for (std::string word; std::getline(stream, word, '_');) words.insert(word);
  return words;
}

// A source in the place of another one would be found by the name alone.
TEST(FiguresTest, EverySourceHasTheNameOfItsKey) {
  const std::set<std::string_view> others = {"refused_writes", "read_only"};
  std::set<std::string_view> keys;
  std::set<std::string_view> metrics;
  std::set<std::string_view> sources;
  for (const Figure& figure : FigureTable()) {
    EXPECT_TRUE(keys.insert(figure.key).second) << figure.key;
    EXPECT_TRUE(figure.metric.empty() || metrics.insert(figure.metric).second) << figure.metric;
    if (figure.source.empty()) continue;
    EXPECT_TRUE(sources.insert(figure.source).second) << figure.source;
    const std::set<std::string> source = WordsOf(figure.source);
    const std::set<std::string> key = WordsOf(figure.key);
    EXPECT_TRUE(std::ranges::includes(source, key) || std::ranges::includes(key, source) || others.contains(figure.key))
        << figure.source << " is shown as " << figure.key;
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Schemas and documents
// ---------------------------------------------------------------------------------------------------------------------

std::string Read(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

// Compares, or writes.
void ExpectText(const std::string& path, const std::string& text) {
  if (std::getenv("ISOZONE_WRITE_FIGURES") != nullptr) {
    std::ofstream(path) << text;
  } else {
    EXPECT_TRUE(Read(path) == text) << path << " differs from figures.def: set ISOZONE_WRITE_FIGURES=1 to write it";
  }
}

// The helps of schemas are no sentences.
std::string DescriptionOf(const Figure& figure) {
  std::string text(figure.help.substr(0, figure.help.size() - 1));
  text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

Json RuleOf(const Figure& figure) {
  switch (figure.unit) {
    case FigureUnit::kFlag:
      return {{"type", "boolean"}, {"description", DescriptionOf(figure)}};
    case FigureUnit::kMillionths:
      return {{"type", "number"}, {"description", DescriptionOf(figure)}, {"minimum", 0}, {"maximum", 1}};
    default:
      return {{"type", "integer"}, {"description", DescriptionOf(figure)}, {"minimum", 0}};
  }
}

// Names `rule` in the schema of an object.
Json& Name(Json& object, const std::string& key, const Json& rule) {
  Json& required = object["required"];
  if (std::ranges::find(required, Json(key)) == required.end()) required.push_back(key);
  if (!object["properties"].contains(key)) object["properties"][key] = rule;
  return object["properties"][key];
}

// Schemas by name, with what they share in "common".
using Schemas = std::map<std::string, Json>;

void NameFigure(Schemas& schemas, const std::string& name, const Figure& figure) {
  Json* object = &schemas.at(name);
  std::string_view key = figure.key;
  for (size_t dot = key.find('.'); dot != std::string_view::npos; dot = key.find('.')) {
    const Json none = {{"type", "object"}, {"additionalProperties", false}};
    object = &Name(*object, std::string(key.substr(0, dot)), none);
    if (object->contains("$ref")) object = &schemas.at("common")["$defs"]["counters"];
    key.remove_prefix(dot + 1);
  }
  Name(*object, std::string(key), {}) = RuleOf(figure);
}

TEST(FiguresTest, SchemasNameEveryFigure) {
  Schemas schemas;
  const auto path = [](const std::string& name) { return ISOZONE_SOURCE "/docs/schemas/" + name + ".schema.json"; };
  for (const char* name : {"common", "stats"}) schemas[name] = Json::parse(Read(path(name)));
  for (const Figure& figure : FigureTable()) NameFigure(schemas, "stats", figure);
  for (const auto& [name, schema] : schemas) ExpectText(path(name), schema.dump(2) + "\n");
}

TEST(FiguresTest, TheDocumentListsEveryFigure) {
  const std::string path = ISOZONE_SOURCE "/docs/statistics.md";
  const std::string text = Read(path);
  const std::string head = "| JSON | Prometheus | what it is |\n|---|---|---|\n";
  const size_t begin = text.find(head);
  ASSERT_NE(begin, std::string::npos);
  std::string table = head;
  for (const Figure& figure : FigureTable()) {
    const std::string metric = figure.metric.empty() ? "" : fmt::format("`isozone_{}`", figure.metric);
    table += fmt::format("| `{}` | {} | {} |\n", figure.key, metric, figure.help);
  }
  const size_t end = text.find("\n\n", begin) + 1;
  ExpectText(path, text.substr(0, begin) + table + text.substr(end));
}

}  // namespace
}  // namespace isozone::cli
