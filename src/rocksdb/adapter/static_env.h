// The Envs for `env=` in the text of options, in an options file or a string. There, RocksDB accepts only a static Env:
// a plain pointer that it never gives back.
//
//   env=isozone://emu:/data/ssd.img                       a URI without options
//   env={id=isozone://emu:/data/ssd.img?policy=zenfs}     any URI: without braces RocksDB takes text with '=' for
//                                                         properties
//
// So the library owns one Env for each URI, from its first use to the end of the process, and the file system stays
// mounted for that time. Equal URIs share one Env.
//
// If RocksDB finds no factory for the id of an `env=`, it ignores the `env=`, and the database lies on the local disk.
// So the factories here accept every id that may have been meant for them, and return an error if it is no URI:
//   * an id that begins with "isozone", also behind a brace or a quotation mark, and ends there or continues with ':'
//   * the name of the default Env, which RocksDB looks up if the text has '=' but no id, as in
//     env=isozone://emu:/a?policy=zenfs and env={fs=...}. It gets the default Env, which refuses such properties.
#pragma once

#include <memory>
#include <string>

#include <rocksdb/file_system.h>
#include <rocksdb/utilities/object_registry.h>

#include "base/status.h"

namespace isozone {

// Makes the file system of a URI. Any thread may call it.
using FileSystemOpener = Result<std::shared_ptr<rocksdb::FileSystem>> (*)(const std::string& uri);

void RegisterStaticEnvs(rocksdb::ObjectLibrary& library, FileSystemOpener open);

}  // namespace isozone
