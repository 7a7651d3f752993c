#include "base/log.h"

#include <memory>

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace isozone {
namespace {

std::shared_ptr<spdlog::logger> FindOrMakeLogger() {
  if (std::shared_ptr<spdlog::logger> of_application = spdlog::get("isozone")) return of_application;
  return std::make_shared<spdlog::logger>("isozone", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
}

}  // namespace

spdlog::logger& Log() {
  // Never destroyed: a file system may be unmounted after the destructors of other translation units have run.
  static auto& logger = *new std::shared_ptr<spdlog::logger>(FindOrMakeLogger());
  return *logger;
}

}  // namespace isozone
