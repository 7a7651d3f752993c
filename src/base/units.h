// Units, and integers that do not mix.
//
// StrongInt<Tag, Rep> is an integer with a type of its own: a ZoneId cannot be passed where a DeviceOffset is expected.
// It can be compared, hashed and incremented. Other arithmetic must use value(), so that it stays visible.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace isozone {

inline constexpr uint64_t kKiB = uint64_t{1} << 10;
inline constexpr uint64_t kMiB = uint64_t{1} << 20;
inline constexpr uint64_t kGiB = uint64_t{1} << 30;
inline constexpr uint64_t kTiB = uint64_t{1} << 40;

inline constexpr int64_t kMicrosecondNs = 1'000;
inline constexpr int64_t kMillisecondNs = 1'000'000;
inline constexpr int64_t kSecondNs = 1'000'000'000;

template <typename Tag, typename Rep>
class StrongInt {
 public:
  using ValueType = Rep;
  constexpr StrongInt() = default;
  constexpr explicit StrongInt(Rep value) : value_(value) {}
  constexpr Rep value() const { return value_; }
  constexpr auto operator<=>(const StrongInt&) const = default;
  constexpr StrongInt& operator++() {
    ++value_;
    return *this;
  }

 private:
  Rep value_{};
};

// RoundUp and RoundDown return `value` rounded to a multiple of `unit`; unit > 0.
constexpr uint64_t RoundUp(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }
constexpr uint64_t RoundDown(uint64_t value, uint64_t unit) { return value / unit * unit; }
constexpr bool IsAligned(uint64_t value, uint64_t unit) { return value % unit == 0; }

}  // namespace isozone

template <typename Tag, typename Rep>
struct std::hash<isozone::StrongInt<Tag, Rep>> {
  size_t operator()(const isozone::StrongInt<Tag, Rep>& v) const noexcept { return std::hash<Rep>()(v.value()); }
};
