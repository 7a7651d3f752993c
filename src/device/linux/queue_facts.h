// What sysfs tells about a block device and its queue (/sys/dev/block/MAJOR:MINOR), parsed. No I/O: a function that
// reads one attribute is handed in.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace isozone {

// The means by which a write becomes durable.
enum class DurableWrites : uint8_t {
  kAlways,  // the device has no volatile cache: a write that completed is durable
  kForced,  // Force Unit Access
  kFlushed  // the device has a cache and no Force Unit Access: the write, then a flush
};
// Returns the way in words: "no volatile cache", ...
std::string_view DurableWritesName(DurableWrites how);

struct QueueFacts {
  std::string model;      // "host-managed", "host-aware"; "none" without zones
  std::string scheduler;  // the one that is used; empty if there is none to choose
  uint64_t size = 0;      // bytes of the whole device
  uint64_t zone_size = 0;
  uint32_t logical_block = 512;     // bytes; the alignment of positions and lengths
  uint32_t memory_alignment = 512;  // bytes; of the memory of transfers, at most a page
  uint32_t write_granularity = 0;   // bytes; writes to sequential zones are multiples of it
  uint64_t max_transfer = 0;        // bytes that one request to the device moves at most, wherever its memory lies
  uint64_t optimal_write = 0;       // bytes; 0: not known
  uint32_t max_open_zones = 0;      // 0: no limit
  uint32_t max_active_zones = 0;    // 0: no limit
  DurableWrites durable = DurableWrites::kFlushed;

  bool zoned() const { return !model.empty() && model != "none"; }
};

// Returns the content of an attribute, such as "queue/zoned"; empty if the kernel has none of this name.
using SysfsReader = std::function<std::optional<std::string>(std::string_view attribute)>;

// Reads and checks all facts. kNotSupported if an attribute that Isozone needs is missing or makes no sense; the
// message names it. The limits of zones are read only if the device has zones.
Result<QueueFacts> ParseQueueFacts(const SysfsReader& read);

// Returns the word in brackets of "none [mq-deadline] kyber": the choice in force.
std::string ChosenOf(std::string_view choices);

}  // namespace isozone
