#include "isozone/output/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/units.h"
#include "base/uri.h"

namespace isozone::cli {
namespace {

constexpr int64_t kRedrawNs = 100 * kMillisecondNs;
constexpr std::string_view kEraseLine = "\r\x1b[K";

std::string FormatSeconds(double seconds) {
  const auto whole = std::llround(seconds);
  return whole < 60 ? fmt::format("{} s", whole) : fmt::format("{}:{:02} min", whole / 60, whole % 60);
}

void WriteToStandardError(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

Progress::Progress(std::string label, uint64_t total, Unit unit)
    : label_(std::move(label)),
      total_(total),
      unit_(unit),
      enabled_(isatty(STDERR_FILENO) != 0),
      started_ns_(MonotonicNs()),
      next_draw_ns_(started_ns_ + kRedrawNs) {}

Progress::~Progress() {
  if (drawn_) WriteToStandardError(kEraseLine);
}

void Progress::Update(uint64_t done, uint64_t total) {
  const int64_t now_ns = MonotonicNs();
  if (!enabled_ || total == 0 || now_ns < next_draw_ns_) return;
  next_draw_ns_ = now_ns + kRedrawNs;
  drawn_ = true;

  const double seconds = static_cast<double>(now_ns - started_ns_) / kSecondNs;
  const double rate = static_cast<double>(done) / seconds;
  const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const std::string left = done == 0 ? "?" : FormatSeconds(static_cast<double>(total - std::min(done, total)) / rate);
  const std::string amount = unit_ == Unit::kBytes ? fmt::format("{} of {}, {}/s", FormatSize(done), FormatSize(total),
                                                                 FormatSize(static_cast<uint64_t>(rate)))
                                                   : fmt::format("{} of {}", done, total);
  WriteToStandardError(fmt::format("{}{} {:3.0f} %  {}  ETA {}", kEraseLine, label_, share * 100, amount, left));
}

}  // namespace isozone::cli
