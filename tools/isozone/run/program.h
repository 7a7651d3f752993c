// What kind of program one is, for `isozone run`: whether a library that is preloaded reaches the RocksDB in it.
//
// Found out without running it:
//   * a script is what its interpreter is
//   * a program without a dynamic linker is static, and nothing can be preloaded into it; nor into one that gets rights
//     from its file
//   * its dynamic linker lists the libraries that it needs. If librocksdb.so is one of them, its release must be the
//     one that Isozone was built for
//   * otherwise, the name of one of RocksDB's counters tells a program or library that has RocksDB linked in
// What is left uses no RocksDB, or loads one later, as interpreters do.
#pragma once

#include <string>

#include "base/status.h"

namespace isozone::cli {

// Returns the file that the shell would run for `name`. kNotFound; kPermissionDenied if it is there, but cannot be
// executed.
Result<std::string> FindProgram(const std::string& name);

// Fails with kNotSupported, and says what to do instead, if preloading does not reach the RocksDB in `program`.
// `isozone_library` is the libisozone.so that would be used.
Status CheckCanBePreloaded(const std::string& program, const std::string& isozone_library);

}  // namespace isozone::cli
