// Progress: shows the progress of long work on standard error: share done, amount, rate and time left. It is redrawn in
// place at most ten times a second, and removed at the end. Draws nothing if standard error is not a terminal.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <string>

namespace isozone::cli {

class Progress {
 public:
  enum class Unit { kBytes, kSteps };

  Progress(std::string label, uint64_t total, Unit unit);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Update(uint64_t done) { Update(done, total_); }
  void Update(uint64_t done, uint64_t total);

 private:
  std::string label_;
  uint64_t total_;
  Unit unit_;
  bool enabled_;
  bool drawn_ = false;
  int64_t started_ns_;
  int64_t next_draw_ns_;
};

}  // namespace isozone::cli
