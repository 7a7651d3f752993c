// Writes one copy of the metadata: the superblock, a checkpoint, and the journal behind it, as one chain of zones.
//
// A copy is begun with the size of its checkpoint known. From that follows how many zones it has (CopyZones): as many
// as the checkpoint takes, and a rest for the journal, which is smaller on a full device. Whenever a zone is begun that
// is not the last, the next one is reserved first, so that every batch says where the copy goes on. The last zone is
// never left: when it is full the copy has no room, and another has to be written in its place.
//
// What is written is durable, batch by batch.
//
// Thread safety: one thread at a time. But while Start or the writes of a checkpoint run, Append and the const
// functions may be called.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/latch.h"
#include "base/status.h"
#include "store/metadata/batch_stream.h"
#include "store/metadata/metadata_codec.h"
#include "store/metadata/metadata_io.h"
#include "store/metadata/recovery.h"
#include "store/metadata/superblock.h"
#include "store/space/zone_pool.h"

namespace isozone {

// The room that a copy has behind its checkpoint: for the journal, and for what makes the next checkpoint larger.
enum class MetadataRest {
  kWhole,  // half of the checkpoint, but at least an eighth of a zone and four blocks
  kMost,   // the mean of kWhole and kHalf
  kHalf,   // half of kWhole, and at least three blocks
  kLeast,  // two blocks: the copy can join the others, and take one record
};
// Returns the zones of a copy whose checkpoint takes so many bytes (MetadataState::encoded_size), with such a rest.
uint32_t CopyZones(const DeviceGeometry& geometry, uint64_t checkpoint_bytes, MetadataRest rest);

class MetadataLog {
 public:
  // Makes a copy that is to be begun. `superblock` is complete but for its zone.
  MetadataLog(ZonedDevice& device, ZonePool& pool, const Superblock& superblock);
  // Goes on with a copy that was found, whose zones the pool has adopted. It has room only if it holds the last record
  // (`up_to_date`).
  static Result<std::unique_ptr<MetadataLog>> Resume(ZonedDevice& device, ZonePool& pool, const FoundCopy& found,
                                                     bool up_to_date);

  // --- Begin, any number of Add, Finish. After an error, which is kNoSpace, or kIoError if a write failed, no more ---
  // Begins a copy that will have so many `zones`. `apart_from` are the zones of the other copy.
  Status Begin(uint32_t zones, std::vector<ZoneId> apart_from);
  template <typename Encode>
  Status Add(Encode encode) {
    checkpoint_.Add(encode);
    while (checkpoint_.size() >= builder_.batch_max()) ISOZONE_RETURN_IF_ERROR(WriteCheckpointBatch());
    return {};
  }
  Status Finish(const CheckpointFooter& footer);

  // --- The journal ---
  // Appends a record. May be called while the checkpoint is written, or the batch of another Build.
  void Append(std::span<const std::byte> record) {
    journal_.Add([&](std::vector<std::byte>& out) { out.insert(out.end(), record.begin(), record.end()); });
  }
  bool has_records() const { return !journal_.empty(); }
  uint64_t queued_bytes() const { return journal_.size(); }
  // Returns how many bytes the journal can still take; 0: another copy has to take the place of this one.
  uint64_t room() const;
  // Makes a batch of all that waits, or as much as fits. There must be room.
  void Build(uint32_t copies);
  // Write the batch: Start, then, once `written` is down, End. After an error the copy is of no use. Start changes
  // nothing that the const functions look at.
  Status Start(Latch& written);
  Status End();
  // Erases a copy that gets no more records, so that recovery does not take it for one that has them all. If the device
  // refuses that, sees to it at least that nothing can be written behind the copy's end any more.
  void Erase();
  // Returns whether the last write has failed because there is no room behind the device: another zone would not help.
  bool out_of_room() const { return request_.status == DeviceStatus::kCapacityExceeded; }

  // Returns the last record that is durable in this copy.
  uint64_t durable_sequence() const { return durable_sequence_; }
  uint64_t journal_bytes() const { return journal_bytes_; }
  uint64_t bytes_written() const { return bytes_written_; }
  uint64_t generation() const { return superblock_.generation; }
  // Returns the zones in order, including one that is only reserved.
  const std::vector<ZoneId>& zones() const { return zones_; }

 private:
  Status EnterZone();
  Status WriteCheckpointBatch();
  Status Write(std::span<std::byte> blocks);
  Status EndWrite();
  bool linked() const { return zone_ + 1 < zones_.size(); }
  std::optional<ZoneId> next_zone() const { return linked() ? std::optional(zones_[zone_ + 1]) : std::nullopt; }

  ZonedDevice& device_;
  ZonePool& pool_;
  Superblock superblock_;
  BatchBuilder builder_;
  std::vector<ZoneId> apart_from_;

  std::vector<ZoneId> zones_;
  size_t zone_ = 0;            // index of the zone that is written
  uint32_t zones_wanted_ = 1;  // number of zones in all
  ZoneLease lease_;            // on that zone, once it is written
  uint64_t room_here_ = 0;     // bytes in that zone behind what was built

  RecordQueue checkpoint_;
  RecordQueue journal_;
  StreamCounters counters_;
  uint64_t durable_sequence_ = 0;
  uint64_t journal_bytes_ = 0;
  uint64_t bytes_written_ = 0;

  BatchBuilder::Batch batch_;  // the batch that was built last
  DeviceRequest request_;
};

}  // namespace isozone
