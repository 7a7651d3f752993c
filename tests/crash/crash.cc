#include "crash/crash.h"

#include <algorithm>
#include <array>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "crash/mounted.h"
#include "crash/session.h"
#include "store/metadata/recovery.h"
#include "store/metadata/superblock.h"
#include "store/mount/format_device.h"
#include "store/zone/allocator/zone_reserves.h"

namespace isozone::crash {
namespace {

constexpr uint32_t kBlock = 4096;
constexpr std::array kStartNames = {"empty", "files", "journal", "checkpoint"};
constexpr std::array kFuaNames = {"zone", "command", "none"};
constexpr std::array kHandleNames = {"kept", "closed"};

// Few zones of few blocks, so that all is quick and zones fill up.
DeviceGeometry Geometry() {
  DeviceGeometry geometry;
  geometry.block_size = kBlock;
  geometry.zone_count = 24;
  geometry.zone_size = 16 * kBlock;
  geometry.zone_capacity = 14 * kBlock;
  geometry.max_active_zones = geometry.max_open_zones = 14;
  geometry.max_transfer = 2ULL * kBlock;  // so that longer writes take several commands
  geometry.optimal_write = kBlock;
  return geometry;
}

MountOptions Options() {
  MountOptions options;
  options.stripe_unit = options.write_buffer = 64 * kKiB;
  options.stripe_width = 4;
  options.log_width = 2;
  options.writer_memory = 128 * kKiB;
  options.checkpoint_after = 64 * kKiB;
  return options;
}

Result<Mounted> Mount(const DeviceImage& image, bool records) { return crash::Mount(image, Options(), records); }

// As found after a mount, it can be written.
Status Use(FileSystem& fs) {
  static constexpr std::array<std::byte, 100> kContent{};
  ISOZONE_ASSIGN_OR_RETURN(const auto writer, fs.Create("/probe", {}));
  ISOZONE_RETURN_IF_ERROR(writer->Append(kContent));
  ISOZONE_RETURN_IF_ERROR(writer->Sync());
  return writer->Close();
}

// The first zones of the copies of the metadata that count.
Result<std::vector<ZoneId>> HeadsOfCopies(const DeviceImage& image) {
  CrashDevice device(image, false);
  ISOZONE_ASSIGN_OR_RETURN(const RecoveredMetadata found, RecoverMetadata(device));
  std::vector<ZoneId> heads;
  for (const MetadataCopy& copy : found.copies) {
    const bool behind = copy.state == MetadataCopy::State::kBehind;
    if (behind || copy.state == MetadataCopy::State::kWhole) heads.push_back(copy.head);
  }
  return heads;
}

// The other copy is written anew.
Status RecoverWithOneCopy(const DeviceImage& image, const model::Oracle& oracle) {
  auto mounted = Mount(image, false);
  if (!mounted.ok()) return mounted.status().WithContext("mounting");
  ISOZONE_ASSIGN_OR_RETURN(const model::Found found, model::Collect(*mounted->fs, ""));
  ISOZONE_RETURN_IF_ERROR(oracle.CheckAfterPowerCut(found));
  ISOZONE_RETURN_IF_ERROR(mounted->fs->state().RestoreMetadataCopies());
  ISOZONE_RETURN_IF_ERROR(Use(*mounted->fs).WithContext("writing after the recovery"));
  ISOZONE_RETURN_IF_ERROR(mounted->fs->Unmount());
  const DeviceImage end = mounted->device->Image();
  ISOZONE_RETURN_IF_ERROR(CheckByFsck(end).WithContext("after the recovery"));
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<ZoneId> heads, HeadsOfCopies(end));
  return heads.size() == 2 ? Status::Ok() : Status::Corruption("the other copy was not written anew");
}

// Zones in four groups, in turn.
ZoneGroups FourGroups() {
  ZoneGroups groups;
  groups.channel_of_group.assign(4, 0);
  for (uint32_t zone = 0; zone < Geometry().zone_count; ++zone) {
    groups.group_of_zone.push_back(static_cast<uint16_t>(zone % 4));
    groups.confidence_percent.push_back(100);
  }
  return groups;
}

// One batch of the journal.
Status Commit(const Mounted& mounted) {
  static constexpr uint64_t kTime = 1;  // seconds since 1970
  ISOZONE_RETURN_IF_ERROR(mounted.fs->SetModified("/C", kTime));
  ISOZONE_RETURN_IF_ERROR(mounted.fs->SyncMetadata());
  (void)mounted.device->TakeCommands();
  return Status::Ok();
}

constexpr uint64_t kCommitsMax = 1000;

// Commits before the next one that makes a checkpoint due.
Result<uint64_t> CommitsBeforeCheckpoint(const DeviceImage& image) {
  ISOZONE_ASSIGN_OR_RETURN(const Mounted mounted, Mount(image, true));
  uint64_t commits = 0;
  while (mounted.fs->state().Stats().checkpoints == 0) {
    if (++commits == kCommitsMax) return Status::Corruption("no checkpoint comes");
    ISOZONE_RETURN_IF_ERROR(Commit(mounted));
  }
  return commits - 1;
}

// Prepares the journal as `start` says.
Result<DeviceImage> WithJournal(const DeviceImage& image, Start start) {
  uint64_t commits = start == Start::kJournal ? kCommitsMax : 0;
  if (start == Start::kCheckpoint) {
    ISOZONE_ASSIGN_OR_RETURN(commits, CommitsBeforeCheckpoint(image));
  }
  ISOZONE_ASSIGN_OR_RETURN(const Mounted mounted, Mount(image, true));
  for (; commits > 0; --commits) {
    ISOZONE_RETURN_IF_ERROR(Commit(mounted));
    if (start == Start::kJournal && mounted.fs->state().Stats().checkpoints >= kMetadataCopiesMax) break;
  }
  ISOZONE_RETURN_IF_ERROR(mounted.fs->Unmount());
  return mounted.device->Image();
}

constexpr const char* kFiles =
    "create /A data; append /A; append /A; sync /A; create /B log; append /B; sync /B; append /B; sync /B; mkdir /C; "
    "create /C/A data; append /C/A; sync /C/A; mkdir /D; fsync /";

std::vector<std::pair<Outcome, DeviceImage>> CutAt(const std::vector<Command>& commands, const DeviceImage& end,
                                                   size_t command) {
  return command == commands.size() ? CutAfter(end) : CutIn(end, commands[command]);
}

template <size_t N>
Result<size_t> IndexOf(const std::array<const char*, N>& names, const std::string& name) {
  const auto* const found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return Status::InvalidArgument(fmt::format("'{}' is unknown", name));
  return static_cast<size_t>(found - names.begin());
}

}  // namespace

std::string Variant::ToString() const {
  return fmt::format("{},{},{}", kStartNames.at(static_cast<size_t>(start)), kFuaNames.at(static_cast<size_t>(fua)),
                     kHandleNames.at(closes ? 1 : 0));
}

Result<Variant> Variant::Parse(const std::string& text) {
  std::istringstream words(text);
  std::string start;
  std::string fua;
  std::string handles;
  std::getline(words, start, ',');
  std::getline(words, fua, ',');
  std::getline(words, handles);
  ISOZONE_ASSIGN_OR_RETURN(const size_t start_index, IndexOf(kStartNames, start));
  ISOZONE_ASSIGN_OR_RETURN(const size_t fua_index, IndexOf(kFuaNames, fua));
  ISOZONE_ASSIGN_OR_RETURN(const size_t handle_index, IndexOf(kHandleNames, handles));
  return Variant{static_cast<Start>(start_index), static_cast<Fua>(fua_index), handle_index == 1};
}

std::vector<Variant> AllVariants() {
  std::vector<Variant> variants;
  for (const Start start : {Start::kEmpty, Start::kFiles, Start::kJournal, Start::kCheckpoint}) {
    for (const Fua fua : {Fua::kZone, Fua::kCommand}) {
      for (const bool closes : {false, true}) variants.push_back({start, fua, closes});
    }
  }
  return variants;
}

std::string Cut::ToString() const { return fmt::format("{}:{}", command, outcome.ToString()); }

Result<Cut> Cut::Parse(const std::string& text) {
  const size_t colon = text.find(':');
  const auto outcome = colon == std::string::npos ? std::nullopt : Outcome::Parse(text.substr(colon + 1));
  if (!outcome) return Status::InvalidArgument(fmt::format("'{}' is no cut such as 17:1:lost", text));
  return Cut{std::strtoull(text.c_str(), nullptr, 10), *outcome};
}

const Explorer::Step& Explorer::Run::At(size_t command) const {
  const auto after = std::find_if(steps.begin(), steps.end(), [&](const Step& s) { return s.first_command > command; });
  return *std::prev(after);
}

std::vector<std::pair<Outcome, DeviceImage>> Explorer::Run::Cut(size_t command) const {
  return CutAt(commands, end, command);
}

Result<const Explorer::Prepared*> Explorer::Prepare(Start start, Fua fua) {
  const auto found = prepared_.find({start, fua});
  if (found != prepared_.end()) return &found->second;
  Prepared prepared;
  prepared.image = CrashDevice::Blank(Geometry(), fua);
  {
    CrashDevice device(prepared.image, false);
    ISOZONE_RETURN_IF_ERROR(FormatDevice(device, {"crash", false}));
    prepared.image = device.Image();
  }
  if (start != Start::kEmpty) ISOZONE_RETURN_IF_ERROR(MakeFiles(prepared));
  ISOZONE_ASSIGN_OR_RETURN(prepared.image, WithJournal(prepared.image, start));
  ISOZONE_RETURN_IF_ERROR(CheckByFsck(prepared.image));
  return &prepared_.emplace(std::pair(start, fua), std::move(prepared)).first->second;
}

Status Explorer::MakeFiles(Prepared& prepared) {
  {
    ISOZONE_ASSIGN_OR_RETURN(const Mounted mounted, Mount(prepared.image, true));
    ISOZONE_RETURN_IF_ERROR(mounted.fs->groups().Set(FourGroups()));
    ISOZONE_RETURN_IF_ERROR(mounted.fs->Unmount());
    prepared.image = mounted.device->Image();
  }
  // The groups count from here on.
  ISOZONE_ASSIGN_OR_RETURN(const Mounted mounted, Mount(prepared.image, true));
  Session session(*mounted.fs, prepared.oracle, true);
  ISOZONE_ASSIGN_OR_RETURN(const Sequence files, ParseSequence(kFiles));
  for (const Operation& operation : files) {
    ISOZONE_RETURN_IF_ERROR(session.Do(operation));
    (void)mounted.device->TakeCommands();
    prepared.names.Apply(operation);
  }
  ISOZONE_RETURN_IF_ERROR(mounted.fs->Unmount());
  prepared.oracle.SyncMetadata();
  prepared.image = mounted.device->Image();
  return Status::Ok();
}

Result<Names> Explorer::NamesAt(Start start) {
  ISOZONE_ASSIGN_OR_RETURN(const Prepared* prepared, Prepare(start, Fua::kZone));
  return prepared->names;
}

Result<Explorer::Run> Explorer::Record(const Variant& variant, const Sequence& sequence) {
  ISOZONE_ASSIGN_OR_RETURN(const Prepared* prepared, Prepare(variant.start, variant.fua));
  model::Oracle oracle = prepared->oracle;
  Run run;
  const auto take = [&run](CrashDevice& device, std::string step, const model::Oracle& during) {
    run.steps.push_back({std::move(step), run.commands.size(), during});
    for (Command& command : device.TakeCommands()) run.commands.push_back(std::move(command));
  };
  ISOZONE_ASSIGN_OR_RETURN(const Mounted mounted, Mount(prepared->image, true));
  take(*mounted.device, "mount", oracle);
  Session session(*mounted.fs, oracle, variant.closes);
  for (const Operation& operation : sequence) {
    ISOZONE_RETURN_IF_ERROR(session.Do(operation));
    take(*mounted.device, operation.ToString(), session.during());
  }
  Status status = session.Close();
  if (status.ok()) status = mounted.fs->Unmount();
  ISOZONE_RETURN_IF_ERROR(status.WithContext("unmounting"));
  take(*mounted.device, "unmount", session.during());
  run.end = mounted.device->Image();
  oracle.SyncMetadata();
  run.steps.push_back({"unmounted", run.commands.size(), oracle});
  return run;
}

Result<std::string> Explorer::Describe(const Variant& variant, const Sequence& sequence) {
  ISOZONE_ASSIGN_OR_RETURN(const Run run, Record(variant, sequence));
  std::string text;
  for (size_t n = 0; n < run.commands.size(); ++n) {
    const Command& command = run.commands[n];
    text += fmt::format("{:4}  {:24}  {}", n, run.At(n).name, DeviceOpName(command.op));
    if (command.op != DeviceOp::kFlush) text += fmt::format(" zone {}", command.zone.value());
    if (command.blocks > 0) text += fmt::format(" at {}: {} blocks", command.begin, command.blocks);
    text += command.fua ? ", FUA\n" : "\n";
  }
  return text + fmt::format("{:4}  unmounted\n", run.commands.size());
}

Status Explorer::Explore(const Variant& variant, const Sequence& sequence) {
  const auto failed = [&](const Status& status, const std::string& cut) {
    return status.WithContext(
        fmt::format("isozone_crash --variant {} --sequence '{}'{}", variant.ToString(), ToString(sequence), cut));
  };
  ++report_.sequences;
  Result<Run> run = Record(variant, sequence);
  if (!run.ok()) return failed(run.status(), "");
  std::set<std::pair<const model::Oracle*, std::string>> seen;
  for (size_t n = run->steps[sequence.size()].first_command; n <= run->commands.size(); ++n) {
    ++report_.commands;
    for (const auto& [outcome, image] : run->Cut(n)) {
      const model::Oracle& oracle = run->At(n).oracle;
      if (!seen.emplace(&oracle, Fingerprint(image)).second) continue;
      const Status status = Check(image, oracle, depth_);
      if (!status.ok()) return failed(status, " --cut " + crash::Cut{n, outcome}.ToString());
    }
  }
  return Status::Ok();
}

Status Explorer::Replay(const Variant& variant, const Sequence& sequence, const crash::Cut& cut,
                        const crash::Cut* again) {
  ISOZONE_ASSIGN_OR_RETURN(const Run run, Record(variant, sequence));
  if (cut.command > run.commands.size()) return Status::InvalidArgument("the sequence makes fewer commands");
  const auto find = [](const auto& images, const Outcome& outcome) {
    return std::find_if(images.begin(), images.end(), [&](const auto& image) { return image.first == outcome; });
  };
  const auto images = run.Cut(cut.command);
  const auto image = find(images, cut.outcome);
  if (image == images.end()) return Status::InvalidArgument("the cut does not end so");
  const model::Oracle& oracle = run.At(cut.command).oracle;
  if (again == nullptr) return Check(image->second, oracle, 1);
  ISOZONE_ASSIGN_OR_RETURN(const Mounted mounted, Mount(image->second, true));
  const std::vector<Command> commands = mounted.device->TakeCommands();
  if (again->command > commands.size()) return Status::InvalidArgument("the mount makes fewer commands");
  const auto left = CutAt(commands, mounted.device->Image(), again->command);
  const auto found = find(left, again->outcome);
  if (found == left.end()) return Status::InvalidArgument("the second cut does not end so");
  return Check(found->second, oracle, 1);
}

Status Explorer::Check(const DeviceImage& image, const model::Oracle& oracle, uint32_t depth) {
  ++report_.cases;
  if (depth < depth_) ++report_.again;
  ISOZONE_RETURN_IF_ERROR(CheckByFsck(image));
  std::vector<Command> commands;
  DeviceImage recovered;
  {
    auto mounted = Mount(image, depth > 1);
    if (!mounted.ok()) return mounted.status().WithContext("mounting");
    ISOZONE_ASSIGN_OR_RETURN(const model::Found found, model::Collect(*mounted->fs, ""));
    ISOZONE_RETURN_IF_ERROR(oracle.CheckAfterPowerCut(found));
    if (depth > 1) {
      commands = mounted->device->TakeCommands();
      recovered = mounted->device->Image();
    }
    ISOZONE_RETURN_IF_ERROR(Use(*mounted->fs).WithContext("writing after the recovery"));
    ISOZONE_RETURN_IF_ERROR(mounted->fs->Unmount());
    ISOZONE_RETURN_IF_ERROR(CheckByFsck(mounted->device->Image()).WithContext("after the recovery"));
  }
  if (loses_copies_) ISOZONE_RETURN_IF_ERROR(CheckWithoutCopies(image, oracle));
  return depth > 1 ? CheckAgain(image, commands, recovered, oracle) : Status::Ok();
}

Status Explorer::CheckWithoutCopies(const DeviceImage& image, const model::Oracle& oracle) {
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<ZoneId> heads, HeadsOfCopies(image));
  if (heads.size() < 2) return Status::Ok();
  for (const ZoneId head : heads) {
    ++report_.cases;
    ++report_.lost;
    DeviceImage left = image;
    left.zones[head.value()].state = ZoneState::kOffline;
    const Status status = RecoverWithOneCopy(left, oracle);
    if (!status.ok()) {
      return status.WithContext(fmt::format("without the copy of the metadata in zone {}", head.value()));
    }
  }
  return Status::Ok();
}

Status Explorer::CheckAgain(const DeviceImage& image, const std::vector<Command>& commands, const DeviceImage& end,
                            const model::Oracle& oracle) {
  std::set<std::string> seen = {Fingerprint(image)};
  for (size_t n = 0; n <= commands.size(); ++n) {
    for (const auto& [outcome, left] : CutAt(commands, end, n)) {
      if (!seen.insert(Fingerprint(left)).second) continue;
      const Status status = Check(left, oracle, 1);
      if (!status.ok()) return status.WithContext("--again " + Cut{n, outcome}.ToString());
    }
  }
  return Status::Ok();
}

}  // namespace isozone::crash
