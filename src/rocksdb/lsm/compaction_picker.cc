#include "rocksdb/lsm/compaction_picker.h"

#include <array>
#include <string>

#include <fmt/format.h>

#include "rocksdb/lsm/isozone_picker.h"
#include "rocksdb/lsm/published/gear_picker.h"
#include "rocksdb/lsm/published/greedy_picker.h"
#include "rocksdb/lsm/published/leveled_picker.h"
#include "rocksdb/lsm/published/ll_picker.h"

namespace isozone {
namespace {

template <typename Picker>
std::unique_ptr<CompactionPicker> NewPicker() {
  return std::make_unique<Picker>();
}

struct NamedPicker {
  std::string_view name;
  std::unique_ptr<CompactionPicker> (*make)();
};

constexpr std::array kPickers = {
    NamedPicker{GearPicker::kName, NewPicker<GearPicker>},
    NamedPicker{GreedyPicker::kName, NewPicker<GreedyPicker>},
    NamedPicker{IsozonePicker::kName, NewPicker<IsozonePicker>},
    NamedPicker{LeveledPicker::kName, NewPicker<LeveledPicker>},
    NamedPicker{LlPicker::kName, NewPicker<LlPicker>},
};

}  // namespace

Result<std::unique_ptr<CompactionPicker>> MakeCompactionPicker(std::string_view name) {
  std::string known;
  for (const NamedPicker& picker : kPickers) {
    if (picker.name == name) return picker.make();
    known += fmt::format("{}{}", known.empty() ? "" : ", ", picker.name);
  }
  return Status::InvalidArgument(fmt::format("unknown compaction picker \"{}\"; known: {}", name, known));
}

std::vector<std::string_view> CompactionPickerNames() {
  std::vector<std::string_view> names;
  for (const NamedPicker& picker : kPickers) names.push_back(picker.name);
  return names;
}

}  // namespace isozone
