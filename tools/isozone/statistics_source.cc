#include "isozone/statistics_source.h"

#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/uri.h"
#include "isozone/output/console.h"
#include "isozone/session.h"
#include "store/mount/statistics_at_rest.h"

namespace isozone::cli {

Result<Look> LookAtPage(const StatisticsReader& reader) {
  Look look;
  ISOZONE_ASSIGN_OR_RETURN(look.statistics, reader.Read());
  const Statistics& statistics = look.statistics;
  const std::string process =
      fmt::format("process {} ({})", statistics.process.pid, Printable(statistics.process.program));
  const std::string device = Printable(statistics.device);
  if (statistics.life == PageLife::kUnmounted) {
    look.note = fmt::format("{} has just unmounted {}; these are its last figures", process, device);
  } else if (statistics.life == PageLife::kDied) {
    look.note = fmt::format("{} has ended without unmounting {}; these are its last figures", process, device);
  }
  if (statistics.life != PageLife::kMounted) {
    const Status removed = reader.RemoveDead();
    if (!removed.ok()) look.note += fmt::format(" ({})", removed.message());
  }
  return look;
}

bool HidesNothing(const Status& no_page) { return !no_page.ok() && !no_page.Is(StatusCode::kNotSupported); }

Result<Look> LookAtRest(const std::string& uri, const Status& no_page) {
  ISOZONE_ASSIGN_OR_RETURN(const std::unique_ptr<FileSystem> fs, MountByUri(uri, OpenMode::kReadOnly));
  Look look;
  look.statistics = StatisticsAtRest(*fs, Clock::Real());
  const std::string why = no_page.Is(StatusCode::kNotFound)
                              ? fmt::format("no process publishes statistics of {}", Printable(look.statistics.device))
                              : fmt::format("a foreign page is ignored ({})", Printable(no_page.message()));
  look.note = fmt::format("{}: this is the state on the device", why);
  return look;
}

Result<Look> LookAt(const std::string& uri) {
  ISOZONE_ASSIGN_OR_RETURN(const Uri parsed, ParseUri(uri));
  const auto reader = StatisticsReader::Open(fmt::format("{}:{}", parsed.scheme, parsed.path));
  if (reader.ok()) return LookAtPage(**reader);
  if (!HidesNothing(reader.status())) return reader.status();
  return LookAtRest(uri, reader.status());
}

}  // namespace isozone::cli
