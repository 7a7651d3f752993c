// Table: plain text in columns as wide as their widest cell, two spaces apart, with numbers aligned right.
#pragma once

#include <string>
#include <vector>

#include "isozone/output/console.h"

namespace isozone::cli {

class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // One cell for each column, without colour.
  void AddRow(std::vector<std::string> cells);
  void Print(Console& console) const;

 private:
  std::string Line(const std::vector<std::string>& cells, const std::vector<size_t>& widths) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Lines of "name   value", the names aligned, under a heading.
class Facts {
 public:
  explicit Facts(std::string heading) : heading_(std::move(heading)) {}
  void Add(std::string name, std::string value) { rows_.emplace_back(std::move(name), std::move(value)); }
  void Print(Console& console) const;

 private:
  std::string heading_;
  std::vector<std::pair<std::string, std::string>> rows_;
};

}  // namespace isozone::cli
