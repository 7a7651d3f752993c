#include "base/key_distributions.h"

#include <algorithm>
#include <cmath>

namespace isozone {
namespace {

constexpr uint64_t kFnvOffsetBasis = 0xCBF29CE484222325ULL;
constexpr uint64_t kFnvPrime = 1099511628211ULL;
constexpr double kAlpha = 1.0 / (1.0 - kZipfianConstant);

// The part of zeta(last) that the ranks after `first` add to `zeta` of `first`.
double ExtendZeta(uint64_t first, uint64_t last, double zeta) {
  for (uint64_t rank = first + 1; rank <= last; ++rank) {
    zeta += 1.0 / std::pow(static_cast<double>(rank), kZipfianConstant);
  }
  return zeta;
}

double ZetaOfTwo() {
  static const double kZeta = ExtendZeta(0, 2, 0);
  return kZeta;
}

}  // namespace

uint64_t FnvHash64(uint64_t value) {
  uint64_t hash = kFnvOffsetBasis;
  for (int byte = 0; byte < 8; ++byte, value >>= 8) hash = (hash ^ (value & 0xFF)) * kFnvPrime;
  return std::min(hash, 0 - hash);  // Math.abs of the same bits
}

Zipfian::Zipfian(uint64_t items) : Zipfian(items, ExtendZeta(0, items, 0)) {}

Zipfian::Zipfian(uint64_t items, double zeta) : items_(items), zeta_(zeta) { DeriveEta(); }

void Zipfian::GrowTo(uint64_t items) {
  if (items <= items_) return;
  zeta_ = ExtendZeta(items_, items, zeta_);
  items_ = items;
  DeriveEta();
}

void Zipfian::DeriveEta() {
  if (items_ <= 2) return;  // all of them are in the exact part
  eta_ = (1.0 - std::pow(2.0 / static_cast<double>(items_), 1.0 - kZipfianConstant)) / (1.0 - ZetaOfTwo() / zeta_);
}

uint64_t Zipfian::Next(Random& random) const {
  const double u = random.Real();
  if (u * zeta_ < 1.0 || items_ == 1) return 0;
  if (u * zeta_ < ZetaOfTwo() || items_ == 2) return 1;
  const double share = std::pow(eta_ * u - eta_ + 1.0, kAlpha);
  return std::min(static_cast<uint64_t>(static_cast<double>(items_) * share), items_ - 1);
}

uint64_t Latest::Next(Random& random, uint64_t items) {
  age_.GrowTo(items);
  return items - 1 - age_.Next(random);
}

}  // namespace isozone
