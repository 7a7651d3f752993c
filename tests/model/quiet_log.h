// For tests that cause thousands of errors on purpose.
#pragma once

#include "base/log.h"

namespace isozone {

// Silences `Log()` for its own lifetime.
class QuietLog {
 public:
  QuietLog() : level_(Log().level()) { Log().set_level(spdlog::level::off); }
  ~QuietLog() { Log().set_level(level_); }
  QuietLog(const QuietLog&) = delete;
  QuietLog& operator=(const QuietLog&) = delete;

 private:
  const spdlog::level::level_enum level_;
};

}  // namespace isozone
