#include "store/metadata/metadata_codec.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/varint.h"
#include "store/metadata/byte_codec.h"
#include "store/metadata/format.h"

namespace isozone {
namespace {

// The first byte of each operation, as on the device.
enum class OpCode : uint8_t {
  kPutInode = 1,
  kAddLink = 2,
  kRemoveLink = 3,
  kRemoveInode = 4,
  kAppendExtents = 5,
  kSetExtents = 6,  // read, and written by versions 7 and 8 alone
  kSetLogRegion = 7,
  kSetLogRegions = 8,
  kSetAttributes = 9,
  kSetZoneGroups = 10,
  kMoveExtents = 11,
  kSetZoneHeats = 12,
  // Since version 8.
  kPutDetailedInode = 13,
  kSetDetails = 14,
  kPlaceExtents = 15,
  kLogToData = 16,
  // Since version 9.
  kBeginMount = 17,
  kSetTimes = 18,
  kCutFile = 19,
  kCheckpointFooter = 255,
};

constexpr size_t kLinkMin = 2;
constexpr size_t kRegionBytes = 29;
constexpr size_t kMoveBytes = 24;
constexpr size_t kGroupBytes = 2;
constexpr size_t kZoneGroupBytes = 3;
constexpr size_t kHeatBytes = 5;
constexpr size_t kXattrMin = 2;
constexpr size_t kBeginMountBytes = 8;

class Encoder {
 public:
  explicit Encoder(std::vector<std::byte>& out) : out_(out) {}

  void operator()(const PutInode& op) { Put(op.inode); }
  void operator()(const AddLink& op) {
    Put(OpCode::kAddLink, op.inode);
    Put(op.link);
  }
  void operator()(const RemoveLink& op) {
    Put(OpCode::kRemoveLink, op.inode);
    Put(op.link);
  }
  void operator()(const RemoveInode& op) { Put(OpCode::kRemoveInode, op.inode); }
  void operator()(const AppendExtents& op) {
    Put(OpCode::kAppendExtents, op.inode);
    out_.Put(op.modified_s);
    out_.Put(op.first_index);
    Put(op.extents);
  }
  void operator()(const CutFile& op) {
    Put(OpCode::kCutFile, op.inode);
    out_.Put(op.modified_s);
    out_.Put(op.size);
  }
  void operator()(const SetLogRegion& op) {
    Put(OpCode::kSetLogRegion, op.inode);
    out_.Put(op.modified_s);
    out_.Put(op.index);
    Put(op.region);
  }
  void operator()(const SetLogRegions& op) {
    Put(OpCode::kSetLogRegions, op.inode);
    out_.Put(op.modified_s);
    Put(op.regions);
  }
  void operator()(const SetAttributes& op) {
    Put(OpCode::kSetAttributes, op.inode);
    out_.Put(op.modified_s);
    out_.Put(static_cast<uint8_t>(op.lifetime));
    out_.Put(static_cast<uint8_t>(op.level));
  }
  void operator()(const SetDetails& op) {
    Put(OpCode::kSetDetails, op.inode);
    Put(*op.details);
  }
  void operator()(const SetTimes& op) {
    Put(OpCode::kSetTimes, op.inode);
    Put(op.modified);
    Put(op.changed);
  }
  void operator()(const PlaceExtents& op) {
    Put(OpCode::kPlaceExtents, op.inode);
    out_.Put(op.modified_s);
    Put(op.extents);
  }
  void operator()(const LogToData& op) {
    Put(OpCode::kLogToData, op.inode);
    out_.Put(op.modified_s);
    Put(op.extents);
  }
  void operator()(const SetZoneGroups& op) { Put(*op.groups); }
  void operator()(const SetZoneHeats& op) { Put(op.heats); }
  void operator()(const BeginMount& op) {
    Put(OpCode::kBeginMount, InodeId(0));
    out_.Put(op.number);
  }
  void operator()(const MoveExtents& op) {
    Put(OpCode::kMoveExtents, op.inode);
    out_.Put(static_cast<uint32_t>(op.moves.size()));
    for (const ExtentMove& move : op.moves) {
      out_.Put(move.from.value());
      out_.Put(move.to.value());
      out_.Put(move.length);
    }
  }

  void Put(const ZoneGroups& groups) {
    Put(OpCode::kSetZoneGroups, InodeId(0));
    out_.Put(groups.zone_bandwidth);
    out_.Put(groups.group_count());
    for (const uint16_t channel : groups.channel_of_group) out_.Put(channel);
    out_.Put(static_cast<uint32_t>(groups.group_of_zone.size()));
    for (size_t zone = 0; zone < groups.group_of_zone.size(); ++zone) {
      out_.Put(groups.group_of_zone[zone]);
      out_.Put(groups.confidence_percent[zone]);
    }
  }
  void Put(const ZoneHeats& heats) {
    Put(OpCode::kSetZoneHeats, InodeId(0));
    out_.Put(static_cast<uint32_t>(heats.size()));
    for (const auto& [zone, heat] : heats) {
      out_.Put(zone.value());
      out_.Put(static_cast<uint8_t>(heat));
    }
  }
  void Put(const Inode& inode) {
    Put(inode.details == nullptr ? OpCode::kPutInode : OpCode::kPutDetailedInode, inode.id);
    out_.Put(inode.modified_s);
    out_.Put(static_cast<uint8_t>(inode.is_directory ? 1 : 0));
    out_.Put(static_cast<uint8_t>(inode.kind));
    out_.Put(static_cast<uint8_t>(inode.lifetime));
    out_.Put(static_cast<uint8_t>(inode.level));
    out_.PutNumber(inode.links.size());
    for (const InodeLink& link : inode.links) Put(link);
    Put(inode.extents);
    Put(inode.regions);
    if (inode.details != nullptr) Put(*inode.details);
  }

 private:
  void Put(FileTime time) {
    out_.Put(time.s);
    out_.Put(time.ns);
  }
  void Put(const InodeDetails& details) {
    out_.PutNumber(details.mode);
    out_.PutNumber(details.user);
    out_.PutNumber(details.group);
    Put(details.modified);
    Put(details.changed);
    out_.PutCounted(std::as_bytes(std::span(details.target)));
    out_.PutNumber(details.xattrs.size());
    for (const auto& [name, value] : details.xattrs) {
      out_.PutCounted(std::as_bytes(std::span(name)));
      out_.PutCounted(std::as_bytes(std::span(value)));
    }
  }
  void Put(OpCode code, InodeId inode) {
    out_.Put(static_cast<uint8_t>(code));
    out_.PutNumber(inode.value());
  }
  void Put(const InodeLink& link) {
    out_.PutNumber(link.parent.value());
    out_.PutCounted(std::as_bytes(std::span(link.name)));
  }
  void Put(const ExtentList& extents) {
    out_.PutNumber(extents.begin_offset());
    const std::string packed = extents.Packed();
    out_.PutCounted(std::as_bytes(std::span(packed)));
  }
  void Put(const LogRegion& region) {
    out_.Put(region.zone.value());
    out_.Put(region.begin);
    out_.Put(region.end);
    out_.Put(region.payload);
    out_.Put(static_cast<uint8_t>(region.damaged));
  }
  void Put(const std::vector<LogRegion>& regions) {
    out_.PutNumber(regions.size());
    for (const LogRegion& region : regions) Put(region);
  }

  ByteWriter out_;
};

class Decoder {
 public:
  explicit Decoder(std::span<const std::byte> body) : in_(body) {}

  bool empty() const { return in_.empty() && !next_; }
  bool ok() const { return ok_ && in_.ok(); }

  MetadataOp GetOp() {
    if (next_) return *std::exchange(next_, std::nullopt);
    const auto code = static_cast<OpCode>(in_.Get<uint8_t>());
    const InodeId inode(in_.GetNumber());
    switch (code) {
      case OpCode::kPutInode:
        return PutInode{GetInode(inode)};
      case OpCode::kAddLink:
        return AddLink{inode, GetLink()};
      case OpCode::kRemoveLink:
        return RemoveLink{inode, GetLink()};
      case OpCode::kRemoveInode:
        return RemoveInode{inode};
      case OpCode::kAppendExtents:
      case OpCode::kSetExtents:
      case OpCode::kCutFile:
      case OpCode::kSetLogRegion:
      case OpCode::kSetLogRegions:
      case OpCode::kSetAttributes:
      case OpCode::kPlaceExtents:
      case OpCode::kLogToData:
        return GetTimedOp(code, inode);
      case OpCode::kPutDetailedInode: {
        PutInode put{GetInode(inode)};
        put.inode.details = GetDetails();
        return put;
      }
      case OpCode::kSetDetails:
        return SetDetails{inode, GetDetails()};
      case OpCode::kSetTimes:
        return SetTimes{inode, GetTime(), GetTime()};
      case OpCode::kSetZoneGroups:
        if (inode.value() != 0) ok_ = false;  // zone groups belong to no inode
        return SetZoneGroups{GetZoneGroups()};
      case OpCode::kMoveExtents:
        return MoveExtents{inode, GetMoves()};
      case OpCode::kSetZoneHeats:
        if (inode.value() != 0) ok_ = false;  // zone heats belong to no inode
        return SetZoneHeats{GetZoneHeats()};
      case OpCode::kBeginMount: {
        const BeginMount mount{in_.Get<uint64_t>()};
        if (inode.value() != 0 || mount.number == 0) ok_ = false;  // a mount belongs to no inode
        return mount;
      }
      case OpCode::kCheckpointFooter:
        break;
    }
    ok_ = false;
    return RemoveInode{};
  }

 private:
  // Reads an operation that begins with the time of the change. Braces are evaluated from left to right, as the fields
  // are encoded.
  MetadataOp GetTimedOp(OpCode code, InodeId inode) {
    const auto modified_s = in_.Get<uint64_t>();
    switch (code) {
      case OpCode::kAppendExtents:
        return AppendExtents{inode, in_.Get<uint64_t>(), GetExtents(), modified_s};
      case OpCode::kSetExtents:  // all extents become these
        next_ = AppendExtents{inode, 0, GetExtents(), modified_s};
        return CutFile{inode, 0, modified_s};
      case OpCode::kCutFile:
        return CutFile{inode, in_.Get<uint64_t>(), modified_s};
      case OpCode::kSetLogRegion:
        return SetLogRegion{inode, in_.Get<uint64_t>(), GetRegion(), modified_s};
      case OpCode::kSetLogRegions:
        return SetLogRegions{inode, GetRegions(), modified_s};
      case OpCode::kPlaceExtents:
        return PlaceExtents{inode, GetExtents(), modified_s};
      case OpCode::kLogToData:
        return LogToData{inode, GetExtents(), modified_s};
      default:
        return SetAttributes{inode, GetLifetime(), modified_s, GetLevel()};
    }
  }
  Inode GetInode(InodeId id) {
    Inode inode;
    inode.id = id;
    inode.modified_s = in_.Get<uint64_t>();
    const auto is_directory = in_.Get<uint8_t>();
    const auto kind = in_.Get<uint8_t>();
    if (is_directory > 1 || kind > static_cast<uint8_t>(FileKind::kSmall)) ok_ = false;
    inode.is_directory = is_directory == 1;
    inode.kind = static_cast<FileKind>(kind);
    inode.lifetime = GetLifetime();
    inode.level = GetLevel();
    inode.links.resize(in_.GetCountNumber(kLinkMin));
    for (InodeLink& link : inode.links) link = GetLink();
    inode.extents = GetExtents();
    inode.regions = GetRegions();
    inode.size = inode.extents.end_offset();
    for (const LogRegion& region : inode.regions) inode.size += region.payload;
    return inode;
  }
  FileTime GetTime() {
    const auto s = in_.Get<uint64_t>();
    return {s, in_.Get<uint32_t>()};
  }
  uint32_t GetSmallNumber() {
    const uint64_t value = in_.GetNumber();
    if (value > UINT32_MAX) ok_ = false;
    return static_cast<uint32_t>(value);
  }
  std::shared_ptr<const InodeDetails> GetDetails() {
    auto details = std::make_shared<InodeDetails>();
    details->mode = GetSmallNumber();
    details->user = GetSmallNumber();
    details->group = GetSmallNumber();
    details->modified = GetTime();
    details->changed = GetTime();
    details->target = in_.GetString();
    auto& xattrs = details->xattrs;
    for (uint32_t left = in_.GetCountNumber(kXattrMin); left > 0; --left) {
      std::string name = in_.GetString();
      // The names must rise, so that one state has one encoding.
      if (!xattrs.empty() && name <= xattrs.rbegin()->first) ok_ = false;
      std::string value = in_.GetString();
      xattrs.emplace_hint(xattrs.end(), std::move(name), std::move(value));
    }
    return details;
  }
  InodeLink GetLink() {
    const InodeId parent(in_.GetNumber());
    return {parent, in_.GetString()};
  }
  Lifetime GetLifetime() {
    const auto value = in_.Get<uint8_t>();
    if (value >= kLifetimeCount) ok_ = false;
    return static_cast<Lifetime>(value);
  }
  int8_t GetLevel() {
    const auto value = static_cast<int8_t>(in_.Get<uint8_t>());
    if (value < DataClass::kNoLevel) ok_ = false;
    return value;
  }
  ExtentList GetExtents() {
    const uint64_t offset = in_.GetNumber();
    std::optional<ExtentList> extents = ExtentList::Parse(offset, in_.GetCounted());
    if (extents) return *std::move(extents);
    ok_ = false;
    return {};
  }
  std::vector<ExtentMove> GetMoves() {
    std::vector<ExtentMove> moves(in_.GetCount(kMoveBytes));
    for (ExtentMove& move : moves) {
      move.from = DeviceOffset(in_.Get<uint64_t>());
      move.to = DeviceOffset(in_.Get<uint64_t>());
      move.length = in_.Get<uint64_t>();
    }
    return moves;
  }
  LogRegion GetRegion() {
    LogRegion region;
    region.zone = ZoneId(in_.Get<uint32_t>());
    region.begin = in_.Get<uint64_t>();
    region.end = in_.Get<uint64_t>();
    region.payload = in_.Get<uint64_t>();
    const auto damaged = in_.Get<uint8_t>();
    if (damaged > 1) ok_ = false;
    region.damaged = damaged == 1;
    return region;
  }
  std::shared_ptr<const ZoneGroups> GetZoneGroups() {
    auto groups = std::make_shared<ZoneGroups>();
    groups->zone_bandwidth = in_.Get<uint64_t>();
    groups->channel_of_group.resize(in_.GetCount(kGroupBytes));
    for (uint16_t& channel : groups->channel_of_group) channel = in_.Get<uint16_t>();
    const uint32_t zones = in_.GetCount(kZoneGroupBytes);
    for (uint32_t zone = 0; zone < zones; ++zone) {
      groups->group_of_zone.push_back(in_.Get<uint16_t>());
      groups->confidence_percent.push_back(in_.Get<uint8_t>());
    }
    return groups;
  }
  ZoneHeats GetZoneHeats() {
    ZoneHeats heats;
    for (uint32_t left = in_.GetCount(kHeatBytes); left > 0; --left) {
      const ZoneId zone(in_.Get<uint32_t>());
      const auto heat = in_.Get<uint8_t>();
      // The zones must rise, so that one state has one encoding.
      if (heat >= kZoneHeatCount || (!heats.empty() && zone <= heats.rbegin()->first)) ok_ = false;
      heats.emplace_hint(heats.end(), zone, static_cast<ZoneHeat>(heat));
    }
    return heats;
  }
  std::vector<LogRegion> GetRegions() {
    std::vector<LogRegion> regions(in_.GetCountNumber(kRegionBytes));
    for (LogRegion& region : regions) region = GetRegion();
    return regions;
  }

  ByteReader in_;
  std::optional<MetadataOp> next_;  // an older version wrote it and the one before as one operation
  bool ok_ = true;
};

}  // namespace

uint64_t EncodedSize(const InodeLink& link) {
  return VarintSize(link.parent.value()) + VarintSize(link.name.size()) + link.name.size();
}

uint64_t EncodedSize(const ExtentList& extents) {
  const uint64_t packed = extents.packed_size();
  return VarintSize(extents.begin_offset()) + VarintSize(packed) + packed;
}

uint64_t EncodedRegions(uint64_t count) { return VarintSize(count) + kRegionBytes * count; }

uint64_t EncodedSize(const Inode& inode) {
  constexpr uint64_t kFixed = kRecordPrefix + 1 + 8 + 4;  // the code, the time, and four fields of a byte
  uint64_t size = kFixed + VarintSize(inode.id.value()) + VarintSize(inode.links.size());
  for (const InodeLink& link : inode.links) size += EncodedSize(link);
  return size + EncodedSize(inode.extents) + EncodedRegions(inode.regions.size()) + EncodedSize(inode.details.get());
}

uint64_t EncodedSize(const InodeDetails* details) {
  constexpr uint64_t kTimes = 24;
  if (details == nullptr) return 0;
  const auto counted = [](const std::string& bytes) { return VarintSize(bytes.size()) + bytes.size(); };
  uint64_t size = kTimes + VarintSize(details->mode) + VarintSize(details->user) + VarintSize(details->group) +
                  counted(details->target) + VarintSize(details->xattrs.size());
  for (const auto& [name, value] : details->xattrs) size += counted(name) + counted(value);
  return size;
}

uint64_t EncodedSize(const ZoneGroups* groups) {
  constexpr uint64_t kFixed = kRecordPrefix + 18;
  if (groups == nullptr) return 0;
  return kFixed + kGroupBytes * groups->group_count() + kZoneGroupBytes * groups->group_of_zone.size();
}

uint64_t EncodedSize(const ZoneHeats& heats) {
  constexpr uint64_t kFixed = kRecordPrefix + 6;
  return heats.empty() ? 0 : kFixed + kHeatBytes * heats.size();
}

uint64_t EncodedSize(const BeginMount& mount) { return mount.number == 0 ? 0 : kRecordPrefix + 2 + kBeginMountBytes; }

uint64_t EncodedSize(const DeviceRecords& device) {
  return EncodedSize(device.groups.get()) + EncodedSize(device.heats) + EncodedSize(BeginMount{device.mount_number});
}

void EncodeRecord(std::span<const MetadataOp> ops, std::vector<std::byte>& out) {
  Encoder encoder(out);
  for (const MetadataOp& op : ops) std::visit(encoder, op);
}

void EncodePutInode(const Inode& inode, std::vector<std::byte>& out) { Encoder(out).Put(inode); }

void EncodeSetZoneGroups(const ZoneGroups& groups, std::vector<std::byte>& out) { Encoder(out).Put(groups); }

void EncodeSetZoneHeats(const ZoneHeats& heats, std::vector<std::byte>& out) { Encoder(out).Put(heats); }

void EncodeBeginMount(const BeginMount& mount, std::vector<std::byte>& out) {
  Encoder encoder(out);
  encoder(mount);
}

void EncodeFooter(const CheckpointFooter& footer, std::vector<std::byte>& out) {
  ByteWriter writer(out);
  writer.Put(static_cast<uint8_t>(OpCode::kCheckpointFooter));
  writer.Put(footer.inodes);
  writer.Put(footer.sequence);
  writer.Put(footer.next_id.value());
}

Result<std::vector<MetadataOp>> DecodeRecord(std::span<const std::byte> body) {
  Decoder decoder(body);
  std::vector<MetadataOp> ops;
  while (!decoder.empty() && decoder.ok()) ops.push_back(decoder.GetOp());
  if (!decoder.ok() || ops.empty()) {
    return Status::Corruption(fmt::format("operation {} of the record cannot be decoded", ops.size()));
  }
  return ops;
}

bool IsFooter(std::span<const std::byte> body) {
  return !body.empty() && static_cast<OpCode>(body.front()) == OpCode::kCheckpointFooter;
}

Result<CheckpointFooter> DecodeFooter(std::span<const std::byte> body) {
  ByteReader reader(body);
  CheckpointFooter footer;
  const auto code = static_cast<OpCode>(reader.Get<uint8_t>());
  footer.inodes = reader.Get<uint64_t>();
  footer.sequence = reader.Get<uint64_t>();
  footer.next_id = InodeId(reader.Get<uint64_t>());
  if (code != OpCode::kCheckpointFooter || !reader.ok() || !reader.empty()) {
    return Status::Corruption("the checkpoint's footer cannot be decoded");
  }
  return footer;
}

}  // namespace isozone
