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
  std::vector<uint64_t> words;  // a word for each zone of the device; not 0: it is pinned
  std::string path;
  struct stat file {};

  bool Pins(ZoneId zone) const { return zone.value() < words.size() && words[zone.value()] != 0; }
};

// Those of the file system `uuid` on `device` that live and were not given up. Removes what the others have left, as
// far as this user may. An error says that there may be more.
Result<std::vector<PinningReader>> FindPinningReaders(const PageOwner& device, const std::string& directory,
                                                      const std::string& uuid, uint32_t zones);

// All zones of `device` that readers of the file system `uuid` pin, in order; every zone where they cannot be found out
// about. None where the device has no name in the file system of the machine by which others could open it.
std::vector<ZoneId> PinnedZones(const ZonedDevice& device, const std::string& uuid, const std::string& directory);

// Which of `zones`, in which nothing lives, readers pin; both in order. Of readers that together pin more than
// `most_zones`, those that pin most are given up first. Where readers cannot be found out about, all of `zones`.
std::vector<ZoneId> FindPinned(const PageOwner& device, const std::string& directory, const std::string& uuid,
                               uint32_t zone_count, std::span<const ZoneId> zones, uint64_t most_zones);

}  // namespace isozone
