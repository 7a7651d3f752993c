#include "rocksdb/lsm/key_order.h"

namespace isozone {
namespace {

class Bytewise final : public KeyOrder {
 public:
  int Compare(std::string_view a, std::string_view b) const override { return a.compare(b); }
};

}  // namespace

const KeyOrder& BytewiseOrder() {
  static const Bytewise order;
  return order;
}

}  // namespace isozone
