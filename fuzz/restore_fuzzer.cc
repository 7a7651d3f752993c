// Restores a backup whose manifest is arbitrary: it is refused, or leaves a device that can be mounted again and holds
// the files that the manifest names.
//
//   input   the manifest, as text; its checksum is made right first, so that what lies behind it is reached. The files
//           have as many zeros as it says.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/crc32c.h"
#include "device/emulated/emulated_device.h"
#include "isozone/backup/restore_run.h"
#include "store/mount/format_device.h"

namespace isozone::cli {
namespace {

constexpr uint64_t kSizeMax = 64 * kKiB;  // of a file

DeviceGeometry Geometry() {
  DeviceGeometry geometry;
  geometry.zone_count = 32;
  geometry.zone_size = geometry.zone_capacity = kMiB;
  geometry.max_active_zones = geometry.max_open_zones = 12;
  geometry.optimal_write = 64 * kKiB;
  return geometry;
}

uint32_t ChecksumOfZeros(uint64_t size) {
  const std::string zeros(size, '\0');
  return Crc32c(zeros.data(), zeros.size());
}

// Makes the checksums of the manifest and of its files right. None: it is no manifest.
Result<Manifest> DecodeRepaired(std::string_view text) {
  auto document = nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object()) return Status::Corruption("this is no object");
  const auto files = document.find("files");
  if (files != document.end() && files->is_array()) {
    for (auto& file : *files) {
      if (!file.is_object() || !file.contains("size") || !file["size"].is_number_unsigned()) continue;
      const auto size = std::min(file["size"].get<uint64_t>(), kSizeMax);
      file["size"] = size;
      file["crc32c"] = ChecksumOfZeros(size);
    }
  }
  document.erase("crc32c");
  const auto strict = nlohmann::ordered_json::error_handler_t::replace;
  const std::string covered = document.dump(-1, ' ', false, strict);
  document["crc32c"] = fmt::format("{:08x}", Crc32c(covered.data(), covered.size()));
  return Manifest::Decode(document.dump(-1, ' ', false, strict));
}

class Zeros final : public BackupSource {
 public:
  explicit Zeros(Manifest manifest) : manifest_(std::move(manifest)) {}
  const Manifest* manifest() const override { return &manifest_; }
  void VisitSizes(const std::function<void(const BackupFile&, uint64_t)>& /*visit*/) const override {}
  Result<Manifest> Visit(Visitor& visitor) override {
    for (const BackupFile& file : manifest_.files) {
      ISOZONE_ASSIGN_OR_RETURN(const bool wanted, visitor.Wants(file));
      if (!wanted) continue;
      ISOZONE_RETURN_IF_ERROR(visitor.Begin(file));
      const std::vector<std::byte> zeros(file.has_content() ? file.size : 0);
      if (!zeros.empty()) ISOZONE_RETURN_IF_ERROR(visitor.Append(zeros));
      ISOZONE_RETURN_IF_ERROR(visitor.End(file));
    }
    return manifest_;
  }

 private:
  const Manifest manifest_;
};

void Fuzz(std::string_view text) {
  auto manifest = DecodeRepaired(text);
  if (!manifest.ok()) {
    if (manifest.status().message().empty()) std::abort();
    return;
  }
  const MemoryImage image = EmulatedDevice::CreateInMemory(Geometry()).value();
  const auto open = [&] { return EmulatedDevice::Open(image.path(), OpenMode::kReadWrite, {}).value(); };
  if (!FormatDevice(*open(), {"fuzz", false}).ok()) std::abort();
  Zeros source(std::move(*manifest));
  bool restored = false;
  {
    const auto file_system = FileSystem::Mount(open(), {}).value();
    restored = RestoreBackup(source, *file_system, RestoreOnto::kEmpty).ok();
    (void)file_system->Unmount();
  }
  const auto again = FileSystem::Mount(open(), {});
  if (!again.ok()) std::abort();
  for (const BackupFile& file : source.manifest()->files) {
    for (const std::string& path : file.paths) {
      if (restored && !(*again)->Stat(path).ok()) std::abort();
    }
  }
}

}  // namespace
}  // namespace isozone::cli

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  isozone::cli::Fuzz({reinterpret_cast<const char*>(data), size});
  return 0;
}
