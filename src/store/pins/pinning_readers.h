// The readers of a device, as its writer sees them (reader_pins.h has the protocol): which zones they pin, who has
// died, and who is given up because readers hold too much.
//
// Nothing in the files of readers is believed but how they count, and that only of users who may read the device.
//
// Thread safety: any thread.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/zoned_device.h"
#include "insight/stats/page_file.h"
#include "store/pins/reader_pins.h"

namespace isozone {

struct PinningReader {
  PageProcess process;
  std::vector<uint64_t> words;  // one for each zone of the device; the zone is pinned if it is not 0
  std::string path;
  struct stat file {};

  bool Pins(ZoneId zone) const { return zone.value() < words.size() && words[zone.value()] != 0; }
};

// Returns the readers of the file system `uuid` on `device` that live and were not given up. Removes what others have
// left, as far as this user may. After an error there may be more readers.
Result<std::vector<PinningReader>> FindPinningReaders(const PageOwner& device, const std::string& directory,
                                                      const std::string& uuid, uint32_t zones);

// Returns all zones of `device` that readers of the file system `uuid` pin, in order; every zone if that cannot be
// found out. None if the device has no name in the file system of the machine by which others could open it.
std::vector<ZoneId> PinnedZones(const ZonedDevice& device, const std::string& uuid, const std::string& directory);

// Returns which of `zones`, in which nothing is live, readers pin; both are in order. If readers together pin more than
// `most_zones` of these, those that pin most are given up first. If it cannot be found out, returns all of `zones`.
std::vector<ZoneId> FindPinned(const PageOwner& device, const std::string& directory, const std::string& uuid,
                               uint32_t zone_count, std::span<const ZoneId> zones, uint64_t most_zones);

}  // namespace isozone
