// cp: copies between the local file system and a device, in either direction, and within a device. A path on the device
// is written ":/dir/file".
//
// No existing data is lost, and no incomplete copy is left under the name of a target. A file is written without a
// name, or under a temporary one beside its target, made durable, and then replaces the target (file_tree.h). A signal
// that asks the process to end stops the copy, and nothing is left of an incomplete file. Sources are looked up and
// targets determined before the first byte is written.
//
// Symbolic links in a directory that is copied are copied as such; of the sources that are named, a local one is
// followed. Permission bits are copied, owners are not.
//
// With --resume, a file that is there with the content of its source is left as it is, and what is there under the
// temporary name is compared with the source and continued. An incomplete file then stays under that name. All of this
// is compared before the first byte is written.
#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/aligned_buffer.h"
#include "isozone/command.h"
#include "isozone/commands/file_tree.h"
#include "isozone/holes.h"
#include "isozone/output/progress.h"
#include "isozone/path.h"
#include "isozone/session.h"
#include "isozone/stop_signals.h"

namespace isozone::cli {
namespace {

constexpr size_t kChunk = 1 * kMiB;
constexpr uint64_t kSyncInterval = 64 * kMiB;  // of a copy that can be resumed, bytes

struct CpArguments {
  std::string device;
  std::vector<std::string> sources;  // the last one is the target
  bool recursive = false;
  bool resume = false;
};

// A path, and the tree that it is in.
struct Place {
  FileTree* tree = nullptr;
  std::string path;
};

struct Step {
  Place from;
  Place to;
  TreeEntry entry;
  // What --resume has found.
  bool is_there = false;  // the target has the content of the source
  uint64_t begun = 0;     // bytes of the source that the temporary file of the target begins with
};

bool IsOnDevice(std::string_view argument) { return argument.starts_with(':'); }

class Copier {
 public:
  Copier(FileTree& device, FileTree& local, const CpArguments& arguments)
      : device_(device), local_(local), recursive_(arguments.recursive), resume_(arguments.resume) {}

  // Plans copies of all `arguments` except the last to the last.
  Status Plan(const std::vector<std::string>& arguments) {
    ISOZONE_ASSIGN_OR_RETURN(const Place target, PlaceOf(arguments.back()));
    target_ = target.path;
    ISOZONE_ASSIGN_OR_RETURN(const auto target_entry, Find(target));
    const bool into_directory = target_entry.has_value() && target_entry->is_directory;
    if (arguments.size() > 2 && !into_directory) {
      return Status::NotDirectory(target.path + " is not a directory; several files can only be copied into one");
    }
    for (size_t i = 0; i + 1 < arguments.size(); ++i) {
      ISOZONE_ASSIGN_OR_RETURN(const Place source, PlaceOf(arguments[i]));
      Place to = target;
      const std::string name = BaseName(source.path);
      if (into_directory && !name.empty() && name != ".") to.path = JoinPath(to.path, name);
      ISOZONE_ASSIGN_OR_RETURN(const TreeEntry entry, source.tree->Stat(source.path, /*itself=*/false));
      ISOZONE_RETURN_IF_ERROR(PlanTree(source, to, entry));
    }
    return Status::Ok();
  }

  Status Run() {
    if (resume_) ISOZONE_RETURN_IF_ERROR(CompareAll());
    ISOZONE_RETURN_IF_ERROR(CheckThatAllFits());
    Progress progress("copying", total_, Progress::Unit::kBytes);
    for (const Step& step : steps_) {
      ISOZONE_RETURN_IF_ERROR(Copy(step, progress));
    }
    return steps_.empty() ? Status::Ok() : steps_.front().to.tree->Sync(ParentPath(steps_.front().to.path));
  }

 private:
  Status CompareAll() {
    Progress progress("comparing", total_, Progress::Unit::kBytes);
    for (Step& step : steps_) {
      if (!step.entry.is_file()) continue;
      ISOZONE_RETURN_IF_ERROR(Compare(step, progress));
      done_ += step.entry.size;
    }
    done_ = 0;
    return Status::Ok();
  }

  Status Compare(Step& step, Progress& progress) {
    ISOZONE_ASSIGN_OR_RETURN(const auto existing, Find(step.to));
    if (existing && existing->size == step.entry.size) {
      ISOZONE_ASSIGN_OR_RETURN(const uint64_t same, CommonLength(step.from, step.to, progress));
      step.is_there = same == step.entry.size;
      if (step.is_there) return Status::Ok();
    }
    ISOZONE_ASSIGN_OR_RETURN(step.begun, CommonLength(step.from, TemporaryOf(step.to), progress));
    return Status::Ok();
  }

  // What a copy that was stopped has left is continued or replaced, so its space is had again.
  Status CheckThatAllFits() const {
    if (steps_.empty()) return Status::Ok();
    const Place& first = steps_.front().to;
    ISOZONE_ASSIGN_OR_RETURN(TargetRoom room, first.tree->Room(ParentPath(first.path)));
    for (const Step& step : steps_) {
      if (!step.entry.is_file() || step.is_there) continue;
      ISOZONE_ASSIGN_OR_RETURN(const auto left, Find(TemporaryOf(step.to), /*itself=*/true));
      room.Need(step.entry.data, left ? left->data : 0);
    }
    return room.Check(target_);
  }

  static Place TemporaryOf(const Place& target) { return {target.tree, target.tree->TemporaryName(target.path)}; }

  Result<Place> PlaceOf(const std::string& argument) {
    if (!IsOnDevice(argument)) return Place{&local_, argument};
    if (argument.size() > 1 && argument[1] == '/') return Place{&device_, argument.substr(1)};
    return Status::InvalidArgument(fmt::format("'{}' is no path on the device; write it as :/dir/file", argument));
  }

  // Empty if there is no such name. A local symbolic link is followed unless `itself`.
  static Result<std::optional<TreeEntry>> Find(const Place& place, bool itself = false) {
    auto entry = place.tree->Stat(place.path, itself);
    if (entry.ok()) return std::optional<TreeEntry>(*entry);
    if (entry.status().Is(StatusCode::kNotFound)) return std::optional<TreeEntry>();
    return entry.status();
  }

  Status PlanTree(const Place& from, const Place& to, const TreeEntry& entry) {
    ISOZONE_RETURN_IF_ERROR(CheckStep(from, to, entry));
    if (!entry.is_directory && !targets_.insert(to.path).second) {
      return Status::AlreadyExists(fmt::format("two sources would both be copied to {}", to.path));
    }
    steps_.push_back({from, to, entry});
    if (!entry.is_directory) {
      total_ += entry.size;
      return Status::Ok();
    }
    ISOZONE_ASSIGN_OR_RETURN(const std::vector<std::string> names, from.tree->List(from.path));
    for (const std::string& name : names) {
      const Place child{from.tree, JoinPath(from.path, name)};
      ISOZONE_ASSIGN_OR_RETURN(const TreeEntry of_child, child.tree->Stat(child.path, /*itself=*/true));
      ISOZONE_RETURN_IF_ERROR(PlanTree(child, {to.tree, JoinPath(to.path, name)}, of_child));
    }
    return Status::Ok();
  }

  Status CheckStep(const Place& from, const Place& to, const TreeEntry& entry) const {
    if (entry.is_directory && !recursive_) {
      return Status::IsDirectory(from.path + " is a directory; give -r to copy it with everything in it");
    }
    if (entry.is_symlink() && !recursive_) {
      return Status::InvalidArgument(from.path + " is a symbolic link on the device; give -r to copy it as one");
    }
    if (from.tree == to.tree && (to.path == from.path || to.path.starts_with(JoinPath(from.path, "")))) {
      return Status::InvalidArgument(
          fmt::format("{} cannot be copied to {}, which is itself or lies in it", from.path, to.path));
    }
    // Only the target that was named may be a symbolic link to a directory. One below it may have come from the device.
    ISOZONE_ASSIGN_OR_RETURN(const auto link, Find(to, /*itself=*/to.path != target_));
    if (link.has_value() && link->is_symlink() && entry.is_directory) {
      return Status::NotDirectory(to.path + " is a symbolic link and cannot be replaced by a directory");
    }
    if (link.has_value() && link->is_symlink() && entry.is_symlink()) return Status::Ok();
    ISOZONE_ASSIGN_OR_RETURN(const auto existing, Find(to));
    if (existing.has_value() && existing->is_directory != entry.is_directory) {
      return existing->is_directory
                 ? Status::IsDirectory(to.path + " is a directory and cannot be replaced by a file")
                 : Status::NotDirectory(to.path + " is a file and cannot be replaced by a directory");
    }
    if (existing.has_value() && existing->is_symlink() && !entry.is_symlink()) {
      return Status::AlreadyExists(to.path + " is a symbolic link and cannot be replaced by a file");
    }
    return Status::Ok();
  }

  Status Copy(const Step& step, Progress& progress) {
    if (step.entry.is_directory) return CopyDirectory(step);
    if (step.entry.is_symlink()) return step.to.tree->MakeSymlink(step.to.path, step.entry.target);
    return CopyFile(step, progress);
  }

  Status CopyDirectory(const Step& step) {
    if (step.to.path == target_) {
      ISOZONE_ASSIGN_OR_RETURN(const auto existing, Find(step.to));
      if (existing.has_value() && existing->is_directory) return Status::Ok();
    }
    return step.to.tree->MakeDirectory(step.to.path, step.entry.mode);
  }

  // Returns how many bytes at the beginning of the source are in the file `there`, which may not exist.
  Result<uint64_t> CommonLength(const Place& source, const Place& there, Progress& progress) {
    ISOZONE_ASSIGN_OR_RETURN(const auto entry, Find(there, /*itself=*/true));
    if (!entry || entry->is_directory || entry->is_symlink()) return uint64_t{0};
    ISOZONE_ASSIGN_OR_RETURN(const auto a, source.tree->Open(source.path));
    ISOZONE_ASSIGN_OR_RETURN(const auto b, there.tree->Open(there.path));
    for (uint64_t length = 0;;) {
      if (StopSignals::Raised()) return Status::Aborted(fmt::format("stopped while {} was compared", source.path));
      ISOZONE_ASSIGN_OR_RETURN(const ContentRun left, a->Read(length, buffer_.span()));
      ISOZONE_ASSIGN_OR_RETURN(const ContentRun right, b->Read(length, compared_.span()));
      const uint64_t shorter = std::min(left.length, right.length);
      const uint64_t same = CommonLength(left, right, shorter);
      length += same;
      progress.Update(done_ + length, std::max(total_, done_ + length));
      if (same < shorter || shorter == 0) return length;
    }
  }

  // Of the first `length` bytes of what was read into the buffers. A hole is at least as long as a buffer.
  uint64_t CommonLength(const ContentRun& left, const ContentRun& right, uint64_t length) {
    if (left.is_hole && right.is_hole) return length;
    const auto begin = buffer_.span().first(length);
    const auto compared = compared_.span().first(length);
    if (left.is_hole) std::ranges::fill(begin, std::byte{0});
    if (right.is_hole) std::ranges::fill(compared, std::byte{0});
    return static_cast<uint64_t>(std::ranges::mismatch(begin, compared).in1 - begin.begin());
  }

  Status CopyFile(const Step& step, Progress& progress) {
    const TreeEntry& entry = step.entry;
    if (step.is_there) {
      done_ += entry.size;
      return Status::Ok();
    }
    ISOZONE_ASSIGN_OR_RETURN(const auto source, step.from.tree->Open(step.from.path));
    ISOZONE_ASSIGN_OR_RETURN(const auto sink,
                             resume_ ? step.to.tree->Resume(step.to.path, step.begun, entry.size, entry.mode)
                                     : step.to.tree->Create(step.to.path, entry.size, entry.mode));
    return CopyRest(step, *source, *sink, progress);
  }

  Status CopyRest(const Step& step, FileSource& source, FileSink& sink, Progress& progress) {
    done_ += step.begun;
    uint64_t synced = step.begun;
    for (uint64_t offset = step.begun;;) {
      if (StopSignals::Raised()) return Status::Aborted(fmt::format("stopped while {} was copied", step.from.path));
      ISOZONE_ASSIGN_OR_RETURN(const ContentRun run, source.Read(offset, buffer_.span()));
      if (run.length == 0) return sink.Finish();
      ISOZONE_RETURN_IF_ERROR(AppendRun(sink, run, buffer_.span()));
      offset += run.length;
      done_ += run.length;
      if (resume_ && offset - synced >= kSyncInterval) {
        ISOZONE_RETURN_IF_ERROR(sink.Sync());
        synced = offset;
      }
      progress.Update(done_, std::max(total_, done_));
    }
  }

  FileTree& device_;
  FileTree& local_;
  const bool recursive_;
  const bool resume_;
  std::string target_;             // the last path that was given
  std::vector<Step> steps_;        // a directory comes before its content
  std::set<std::string> targets_;  // of files
  uint64_t total_ = 0;             // bytes
  uint64_t done_ = 0;              // bytes that were compared, and then, that were copied
  AlignedBuffer buffer_{kChunk};
  AlignedBuffer compared_{kChunk};
};

Status Cp(const CpArguments& arguments, Console& /*console*/) {
  const std::vector<std::string>& paths = arguments.sources;
  if (paths.size() < 2) return Status::InvalidArgument("nothing to copy to; give SOURCE... and TARGET");
  if (std::ranges::none_of(paths, IsOnDevice)) {
    return Status::InvalidArgument("no path is on the device; write those that are as :/dir/file");
  }
  const StopSignals signals;  // ends the process by the raised signal once everything below is undone and unmounted
  const OpenMode mode = IsOnDevice(paths.back()) ? OpenMode::kReadWrite : OpenMode::kReadOnly;
  ISOZONE_ASSIGN_OR_RETURN(const auto file_system, MountByUri(arguments.device, mode));
  const auto device = MakeDeviceTree(*file_system);
  const auto local = MakeLocalTree();
  Copier copier(*device, *local, arguments);
  ISOZONE_RETURN_IF_ERROR(copier.Plan(paths));
  ISOZONE_RETURN_IF_ERROR(copier.Run());
  return file_system->Unmount();
}

Action DefineCp(CLI::App& app) {
  auto arguments = std::make_shared<CpArguments>();
  AddDeviceArgument(app, arguments->device);
  app.add_option("FILE", arguments->sources, "SOURCE... TARGET; a path on the device is written :/dir/file")
      ->required()
      ->option_text("...");
  app.add_flag("-r,--recursive", arguments->recursive, "Directories with everything in them");
  app.add_flag("--resume", arguments->resume, "Continue a copy that was stopped; what is there is compared");
  return [arguments](Console& console) { return Cp(*arguments, console); };
}

}  // namespace

extern const Command kCpCommand = {
    "cp", "Copy files into, out of and within a device",
    "  isozone cp -r emu:/data/ssd.img backup :/db      (in: the device's paths begin with ':')\n"
    "  isozone cp emu:/data/ssd.img :/db/LOG .          (out)",
    DefineCp};

}  // namespace isozone::cli
