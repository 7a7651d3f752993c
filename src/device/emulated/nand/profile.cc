#include "device/emulated/nand/profile.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>
#include <optional>
#include <span>

#include "base/suggest.h"
#include "base/units.h"
#include "base/uri.h"
#include "device/emulated/nand/embedded_profiles.h"

namespace isozone {
namespace {

constexpr int64_t kMaxDurationNs = 3600 * kSecondNs;
constexpr uint64_t kMinRate = 1'000'000;          // 1 MB/s
constexpr uint64_t kMaxRate = 1'000'000'000'000;  // 1 TB/s
// With these limits, no product or sum of sizes and times overflows 63 bits.
constexpr uint64_t kMaxZoneSize = kTiB;
constexpr uint32_t kMaxZones = uint32_t{1} << 22;
constexpr uint32_t kMaxUnits = uint32_t{1} << 16;  // dies, channels, buffered program units
constexpr uint64_t kMaxProgramUnit = kGiB;
constexpr uint32_t kMaxFtlDies = 1024;
constexpr uint64_t kMaxFtlPages = uint64_t{1} << 30;
constexpr uint64_t kMinSpareBlocks = 4;
constexpr uint64_t kBlocksOfADie = 256;  // the least number that a scaled conventional device has on each die
constexpr std::streamsize kMaxFileSize = std::streamsize{1} << 20;

// For messages: at most 40 characters of `text`, with unprintable ones replaced.
std::string Quote(std::string_view text) {
  static constexpr size_t kShown = 40;
  std::string shown(text.substr(0, kShown));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return "'" + shown + (text.size() > kShown ? "...'" : "'");
}

std::string_view Trim(std::string_view text) {
  static constexpr std::string_view kBlanks = " \t\r";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// A decimal fraction: digits, scaled by 10^-fraction_digits.
struct Decimal {
  uint64_t digits = 0;
  int fraction_digits = 0;
  std::string_view rest;  // what follows the number
};

// Nothing if `text` does not begin with a digit or has more than 18 of them.
std::optional<Decimal> ParseDecimal(std::string_view text) {
  static constexpr int kMaxDigits = 18;
  Decimal decimal;
  bool point = false;
  int digits = 0;
  size_t i = 0;
  for (; i < text.size(); ++i) {
    if (text[i] == '.' && !point && digits > 0) {
      point = true;
    } else if (text[i] >= '0' && text[i] <= '9') {
      if (++digits > kMaxDigits) return std::nullopt;
      decimal.digits = decimal.digits * 10 + static_cast<uint64_t>(text[i] - '0');
      if (point) ++decimal.fraction_digits;
    } else {
      break;
    }
  }
  if (digits == 0 || (point && decimal.fraction_digits == 0)) return std::nullopt;
  decimal.rest = text.substr(i);
  return decimal;
}

struct Unit {
  std::string_view name;
  uint64_t factor;
};

// "25.5us" as a whole number of the smallest unit; nothing if it is not one, or above 2^62.
std::optional<uint64_t> ParseQuantity(std::string_view text, std::span<const Unit> units) {
  __extension__ using Wide = unsigned __int128;
  const std::optional<Decimal> decimal = ParseDecimal(text);
  if (!decimal) return std::nullopt;
  for (const Unit& unit : units) {
    if (decimal->rest != unit.name) continue;
    Wide value = static_cast<Wide>(decimal->digits) * unit.factor;
    for (int i = 0; i < decimal->fraction_digits; ++i) {
      if (value % 10 != 0) return std::nullopt;
      value /= 10;
    }
    if (value > (Wide{1} << 62)) return std::nullopt;
    return static_cast<uint64_t>(value);
  }
  return std::nullopt;
}

// The inverse, in a unit of 10^scale_digits: "25.5us".
std::string FormatQuantity(uint64_t value, int scale_digits, std::string_view unit) {
  std::string digits = std::to_string(value);
  const auto scale = static_cast<size_t>(scale_digits);
  if (digits.size() <= scale) digits.insert(0, scale + 1 - digits.size(), '0');
  digits.insert(digits.size() - scale, ".");
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.back() == '.') digits.pop_back();
  return digits + std::string(unit);
}

Status BadValue(std::string_view text, std::string_view expected) {
  return Status::InvalidArgument(Quote(text) + " is not " + std::string(expected));
}

// A codec turns a value of one type into text and back.

struct NameCodec {
  static Result<std::string> Parse(std::string_view text) {
    static constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789-_.";
    if (text.empty() || text.size() > 64 || text.find_first_not_of(kAllowed) != std::string_view::npos) {
      return BadValue(text, "a name (up to 64 of a-z, 0-9, '-', '_' and '.')");
    }
    return std::string(text);
  }
  static std::string Format(const std::string& value) { return value; }
};

template <typename T>
struct CountCodec {
  static Result<T> Parse(std::string_view text) {
    static constexpr Unit kOne[] = {{"", 1}};
    const std::optional<uint64_t> value = ParseQuantity(text, kOne);
    if (!value || *value > std::numeric_limits<T>::max()) return BadValue(text, "a count");
    return static_cast<T>(*value);
  }
  static std::string Format(T value) { return std::to_string(value); }
};

template <typename T>
struct SizeCodec {
  static Result<T> Parse(std::string_view text) {
    const Result<uint64_t> value = ParseSize(text);
    if (!value.ok() || *value > std::numeric_limits<T>::max()) return BadValue(text, "a size (write 4096, 64K, 72MiB)");
    return static_cast<T>(*value);
  }
  static std::string Format(uint64_t value) {
    static constexpr Unit kUnits[] = {{"TiB", kTiB}, {"GiB", kGiB}, {"MiB", kMiB}, {"KiB", kKiB}};
    for (const Unit& unit : kUnits) {
      if (value != 0 && value % unit.factor == 0) return std::to_string(value / unit.factor) + std::string(unit.name);
    }
    return std::to_string(value);
  }
};

struct DurationCodec {
  static Result<int64_t> Parse(std::string_view text) {
    static constexpr Unit kUnits[] = {{"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}};
    const std::optional<uint64_t> value = ParseQuantity(text, kUnits);
    if (!value || *value > uint64_t{kMaxDurationNs}) {
      return BadValue(text, "a duration of at most an hour in whole nanoseconds (write 25.5us, 3ms)");
    }
    return static_cast<int64_t>(*value);
  }
  static std::string Format(int64_t value) { return FormatQuantity(static_cast<uint64_t>(value), 3, "us"); }
};

// "15%", in thousandths.
struct PercentCodec {
  static Result<uint32_t> Parse(std::string_view text) {
    static constexpr Unit kPercent[] = {{"%", 10}};
    const std::optional<uint64_t> value = ParseQuantity(text, kPercent);
    if (!value || *value > 1000) return BadValue(text, "a percentage of at most 100 (write 15%, 7.5%)");
    return static_cast<uint32_t>(*value);
  }
  static std::string Format(uint32_t value) { return FormatQuantity(value, 1, "%"); }
};

struct RateCodec {
  static Result<uint64_t> Parse(std::string_view text) {
    static constexpr Unit kUnits[] = {{"MB/s", 1'000'000}, {"GB/s", 1'000'000'000}};
    const std::optional<uint64_t> value = ParseQuantity(text, kUnits);
    if (!value || (*value != 0 && (*value < kMinRate || *value > kMaxRate))) {
      return BadValue(text, "a rate of 1MB/s to 1000GB/s (write 800MB/s, 3.94GB/s)");
    }
    return *value;
  }
  static std::string Format(uint64_t value) { return FormatQuantity(value, 6, "MB/s"); }
};

struct SwitchCodec {
  static Result<bool> Parse(std::string_view text) {
    if (text == "on") return true;
    if (text == "off") return false;
    return BadValue(text, "on or off");
  }
  static std::string Format(bool value) { return value ? "on" : "off"; }
};

struct MappingCodec {
  static constexpr std::array<std::string_view, 3> kNames = {"round-robin", "interleaved", "random"};

  static Result<ZoneMapping> Parse(std::string_view text) {
    const auto name = std::find(kNames.begin(), kNames.end(), text);
    if (name == kNames.end()) return BadValue(text, "round-robin, interleaved or random");
    return static_cast<ZoneMapping>(name - kNames.begin());
  }
  static std::string Format(ZoneMapping value) { return std::string(kNames[static_cast<size_t>(value)]); }
};

// "0%:1.6ms 12.5%:6.5ms 100%:16ms"
struct ResetTimeCodec {
  static Result<std::vector<ResetPoint>> Parse(std::string_view text) {
    std::vector<ResetPoint> points;
    for (std::string_view rest = Trim(text); !rest.empty();) {
      const size_t end = std::min(rest.find_first_of(" \t"), rest.size());
      ISOZONE_ASSIGN_OR_RETURN(const ResetPoint point, ParsePoint(rest.substr(0, end)));
      points.push_back(point);
      rest = Trim(rest.substr(end));
    }
    return points;
  }
  static std::string Format(const std::vector<ResetPoint>& points) {
    std::string text;
    for (const ResetPoint& point : points) {
      if (!text.empty()) text += ' ';
      text += FormatQuantity(point.fill_permille, 1, "%") + ":" + DurationCodec::Format(point.duration_ns);
    }
    return text;
  }

 private:
  static Result<ResetPoint> ParsePoint(std::string_view text) {
    static constexpr Unit kPercent[] = {{"%", 10}};
    const size_t colon = text.find(':');
    const std::optional<uint64_t> fill = ParseQuantity(text.substr(0, colon), kPercent);
    if (colon == std::string_view::npos || !fill || *fill > 1000) {
      return BadValue(text, "a point fill:duration (write 12.5%:6.5ms)");
    }
    ISOZONE_ASSIGN_OR_RETURN(const int64_t duration_ns, DurationCodec::Parse(text.substr(colon + 1)));
    return ResetPoint{static_cast<uint32_t>(*fill), duration_ns};
  }
};

enum class Need : uint8_t { kAlways, kZoned, kConventional, kWithTiming, kZonedWithTiming, kNever };

struct Key {
  std::string_view name;
  Need need;
  Status (*read)(std::string_view text, Profile& profile);
  std::string (*write)(const Profile& profile);
};

template <auto kMember, typename Codec>
constexpr Key KeyOf(std::string_view name, Need need) {
  return {name, need,
          [](std::string_view text, Profile& profile) {
            ISOZONE_ASSIGN_OR_RETURN(profile.*kMember, Codec::Parse(text));
            return Status::Ok();
          },
          [](const Profile& profile) { return Codec::Format(profile.*kMember); }};
}

using Count = CountCodec<uint32_t>;
using Size = SizeCodec<uint64_t>;
using Duration = DurationCodec;
using Rate = RateCodec;

constexpr Key kKeys[] = {
    KeyOf<&Profile::name, NameCodec>("name", Need::kAlways),
    KeyOf<&Profile::zone_count, Count>("zone_count", Need::kZoned),
    KeyOf<&Profile::zone_size, Size>("zone_size", Need::kZoned),
    KeyOf<&Profile::zone_capacity, Size>("zone_capacity", Need::kZoned),
    KeyOf<&Profile::block_size, SizeCodec<uint32_t>>("block_size", Need::kAlways),
    KeyOf<&Profile::max_open_zones, Count>("max_open_zones", Need::kZoned),
    KeyOf<&Profile::max_active_zones, Count>("max_active_zones", Need::kZoned),
    KeyOf<&Profile::max_transfer, Size>("max_transfer", Need::kNever),
    KeyOf<&Profile::max_append, Size>("max_append", Need::kNever),
    KeyOf<&Profile::fua_covers_zone, SwitchCodec>("fua_covers_zone", Need::kNever),
    KeyOf<&Profile::finish_padding, Size>("finish_padding", Need::kNever),
    KeyOf<&Profile::reset_padding, Size>("reset_padding", Need::kNever),
    KeyOf<&Profile::over_provisioning_permille, PercentCodec>("over_provisioning", Need::kNever),
    KeyOf<&Profile::capacity, Size>("capacity", Need::kConventional),
    KeyOf<&Profile::erase_block, Size>("erase_block", Need::kConventional),
    KeyOf<&Profile::timing, SwitchCodec>("timing", Need::kNever),
    KeyOf<&Profile::channels, Count>("channels", Need::kWithTiming),
    KeyOf<&Profile::dies, Count>("dies", Need::kWithTiming),
    KeyOf<&Profile::mapping, MappingCodec>("mapping", Need::kZonedWithTiming),
    KeyOf<&Profile::mapping_seed, CountCodec<uint64_t>>("mapping_seed", Need::kNever),
    KeyOf<&Profile::page_size, Size>("page_size", Need::kWithTiming),
    KeyOf<&Profile::program_unit, Size>("program_unit", Need::kWithTiming),
    KeyOf<&Profile::page_read_ns, Duration>("page_read", Need::kWithTiming),
    KeyOf<&Profile::small_read_size, Size>("small_read_size", Need::kNever),
    KeyOf<&Profile::small_read_ns, Duration>("small_read", Need::kNever),
    KeyOf<&Profile::program_ns, Duration>("program", Need::kWithTiming),
    KeyOf<&Profile::erase_ns, Duration>("erase", Need::kWithTiming),
    KeyOf<&Profile::channel_bandwidth, Rate>("channel_bandwidth", Need::kWithTiming),
    KeyOf<&Profile::write_buffer_units, Count>("write_buffer_units", Need::kWithTiming),
    KeyOf<&Profile::link_bandwidth, Rate>("link_bandwidth", Need::kWithTiming),
    KeyOf<&Profile::read_latency_ns, Duration>("read_latency", Need::kWithTiming),
    KeyOf<&Profile::write_latency_ns, Duration>("write_latency", Need::kWithTiming),
    KeyOf<&Profile::management_latency_ns, Duration>("management_latency", Need::kWithTiming),
    KeyOf<&Profile::flush_latency_ns, Duration>("flush_latency", Need::kWithTiming),
    KeyOf<&Profile::write_bandwidth, Rate>("write_bandwidth", Need::kNever),
    KeyOf<&Profile::write_cache, Size>("write_cache", Need::kNever),
    KeyOf<&Profile::append_ns, Duration>("append", Need::kNever),
    KeyOf<&Profile::finish_bandwidth, Rate>("finish_bandwidth", Need::kNever),
    KeyOf<&Profile::reset_time, ResetTimeCodec>("reset_time", Need::kNever),
};

bool IsNeeded(const Key& key, const Profile& profile) {
  switch (key.need) {
    case Need::kAlways:
      return true;
    case Need::kZoned:
      return profile.zoned();
    case Need::kConventional:
      return !profile.zoned();
    case Need::kWithTiming:
      return profile.timing;
    case Need::kZonedWithTiming:
      return profile.timing && profile.zoned();
    case Need::kNever:
      return false;
  }
  return false;
}

// Reads the lines of one profile, remembering where each key was.
class Parser {
 public:
  Status ReadLine(std::string_view line) {
    ++line_;
    line = Trim(line.substr(0, line.find('#')));
    if (line.empty()) return Status::Ok();
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) return BadValue(line, "of the form key = value");
    return ReadPair(Trim(line.substr(0, equals)), Trim(line.substr(equals + 1)));
  }

  Status CheckComplete() const {
    std::string missing;
    for (size_t i = 0; i < std::size(kKeys); ++i) {
      if (line_of_key_[i] == 0 && IsNeeded(kKeys[i], profile_)) missing += " " + std::string(kKeys[i].name);
    }
    return missing.empty() ? Status::Ok() : Status::InvalidArgument("these keys are missing:" + missing);
  }

  size_t line() const { return line_; }
  const Profile& profile() const { return profile_; }

 private:
  Status ReadPair(std::string_view name, std::string_view value) {
    const auto* key = std::find_if(std::begin(kKeys), std::end(kKeys), [&](const Key& k) { return k.name == name; });
    if (key == std::end(kKeys)) return UnknownKey(name);
    size_t& line_of_key = line_of_key_[static_cast<size_t>(key - kKeys)];
    if (line_of_key != 0) {
      return Status::InvalidArgument(std::string(name) + " is repeated; it is also on line " +
                                     std::to_string(line_of_key));
    }
    line_of_key = line_;
    return key->read(value, profile_).WithContext(name);
  }

  static Status UnknownKey(std::string_view name) {
    static constexpr size_t kLongest = 64;
    std::vector<std::string> known;
    for (const Key& key : kKeys) known.emplace_back(key.name);
    return Status::InvalidArgument("unknown key " + Quote(name) + SuggestName(name.substr(0, kLongest), known));
  }

  Profile profile_;
  size_t line_ = 0;
  std::array<size_t, std::size(kKeys)> line_of_key_{};  // 0: not seen
};

Status Check(bool condition, std::string_view otherwise) {
  return condition ? Status::Ok() : Status::InvalidArgument(std::string(otherwise));
}

Status CheckBlockSize(const Profile& p) {
  return Check(p.block_size >= 512 && p.block_size <= 65536 && (p.block_size & (p.block_size - 1)) == 0,
               "block_size is not a power of two in 512..65536");
}

Status CheckZones(const Profile& p) {
  ISOZONE_RETURN_IF_ERROR(Check(p.zone_count > 0 && p.zone_count <= kMaxZones, "zone_count is not in 1..4194304"));
  ISOZONE_RETURN_IF_ERROR(Check(p.zone_size > 0 && p.zone_size <= kMaxZoneSize && p.zone_size % p.block_size == 0,
                                "zone_size is not a multiple of block_size, more than 0 and at most 1TiB"));
  ISOZONE_RETURN_IF_ERROR(Check(p.zone_capacity > 0 && p.zone_capacity % p.block_size == 0,
                                "zone_capacity is not a multiple of block_size, more than 0"));
  return Check(p.zone_capacity <= p.zone_size, "zone_capacity is larger than zone_size");
}

Status CheckLimits(const Profile& p) {
  ISOZONE_RETURN_IF_ERROR(Check(p.max_active_zones == 0 || p.max_open_zones <= p.max_active_zones,
                                "max_open_zones is larger than max_active_zones, but every open zone is active"));
  ISOZONE_RETURN_IF_ERROR(Check(p.max_transfer % p.block_size == 0, "max_transfer is not a multiple of block_size"));
  return Check(p.max_append % p.block_size == 0, "max_append is not a multiple of block_size");
}

Status CheckPadding(const Profile& p) {
  ISOZONE_RETURN_IF_ERROR(Check(p.finish_padding % p.block_size == 0 && p.finish_padding <= kMaxZoneSize,
                                "finish_padding is not a multiple of block_size, of at most 1TiB"));
  return Check(p.reset_padding % p.block_size == 0 && p.reset_padding <= kMaxZoneSize,
               "reset_padding is not a multiple of block_size, of at most 1TiB");
}

Status CheckFlash(const Profile& p) {
  ISOZONE_RETURN_IF_ERROR(Check(p.dies > 0 && p.dies <= kMaxUnits, "dies is not in 1..65536"));
  ISOZONE_RETURN_IF_ERROR(Check(p.channels > 0 && p.dies % p.channels == 0, "dies is not a multiple of channels"));
  ISOZONE_RETURN_IF_ERROR(Check(p.mapping_seed == 0 || p.mapping == ZoneMapping::kRandom,
                                "mapping_seed is given, but mapping is not random"));
  ISOZONE_RETURN_IF_ERROR(Check(p.page_size > 0 && p.page_size % p.block_size == 0,
                                "page_size is not a multiple of block_size, more than 0"));
  ISOZONE_RETURN_IF_ERROR(
      Check(p.program_unit > 0 && p.program_unit <= kMaxProgramUnit && p.program_unit % p.page_size == 0,
            "program_unit is not a multiple of page_size, more than 0 and at most 1GiB"));
  ISOZONE_RETURN_IF_ERROR(Check(p.page_read_ns > 0, "page_read is 0"));
  ISOZONE_RETURN_IF_ERROR(Check(p.program_ns > 0, "program is 0"));
  ISOZONE_RETURN_IF_ERROR(Check((p.small_read_size == 0) == (p.small_read_ns == 0),
                                "small_read and small_read_size belong together; one is missing or 0"));
  ISOZONE_RETURN_IF_ERROR(Check(p.small_read_size < p.page_size, "small_read_size is not smaller than page_size"));
  return Check(p.channel_bandwidth > 0, "channel_bandwidth is 0");
}

Status CheckController(const Profile& p) {
  ISOZONE_RETURN_IF_ERROR(
      Check(p.write_buffer_units > 0 && p.write_buffer_units <= kMaxUnits, "write_buffer_units is not in 1..65536"));
  ISOZONE_RETURN_IF_ERROR(Check(p.link_bandwidth > 0, "link_bandwidth is 0"));
  ISOZONE_RETURN_IF_ERROR(
      Check(p.write_cache == 0 || p.write_bandwidth > 0, "write_cache is given, but write_bandwidth is not"));
  ISOZONE_RETURN_IF_ERROR(Check(p.write_cache <= kMaxZoneSize, "write_cache is larger than 1TiB"));
  for (size_t i = 1; i < p.reset_time.size(); ++i) {
    ISOZONE_RETURN_IF_ERROR(Check(p.reset_time[i - 1].fill_permille < p.reset_time[i].fill_permille,
                                  "the points of reset_time are not in rising order of fill"));
  }
  return Status::Ok();
}

// Checks that no value is set that only zoned devices have.
Status CheckNotZoned(const Profile& p) {
  const bool geometry = p.zone_count != 0 || p.zone_size != 0 || p.zone_capacity != 0 || p.max_open_zones != 0 ||
                        p.max_active_zones != 0 || p.max_append != 0 || p.max_transfer != 0 || p.fua_covers_zone ||
                        p.finish_padding != 0 || p.reset_padding != 0;
  const bool timing = p.mapping != ZoneMapping::kRoundRobin || p.write_bandwidth != 0 || p.write_cache != 0 ||
                      p.append_ns != 0 || p.finish_bandwidth != 0 || !p.reset_time.empty();
  return Check(!geometry && !timing,
               "over_provisioning makes it a conventional SSD: leave out all that says something of zones, and "
               "mapping, max_transfer, max_append, fua_covers_zone, finish_padding, reset_padding, write_bandwidth, "
               "write_cache, append, finish_bandwidth, reset_time");
}

Status CheckConventional(const Profile& p) {
  ISOZONE_RETURN_IF_ERROR(CheckNotZoned(p));
  ISOZONE_RETURN_IF_ERROR(Check(p.timing, "timing = off, but a conventional SSD needs its flash; leave that out"));
  ISOZONE_RETURN_IF_ERROR(CheckFlash(p));
  ISOZONE_RETURN_IF_ERROR(CheckController(p));
  ISOZONE_RETURN_IF_ERROR(Check(p.dies <= kMaxFtlDies, "dies is not in 1..1024"));
  ISOZONE_RETURN_IF_ERROR(Check(p.program_unit / p.block_size <= kMaxUnits, "program_unit has more than 65536 blocks"));
  ISOZONE_RETURN_IF_ERROR(
      Check(p.erase_block > 0 && p.erase_block <= kMaxProgramUnit && p.erase_block % p.program_unit == 0,
            "erase_block is not a multiple of program_unit, more than 0 and at most 1GiB"));
  ISOZONE_RETURN_IF_ERROR(Check(p.capacity % p.block_size == 0 && p.capacity / p.block_size <= kMaxFtlPages,
                                "capacity is not a multiple of block_size, of at most 1073741824 blocks"));
  const uint64_t spare = p.capacity / 1000 * p.over_provisioning_permille;
  return Check(spare / p.erase_block / p.dies >= kMinSpareBlocks,
               "over_provisioning gives each die fewer than 4 spare erase blocks: capacity is too small for that, or "
               "erase_block too large");
}

// The next multiple of `step` bytes, within the zone.
uint64_t PaddedTo(const Profile& p, uint64_t step, uint64_t written) {
  return step == 0 ? written : std::max(written, std::min(RoundUp(written, step), p.zone_capacity));
}

}  // namespace

Result<Profile> ParseProfile(std::string_view text, std::string_view where) {
  Parser parser;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const Status status = parser.ReadLine(text.substr(0, end));
    if (!status.ok()) return status.WithContext(std::string(where) + ":" + std::to_string(parser.line()));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  Status status = parser.CheckComplete();
  if (status.ok()) status = ValidateProfile(parser.profile());
  if (!status.ok()) return status.WithContext(where);
  return parser.profile();
}

Status ValidateProfile(const Profile& profile) {
  ISOZONE_RETURN_IF_ERROR(CheckBlockSize(profile));
  if (!profile.zoned()) return CheckConventional(profile);
  ISOZONE_RETURN_IF_ERROR(
      Check(profile.capacity == 0 && profile.erase_block == 0,
            "capacity and erase_block are of a conventional SSD, which has an over_provisioning; this has none"));
  ISOZONE_RETURN_IF_ERROR(CheckZones(profile));
  ISOZONE_RETURN_IF_ERROR(CheckLimits(profile));
  ISOZONE_RETURN_IF_ERROR(CheckPadding(profile));
  if (!profile.timing) return Status::Ok();
  ISOZONE_RETURN_IF_ERROR(CheckFlash(profile));
  return CheckController(profile);
}

Result<Profile> ScaleConventional(Profile profile, uint64_t capacity) {
  const uint64_t flash = capacity + capacity / 1000 * profile.over_provisioning_permille;
  const uint64_t of_a_die = flash / profile.dies;
  const uint64_t most = std::max(RoundDown(of_a_die / kBlocksOfADie, profile.program_unit), profile.program_unit);
  if (most < profile.erase_block) {
    const double smaller = static_cast<double>(most) / static_cast<double>(profile.erase_block);
    profile.erase_ns = static_cast<int64_t>(static_cast<double>(profile.erase_ns) * smaller);
    profile.erase_block = most;
  }
  profile.capacity = capacity;
  const Status valid = ValidateProfile(profile);
  if (!valid.ok()) return valid.WithContext("a device of " + FormatSize(capacity));
  return profile;
}

Result<Profile> LoadProfile(const std::string& name) {
  if (name.find('/') == std::string::npos) {
    for (const EmbeddedProfile& embedded : EmbeddedProfiles()) {
      if (embedded.name == name) return ParseProfile(embedded.text, name + ".profile");
    }
    return Status::NotFound("there is no profile " + Quote(name) + SuggestName(name, BuiltinProfileNames()) +
                            "; a file is named with a '/', as in ./my.profile");
  }
  std::ifstream file(name, std::ios::binary);
  if (!file) return Status::NotFound("cannot open the profile " + name);
  std::string text(static_cast<size_t>(kMaxFileSize), '\0');
  file.read(text.data(), kMaxFileSize);
  if (file.bad()) return Status::IoError("cannot read the profile " + name);
  if (!file.eof()) return Status::InvalidArgument(name + " is too large for a profile (1 MiB)");
  text.resize(static_cast<size_t>(file.gcount()));
  return ParseProfile(text, name);
}

std::vector<std::string> BuiltinProfileNames() {
  std::vector<std::string> names;
  for (const EmbeddedProfile& embedded : EmbeddedProfiles()) names.emplace_back(embedded.name);
  std::sort(names.begin(), names.end());
  return names;
}

uint64_t PaddedByFinish(const Profile& profile, uint64_t written) {
  const bool whole = profile.finish_padding == 0 && profile.finish_bandwidth != 0;
  return PaddedTo(profile, whole ? profile.zone_capacity : profile.finish_padding, written);
}

uint64_t PaddedByReset(const Profile& profile, uint64_t written) {
  return PaddedTo(profile, profile.reset_padding, written);
}

int64_t ResetDuration(const Profile& profile, uint64_t written) {
  const std::vector<ResetPoint>& points = profile.reset_time;
  if (points.empty()) return 0;
  const double fill = 1000.0 * static_cast<double>(written) / static_cast<double>(profile.zone_capacity);
  const auto above = std::find_if(points.begin(), points.end(), [&](const auto& p) { return p.fill_permille >= fill; });
  if (above == points.begin()) return above->duration_ns;
  if (above == points.end()) return points.back().duration_ns;
  const auto below = above - 1;
  const double share = (fill - below->fill_permille) / (above->fill_permille - below->fill_permille);
  return below->duration_ns +
         static_cast<int64_t>(share * static_cast<double>(above->duration_ns - below->duration_ns));
}

std::string FormatProfile(const Profile& profile) {
  static const Profile kDefault;
  std::string text;
  for (const Key& key : kKeys) {
    std::string value = key.write(profile);
    if (!IsNeeded(key, profile) && value == key.write(kDefault)) continue;
    text += std::string(key.name) + " = " + value + "\n";
  }
  return text;
}

}  // namespace isozone
