#include "store/zone/allocator/zone_reserves.h"

#include <string_view>

#include <fmt/format.h>

namespace isozone {
namespace {

// With fewer zones, a file system could be made but not be used.
constexpr uint32_t kMetadataZones = kHomeZonesMax;
constexpr uint32_t kLogZones = 2;
constexpr uint32_t kDataZones = 2;
constexpr uint32_t kMinZones = kMetadataZones + kLogZones + kEmptyForGc + kDataZones;

Status CheckZoneLimit(std::string_view kind, uint32_t limit) {
  if (limit == 0 || limit >= ActiveBudget::kReserveTotal) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("the device allows {} {} zones; Isozone needs at least {}: {} for metadata, {} for logs, {} for GC, "
                  "{} for data",
                  limit, kind, ActiveBudget::kReserveTotal, ActiveBudget::ReserveOf(BudgetClass::kMetadata),
                  ActiveBudget::ReserveOf(BudgetClass::kLog), ActiveBudget::ReserveOf(BudgetClass::kGc),
                  ActiveBudget::ReserveOf(BudgetClass::kData)));
}

}  // namespace

uint32_t EmptyKeptFrom(BudgetClass c, uint32_t for_metadata) {
  switch (c) {
    case BudgetClass::kMetadata:
      return 0;
    case BudgetClass::kGc:
      return for_metadata;
    case BudgetClass::kLog:
      return for_metadata + kEmptyForGc;
    case BudgetClass::kData:
      break;
  }
  return for_metadata + kEmptyForGc + kEmptyForLogs;
}

Status CheckDeviceFits(const DeviceGeometry& geometry) {
  if (geometry.zone_count < kMinZones) {
    return Status::InvalidArgument(
        fmt::format("the device has {} zones; Isozone needs at least {}: {} for metadata, {} for logs, {} for GC, "
                    "{} for data",
                    geometry.zone_count, kMinZones, kMetadataZones, kLogZones, kEmptyForGc, kDataZones));
  }
  ISOZONE_RETURN_IF_ERROR(CheckZoneLimit("active", geometry.max_active_zones));
  return CheckZoneLimit("open", geometry.max_open_zones);
}

}  // namespace isozone
