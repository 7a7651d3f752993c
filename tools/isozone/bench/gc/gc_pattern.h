// Which logical blocks stage 2 of the collector benchmark updates (LSM_ZGC paper, sections 4.1 and 4.3).
//
//   uniform  every block as often as any other
//   skewed   hot_updates of the updates go to hot_data of the data. The paper does not say which data are hot; it found
//            "strong spatial locality" in what lives equally long, and segments of different utilisation in what it
//            filled. So here hot data are whole stretches of a segment's size, drawn by the seed.
//   trace    the blocks that a file names, one after another, and again from its beginning
//
// With `run` above 1 an update is so many blocks in a row (within the hot or the cold stretch where it is skewed).
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace isozone::cli {

class UpdatePattern {
 public:
  virtual ~UpdatePattern() = default;
  // The next block to update, of those it was made for.
  virtual uint32_t Next() = 0;
};

struct PatternOptions {
  uint64_t seed = 0;
  uint32_t run = 1;  // blocks of an update; at least 1
};

struct Skew {
  double hot_updates = 0.7;  // 0..1, as the next
  double hot_data = 0.3;
  uint32_t stretch = 512;  // blocks that are hot or cold together; at least 1
};

// `blocks` > 0: how many logical blocks there are.
std::unique_ptr<UpdatePattern> UniformPattern(uint32_t blocks, const PatternOptions& options);
std::unique_ptr<UpdatePattern> SkewedPattern(uint32_t blocks, const PatternOptions& options, const Skew& skew);

// One block a line, or a range `12-40` that includes both; blank lines and what follows a '#' are skipped.
// kInvalidArgument "NAME:12: ..." with the line that is wrong, or where there is no block at all.
Result<std::unique_ptr<UpdatePattern>> TracePattern(std::string_view text, std::string_view name, uint32_t blocks);
// The same from a file; errors name it.
Result<std::unique_ptr<UpdatePattern>> TraceFilePattern(const std::string& path, uint32_t blocks);

}  // namespace isozone::cli
