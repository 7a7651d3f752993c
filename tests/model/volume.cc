#include "model/volume.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "base/aligned_buffer.h"
#include "base/uri.h"
#include "device/emulated/image_file.h"
#include "device/open_device.h"
#include "store/kept/kept_reader.h"
#include "store/metadata/recovery.h"
#include "store/mount/format_device.h"
#include "store/mount/fsck.h"

namespace isozone::model {
namespace {

uint64_t FromEnvironment(const char* name, uint64_t fallback) {
  const char* text = std::getenv(name);
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 0);
}

// Four dies on two channels, fast: a few microseconds a command.
Profile TimedProfile(const DeviceGeometry& geometry) {
  Profile profile;
  profile.name = "torture";
  profile.zone_count = geometry.zone_count;
  profile.zone_size = geometry.zone_size;
  profile.zone_capacity = geometry.zone_capacity;
  profile.block_size = geometry.block_size;
  profile.max_open_zones = geometry.max_open_zones;
  profile.max_active_zones = geometry.max_active_zones;
  profile.max_transfer = geometry.max_transfer;
  profile.max_append = geometry.max_append;
  profile.fua_covers_zone = geometry.fua_covers_zone;
  profile.channels = 2;
  profile.dies = 4;
  profile.page_size = 16 * kKiB;
  profile.program_unit = 32 * kKiB;
  profile.page_read_ns = 2 * kMicrosecondNs;
  profile.program_ns = 5 * kMicrosecondNs;
  profile.erase_ns = 5 * kMicrosecondNs;
  profile.channel_bandwidth = 8'000'000'000;
  profile.write_buffer_units = 2;
  profile.link_bandwidth = 8'000'000'000;
  profile.read_latency_ns = profile.write_latency_ns = profile.management_latency_ns = profile.flush_latency_ns =
      kMicrosecondNs;
  return profile;
}

// The zones of each that is whole.
std::vector<std::vector<ZoneId>> CopiesOf(const RecoveredMetadata& found, bool with_behind) {
  std::vector<std::vector<ZoneId>> copies;
  for (const MetadataCopy& copy : found.copies) {
    const bool behind = copy.state == MetadataCopy::State::kBehind;
    if (copy.state == MetadataCopy::State::kWhole || (behind && with_behind)) copies.push_back(copy.zones);
  }
  return copies;
}

}  // namespace

uint64_t TestOperations(uint64_t fallback) {
  constexpr uint64_t kMillion = 1'000'000;
  return std::max<uint64_t>(1, FromEnvironment("ISOZONE_TEST_OPS", kMillion) * fallback / kMillion);
}

const char* NamedDevice() { return std::getenv("ISOZONE_TEST_DEVICE"); }

DeviceGeometry RandomGeometry(Random& random, uint64_t max_zone_size) {
  DeviceGeometry geometry;
  geometry.block_size = random.Chance(0.5) ? 512 : 4096;
  geometry.zone_count = static_cast<uint32_t>(random.Between(20, 64));
  geometry.zone_size = max_zone_size >> random.Below(3);
  geometry.zone_capacity = geometry.zone_size - geometry.block_size * random.Below(geometry.zone_size / 4096 / 2);
  geometry.max_active_zones = static_cast<uint32_t>(random.Between(9, 24));
  geometry.max_open_zones = geometry.max_active_zones;
  if (random.Chance(0.3)) geometry.max_transfer = 8 * kKiB * random.Between(1, 4);
  geometry.optimal_write = geometry.block_size;
  geometry.fua_covers_zone = random.Chance(0.5);
  return geometry;
}

ZoneGroups RandomGroups(Random& random, const DeviceGeometry& geometry) {
  ZoneGroups groups;
  const uint64_t count = random.Below(9);
  groups.channel_of_group.assign(count, 0);
  for (uint32_t zone = 0; zone < geometry.zone_count; ++zone) {
    const bool unknown = count == 0 || random.Chance(0.02);
    groups.group_of_zone.push_back(unknown ? ZoneGroups::kUnknown : static_cast<uint16_t>(random.Below(count)));
    groups.confidence_percent.push_back(unknown ? 0 : 100);
  }
  return groups;
}

MountOptions RandomMountOptions(Random& random, bool at_leisure) {
  constexpr std::array kPolicies = {"isozone", "isozone", "isozone", "level", "lifetime", "zenfs"};
  constexpr std::array kSchemes = {"none", "zenfs", "full", "zenfs+", "lifetime", "lsm-zgc", "isozone", "isozone"};
  MountOptions options;
  options.policy = kPolicies.at(random.Below(kPolicies.size()));
  options.gc.scheme = kSchemes.at(random.Below(kSchemes.size()));
  options.gc.memory = 8 * kMiB << random.Below(4);
  options.gc.verify = random.Chance(0.5);
  options.gc.start_percent = at_leisure ? static_cast<uint32_t>(random.Between(10, 40)) : 1;
  options.stripe_unit = 64 * kKiB;
  options.log_width = static_cast<uint32_t>(random.Between(1, 4));
  options.stripe_width = static_cast<uint32_t>(random.Between(1, 8));
  options.writer_memory = 128 * kKiB << random.Below(4);
  options.isolation = random.Chance(0.8);
  options.write_buffer = 64 * kKiB << random.Below(3);
  options.checkpoint_after = 64 * kKiB;
  return options;
}

Volume::ScratchFile::ScratchFile() {
  directory_ = std::filesystem::temp_directory_path() / "isozone-volume-XXXXXX";
  if (mkdtemp(directory_.data()) == nullptr) directory_.clear();
}

Volume::ScratchFile::~ScratchFile() {
  std::error_code error;
  std::filesystem::remove_all(directory_, error);
}

Result<Volume> Volume::CreateInFile(const DeviceGeometry& geometry) {
  auto file = std::make_unique<ScratchFile>();
  Profile profile = TimedProfile(geometry);
  profile.timing = false;
  ISOZONE_RETURN_IF_ERROR(EmulatedDevice::CreateImage(file->image(), profile));
  return Volume(std::move(file));
}

Result<Volume> Volume::Create(const DeviceGeometry& geometry, bool timing) {
  auto image =
      timing ? EmulatedDevice::CreateInMemory(TimedProfile(geometry)) : EmulatedDevice::CreateInMemory(geometry);
  if (!image.ok()) return image.status();
  return Volume(std::move(*image));
}

Result<Volume> Volume::CreateOrNamed(const DeviceGeometry& geometry, bool timing) {
  return NamedDevice() == nullptr ? Create(geometry, timing) : Volume(std::string(NamedDevice()));
}

Result<std::unique_ptr<ZonedDevice>> Volume::OpenEither(const FaultPlan& faults) {
  device_ = nullptr;
  if (!uri_.empty()) {
    ISOZONE_ASSIGN_OR_RETURN(Uri uri, ParseUri(uri_));
    return OpenDevice(uri, OpenMode::kReadWrite);
  }
  ISOZONE_ASSIGN_OR_RETURN(auto device, Open(faults));
  device_ = device.get();
  return std::unique_ptr<ZonedDevice>(std::move(device));
}

Result<std::unique_ptr<EmulatedDevice>> Volume::Open(const FaultPlan& faults) {
  EmulatedOptions options;
  options.faults = faults;
  options.faults.power_cut_after.reset();  // set below, which does not print the seed
  ISOZONE_ASSIGN_OR_RETURN(auto device, EmulatedDevice::Open(path(), OpenMode::kReadWrite, options));
  if (faults.power_cut_after) device->CutPowerAfter(*faults.power_cut_after);
  return device;
}

Status Volume::Format(const FaultPlan& faults) {
  ISOZONE_ASSIGN_OR_RETURN(const auto device, OpenEither(faults));
  return FormatDevice(*device, {"torture", true});
}

Status Volume::Mount(const MountOptions& options, const FaultPlan& faults) {
  ISOZONE_ASSIGN_OR_RETURN(auto device, OpenEither(faults));
  MountOptions with = options;
  if (file_ != nullptr) {
    with.kept_memory = kMiB;
    with.kept_memory_directory = file_->directory();
    Reboot();
  }
  auto mounted = FileSystem::Mount(std::move(device), with);
  if (!mounted.ok()) return mounted.status();
  fs_ = std::move(*mounted);
  return Status::Ok();
}

void Volume::Reboot() {
  if (file_ != nullptr) RemoveUselessKeptMemory("emu:" + path(), file_->directory(), "", 0);
}

std::string Volume::kept_options() const {
  return file_ == nullptr ? "" : fmt::format("&kept_memory=1M&kept_memory_directory={}", file_->directory());
}

bool Volume::powered() {
  if (!uri_.empty()) return true;
  AlignedBuffer block(device_->geometry().block_size);
  DeviceRequest read;
  read.data = block.data();
  read.length = block.size();
  return SubmitAndWait(*device_, read) != DeviceStatus::kPowerLoss;
}

Status Volume::Unmount() {
  const Status status = fs_->Unmount();
  const bool power = powered();
  fs_.reset();
  return power ? status : Status::Ok();
}

Status Volume::Check(bool read_data) {
  ISOZONE_ASSIGN_OR_RETURN(const auto device, OpenEither());
  FsckOptions options;
  options.read_data = read_data;
  ISOZONE_ASSIGN_OR_RETURN(const FsckReport report, Fsck(*device, options));
  std::string text;
  for (const FsckFinding& finding : report.findings) {
    if (finding.severity == FsckSeverity::kError) text += "; " + finding.text;
  }
  return text.empty() ? Status::Ok() : Status::Corruption("fsck" + text);
}

Result<bool> Volume::LoseMetadataCopy(Random& random, bool for_ever, bool may_be_behind) {
  ISOZONE_ASSIGN_OR_RETURN(auto device, Open());
  ISOZONE_ASSIGN_OR_RETURN(const RecoveredMetadata found, RecoverMetadata(*device));
  const auto copies = CopiesOf(found, may_be_behind);
  if (copies.size() < 2) return false;
  const std::vector<ZoneId>& zones = copies[random.Below(copies.size())];
  if (!for_ever) {
    device.reset();
    ISOZONE_RETURN_IF_ERROR(Damage(random, zones[random.Below(zones.size())]));
    return true;
  }
  device->SetZoneState(zones.front(), ZoneState::kOffline);
  // One that was about to be replaced may count again.
  ISOZONE_ASSIGN_OR_RETURN(const RecoveredMetadata left, RecoverMetadata(*device));
  const bool missing = left.sequence > 0 && CopiesOf(left, /*with_behind=*/true).size() < left.copies_wanted;
  ISOZONE_ASSIGN_OR_RETURN(const FsckReport report, Fsck(*device, {}));
  if (!missing || !report.clean()) return true;
  return Status::Corruption(
      fmt::format("zone {} of the metadata is offline, and fsck does not report it", zones.front().value()));
}

Status Volume::Damage(Random& random, ZoneId zone) {
  ISOZONE_ASSIGN_OR_RETURN(const auto image, ImageFile::Open(path(), OpenMode::kReadWrite));
  const uint64_t written = LoadContent(image->table()[zone.value()]).written;
  if (written == 0) return Status::Ok();
  const uint64_t at = random.Below(written);
  const std::byte other = image->ZoneData(zone)[at] ^ static_cast<std::byte>(1 + random.Below(255));
  return image->WriteData(zone, at, {&other, 1});
}

}  // namespace isozone::model
