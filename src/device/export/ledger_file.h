// LedgerFile: the memory of a WriteLedger as a file in /run, which is memory too, but outlives the process. What is in
// it means nothing once the machine has been started anew, and /run does not outlive that either.
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/file_descriptor.h"
#include "base/status.h"

namespace isozone {

class LedgerFile {
 public:
  // Opens the file at `path`. With `keep` it takes the file that is there, if it has `size` bytes; otherwise the file
  // is new and all zeros. kBusy while another process has it.
  static Result<std::unique_ptr<LedgerFile>> Open(const std::string& path, size_t size, bool keep);
  // Returns the path of the file of exported device `id`.
  static std::string PathOf(uint32_t id);

  ~LedgerFile();
  LedgerFile(const LedgerFile&) = delete;
  LedgerFile& operator=(const LedgerFile&) = delete;

  std::span<std::byte> memory() { return memory_; }
  // Removes the file. To be called when nothing can be left behind any more.
  void Remove();

 private:
  LedgerFile(std::string path, FileDescriptor fd, std::span<std::byte> memory);

  const std::string path_;
  const FileDescriptor fd_;
  const std::span<std::byte> memory_;
};

}  // namespace isozone
