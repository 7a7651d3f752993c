#include "crash/edges.h"

#include <algorithm>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "crash/filler.h"
#include "crash/mounted.h"
#include "store/mount/format_device.h"
#include "store/mount/fsck.h"
#include "store/zone/gc_scheme.h"
#include "store/zone/placement_policy.h"

namespace isozone::crash {
namespace {

// What a device may take less than when it was new: zones that are partly written when nothing is live in them, and
// what the files of one fill leave free at the ends of their zones.
constexpr uint64_t kToleratedZones = 2;

// All that a device's seed decides.
struct Shape {
  DeviceGeometry geometry;
  Fua fua = Fua::kZone;
  uint32_t copies = 2;
  MountOptions options;
  uint64_t changes = 0;  // operations while it is full
  uint64_t fill_seed = 0;
};

Shape ShapeOf(const EdgeDevice& device) {
  Random random(device.seed);
  Shape shape;
  DeviceGeometry& geometry = shape.geometry;
  geometry.block_size = random.Chance(0.3) ? 512 : 4096;
  geometry.zone_count = static_cast<uint32_t>(random.Chance(0.6) ? random.Between(12, 20) : random.Between(21, 40));
  geometry.zone_capacity = geometry.block_size * random.Between(16, 32);
  geometry.zone_size = geometry.zone_capacity + geometry.block_size * random.Below(3);
  geometry.max_active_zones = geometry.max_open_zones = static_cast<uint32_t>(random.Between(9, 14));
  geometry.max_transfer = geometry.block_size * random.Between(2, 16);
  geometry.optimal_write = geometry.block_size;
  shape.fua = random.Chance(0.5) ? Fua::kZone : Fua::kCommand;
  shape.copies = random.Chance(0.7) ? 2 : 1;
  MountOptions& options = shape.options;
  options.policy = device.policy;
  options.gc.scheme = device.scheme;
  options.stripe_unit = options.write_buffer = 64 * kKiB;
  options.stripe_width = static_cast<uint32_t>(random.Between(1, 6));
  options.log_width = static_cast<uint32_t>(random.Between(1, 4));
  options.writer_memory = 128 * kKiB;
  options.checkpoint_after = 64 * kKiB;
  shape.changes = random.Between(10, 60);
  shape.fill_seed = random.Next();
  return shape;
}

Status FormatAs(const Shape& shape, DeviceImage& image) {
  CrashDevice device(CrashDevice::Blank(shape.geometry, shape.fua), false);
  ISOZONE_RETURN_IF_ERROR(FormatDevice(device, {"edges", false, shape.copies}));
  image = device.Image();
  return Status::Ok();
}

// The zones that are not empty, for who replays a cut.
void PrintZones(const DeviceImage& image) {
  CrashDevice device(image, false);
  std::set<ZoneId> metadata;
  if (const auto report = Fsck(device, {}); report.ok()) {
    for (const auto& zones : report->copies) metadata.insert(zones.begin(), zones.end());
  }
  for (uint32_t zone = 0; zone < image.zones.size(); ++zone) {
    const ZoneImage& found = image.zones[zone];
    if (found.state == ZoneState::kEmpty) continue;
    fmt::print("  zone {}: {}, {} bytes{}\n", zone, ZoneStateName(found.state), found.written,
               metadata.contains(ZoneId(zone)) ? ", metadata" : "");
  }
}

// Fills what must be empty, and empties it; how many bytes it took.
Result<uint64_t> FillAndEmpty(const Shape& shape, DeviceImage& image) {
  ISOZONE_ASSIGN_OR_RETURN(const Mounted mounted, Mount(image, shape.options, false));
  ISOZONE_ASSIGN_OR_RETURN(const model::Found found, model::Collect(*mounted.fs, ""));
  if (!found.names.empty()) return Status::Corruption("an emptied device is not empty");
  if (const uint64_t live = mounted.fs->state().Space().live; live > 0) {
    return Status::Corruption(fmt::format("{} bytes are live on an empty device", live));
  }
  model::Oracle oracle;
  Filler filler(*mounted.fs, oracle, shape.fill_seed, {});
  ISOZONE_RETURN_IF_ERROR(filler.FillBlocks());
  const uint64_t bytes = filler.written();
  ISOZONE_RETURN_IF_ERROR(filler.Empty());
  ISOZONE_RETURN_IF_ERROR(mounted.fs->Unmount());
  image = mounted.device->Image();
  ISOZONE_RETURN_IF_ERROR(CheckByFsck(image));
  return bytes;
}

// What a cut left: see edges.h. `first`: bytes that the new device took.
class Recovery {
 public:
  Recovery(const Shape& shape, uint64_t first) : shape_(shape), first_(first) {}

  Status Check(DeviceImage image, const model::Oracle& oracle, uint64_t seed) const {
    ISOZONE_RETURN_IF_ERROR(CheckByFsck(image));
    ISOZONE_RETURN_IF_ERROR(Recover(image, oracle, seed));
    ISOZONE_RETURN_IF_ERROR(CheckByFsck(image).WithContext("after the recovery"));
    return FillAgain(image);
  }

  Status FillAgain(DeviceImage image) const {
    const auto bytes = FillAndEmpty(shape_, image);
    if (!bytes.ok()) return bytes.status().WithContext("filling it again");
    const uint64_t tolerated = kToleratedZones * shape_.geometry.zone_capacity;
    if (*bytes + tolerated >= first_) return Status::Ok();
    return Status::Corruption(fmt::format("the emptied device took {} bytes, and {} when it was new", *bytes, first_));
  }

 private:
  static constexpr uint64_t kChanges = 5;  // operations before it is emptied

  Status Recover(DeviceImage& image, const model::Oracle& oracle, uint64_t seed) const {
    auto mounted = Mount(image, shape_.options, false);
    if (!mounted.ok()) return mounted.status().WithContext("mounting");
    if (const std::string reason = mounted->fs->state().read_only_reason(); !reason.empty()) {
      return Status::Corruption("mounted read-only: " + reason);
    }
    ISOZONE_ASSIGN_OR_RETURN(const model::Found found, model::Collect(*mounted->fs, ""));
    ISOZONE_RETURN_IF_ERROR(oracle.CheckAfterPowerCut(found));
    ISOZONE_RETURN_IF_ERROR(mounted->fs->state().RestoreMetadataCopies().WithContext("copying the metadata"));
    model::Oracle adopted;
    adopted.Adopt(found);
    Filler filler(*mounted->fs, adopted, seed, {});
    ISOZONE_RETURN_IF_ERROR(filler.Change(kChanges).WithContext("after the recovery"));
    ISOZONE_RETURN_IF_ERROR(filler.Empty().WithContext("emptying it after the recovery"));
    ISOZONE_RETURN_IF_ERROR(mounted->fs->Unmount());
    image = mounted->device->Image();
    return Status::Ok();
  }

  const Shape& shape_;
  const uint64_t first_;
};

// The work whose commands are cut.
class Work {
 public:
  Work(const EdgeDevice& device, const Shape& shape, uint64_t first, uint64_t one_of, const std::optional<Cut>& only,
       EdgeReport& report)
      : device_(device), shape_(shape), recovery_(shape, first), one_of_(one_of), only_(only), report_(report) {}

  Status Run(const DeviceImage& blank) {
    DeviceImage end;
    {
      ISOZONE_ASSIGN_OR_RETURN(const Mounted mounted, Mount(blank, shape_.options, true));
      model::Oracle oracle;
      ISOZONE_RETURN_IF_ERROR(CutAll(*mounted.device, "mount", oracle));
      Filler filler(*mounted.fs, oracle, shape_.fill_seed, [&](const std::string& name, const model::Oracle& during) {
        ++report_.operations;
        return CutAll(*mounted.device, name, during);
      });
      ISOZONE_RETURN_IF_ERROR(filler.Fill());
      ISOZONE_RETURN_IF_ERROR(filler.Change(shape_.changes));
      ISOZONE_RETURN_IF_ERROR(filler.Empty());
      ISOZONE_RETURN_IF_ERROR(mounted.fs->Unmount());
      ISOZONE_RETURN_IF_ERROR(CutAll(*mounted.device, "unmount", oracle));
      end = mounted.device->Image();
    }
    report_.commands += commands_;
    ISOZONE_RETURN_IF_ERROR(CheckByFsck(end));
    return recovery_.FillAgain(end);
  }

 private:
  Status CutAll(CrashDevice& device, const std::string& operation, const model::Oracle& during) {
    const std::vector<Command> commands = device.TakeCommands();
    for (const Command& command : commands) {
      const uint64_t number = commands_++;
      // Each command decides for itself, so that a cut replays alone.
      Random random(Random(device_.seed).Next() + number);
      const bool wanted = only_ ? only_->command == number : one_of_ > 0 && random.Below(one_of_) == 0;
      if (!wanted) continue;
      const auto images = CutIn(device.Image(), command);
      auto chosen = images.begin() + static_cast<ptrdiff_t>(random.Below(images.size()));
      if (only_) {
        chosen = std::find_if(images.begin(), images.end(), [&](const auto& i) { return i.first == only_->outcome; });
        if (chosen == images.end()) return Status::InvalidArgument("the cut does not end so");
      }
      ++report_.cuts;
      if (only_) PrintZones(chosen->second);
      const Status status = recovery_.Check(chosen->second, during, device_.seed + number);
      if (!status.ok()) {
        const std::string cut = Cut{number, chosen->first}.ToString();
        return status.WithContext(fmt::format("--cut {} ({}, {})", cut, operation, DeviceOpName(command.op)));
      }
    }
    return Status::Ok();
  }

  const EdgeDevice& device_;
  const Shape& shape_;
  const Recovery recovery_;
  const uint64_t one_of_;
  const std::optional<Cut>& only_;
  EdgeReport& report_;
  uint64_t commands_ = 0;
};

}  // namespace

std::string EdgeDevice::ToString() const { return fmt::format("{},{},{}", policy, scheme, seed); }

Result<EdgeDevice> EdgeDevice::Parse(const std::string& text) {
  std::istringstream words(text);
  EdgeDevice device;
  std::string seed;
  std::getline(words, device.policy, ',');
  std::getline(words, device.scheme, ',');
  std::getline(words, seed);
  device.seed = std::strtoull(seed.c_str(), nullptr, 10);
  ISOZONE_RETURN_IF_ERROR(MakePlacementPolicy(device.policy).status());
  ISOZONE_RETURN_IF_ERROR(MakeGcScheme(device.scheme, {}).status());
  return device;
}

std::vector<EdgeDevice> EdgeDevices(uint64_t seed) {
  std::vector<EdgeDevice> devices;
  Random random(seed);
  for (const std::string_view policy : PlacementPolicyNames()) {
    for (const std::string_view scheme : GcSchemeNames()) {
      devices.push_back({std::string(policy), std::string(scheme), random.Below(uint64_t{1} << 32)});
    }
  }
  return devices;
}

std::string DescribeEdgeDevice(const EdgeDevice& device) {
  const Shape shape = ShapeOf(device);
  return fmt::format("{} zones of {} blocks of {}, {} active, {} {}, FUA covers its {}", shape.geometry.zone_count,
                     shape.geometry.zone_capacity / shape.geometry.block_size, shape.geometry.block_size,
                     shape.geometry.max_active_zones, shape.copies, shape.copies == 1 ? "copy" : "copies",
                     shape.fua == Fua::kZone ? "zone" : "command");
}

Status Edges::Run(const EdgeDevice& device, const std::optional<Cut>& cut) {
  ++report_.devices;
  const Shape shape = ShapeOf(device);
  const auto run = [&]() -> Status {
    DeviceImage blank;
    ISOZONE_RETURN_IF_ERROR(FormatAs(shape, blank));
    DeviceImage filled = blank;
    ISOZONE_ASSIGN_OR_RETURN(const uint64_t first, FillAndEmpty(shape, filled));
    report_.bytes += first;
    return Work(device, shape, first, one_of_, cut, report_).Run(blank);
  };
  return run().WithContext("isozone_edges --device " + device.ToString());
}

}  // namespace isozone::crash
