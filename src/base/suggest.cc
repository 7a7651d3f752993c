#include "base/suggest.h"

#include <algorithm>
#include <cstddef>

namespace isozone {
namespace {

// Levenshtein distance; both words are short.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0u : 1u)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

std::string SuggestName(std::string_view wrong, const std::vector<std::string>& known) {
  const auto nearest = std::min_element(known.begin(), known.end(), [&](const auto& a, const auto& b) {
    return EditDistance(a, wrong) < EditDistance(b, wrong);
  });
  if (nearest != known.end() && EditDistance(*nearest, wrong) <= 1 + wrong.size() / 3) {
    return " (did you mean '" + *nearest + "'?)";
  }
  std::vector<std::string> sorted = known;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  std::string text = "; known are";
  for (const std::string& name : sorted) text += " " + name;
  return text;
}

}  // namespace isozone
