// ReaderPins: what a read-only mount reads of the device, told to the writer in another process, so that files which
// the writer removes or moves stay readable for whoever has them open. It is a file of shared memory
// (insight/stats/page_file.h) beside those of the writer, named isozone-DEVICE-reader-PID-NUMBER:
//
//   PinsHeader    whose it is. Complete before the file has its name, never changed
//   zones         a word for each zone: how many open files have bytes there, at the places that this mount knows
//
// The writer must not reset a zone that a reader may read. Nobody waits for anybody:
//
//   the reader   1  adds to the words of the zones in which a file lies, as far as it knows
//                2  then reads the metadata anew. The file is there, and in no other zones: it may be read
//   the writer   1  makes durable that nothing in a zone is needed
//                2  then reads the words of the zone. They are 0: the zone may be reset
//
// If a reader has gone on, it read the metadata without the record that the writer made durable, so before that was
// durable; its words had been changed before that. The writer reads them later, and sees the change. In each of the two
// a full barrier lies between 1 and 2, and files of shared memory are read without any cache in between.
//
// Once a file is open, its words stay until its last handle has gone. If the file is removed, it is read where it was.
// If it is moved, the new places are pinned in the same way before the old ones are let go. A reader that dies holds
// nothing: the lock of its file is free then (page_file.h), and whoever sees that removes the file.
//
// Where the writer has no other space, readers together may hold no more than it allows (MountOptions::reader_hold).
// Beyond that it gives up the one that holds most: it makes an empty file beside the reader's, of the same name with
// `.revoked` behind it, and from then on takes the words of that reader for 0. The reader looks for this file after
// each read, so whatever was read before it was made is good. Then it pins again, under another name, what still
// exists. The file counts only if it is of a user who may write the device, by the same rule for both (IsRevoked). The
// writer removes it when the reader's file has gone.
//
// Thread safety: any thread may call any method of ReaderPins. A ZonePins belongs to whoever locks it.
#pragma once

#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/zoned_device.h"
#include "insight/stats/page_file.h"

namespace isozone {

inline constexpr uint64_t kPinsMagic = 0x534E49504F5A5349;  // "ISZOPINS" in memory
inline constexpr uint32_t kPinsVersion = 1;
inline constexpr const char* kRevokedSuffix = ".revoked";

// The texts are cut if they do not fit, and end with a zero byte.
struct PinsHeader {
  SharedFileHeader file;
  uint64_t zones;
  std::array<char, 40> uuid;  // of the file system
  std::array<char, 16> program;
};
static_assert(sizeof(PinsHeader) == 104);

// Returns what the names of the files of a device's readers begin with.
std::string PinsPrefix(const PageOwner& device);
// Returns whether the file at `path` gives up the reader whose file `reader` is. Writer and reader must agree, so this
// depends only on the users of the two files and of the device.
bool IsRevoked(const std::string& path, const struct stat& reader, const PageOwner& device);

class ReaderPins {
 public:
  // Makes the pins for a mount of the file system `uuid` on `device`, which has so many zones. The errors are those of
  // PageFile.
  static Result<std::shared_ptr<ReaderPins>> Make(const PageOwner& device, const std::string& directory,
                                                  const std::string& uuid, uint32_t zones);
  ReaderPins(const ReaderPins&) = delete;
  ReaderPins& operator=(const ReaderPins&) = delete;

  // Returns whether the writer takes no notice of this any more: it was given up, or somebody has removed the file.
  bool is_unseen() const;
  // Returns whether anything is pinned.
  bool in_use() const { return used_.load(std::memory_order_relaxed) > 0; }

 private:
  friend class ZonePins;
  ReaderPins(std::unique_ptr<PageFile> file, PageOwner device, const std::string& uuid, uint32_t zones);
  void Add(std::span<const ZoneId> zones);
  void Subtract(std::span<const ZoneId> zones);

  const std::unique_ptr<PageFile> file_;
  const PageOwner device_;
  const std::span<uint64_t> words_;  // of the zones
  std::string path_;
  struct stat stat_ {};
  std::atomic<uint64_t> used_{0};  // number of pins
};

// The zones that one file pins. The destructor lets them go.
class ZonePins {
 public:
  // Makes an object that pins nothing, and never will.
  ZonePins() = default;
  explicit ZonePins(std::shared_ptr<ReaderPins> in) : in_(std::move(in)) {}
  ZonePins(ZonePins&& other) noexcept = default;
  ZonePins& operator=(ZonePins&& other) noexcept;
  ~ZonePins();

  // Returns whether this pins in `pins`; null: in none.
  bool IsOf(const ReaderPins* pins) const { return in_.get() == pins; }
  // Returns whether all of `zones` are pinned. Here and below, `zones` is in order and has each zone once.
  bool Covers(std::span<const ZoneId> zones) const;
  void Add(std::span<const ZoneId> zones);
  // Lets all other zones go.
  void KeepOnly(std::span<const ZoneId> zones);

 private:
  std::shared_ptr<ReaderPins> in_;
  std::vector<ZoneId> zones_;  // in order
};

}  // namespace isozone
