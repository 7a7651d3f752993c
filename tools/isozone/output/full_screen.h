// FullScreen: the whole terminal, for a command that draws on it until the user stops it. The terminal is as before
// when the object goes, also after a signal (StopSignals). Plain escape sequences, which every terminal since the VT100
// knows.
//
// Thread safety: none; one object at a time.
#pragma once

#include <termios.h>

#include <cstdint>
#include <span>
#include <string>

#include "isozone/output/console.h"
#include "isozone/output/statistics_view.h"
#include "isozone/stop_signals.h"

namespace isozone::cli {

class FullScreen {
 public:
  // Returns whether standard input and output are a terminal.
  static bool Available();

  explicit FullScreen(Console& console);
  ~FullScreen();
  FullScreen(const FullScreen&) = delete;
  FullScreen& operator=(const FullScreen&) = delete;

  struct Size {
    size_t columns = 80;
    size_t rows = 24;
  };
  // Returns the size of now: the user may resize the terminal at any time.
  static Size CurrentSize();

  // Draws `lines`, as far as there is room, and `status` on the last line. Wider ones are cut.
  Status Draw(std::span<const ViewLine> lines, const std::string& status);

  enum class Input : uint8_t { kNothing, kKey, kResized, kQuit };
  // Waits `timeout_ms` at most. `key` is set for kKey. Returns kQuit also if a signal asks the process to end, or the
  // terminal is gone.
  Input Wait(int timeout_ms, char& key);

 private:
  Console& console_;
  const StopSignals signals_;
  termios before_{};
  struct sigaction resize_before_ {};
};

}  // namespace isozone::cli
