// RelocationWriter: the zones that a collection writes to. Blocks are cut into units, which go to lanes in turn, as those
// of a striped file do (data_sink.cc): each lane is a zone of another group with one write at a time. The first lane is of
// the collector's reserve; more are opened only where nobody else needs the zones.
//
// Lanes are of one data class at a time; another class begins new ones, or, where no zone is empty but those that are
// kept, goes on in the same: rather classes together than a victim that is left half moved.
//
// A confined one has a single lane, in zones that are partly written already (GcStore::MakeWriter).
//
// Failures: what a zone has failed to take goes to another one, as long as not kMaxAttempts writes in a row have failed.
//
// Thread safety: one thread at a time.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "fs/file/mount_context.h"
#include "fs/file/zone_stream.h"
#include "gc/gc_store.h"

namespace isozone {

class RelocationWriter final : public GcWriter {
 public:
  RelocationWriter(MountContext& context, bool confined);
  Status Write(std::span<const GcBlocks> blocks, DataClass data, std::vector<GcMove>& moves) override;

 private:
  // Blocks that go out with one write.
  struct Unit {
    const GcBlocks* blocks = nullptr;
    uint64_t offset = 0;  // bytes in blocks->blocks
    uint64_t length = 0;
    uint64_t live = 0;  // bytes of pieces
  };
  struct Lane {
    explicit Lane(MountContext& context) : stream(context, ZoneUse::kData) {}
    ZoneStream stream;
    uint32_t group = 0;
    std::optional<Unit> unit;  // in flight
    DeviceOffset where;        // it goes
  };

  // A lane that writes nothing and has room.
  Result<Lane*> NextLane(std::vector<GcMove>& moves);
  Status OpenFirst();
  bool Widen();
  std::unique_ptr<Lane> MakeLane() const;
  void Add(std::unique_ptr<Lane> lane);
  // Waits for what the lane writes: adds it to `moves`, or to what is to be written again.
  Status Settle(Lane& lane, std::vector<GcMove>& moves);
  Status SettleAll(std::vector<GcMove>& moves);
  static uint64_t LiveIn(const GcBlocks& blocks, uint64_t offset, uint64_t length);

  MountContext& context_;
  const bool confined_;
  const uint32_t width_;
  const uint64_t unit_size_;
  DataClass data_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<Unit> lost_;  // to be written again
  int failures_ = 0;        // writes in a row that failed
  size_t turn_ = 0;
};

}  // namespace isozone
