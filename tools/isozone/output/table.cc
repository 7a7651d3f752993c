#include "isozone/output/table.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace isozone::cli {

void Table::AddRow(std::vector<std::string> cells) {
  assert(cells.size() == columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::Line(const std::vector<std::string>& cells, const std::vector<size_t>& widths) const {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    const std::string padding(widths[i] - DisplayWidth(cells[i]), ' ');
    if (i > 0) line += "  ";
    line += columns_[i].align == Align::kRight ? padding + cells[i] : cells[i] + padding;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

void Table::Print(Console& console) const {
  std::vector<std::string> titles;
  std::vector<size_t> widths;
  for (const Column& column : columns_) {
    titles.push_back(column.title);
    widths.push_back(DisplayWidth(column.title));
  }
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], DisplayWidth(row[i]));
  }
  console.Print("{}\n", console.Bold(Line(titles, widths)));
  for (const auto& row : rows_) console.Print("{}\n", Line(row, widths));
}

void Facts::Print(Console& console) const {
  size_t width = 0;
  for (const auto& [name, value] : rows_) width = std::max(width, DisplayWidth(name));
  console.Print("{}\n", console.Bold(heading_));
  for (const auto& [name, value] : rows_) console.Print("  {:<{}}  {}\n", name, width, value);
}

}  // namespace isozone::cli
