// Choices: picks at random, for a client, names that are there or could be, sizes, bytes, and how files are created.
//
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <string>

#include "base/random.h"
#include "model/oracle.h"
#include "store/file_system.h"

namespace isozone::model {

class Choices {
 public:
  // `random` and `now` outlive this. All paths are in `directory` (empty: the root). Sizes are up to `max_append`
  // bytes, and often whole blocks.
  Choices(Random& random, const State& now, std::string directory, uint64_t max_append, uint64_t block_size)
      : random_(random),
        now_(now),
        directory_(std::move(directory)),
        max_append_(max_append),
        block_size_(block_size) {}

  std::string Directory();     // that is there
  std::string Path();          // in a directory that is there, in most cases
  std::string ExistingFile();  // in most cases; sometimes any path
  uint64_t Size();             // bytes
  std::string Bytes(uint64_t size);
  CreateOptions Creation();

 private:
  Random& random_;
  const State& now_;
  const std::string directory_;
  const uint64_t max_append_;  // bytes
  const uint64_t block_size_;  // bytes
};

}  // namespace isozone::model
