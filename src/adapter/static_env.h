// The Envs that RocksDB makes of `env=` in the text of options, in an options file or a string. RocksDB takes no other
// Env there than a static one: a plain pointer that is never given back.
//
//   env=isozone://emu:/data/ssd.img                       a URI without options
//   env={id=isozone://emu:/data/ssd.img?policy=zenfs}     any URI: RocksDB takes text with '=' for properties otherwise
//
// So the library owns one Env for each URI, from its first use to the end of the process, and its file system stays
// mounted as long. Copies of one URI give one Env.
//
// Where RocksDB finds no factory for the id of an `env=`, it goes on as if there were no `env=` at all, and the database
// lies on the local disk. The factories here therefore answer whatever they can be asked that may have been meant for
// them, with an error where it is no URI:
//   * an id that begins with "isozone", also behind a brace or a quotation mark, and ends there or goes on with ':'
//   * the name of the default Env, which RocksDB asks for where the text has '=' but no id, as in
//     env=isozone://emu:/a?policy=zenfs and env={fs=...}: it gets the default Env, which refuses such properties.
#pragma once

#include <memory>
#include <string>

#include <rocksdb/file_system.h>
#include <rocksdb/utilities/object_registry.h>

#include "base/status.h"

namespace isozone {

// Makes the file system of a URI. Any thread.
using FileSystemOpener = Result<std::shared_ptr<rocksdb::FileSystem>> (*)(const std::string& uri);

void RegisterStaticEnvs(rocksdb::ObjectLibrary& library, FileSystemOpener open);

}  // namespace isozone
