// What a mounted device tells and is told beside names and files: its state, GC, and zone groups.
//
// Thread safety: any thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "store/file_system.h"
#include "store/mount/mount_context.h"
#include "store/mount/read_only_refresh.h"

namespace isozone {

class MountedState final : public FileSystemState {
 public:
  // Both outlive this. `refresh`: null where this process is the writer.
  MountedState(MountContext& context, ReadOnlyRefresh* refresh) : context_(context), refresh_(refresh) {}

  SpaceInfo Space() const override {
    return refresh_ == nullptr ? context_.data_path.pool->Space() : refresh_->Space();
  }
  Figures Stats() const override;
  std::vector<ZoneView> Zones() const override { return context_.data_path.pool->Zones(); }
  Status VisitFiles(const std::function<void(const FileDetails&)>& visit) const override;
  Result<uint64_t> AllocatedBytes(std::string_view path) const override;
  Result<std::vector<FileInZone>> FilesIn(ZoneId zone) const override;
  Result<std::vector<ZoneOfFile>> ZonesOf(std::string_view path) const override;
  ZoneRoom RoomOf(const DataClass& data, uint64_t together_with) const override {
    return context_.data_path.pool->RoomOf(data, together_with);
  }
  std::string label() const override { return context_.label; }
  std::string uuid() const override { return context_.uuid; }
  const MountOptions& options() const override { return context_.data_path.options; }
  const ZonedDevice& device() const override { return *context_.data_path.device; }
  MetadataCopies Metadata() const override;
  Status RestoreMetadataCopies() override;
  std::string read_only_reason() const override;
  Status Settle() override;

 private:
  // Where the frames of a log are, and its size where it grows in another process.
  Status ReadLogOf(const Inode& inode, FileDetails& details) const ISOZONE_EXCLUDES(context_.catalog.namespace_mutex);

  MountContext& context_;
  ReadOnlyRefresh* const refresh_;
};

class MountedCollection final : public GarbageCollection {
 public:
  // `context` outlives this.
  explicit MountedCollection(MountContext& context) : context_(context) {}

  Result<CopyStats> Run(double free_percent, const GcProgress& progress) override;
  GcPlan Plan(bool all) const override;
  Status SetOptions(const GcOptions& options) override;

 private:
  MountContext& context_;
};

class MountedGroups final : public ZoneGroupRecord {
 public:
  // `catalog` outlives this.
  explicit MountedGroups(Catalog& catalog) : catalog_(catalog) {}

  std::shared_ptr<const ZoneGroups> Get() const override;
  Status Set(const ZoneGroups& groups) override;

 private:
  Catalog& catalog_;
};

}  // namespace isozone
