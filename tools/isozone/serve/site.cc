#include "isozone/serve/site.h"

#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include "base/byte_text.h"
#include "insight/stats/statistics_json.h"
#include "isozone/output/prometheus.h"
#include "isozone/web/web_files.h"

namespace isozone::cli {
namespace {

constexpr const char* kJsonType = "application/json";

HttpReply JsonReply(const Json& document) { return {200, kJsonType, JsonText(document)}; }

int HttpStatusOf(const Status& status) {
  switch (status.code()) {
    case StatusCode::kInvalidArgument:
      return 400;
    case StatusCode::kPermissionDenied:
      return 403;
    case StatusCode::kNotFound:
      return 404;
    default:
      return 503;
  }
}

HttpReply ErrorReply(const Status& status) {
  return {HttpStatusOf(status), kJsonType, JsonText({{"error", status.message()}})};
}

HttpReply NoSuchPath() { return ErrorReply(Status::NotFound("there is nothing of this name")); }

HttpReply ReplyOf(const Result<Json>& document) {
  return document.ok() ? JsonReply(*document) : ErrorReply(document.status());
}

// Nothing that is no number, and nothing behind it.
Result<uint32_t> NumberOf(std::string_view text) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    return Status::InvalidArgument("a parameter is no whole number");
  }
  return number;
}

std::string_view Parameter(const HttpRequest& request, const std::string& name) {
  const auto found = request.parameters.find(name);
  return found == request.parameters.end() ? std::string_view() : std::string_view(found->second);
}

Result<std::string> FrameFor(const HttpRequest& request, DeviceWatch& device) {
  const std::string_view since = Parameter(request, "since");
  if (since.empty()) return device.Frame(0, 0);
  const size_t dash = since.find('-');
  if (dash == std::string_view::npos) return Status::InvalidArgument("since is INSTANCE-NUMBER of a frame");
  ISOZONE_ASSIGN_OR_RETURN(const uint32_t instance, NumberOf(since.substr(0, dash)));
  ISOZONE_ASSIGN_OR_RETURN(const uint32_t number, NumberOf(since.substr(dash + 1)));
  return device.Frame(instance, number);
}

Result<Json> ZoneFor(const HttpRequest& request, DeviceWatch& device) {
  ISOZONE_ASSIGN_OR_RETURN(const uint32_t zone, NumberOf(Parameter(request, "zone")));
  return device.FilesIn(zone);
}

Result<Json> FilesFor(const HttpRequest& request, DeviceWatch& device) {
  const std::string name(Parameter(request, "name"));
  if (name.empty()) return Status::InvalidArgument("give name, a part of the path of a file");
  return device.FindFiles(name);
}

}  // namespace

HttpReply Site::Answer(const HttpRequest& request) {
  if (const WebFile* const file = FindWebFile(request.path)) return {200, file->type, std::string(file->content)};
  if (request.path == "/metrics") return Metrics();
  if (request.path == "/api/devices") return Devices();
  if (!request.path.starts_with("/api/")) return NoSuchPath();
  const std::string_view wanted = Parameter(request, "device");
  const auto index = wanted.empty() ? Result<uint32_t>(0) : NumberOf(wanted);
  if (!index.ok()) return ErrorReply(index.status());
  if (*index >= devices_.size()) return ErrorReply(Status::NotFound(fmt::format("there is no device {}", *index)));
  return OfDevice(request, *devices_[*index]);
}

HttpReply Site::Metrics() {
  std::vector<Statistics> mounts;
  std::vector<std::string> unreadable;
  for (const auto& device : devices_) {
    const auto look = device->Now();
    if (look.ok()) {
      mounts.push_back((*look)->statistics);
    } else {
      unreadable.push_back(device->name());
    }
  }
  return {200, "text/plain; version=0.0.4; charset=utf-8", PrometheusText(mounts, unreadable)};
}

HttpReply Site::Devices() {
  Json devices = Json::array();
  for (const auto& device : devices_) {
    const auto look = device->Now();
    Json entry = {{"name", device->name()}, {"life", "unknown"}, {"label", ""}, {"note", ""}};
    if (look.ok()) {
      entry["life"] = LifeName((*look)->statistics);
      entry["label"] = (*look)->statistics.label;
      entry["note"] = (*look)->note;
    } else {
      entry["note"] = look.status().message();
    }
    devices.push_back(std::move(entry));
  }
  return JsonReply({{"devices", std::move(devices)}});
}

HttpReply Site::StatsOf(const HttpRequest& request, DeviceWatch& device) {
  const auto look = device.Now();
  if (!look.ok()) return ErrorReply(look.status());
  if (Parameter(request, "zones") != "1") return JsonReply(StatisticsJson((*look)->statistics, false));
  const MutexLock lock(all_zones_mu_);
  return JsonReply(StatisticsJson((*look)->statistics, true));
}

HttpReply Site::OfDevice(const HttpRequest& request, DeviceWatch& device) {
  const std::string_view part = std::string_view(request.path).substr(std::string_view("/api/").size());
  if (part == "stats") return StatsOf(request, device);
  if (part == "zone") return ReplyOf(ZoneFor(request, device));
  if (part == "files") return ReplyOf(FilesFor(request, device));
  if (part != "zones") return NoSuchPath();
  auto frame = FrameFor(request, device);
  if (!frame.ok()) return ErrorReply(frame.status());
  return {200, "application/octet-stream", std::move(frame).value()};
}

}  // namespace isozone::cli
