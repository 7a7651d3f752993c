// Metadata records as bytes: docs/format.md, "Records", has the layouts. What is decoded is well-formed, not yet valid:
// MetadataState::Apply and Restore decide that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "store/metadata/metadata.h"

namespace isozone {

// Return how many bytes an inode takes in a checkpoint, prefix of its record included; and parts of it.
uint64_t EncodedSize(const Inode& inode);
uint64_t EncodedSize(const InodeLink& link);
uint64_t EncodedSize(const ExtentList& extents);
uint64_t EncodedRegions(uint64_t count);            // all of them, and their number
uint64_t EncodedSize(const InodeDetails* details);  // null: 0 bytes
// Return the bytes of zone groups (null: none), of heats, of the number of the mount, and of all these and the footer.
uint64_t EncodedSize(const ZoneGroups* groups);
uint64_t EncodedSize(const ZoneHeats& heats);
uint64_t EncodedSize(const BeginMount& mount);  // number 0: 0 bytes
uint64_t EncodedSize(const DeviceRecords& device);
inline constexpr uint64_t kEncodedFooter = 29;

// The last record of a checkpoint.
struct CheckpointFooter {
  uint64_t inodes = 0;
  uint64_t sequence = 0;  // the last record whose effect the checkpoint contains
  InodeId next_id;
  bool operator==(const CheckpointFooter&) const = default;
};

// These functions append to `out`. The operations have been applied to a state, so their names and extents are valid.
void EncodeRecord(std::span<const MetadataOp> ops, std::vector<std::byte>& out);
void EncodePutInode(const Inode& inode, std::vector<std::byte>& out);
void EncodeSetZoneGroups(const ZoneGroups& groups, std::vector<std::byte>& out);
void EncodeSetZoneHeats(const ZoneHeats& heats, std::vector<std::byte>& out);
void EncodeBeginMount(const BeginMount& mount, std::vector<std::byte>& out);
void EncodeFooter(const CheckpointFooter& footer, std::vector<std::byte>& out);

// Decodes a record. kCorruption if `body` is not a whole number of operations.
Result<std::vector<MetadataOp>> DecodeRecord(std::span<const std::byte> body);
bool IsFooter(std::span<const std::byte> body);
Result<CheckpointFooter> DecodeFooter(std::span<const std::byte> body);

}  // namespace isozone
