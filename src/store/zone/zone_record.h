// ZoneRecord: what is known about one zone, and the changes that it goes through.
//
//            Lease            EndLease                BeginReset        EndReset
//   empty ----------> leased ----------> idle, full -----------> resetting -----> empty
//                       ^                 |  | BeginFinish  EndFinish
//                       +----- Lease -----+  +-----------> finishing -----> full
//   any --Fail--> failed (reset once nothing in it lives)     any --Retire--> retired, offline (never written again)
//
// A zone is *dead* when it is idle, full or failed, no byte in it lives, it holds no metadata that is still needed, and
// it is not being collected (otherwise the collector might read data of another file there), nor pinned: read by
// another process, which has a file open that was removed or moved. Only a dead zone can be reset. A pinned zone is
// written further, or finished, as if something lived in it. A dead idle zone may be worth writing further: one of
// logs, which die in order, as long as any frame of a log fits, or one with so little written to it that a reset would
// cost more than it gains. Such a zone takes the class of the next data.
//
// Fields that no other field depends on are set as they are: `use`, `data`, `writer`, `written_at`, `sealed` and
// `has_data`, which end when the zone is dead, `victim` and `pinned` of an idle, full or failed zone, and
// `reset_asked`, which the next lease or reset of the zone cancels. A lease also ends `pinned`.
//
// Thread safety: none; the owner locks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "store/zone/cohort.h"
#include "store/zone/data_class.h"
#include "store/zone/zone_use.h"

namespace isozone {

enum class ZonePhase : uint8_t {
  kEmpty,
  kLeased,     // one writer holds it
  kIdle,       // partly written, no writer
  kFinishing,  // a finish is in flight
  kFull,       // written to its capacity, or finished
  kResetting,  // a reset is in flight
  kFailed,     // a write failed: not written again until it is reset
  kRetired,    // read-only, or its reset failed: never written again
  kOffline,    // neither read nor written
};

struct ZoneRecord {
  ZonePhase phase = ZonePhase::kEmpty;
  ZoneUse use = ZoneUse::kFree;
  DataClass data;                             // of the first file written to it
  Cohort cohort = {};                         // of the first file written to it
  ZoneWriter writer = ZoneWriter::kNone;      // who leased it last
  bool has_data = false;                      // of logs: data lives in it, too, which was part of a log
  bool sealed = false;                        // its cohort is sealed: it is written only if there is no other zone
  bool kept = false;                          // reserved for metadata alone: nothing else is ever written to it
  bool released = false;                      // no durable record refers to its content
  bool victim = false;                        // being collected: it is neither written nor reset
  bool pinned = false;                        // dead but for readers in other processes: it is not reset
  bool set_aside = false;                     // empty, and reserved for a copy of the metadata
  bool reset_asked = false;                   // once dead it is reset, even where dead zones wait for the collector
  bool at_device = false;                     // its reset or finish was submitted to the device
  ZonePhase before_reset = ZonePhase::kFull;  // of a resetting zone: its phase before
  uint64_t live = 0;                          // bytes of file data
  uint64_t write_pointer = 0;                 // bytes from the start of the zone
  uint64_t written_at = 0;                    // bytes of all zones up to its last write; 0: none since the mount
  uint64_t capacity = 0;                      // bytes
  std::optional<uint64_t> finished_at = {};   // of a finished zone: the write pointer before the finish

  // --- Questions ---
  // Returns whether data of cohort `id` (0: of no cohort) must go elsewhere as long as there is another zone.
  bool kept_from(uint64_t id) const { return live > 0 && (sealed || (cohort.own_zones && cohort.id != id)); }
  uint64_t room() const { return capacity - write_pointer; }
  // Returns the bytes that were written and belong to no file.
  uint64_t dead_bytes() const { return write_pointer - std::min(live, write_pointer); }
  bool dead() const;
  // Returns whether the zone is partly written, and may be written further.
  bool reusable() const;

  // --- Changes. Each begins with the phases in which it may be called; others are errors of the caller (assert). ---
  // Empty or idle: a writer leases the zone. An empty one takes `new_use`, `new_data` and `new_cohort`. An idle one
  // keeps its own, but if it is dead only its use.
  void Lease(ZoneUse new_use, DataClass new_data, Cohort new_cohort = {});
  // Leased: `bytes`, at most its room, were written at the write pointer.
  void Advance(uint64_t bytes);
  // Leased: becomes full, idle, or, if nothing was written, empty.
  void EndLease();
  // Idle or failed: a finish begins.
  void BeginFinish();
  // Finishing: the zone is full.
  void EndFinish();
  // Dead: a reset begins.
  void BeginReset();
  // Resetting: the zone is empty. One that is reserved for metadata stays so.
  void EndReset();
  // Finishing or resetting: the command was submitted to the device.
  void Submit();
  // Finishing or resetting: the command was not submitted. A finishing zone is idle again; a resetting one is what it
  // was.
  void Cancel();
  // Any phase: a write or finish failed. `pointer` is that of the device.
  void Fail(uint64_t pointer);
  // Any phase: the device says kReadOnly or kOffline, or a reset failed.
  void Retire(bool offline);
  void AddLive(uint64_t bytes);
  // Removes live bytes, at most those that live in the zone.
  void RemoveLive(uint64_t bytes);
  // Any phase: only metadata is written to the zone from now on.
  void KeepForMetadata();
  // Empty: a copy of the metadata will be written to the zone, until it is released.
  void SetAside();
  // Any phase: the content of the zone, which belongs to no file, is durably not needed any more. The zone becomes dead
  // (or empty, if nothing was written) as soon as it is not leased.
  void Release();

 private:
  // Sets that the zone is empty and has no owner. A zone that is reserved for metadata stays so.
  void MakeEmpty();
};

}  // namespace isozone
