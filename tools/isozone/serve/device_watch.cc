#include "isozone/serve/device_watch.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/byte_text.h"
#include "base/clock.h"
#include "base/uri.h"
#include "insight/stats/statistics_json.h"
#include "isozone/output/report.h"
#include "isozone/session.h"

namespace isozone::cli {
namespace {

// Reads that are older are no longer drawn.
constexpr uint32_t kReadShownMs = 1000;

std::string PageNameOf(const Uri& uri) { return uri.scheme + ":" + uri.path; }

Json ReadsJson(const Statistics& statistics) {
  const auto now_ms = static_cast<uint32_t>(statistics.read_ns / kMillisecondNs % ZoneRead::kMilliseconds);
  Json reads = Json::array();
  for (const ZoneRead& read : statistics.reads) {
    const uint32_t ago_ms = (now_ms - read.at_ms) % ZoneRead::kMilliseconds;
    if (ago_ms <= kReadShownMs) reads.push_back({read.zone, IoClassName(read.io_class), ago_ms});
  }
  return reads;
}

std::string FrameJson(const Look& look) {
  Json waits = Json::array();
  for (const WaitView& wait : look.statistics.waits) waits.push_back(ExplainWait(wait, look.statistics));
  return JsonText({{"life", LifeName(look.statistics)},
                   {"note", look.note},
                   {"reads", ReadsJson(look.statistics)},
                   {"waits", std::move(waits)}});
}

}  // namespace

DeviceWatch::DeviceWatch(std::string uri, std::string name, ShowKeys keys)
    : uri_(std::move(uri)),
      name_(std::move(name)),
      keys_(keys),
      frames_(static_cast<uint32_t>(MonotonicNs() / kMicrosecondNs) | 1U) {}

Result<std::unique_ptr<DeviceWatch>> DeviceWatch::Open(const std::string& uri, ShowKeys keys) {
  ISOZONE_ASSIGN_OR_RETURN(const Uri parsed, ParseUri(uri));
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(parsed.path, error).lexically_normal();
  const std::string name = parsed.scheme + ":" + (error ? parsed.path : path.string());
  std::unique_ptr<DeviceWatch> watch(new DeviceWatch(uri, name, keys));
  ISOZONE_RETURN_IF_ERROR(watch->Now().status());
  return watch;
}

void DeviceWatch::Take(Look look, int64_t fresh_until_ns) {
  look.statistics.device = name_;
  frames_.Look(look.statistics.zones);
  look_ = std::make_shared<const Look>(std::move(look));
  fresh_until_ns_ = fresh_until_ns;
}

// Takes what a page shows, if there is one that is of use. kNotFound: nobody publishes.
Status DeviceWatch::RefreshFromPage(int64_t now_ns) {
  if (reader_ == nullptr) {
    ISOZONE_ASSIGN_OR_RETURN(const Uri parsed, ParseUri(uri_));
    auto opened = StatisticsReader::Open(PageNameOf(parsed));
    no_page_ = opened.ok() ? Status::NotFound("its process has ended") : opened.status();
    if (HidesNothing(opened.status())) return Status::NotFound(std::string(opened.status().message()));
    ISOZONE_ASSIGN_OR_RETURN(reader_, std::move(opened));
  }
  auto look = LookAtPage(*reader_);
  if (!look.ok() || look->statistics.life != PageLife::kMounted) {
    // The next look asks for the page by its name again: another process may have mounted meanwhile.
    reader_.reset();
    if (!look.ok()) return look.status();
    if (look->statistics.life == PageLife::kUnmounted) return Status::NotFound("it has just been unmounted");
    // A page that this user may not remove is met again at each look.
    const PageProcess& process = look->statistics.process;
    const DeadMount dead{process.pid, process.started, look->statistics.mounted_ns};
    if (dead != dead_) died_until_ns_ = now_ns + kAfterDeathNs;
    dead_ = dead;
    if (now_ns >= died_until_ns_) return Status::NotFound("its process died a while ago");
    Take(std::move(look).value(), now_ns + kSeekPageNs);
    return Status::Ok();
  }
  died_until_ns_ = at_rest_until_ns_ = 0;
  Take(std::move(look).value(), now_ns + kFreshNs);
  return Status::Ok();
}

Status DeviceWatch::Refresh(int64_t now_ns) {
  fresh_until_ns_ = now_ns + kSeekPageNs;
  const Status from_page = RefreshFromPage(now_ns);
  if (!from_page.ok() && !from_page.Is(StatusCode::kNotFound)) died_until_ns_ = at_rest_until_ns_ = 0;
  if (!from_page.Is(StatusCode::kNotFound)) return from_page;
  if (now_ns < std::max(died_until_ns_, at_rest_until_ns_)) return status_;
  auto look = LookAtRest(uri_, no_page_);
  at_rest_until_ns_ = MonotonicNs() + kFreshAtRestNs;
  if (!look.ok()) return look.status();
  Take(std::move(look).value(), now_ns + kSeekPageNs);
  return Status::Ok();
}

Result<std::shared_ptr<const Look>> DeviceWatch::Now() {
  const MutexLock lock(mu_);
  const int64_t now_ns = MonotonicNs();
  if (now_ns >= fresh_until_ns_) status_ = Refresh(now_ns);
  ISOZONE_RETURN_IF_ERROR(status_);
  return look_;
}

Result<std::string> DeviceWatch::Frame(uint32_t instance, uint32_t number) {
  ISOZONE_ASSIGN_OR_RETURN(const std::shared_ptr<const Look> look, Now());
  const std::string json = FrameJson(*look);
  const MutexLock lock(mu_);
  return frames_.Encode(instance, number, json);
}

Result<Json> DeviceWatch::FilesIn(uint32_t zone) {
  const MutexLock lock(files_mu_);
  ISOZONE_ASSIGN_OR_RETURN(const auto files, MountByUri(uri_, OpenMode::kReadOnly));
  return FilesInZone(*files, zone, keys_);
}

Result<Json> DeviceWatch::FindFiles(const std::string& text) {
  const MutexLock lock(files_mu_);
  ISOZONE_ASSIGN_OR_RETURN(const auto files, MountByUri(uri_, OpenMode::kReadOnly));
  return cli::FindFiles(*files, text, kMostFiles, keys_);
}

}  // namespace isozone::cli
