// VirtualZones: executes in virtual time what the ZoneAllocator decides, as the file system does on a device
// (store/space/zone_pool.h): it grants zones to writers, and resets and finishes zones, which takes the time that
// the device takes. And it knows which files lie in which zones.
//
//   Grant    "here is a zone" | "wait until then, or for `changed`, and ask again" | an error: nothing can help
//   pieces   the runs of bytes of files in a zone, in the order in which they were written. What is live in a zone is
//            the sum of its pieces
//
// Metadata is always durable and takes no time. Three zones are reserved for it, as by a file system.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "simulator/device_times.h"
#include "simulator/event_loop.h"
#include "store/zone/allocator/zone_allocator.h"

namespace isozone {

// A run of bytes of a file in a zone.
struct ZonePiece {
  uint64_t file = 0;
  uint64_t offset = 0;  // bytes from the start of the zone
  uint64_t length = 0;  // bytes
  uint64_t end() const { return offset + length; }
};

// The place of a run of bytes of a file. The order of the runs in the file is not kept.
struct FilePlace {
  ZoneId zone;
  uint64_t offset = 0;  // bytes from the start of the zone
  uint64_t length = 0;  // bytes
};

struct StoredFile {
  DataClass data;
  std::vector<FilePlace> places;
};

class VirtualZones final : public Actor {
 public:
  struct Options {
    std::string policy;
    DeviceGeometry geometry;
    uint32_t stripe_width = 1;
    // Are called when a writer waits for space, and when users wait until the collector has written more.
    std::function<void()> want_space;
    std::function<void()> want_pace;
    bool collects = false;  // there is a collector that writers may wait for
  };
  // Fails with kInvalidArgument if the policy is unknown or there are too few zones.
  static Result<std::unique_ptr<VirtualZones>> Create(EventLoop& loop, DeviceTimes& times, Options options);

  // --- Writing ---
  // A zone, or the time at which to ask again; kNever: only when `changed` rings.
  struct Answer {
    std::optional<ZoneGrant> grant;
    int64_t until_ns = EventLoop::kNever;
  };
  // Asks the allocator, and executes its answers until a zone is granted or must be waited for. Fails with kNoSpace if
  // nothing can help.
  Result<Answer> Grant(ZoneAllocator::Inquiry& inquiry);
  std::optional<ZoneGrant> Widen(const ZoneRequest& request) { return allocator_.Widen(request); }
  // Starts to write at the write pointer of `grant`, and advances it. Returns the time at which the write ends, or
  // nothing if the lease was taken away.
  std::optional<int64_t> BeginWrite(ZoneGrant& grant, uint64_t file, uint64_t bytes);
  // Ends all commands that are due by now. Actors that may be called before this one call it first.
  void CatchUp();
  void Release(const ZoneGrant& grant);

  // Must be called when a user begins to wait for WritePace.
  void NotePaced() {
    if (allocator_.collection().CollectorIsAwaited()) options_.want_pace();
  }

  // --- Files ---
  void AddFile(uint64_t file, DataClass data) { files_[file].data = data; }
  const StoredFile& file(uint64_t file) const { return files_.at(file); }
  void RemoveFile(uint64_t file);
  // Returns the pieces of `zone` by offset.
  std::span<const ZonePiece> pieces(ZoneId zone) const { return pieces_[zone.value()]; }
  bool has_file(uint64_t file) const { return files_.contains(file); }
  // Takes `place`, which lies within one piece, away from `file`, whose data there now lies elsewhere. Does nothing if
  // the file has nothing there.
  void Remove(uint64_t file, const FilePlace& place);

  // Rings when something changes that a writer may wait for.
  Bell& changed() { return changed_; }
  // Says that something is dead, free or asked for. What is due is done after the actors that are due now.
  void NoteWork() {
    work_is_due_ = true;
    loop_.CallAt(loop_.now_ns(), *this);
  }
  void Proceed() override;

  ZoneAllocator& allocator() { return allocator_; }
  const ZoneLedger& ledger() const { return allocator_.ledger(); }
  const DeviceGeometry& geometry() const { return options_.geometry; }
  bool parallel() const { return parallel_; }

 private:
  // A reset, a finish or a write of the device.
  struct Command {
    int64_t ends_ns = 0;
    uint64_t order = 0;
    ZoneId zone;
    DeviceOp op = DeviceOp::kReset;
    std::shared_ptr<LeaseState> lease = {};       // the lease of a write
    uint64_t bytes = 0;                           // the bytes of a write
    bool operator<(const Command& other) const {  // so that the first one is on top
      return ends_ns != other.ends_ns ? ends_ns > other.ends_ns : order > other.order;
    }
  };

  VirtualZones(EventLoop& loop, DeviceTimes& times, Options options, std::unique_ptr<PlacementPolicy> policy,
               std::span<const ZoneDescriptor> report);
  Status NothingLeft(Lack lack) const;
  void Execute(const std::vector<ZoneCommands>& commands);
  void Start(Command command);
  void End(const Command& command);
  // Returns the index of the piece of `file` that holds `offset`, or the number of pieces if there is none.
  size_t FindPiece(ZoneId zone, uint64_t file, uint64_t offset) const;
  void CutPiece(ZoneId zone, size_t index, uint64_t offset, uint64_t length);

  EventLoop& loop_;
  DeviceTimes& times_;
  const Options options_;
  const bool parallel_;
  ZoneAllocator allocator_;
  Bell changed_;
  std::vector<std::vector<ZonePiece>> pieces_;  // by zone
  std::unordered_map<uint64_t, StoredFile> files_;
  std::priority_queue<Command> commands_;
  uint64_t commands_begun_ = 0;
  bool work_is_due_ = false;
};

}  // namespace isozone
