// Site: what `isozone serve` answers to each path. None of it is the content of a file, but for key ranges of tables.
//
//   /                        the live map; also /map.css and the scripts
//   /metrics                 all devices, for Prometheus
//   /api/devices             names, lives and notes
//   /api/stats?device=N      as `isozone stats --json`; with zones=1 every zone, too
//   /api/zones?device=N      a frame of zones (zone_frames.h); with since=INSTANCE-NUMBER what has changed since that
//                            one
//   /api/zone?device=N&zone=Z    the files in a zone, as `isozone zones --zone Z --json`
//   /api/files?device=N&name=T   files whose path contains T, with their zones
//
// N counts the devices of the command line from 0, and is 0 if it is left out. If an answer of /api is no success, it
// is {"error": one line}.
//
// Thread safety: any thread.
#pragma once

#include <memory>
#include <vector>

#include "base/mutex.h"
#include "isozone/serve/device_watch.h"
#include "isozone/serve/http_server.h"

namespace isozone::cli {

class Site {
 public:
  // `devices` must not be empty.
  explicit Site(std::vector<std::unique_ptr<DeviceWatch>> devices) : devices_(std::move(devices)) {}

  HttpReply Answer(const HttpRequest& request);

 private:
  HttpReply Metrics();
  HttpReply Devices();
  // Answers `path` below /api/ for one device; 404 if there is no such path.
  HttpReply OfDevice(const HttpRequest& request, DeviceWatch& device);

  HttpReply StatsOf(const HttpRequest& request, DeviceWatch& device);

  const std::vector<std::unique_ptr<DeviceWatch>> devices_;
  Mutex all_zones_mu_;  // held while a document of all zones is made: it may be large
};

}  // namespace isozone::cli
