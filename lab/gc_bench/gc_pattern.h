// Which logical blocks stage 2 of the collector benchmark updates (LSM_ZGC paper, sections 4.1 and 4.3).
//
//   uniform  all blocks equally often
//   skewed   a share hot_updates of the updates goes to a share hot_data of the data. The paper does not say which data
//            are hot. It found "strong spatial locality" in data that lives equally long, and segments of different
//            utilisation in what it filled. So here, hot data are whole stretches of a segment's size, drawn by the
//            seed.
//   trace    the blocks that a file names, one after another, again and again
//
// With `run` above 1, an update is a run of so many blocks (within the hot or the cold stretch if it is skewed).
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
  // The next block to update, of the blocks that the pattern was made for.
  virtual uint32_t Next() = 0;
};

struct PatternOptions {
  uint64_t seed = 0;
  uint32_t run = 1;  // blocks of an update; at least 1
};

struct Skew {
  double hot_updates = 0.7;  // 0..1, like hot_data
  double hot_data = 0.3;
  uint32_t stretch = 512;  // blocks that are hot or cold together; at least 1
};

// `blocks` > 0: the number of logical blocks.
std::unique_ptr<UpdatePattern> UniformPattern(uint32_t blocks, const PatternOptions& options);
std::unique_ptr<UpdatePattern> SkewedPattern(uint32_t blocks, const PatternOptions& options, const Skew& skew);

// A line has one block, or a range `12-40` that includes both ends. Blank lines and the text behind a '#' are skipped.
// kInvalidArgument, with the line that is wrong, "NAME:12: ...", or if there is no block at all.
Result<std::unique_ptr<UpdatePattern>> TracePattern(std::string_view text, std::string_view name, uint32_t blocks);
// The same from a file, which errors name.
Result<std::unique_ptr<UpdatePattern>> TraceFilePattern(const std::string& path, uint32_t blocks);

}  // namespace isozone::cli
