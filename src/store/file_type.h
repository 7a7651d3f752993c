// The types of files by their names: those of RocksDB, and of LSM trees that name theirs alike (LevelDB, Pebble).
//
//   name                                        type      kind
//   NNN.log                                     wal       log
//   MANIFEST-NNN                                manifest  log
//   CURRENT                                     current   small
//   NNN.sst NNN.ldb NNN.blob                    table     data
//   IDENTITY LOCK LOG* OPTIONS-* NNN.dbtmp      small     small
//   everything else                             other     data
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string_view>

#include "store/file_system.h"
#include "store/zone/lifetime.h"

namespace isozone {

enum class FileType : uint8_t { kWal, kManifest, kCurrent, kTable, kSmall, kOther };

// Returns the type by the last component of `path`.
FileType FileTypeOf(std::string_view path);
// Returns whether this is RocksDB's info log, or an old one: LOG, LOG.old.123, or prefix_LOG of a log directory.
bool IsInfoLog(std::string_view path);
FileKind FileKindOf(FileType type);
// Returns the lifetime of a file. `hint` is what the program says by Linux's F_SET_RW_HINT or RocksDB's
// Env::WriteLifeTimeHint, which have the same values.
Lifetime LifetimeOf(FileType type, Lifetime hint);

}  // namespace isozone
