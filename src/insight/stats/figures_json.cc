#include "insight/stats/figures_json.h"

#include <string>

namespace isozone {
namespace {

using Json = nlohmann::ordered_json;

Json ValueOf(const Figure& figure, const Figures& figures) {
  if (figure.unit == FigureUnit::kFlag) return figures.*figure.value != 0;
  if (figure.unit == FigureUnit::kMillionths) return figure.Of(figures);
  return figures.*figure.value;
}

}  // namespace

void PutFigures(const Figures& figures, Json& document) {
  for (const Figure& figure : FigureTable()) {
    Json* object = &document;
    std::string_view key = figure.key;
    for (size_t dot = key.find('.'); dot != std::string_view::npos; dot = key.find('.')) {
      object = &(*object)[std::string(key.substr(0, dot))];
      key.remove_prefix(dot + 1);
    }
    (*object)[std::string(key)] = ValueOf(figure, figures);
  }
}

Json SectionJson(const Figures& figures, std::string_view section) {
  Json document;
  PutFigures(figures, document);
  return std::move(document[std::string(section)]);
}

Json ClassJson(const PageClass& figures) {
  Json object;
  for (const ClassFigure& figure : kClassFigures) object[std::string(figure.key)] = figures.*figure.value;
  return object;
}

}  // namespace isozone
