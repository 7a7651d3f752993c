// OpeningDatabase lets a listener hear that its database has been opened. No event of RocksDB tells as much: the first
// one that names its database comes with the first flush, and a database that is opened with a full level 0 takes no
// writes and so never flushes.
//
// What tells. At the end of DB::Open, RocksDB 7.8 to 11.8 logs "DB pointer %p" with the address of the database, of
// whatever level the log is. DB::OpenForReadOnly and DB::OpenAsSecondary do not. If another version does not, no
// listener hears of a database. RocksDB may put a log that rolls its files in front of the watched one. It passes that
// line on as it is, and what it repeats at the top of further files has another format.
//
// Whom to tell. RocksDB may call the log with the log's lock held, and threads that hold the database's mutex write to
// the log. So the log must not ask the database for its listeners: that takes the mutex. Another thread cannot ask for
// it either, since nothing keeps a database open for that thread unless it has such a listener. But DB::Open works on
// one thread. It always opens a MANIFEST for writing, and RocksDB then asks the listeners of that database whether they
// want to hear of the file (ShouldBeNotifiedOnFileIO). So:
//
//   1. the file system opens a MANIFEST:   the thread notes its folder, and forgets any listener
//   2. a listener is asked:                the thread notes whom to call, if it has a folder and nobody to call
//   3. the log tells of the database:      the thread calls it, if the folder is that of the database
//
// A database without such a listener comes to step 3 with the folder alone, because step 1 is part of every opening.
// What an opening leaves that failed between these steps is forgotten at step 1 of the next.
//
// Thread safety: each thread has a note of its own; a watched log is as the log behind it, which every thread may write
// to.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include <rocksdb/db.h>
#include <rocksdb/env.h>

namespace isozone {

class OpeningDatabase {
 public:
  // Is called for every file that is opened for writing. `path` is absolute and normal.
  static void FileOpened(std::string_view path);
  // Is called when RocksDB asks a listener. When the database that this thread is opening is complete, `opened` is
  // called on this thread; the log's lock may be held then.
  static void ListenerAsked(std::function<void(rocksdb::DB*)> opened);

  // Returns a logger that passes all messages to `target`, a database's info log, and notices when the database is
  // open.
  static std::shared_ptr<rocksdb::Logger> Watch(std::shared_ptr<rocksdb::Logger> target);
  // Whether `logger` was made by Watch. A cast would need RTTI, without which RocksDB may be built.
  static bool IsWatched(const rocksdb::Logger* logger);
};

}  // namespace isozone
