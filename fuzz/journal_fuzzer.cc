// Recovery from a device whose metadata is arbitrary: it must end, with a state that holds its invariants or an error.

#include <algorithm>
#include <cstdlib>
#include <variant>

#include "journal_input.h"
#include "store/metadata/metadata_codec.h"
#include "store/metadata/recovery.h"

namespace isozone {
namespace {

template <typename T>
T Load(std::span<const std::byte> bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

template <typename T>
void Store(const T& value, std::span<std::byte> bytes) {
  std::memcpy(bytes.data(), &value, sizeof(T));
}

void RepairBatches(const FrozenDevice& device, std::vector<std::byte>& bytes, uint64_t from, uint32_t seed) {
  for (uint64_t at = from; at < bytes.size(); at += device.geometry().block_size) {
    const std::span<std::byte> rest = std::span(bytes).subspan(at);
    auto header = Load<BatchHeader>(rest);
    if (header.magic != BatchHeader::kMagic) continue;
    if (header.payload_length <= rest.size() - sizeof(header)) {
      header.payload_crc = Crc32c(rest.subspan(sizeof(header), header.payload_length), seed);
    }
    constexpr size_t kCovered = offsetof(BatchHeader, payload_crc);
    header.header_crc = Crc32c(std::as_bytes(std::span(&header, 1)).subspan(kCovered), seed);
    Store(header, rest);
  }
}

// Gives what begins like a superblock its CRC, and whatever begins like a batch of that copy its CRCs. Zones without a
// superblock are taken for those of the copy before.
void Repair(FrozenDevice& device) {
  const uint64_t slot_bytes = SuperblockSlot(device.geometry());
  uint32_t seed = 0;
  for (uint32_t i = 0; i < device.geometry().zone_count; ++i) {
    std::vector<std::byte>& bytes = device.zone(ZoneId(i));
    uint64_t batches = 0;
    if (bytes.size() >= slot_bytes) {
      const std::span<std::byte> slot = std::span(bytes).first(slot_bytes);
      auto header = Load<SuperblockHeader>(slot);
      if (header.magic == SuperblockHeader::kMagic) {
        header.crc = 0;
        Store(header, slot);
        header.crc = Crc32c(slot);
        Store(header, slot);
        seed = ChecksumSeed(header.uuid, header.generation);
        batches = slot_bytes;
      }
    }
    RepairBatches(device, bytes, batches, seed);
  }
}

void Check(const MetadataState& state) {
  if (!state.CheckInvariants().ok()) std::abort();
}

// Versions 7 and 8 wrote these two as one.
bool MayBeOneOperation(const MetadataOp& first, const MetadataOp& second) {
  const auto* cut = std::get_if<CutFile>(&first);
  const auto* append = std::get_if<AppendExtents>(&second);
  return cut != nullptr && append != nullptr && cut->size == 0 && append->first_index == 0 &&
         append->inode == cut->inode && append->modified_s == cut->modified_s;
}

void FuzzRecord(std::span<const std::byte> body) {
  const auto ops = DecodeRecord(body);
  if (!ops.ok()) return;
  MetadataState state(FuzzGeometry());
  if (!state.Apply(*ops).ok() && state.size() != 1) std::abort();
  Check(state);
  // What was decoded is encoded again as it was.
  if (std::ranges::adjacent_find(*ops, MayBeOneOperation) != ops->end()) return;
  std::vector<std::byte> again;
  EncodeRecord(*ops, again);
  if (!std::equal(again.begin(), again.end(), body.begin(), body.end())) std::abort();
}

void FuzzDevice(std::span<const std::byte> input, bool repair) {
  FrozenDevice device(FuzzGeometry());
  DecodeInput(input, device);
  if (repair) Repair(device);
  const auto recovered = RecoverMetadata(device);
  if (recovered.ok()) Check(recovered->state);
}

}  // namespace
}  // namespace isozone

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto input = std::as_bytes(std::span(data, size)).subspan(1);
  if ((data[0] & isozone::kRecord) != 0) {
    isozone::FuzzRecord(input);
  } else {
    isozone::FuzzDevice(input, (data[0] & isozone::kRepair) != 0);
  }
  return 0;
}
