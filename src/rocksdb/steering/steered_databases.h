// The databases that a listener steers: `listeners={id=isozone;compaction=ll}`. Each has a ColumnFamilyDriver for its
// default column family, which starts and stops with the database.
//
// The life of a database. A driver may call a database only while that exists. RocksDB tells of both ends:
//
//   Opened    at the end of DB::Open, through the info log (opening_database.h), on the thread that opens. The database
//             is complete. The log's lock may be held, so this only makes an entry and a thread, the starter, which
//             looks at the options and opens the driver.
//   Closing   when RocksDB destroys its own handle of the default column family, through
//             EventListener::OnColumnFamilyHandleDeletionStarted, on the thread that closes. Programs have handles of
//             their own for this column family, so the address tells that it is this one. It waits for the starter and
//             for the threads of the driver.
//
// Why no thread is in a database that is gone. Between Opened and Closing the database exists, and after Closing no
// thread of the driver does. So it is enough that every Opened is followed by Closing, before anything is destroyed:
//
//   * RocksDB destroys that handle in DBImpl::CloseHelper and nowhere else, before the column families, the versions
//     and the files. Its mutex is free then. That holds in every release from 7.8.3 to 11.8.1.
//   * `delete db`, DB::Close(), WaitForCompact() with close_db, and an Open that fails after Opened all end there.
//     Close that fails for a timestamped snapshot does not, and the database stays open and steered. What is closed
//     already is not closed again.
//   * CancelAllBackgroundWork() leaves the database open. CompactFiles then says so (ShutdownInProgress), and the
//     driver's threads end by themselves.
//   * A TransactionDB and other wrappers end in the destructor of the database inside, which is the one that Opened
//     told of. The wrappers that take part in compactions (WritePrepared, TTL) first cancel and await them.
//     WritePrepared does not where somebody else has cancelled without waiting; RocksDB's own compactions then use it
//     after its end.
//   * The listener gets the event because it is one of that database: opening_database.h tells why that is known.
//   * Another database with the same listener, or the same options, has another handle and so another entry.
//   * Read-only, secondary and follower instances never come to Opened.
//
// Why closing waits for nothing else. When RocksDB destroys that handle, it has told its compactions to end and has
// waited for all that are registered, those of the driver among them, as for its own. So the threads are between two
// compactions, or about to be refused, or deleting what the last one replaced; they need the database's mutex and the
// log, and the thread that closes holds neither. A flush that the driver holds back goes on when a compaction has been
// told to end. So a close takes as long as with RocksDB's own compaction. The driver is not stopped earlier, when the
// log tells of a shutdown: RocksDB may flush after that, and such a flush waits for level 0 to be compacted.
// OnDBShutdownBegin comes after that flush and would do, but releases before 11.4 lack it.
//
// End of the process. If databases are still open when the process ends, their drivers stop before RocksDB's own static
// objects go. That takes as long as the compactions which run, which are not told to end.
//
// What cannot be steered is told in one line, in the database's info log and in Isozone's (Flushed), or not opened
// (steering_partitioner.h). A second driver for a column family is refused (column_family_driver.h).
//
// Thread safety: any thread may call any function. Lock order: the lock of the registry, then that of an entry; no
// database is called under the former.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/listener.h>

#include "rocksdb/steering/column_family_driver.h"

namespace isozone {

class SteeredDatabases {
 public:
  // Begins to steer `db`, which is complete as of now, if its files are on Isozone's file system.
  static void Opened(rocksdb::DB* db, const ColumnFamilyDriverOptions& options);
  // Stops the driver of the database whose own handle of the default column family `handle` is. Does nothing for any
  // other handle.
  static void Closing(const rocksdb::ColumnFamilyHandle* handle);
  // Is called after a flush of a database with a listener that steers. Says in one line, once for a database, what is
  // not steered.
  static void Flushed(rocksdb::DB* db, const rocksdb::FlushJobInfo& info);

  // Returns the driver of `db`, or null if the database is not steered. Waits for the driver while the database has
  // just been opened. It lives until the database is closed.
  static ColumnFamilyDriver* DriverOf(rocksdb::DB* db);
};

}  // namespace isozone
