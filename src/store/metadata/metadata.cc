#include "store/metadata/metadata.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "store/metadata/metadata_change.h"
#include "store/metadata/metadata_tables.h"

namespace isozone {

ZoneHeat HeatOf(const ZoneHeats& heats, ZoneId zone) {
  const auto known = heats.find(zone);
  return known == heats.end() ? kNewDataHeat : known->second;
}

InodeId InodeOf(const MetadataOp& op) {
  return std::visit(
      [](const auto& o) {
        if constexpr (requires { o.inode.id; }) {
          return o.inode.id;
        } else if constexpr (requires { o.inode; }) {
          return o.inode;
        } else {
          return InodeId(0);
        }
      },
      op);
}

MetadataState::MetadataState(const DeviceGeometry& geometry) : tables_(std::make_unique<MetadataTables>(geometry)) {}

MetadataState::MetadataState(MetadataState&&) noexcept = default;
MetadataState& MetadataState::operator=(MetadataState&&) noexcept = default;
MetadataState::~MetadataState() = default;

Result<MetadataState> MetadataState::Restore(const DeviceGeometry& geometry, std::vector<Inode> inodes, InodeId next_id,
                                             DeviceRecords device) {
  MetadataState state(geometry);
  ISOZONE_RETURN_IF_ERROR(state.tables_->Restore(std::move(inodes), next_id, std::move(device)));
  return state;
}

Status MetadataState::Apply(std::span<const MetadataOp> ops, const Admit& admit) {
  MetadataChange change(*tables_);
  ISOZONE_RETURN_IF_ERROR(change.Do(ops));
  if (admit && change.grows()) ISOZONE_RETURN_IF_ERROR(admit(tables_->encoded_size));
  change.Keep();
  return {};
}

uint64_t MetadataState::encoded_size() const { return tables_->encoded_size; }

const Inode* MetadataState::Find(InodeId id) const { return tables_->Find(id); }

const Inode* MetadataState::Child(InodeId directory, std::string_view name) const {
  const std::optional<InodeId> id = Children(directory).Find(name);
  return id ? Find(*id) : nullptr;
}

Result<const Inode*> MetadataState::Lookup(std::string_view path) const {
  if (!path.starts_with('/')) return Status::InvalidArgument(fmt::format("'{}' is not an absolute path", path));
  const Inode* inode = Find(kRootInode);
  for (std::string_view rest = path; !rest.empty();) {
    const size_t begin = std::min(rest.find_first_not_of('/'), rest.size());
    const size_t end = std::min(rest.find('/', begin), rest.size());
    const std::string_view name = rest.substr(begin, end - begin);
    rest.remove_prefix(end);
    if (name.empty()) break;
    if (!inode->is_directory) {
      return Status::NotDirectory(fmt::format("'{}': what comes before '{}' is not a directory", path, name));
    }
    inode = Child(inode->id, name);
    if (inode == nullptr) return Status::NotFound(fmt::format("no such file or directory on the device: '{}'", path));
  }
  return inode;
}

const DirectoryTable& MetadataState::Children(InodeId directory) const { return tables_->Children(directory); }

std::vector<MetadataState::OwnedExtent> MetadataState::ExtentsIn(ZoneId zone) const {
  std::vector<OwnedExtent> owned;
  std::vector<FileExtent> extents;
  for (const ZoneIndex::Entry& entry : tables_->zone_index.In(zone)) {
    extents.clear();
    tables_->AddExtents(zone, entry, *Find(entry.inode), extents);
    for (const FileExtent& extent : extents) owned.push_back({entry.inode, extent});
  }
  return owned;
}

std::vector<FileExtent> MetadataState::ExtentsIn(ZoneId zone, InodeId inode) const {
  const Inode* found = Find(inode);
  return found == nullptr ? std::vector<FileExtent>() : tables_->ExtentsIn(zone, *found);
}

std::map<InodeId, uint64_t> MetadataState::BytesIn(ZoneId zone, uint64_t write_pointer) const {
  std::map<InodeId, uint64_t> bytes;
  for (const ZoneIndex::Entry& entry : tables_->zone_index.In(zone)) {
    uint64_t& of_file = bytes[entry.inode];
    tables_->zone_index.VisitRuns(zone, entry, Find(entry.inode)->extents,
                                  [&](const ExtentRun& run) { of_file += run.count * run.length; });
  }
  tables_->region_index.VisitIn(zone, [&](const RegionIndex::Entry& entry) {
    bytes[entry.inode] += BytesOf(Find(entry.inode)->regions[entry.index], write_pointer);
  });
  return bytes;
}

uint64_t MetadataState::BytesOf(const LogRegion& region, uint64_t write_pointer) const {
  if (!region.open()) return region.end - region.begin;
  const uint64_t end = std::min(write_pointer, tables_->region_index.NextBegin(region.zone, region.begin));
  return end - std::min(region.begin, end);
}

uint64_t MetadataState::BlocksIn(ZoneId zone) const { return tables_->zone_index.BlocksIn(zone); }

std::vector<std::string> MetadataState::PathsOf(InodeId id) const {
  if (id == kRootInode) return {"/"};
  std::vector<std::string> paths;
  const Inode* inode = Find(id);
  if (inode == nullptr) return paths;
  for (const InodeLink& link : inode->links) {
    std::string path = "/" + link.name;
    for (const Inode* above = Find(link.parent); above->id != kRootInode; above = Find(above->links.front().parent)) {
      path.insert(0, "/" + above->links.front().name);
    }
    paths.push_back(std::move(path));
  }
  return paths;
}

InodeId MetadataState::NextId() const { return tables_->next_id; }

size_t MetadataState::size() const { return tables_->inodes.size(); }

const Inode* MetadataState::Next(InodeId after) const {
  const auto it = tables_->inodes.upper_bound(after);
  return it == tables_->inodes.end() ? nullptr : &it->second;
}

const DeviceRecords& MetadataState::device() const { return tables_->device; }

Status MetadataState::CheckInvariants() const { return tables_->CheckInvariants(); }

void MetadataState::BeginSnapshot() { tables_->snapshot.emplace(); }

std::vector<Inode> MetadataState::NextOfSnapshot(size_t max) { return tables_->snapshot->Next(tables_->inodes, max); }

void MetadataState::EndSnapshot() { tables_->snapshot.reset(); }

}  // namespace isozone
