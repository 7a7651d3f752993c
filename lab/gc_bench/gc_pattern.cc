#include "gc_bench/gc_pattern.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/random.h"

namespace isozone::cli {
namespace {

struct BlockRange {
  uint32_t first = 0;
  uint32_t last = 0;  // included
};

// Draws a block from some stretches, then the blocks behind it, and starts over at the end of the stretches.
class Stretches {
 public:
  void Add(BlockRange range) {
    ends_.push_back(blocks() + range.last - range.first + 1);
    ranges_.push_back(range);
  }
  uint32_t blocks() const { return ends_.empty() ? 0 : ends_.back(); }
  uint32_t At(uint32_t index) const {
    const auto end = std::ranges::upper_bound(ends_, index);
    const BlockRange& range = ranges_[static_cast<size_t>(end - ends_.begin())];
    return range.last - (*end - 1 - index);
  }

 private:
  std::vector<BlockRange> ranges_;
  std::vector<uint32_t> ends_;  // by range: blocks up to its end
};

class RandomPattern : public UpdatePattern {
 public:
  RandomPattern(const PatternOptions& options, Stretches hot, Stretches cold, double hot_updates)
      : random_(options.seed), run_(options.run), hot_updates_(hot_updates), sets_{std::move(hot), std::move(cold)} {}

  uint32_t Next() override {
    if (left_ == 0) {
      left_ = run_;
      set_ = &sets_[random_.Chance(hot_updates_) ? 0 : 1];
      if (set_->blocks() == 0) set_ = &sets_[set_ == &sets_[0] ? 1 : 0];
      index_ = static_cast<uint32_t>(random_.Below(set_->blocks()));
    }
    --left_;
    const uint32_t block = set_->At(index_);
    index_ = (index_ + 1) % set_->blocks();
    return block;
  }

 private:
  Random random_;
  const uint32_t run_;
  const double hot_updates_;
  const Stretches sets_[2];
  const Stretches* set_ = nullptr;
  uint32_t index_ = 0;
  uint32_t left_ = 0;
};

class Trace : public UpdatePattern {
 public:
  explicit Trace(Stretches stretches) : stretches_(std::move(stretches)) {}
  uint32_t Next() override {
    const uint32_t block = stretches_.At(index_);
    index_ = (index_ + 1) % stretches_.blocks();
    return block;
  }

 private:
  const Stretches stretches_;
  uint32_t index_ = 0;
};

std::string_view Trim(std::string_view text) {
  text = text.substr(0, text.find('#'));
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::optional<uint64_t> ParseNumber(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Result<BlockRange> ParseLine(std::string_view line, uint32_t blocks) {
  const size_t dash = line.find('-');
  const auto first = ParseNumber(Trim(line.substr(0, dash)));
  const auto last = dash == std::string_view::npos ? first : ParseNumber(Trim(line.substr(dash + 1)));
  if (!first || !last) {
    return Status::InvalidArgument(fmt::format("'{}' is neither a block number nor a range, as 12-40", line));
  }
  if (*first > *last) return Status::InvalidArgument(fmt::format("the range {} ends before it begins", line));
  if (*last >= blocks) {
    return Status::InvalidArgument(fmt::format("block {} is beyond the last one, {}", *last, blocks - 1));
  }
  return BlockRange{static_cast<uint32_t>(*first), static_cast<uint32_t>(*last)};
}

}  // namespace

std::unique_ptr<UpdatePattern> UniformPattern(uint32_t blocks, const PatternOptions& options) {
  Stretches all;
  all.Add({0, blocks - 1});
  return std::make_unique<RandomPattern>(options, std::move(all), Stretches(), 1);
}

std::unique_ptr<UpdatePattern> SkewedPattern(uint32_t blocks, const PatternOptions& options, const Skew& skew) {
  std::vector<uint32_t> order((blocks + skew.stretch - 1) / skew.stretch);
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  Random random(options.seed);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
  const auto hot_count = static_cast<size_t>(std::lround(skew.hot_data * static_cast<double>(order.size())));
  std::vector<bool> is_hot(order.size(), false);
  for (size_t i = 0; i < hot_count; ++i) is_hot[order[i]] = true;
  Stretches hot;
  Stretches cold;
  for (uint32_t i = 0; i < order.size(); ++i) {
    const uint32_t first = i * skew.stretch;
    (is_hot[i] ? hot : cold).Add({first, std::min(first + skew.stretch, blocks) - 1});
  }
  return std::make_unique<RandomPattern>(PatternOptions{random.Next(), options.run}, std::move(hot), std::move(cold),
                                         skew.hot_updates);
}

Result<std::unique_ptr<UpdatePattern>> TracePattern(std::string_view text, std::string_view name, uint32_t blocks) {
  Stretches stretches;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    const std::string_view line = Trim(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (line.empty()) continue;
    const auto range = ParseLine(line, blocks);
    if (!range.ok()) return range.status().WithContext(fmt::format("{}:{}", name, number));
    if (stretches.blocks() > UINT32_MAX - blocks) {
      return Status::InvalidArgument(fmt::format("{}:{}: more than 2^32 updates; shorten the trace", name, number));
    }
    stretches.Add(*range);
  }
  if (stretches.blocks() == 0) return Status::InvalidArgument(fmt::format("{} names no block", name));
  return std::unique_ptr<UpdatePattern>(std::make_unique<Trace>(std::move(stretches)));
}

Result<std::unique_ptr<UpdatePattern>> TraceFilePattern(const std::string& path, uint32_t blocks) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Status::FromErrno(errno, "cannot read " + path);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (file.bad()) return Status::FromErrno(errno, "cannot read " + path);
  return TracePattern(text, path, blocks);
}

}  // namespace isozone::cli
