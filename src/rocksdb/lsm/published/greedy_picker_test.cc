#include "rocksdb/lsm/published/greedy_picker.h"

#include <gtest/gtest.h>

#include "rocksdb/lsm/lsm_test_util.h"

namespace isozone {
namespace {

TEST(GreedyPickerTest, TableOfCases) {
  ExpectPicks(GreedyPicker(), {
                                  {"the figure of the thesis: all that overlaps the output joins",
                                   1,
                                   {{1, 1, "b-c"}, {1, 2, "e-g"}, {1, 3, "j-k"}, {2, 4, "c-f"}, {2, 5, "k-n"}},
                                   {},
                                   "L1: 1 2, L2: 4 -> L2, next j"},
                                  {"also on the left of the chosen file",
                                   1,
                                   {{1, 1, "b-c"}, {1, 2, "e-g"}, {2, 4, "c-f"}},
                                   {{1, "e"}},
                                   "L1: 1 2, L2: 4 -> L2, next round"},
                                  {"what joins brings what it overlaps along, and there it ends",
                                   1,
                                   {{1, 1, "b-c"}, {1, 2, "e-g"}, {1, 3, "i-k"}, {2, 4, "c-f"}, {2, 5, "g-j"}},
                                   {},
                                   "L1: 1 2, L2: 4 5 -> L2, next i"},
                                  {"a file that overlaps nothing is moved, also a large one",
                                   1,
                                   {{1, 1, "b-c", 4 * kMiB + 1}, {2, 4, "d-f"}},
                                   {},
                                   "L1: 1 moved to L2, next round"},
                              });
}

}  // namespace
}  // namespace isozone
