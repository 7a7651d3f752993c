#include "insight/stats/figures.h"

namespace isozone {

uint64_t Figures::DeviceBytesWritten() const {
  uint64_t written = journal_bytes;
  for (const PageClass& c : by_class) written += c.bytes_written;
  return written;
}

double Figures::WriteAmplification() const {
  if (user_bytes_appended == 0) return 0;
  return static_cast<double>(DeviceBytesWritten()) / static_cast<double>(user_bytes_appended);
}

double Figure::Of(const Figures& figures) const {
  const auto number = static_cast<double>(figures.*value);
  return unit == FigureUnit::kMillionths ? number / 1e6 : number;
}

std::span<const Figure> FigureTable() {
  static constexpr Figure kTable[] = {
#define ISOZONE_FIGURE(name, source, unit, key, metric, help) \
  {&Figures::name, #source, FigureUnit::unit, key, metric, help},
#define ISOZONE_PAGE_FIGURE(name, unit, key, metric, help) {&Figures::name, "", FigureUnit::unit, key, metric, help},
#include "insight/stats/figures.def"
#undef ISOZONE_FIGURE
#undef ISOZONE_PAGE_FIGURE
  };
  return kTable;
}

}  // namespace isozone
