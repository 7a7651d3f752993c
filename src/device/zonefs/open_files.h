// OpenFiles: the files that ZonefsKernel has open, by number. There is a limit to their number, which also counts files
// that are about to be opened; the file that was not used for longest makes room. A file that was handed out stays open
// at least until it is given back.
//
//   Reserve --> (the file is opened) --> Add, or Unreserve if it could not be
//
// Thread safety: any thread may call any method. No lock is held while a file is closed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "base/file_descriptor.h"
#include "base/mutex.h"

namespace isozone {

class OpenFiles {
 public:
  using File = std::shared_ptr<const FileDescriptor>;
  enum class Use : uint8_t {
    kClosed,
    kOpen,
    kKept,  // stays open until it is taken
  };

  explicit OpenFiles(size_t most) : most_(most) {}

  // Returns the file with this number, or null if it is not open.
  File Find(uint32_t number);
  // Takes a place for a file that is about to be opened. If there is none, closes the file that was not used for
  // longest, of those that nobody has and that are not kept. Returns false if there is no such file either.
  bool Reserve();
  void Unreserve();
  // Puts the file into the place that was reserved. Returns the file that is open under this number now: the given one,
  // or one that another thread has added before.
  File Add(uint32_t number, File file);
  // Takes the file out, and returns it; null if it is not open.
  File Take(uint32_t number);
  // Closes a file as Reserve does. Returns false if there is none to close.
  bool CloseIdle();
  // Keeps an open file from being closed to make room, until it is taken out.
  void Keep(uint32_t number);

  Use UseOf(uint32_t number) const;

 private:
  struct Entry {
    File file;
    uint64_t used_at = 0;
    bool kept = false;
  };

  File TakeIdle() ISOZONE_REQUIRES(mu_);

  const size_t most_;
  mutable Mutex mu_;
  uint64_t now_ ISOZONE_GUARDED_BY(mu_) = 0;  // counts uses
  size_t reserved_ ISOZONE_GUARDED_BY(mu_) = 0;
  std::unordered_map<uint32_t, Entry> entries_ ISOZONE_GUARDED_BY(mu_);
};

}  // namespace isozone
