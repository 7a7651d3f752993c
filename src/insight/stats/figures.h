// Figures: what a mount counts, as values. figures.def lists them; FigureTable is that list at run time, from which
// every output is made, so that none spells a figure out.
//
// Thread safety: plain types and pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "store/io/io_class.h"
#include "store/zone/zone_record.h"

namespace isozone {

// Why somebody waits for a zone, or is slowed.
enum class WaitReason : uint8_t {
  kReset,       // a zone is being reset or finished
  kCollection,  // nothing is free: the collector has to make space
  kCheckpoint,  // a checkpoint gives back zones of metadata
  kActiveZone,  // all zones that may be active are
  kOpenZone,    // as many zones are written as may be open
  kPace,        // space is short: users write at the pace at which it is made
};
inline constexpr int kWaitReasonCount = 6;

struct PageClass {
  uint64_t bytes_read = 0;
  uint64_t bytes_written = 0;
  uint64_t reads = 0;
  uint64_t writes = 0;
};

struct PageStall {
  uint64_t count = 0;
  uint64_t ns = 0;  // in all, of waits that have ended
};

// Everything that only grows is counted since the mount, and that of the device since it was made. Sizes are in bytes.
struct Figures {
#define ISOZONE_FIGURE(name, ...) uint64_t name = 0;
#define ISOZONE_PAGE_FIGURE(name, ...) uint64_t name = 0;
#include "insight/stats/figures.def"
#undef ISOZONE_FIGURE
#undef ISOZONE_PAGE_FIGURE
  std::array<PageClass, kIoClassCount> by_class{};
  // Empty zones that were taken, by who took them; waits by ZoneWriter and WaitReason. StatisticsWriter counts both.
  std::array<uint64_t, kZoneWriterCount> zones_begun{};
  std::array<std::array<PageStall, kWaitReasonCount>, kZoneWriterCount> stalls{};

  // That the mount has written to the device: of all classes, and of its own metadata, which is of none. They wrap
  // around if a page is not what it seems.
  uint64_t DeviceBytesWritten() const;
  // DeviceBytesWritten over user_bytes_appended; 0 before the first write.
  double WriteAmplification() const;
};

enum class FigureUnit : uint8_t {
  kCount,
  kBytes,
  kFlag,        // 0 or 1
  kMillionths,  // shown as a number from 0 to 1
};

struct Figure {
  uint64_t Figures::*value;
  std::string_view source;  // as figures.def writes it; empty: StatisticsWriter counts it
  FigureUnit unit;
  std::string_view key;     // in JSON; a dot begins an object inside
  std::string_view metric;  // behind "isozone_"; empty: there is none
  std::string_view help;

  // As a number in its unit.
  double Of(const Figures& figures) const;
};
std::span<const Figure> FigureTable();

// Likewise of each class of I/O.
struct ClassFigure {
  uint64_t PageClass::*value;
  std::string_view key;
};
inline constexpr std::array<ClassFigure, 4> kClassFigures = {{
    {&PageClass::bytes_read, "bytes_read"},
    {&PageClass::bytes_written, "bytes_written"},
    {&PageClass::reads, "reads"},
    {&PageClass::writes, "writes"},
}};

}  // namespace isozone
