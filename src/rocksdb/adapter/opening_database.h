// Which listener of Isozone belongs to the database that this thread opens, if that listener steers.
//
// Why this is needed. Of a database that has been opened, RocksDB tells only the address, in its info log
// (database_logger.h). It may call the log with the log's lock held, and threads that hold the database's mutex write
// to the log. So the log must not ask the database for its listeners: that takes the mutex. Another thread cannot ask
// for it either, since nothing keeps a database open for that thread unless it has such a listener.
//
// How it is known. DB::Open works on one thread. It always opens a MANIFEST for writing, and RocksDB then asks the
// listeners of that database whether they want to hear of the file (ShouldBeNotifiedOnFileIO). So:
//
//   1. the file system opens a MANIFEST:   the thread notes its folder, and forgets any listener
//   2. a listener that steers is asked:    the thread notes the listener's options, if it has a folder and no listener
//   3. the log tells of the database:      the thread takes the note, if the folder is that of the database
//
// A database without such a listener comes to step 3 with the folder alone, because step 1 is part of every opening.
// What an opening leaves that failed between these steps is forgotten at step 1 of the next.
//
// Thread safety: each thread has a note of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace isozone {

// What a listener is told in an options file (docs/steering.md).
struct SteeringOptions {
  static constexpr std::string_view kNone = "none";
  std::string picker{kNone};   // a name that MakeCompactionPicker knows, or kNone: only levels are told
  uint32_t threads = 0;        // 0: as many as RocksDB would use
  bool t_zone = true;          // short-lived tables have zones of their own
  bool dynamic_levels = true;  // levels are sized from the last one up

  bool steers() const { return picker != kNone; }
};

class OpeningDatabase {
 public:
  // Any file is opened for writing; `path` is absolute and normal.
  static void FileOpened(std::string_view path);
  static void ListenerAsked(const SteeringOptions& options);
  // The options of the listener that steers the database in the folder `path`; none: it has none.
  static std::optional<SteeringOptions> Take(const std::string& path);
};

}  // namespace isozone
