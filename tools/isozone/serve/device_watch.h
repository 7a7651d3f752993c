// DeviceWatch: a device that is served, as one look after the other. Everybody who asks within a moment gets the same
// look, so that many who ask cost as much as one.
//
// What a look shows, in this order:
//   1. the page of the process that has the device mounted;
//   2. after it has died: its last figures, for kAfterDeathNs, or until another process has the device mounted;
//   3. the state on the device.
//
// Thread safety: any thread may call any method.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "base/status.h"
#include "base/units.h"
#include "isozone/output/console.h"
#include "isozone/serve/found_files.h"
#include "isozone/serve/zone_frames.h"
#include "isozone/statistics_source.h"
#include "store/file_system.h"

namespace isozone::cli {

class DeviceWatch {
 public:
  static constexpr int64_t kFreshNs = 40 * kMillisecondNs;  // how long a look at a page counts as one of now
  static constexpr int64_t kFreshAtRestNs =
      5 * kSecondNs;  // how long one at the device does, which has to be mounted for it
  static constexpr int64_t kSeekPageNs = 200 * kMillisecondNs;  // how often it is seen whether somebody publishes
  static constexpr int64_t kAfterDeathNs = 60 * kSecondNs;
  static constexpr size_t kMostFiles = 200;

  // Looks once. The errors are those of LookAt. `keys` says whether the smallest and largest keys of tables are told.
  static Result<std::unique_ptr<DeviceWatch>> Open(const std::string& uri, ShowKeys keys);

  // Returns "emu:/data/ssd.img": what tells the device from others, whoever has it mounted.
  const std::string& name() const { return name_; }
  // Returns a look of now, whose statistics have name() as their device.
  Result<std::shared_ptr<const Look>> Now();
  // Returns the zones by ZoneFrames::Encode, with JSON: life, note, what compaction and GC read just now, who waits and
  // why.
  Result<std::string> Frame(uint32_t instance, uint32_t number);

  // Returns the files in a zone: their names, places and key ranges, and nothing of their content. Each call mounts the
  // device read-only, and one waits for the other.
  Result<Json> FilesIn(uint32_t zone);
  // Returns at most kMostFiles files whose path contains `text`, with their zones.
  Result<Json> FindFiles(const std::string& text);

 private:
  struct DeadMount {
    uint32_t pid = 0;
    uint64_t started = 0;    // identifies the process, as in PageProcess
    int64_t mounted_ns = 0;  // CLOCK_MONOTONIC
    bool operator==(const DeadMount&) const = default;
  };

  DeviceWatch(std::string uri, std::string name, ShowKeys keys);

  Status Refresh(int64_t now_ns) ISOZONE_REQUIRES(mu_);
  Status RefreshFromPage(int64_t now_ns) ISOZONE_REQUIRES(mu_);
  void Take(Look look, int64_t fresh_until_ns) ISOZONE_REQUIRES(mu_);

  const std::string uri_;
  const std::string name_;
  const ShowKeys keys_;

  Mutex mu_;
  std::unique_ptr<StatisticsReader> reader_ ISOZONE_GUARDED_BY(mu_);  // null: nobody publishes
  Status no_page_ ISOZONE_GUARDED_BY(mu_);                            // why there is no page, for LookAtRest
  std::shared_ptr<const Look> look_ ISOZONE_GUARDED_BY(mu_);
  Status status_ ISOZONE_GUARDED_BY(mu_);  // the outcome of the last look
  int64_t fresh_until_ns_ ISOZONE_GUARDED_BY(mu_) = 0;
  int64_t at_rest_until_ns_ ISOZONE_GUARDED_BY(mu_) = 0;
  std::optional<DeadMount> dead_ ISOZONE_GUARDED_BY(mu_);  // whose figures are shown until:
  int64_t died_until_ns_ ISOZONE_GUARDED_BY(mu_) = 0;
  ZoneFrames frames_ ISOZONE_GUARDED_BY(mu_);

  Mutex files_mu_;  // held while files are looked for; taken without mu_
};

}  // namespace isozone::cli
