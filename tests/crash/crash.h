// Crash consistency, exhaustively: every short sequence of operations, its power cut in every command that it makes of
// the device and in every way in which a cut may end, each recovered and held against what must and what may be there.
// After ACE and CrashMonkey (Mohan et al., OSDI 2018) and Chipmunk (LeBlanc et al., EuroSys 2023): most known crash bugs
// of file systems show in three operations on few files.
//
// 1. A sequence runs once, from a prepared device, on a CrashDevice: mount, the operations, unmount. The device keeps its
//    state before each command, the run the oracle of each step (model/oracle.h): what had been promised when it began,
//    and what the step itself may add.
// 2. The device is cut in each command, in each way that leaves another image (crash_device.h). The commands before the
//    last operation are those of a shorter sequence, and were cut there.
// 3. Each image is checked by fsck; mounted for writing; read back whole and held against the oracle; used once more
//    (a new file, synced); unmounted; and checked by fsck again. With a depth of 2, the power is cut in every command of
//    that mount as well, and what that leaves must satisfy the same oracle.
// 4. Where copies of the metadata are to be lost, each image is recovered again without the one and without the other.
//
// The commands of a sequence are the same each time: after each step the run waits until the threads of the file system
// are asleep. So a case is named by its sequence, the number of the command, and how the cut ends.
//
// Thread safety: one run at a time in a process, which has no other threads.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "crash/crash_device.h"
#include "crash/sequence.h"
#include "model/oracle.h"

namespace isozone::crash {

// What a sequence begins with.
enum class Start : uint8_t {
  kEmpty,       // nothing; the two files and directories are alike
  kFiles,       // /A data, /B a log, /C/A data, /D empty; zones in four groups, so that files lie in several
  kJournal,     // the same, and both copies of the metadata were written anew
  kCheckpoint,  // the same, and one more batch makes a checkpoint due
};

struct Variant {
  Start start = Start::kFiles;
  Fua fua = Fua::kZone;
  bool closes = false;  // files are closed after each operation, else when the file system is unmounted

  // "files,zone,kept", as Parse takes it.
  std::string ToString() const;
  static Result<Variant> Parse(const std::string& text);
};
// All but those with Fua::kNone.
std::vector<Variant> AllVariants();

// A cut: in which command, and how it ends.
struct Cut {
  uint64_t command = 0;
  Outcome outcome;

  std::string ToString() const;  // "17:1:lost"
  static Result<Cut> Parse(const std::string& text);
};

struct Report {
  uint64_t sequences = 0;
  uint64_t commands = 0;  // that were cut
  uint64_t cases = 0;     // images that were recovered
  uint64_t again = 0;     // of these, after a cut while recovering
  uint64_t lost = 0;      // of these, without one of the copies of the metadata
};

class Explorer {
 public:
  // `depth` 2: recovery is cut as well. `loses_copies`: either copy of the metadata is lost.
  explicit Explorer(uint32_t depth, bool loses_copies = false) : depth_(depth), loses_copies_(loses_copies) {}

  // Cuts the last operation of `sequence`, and what unmounts after it; of the empty one the mount. kCorruption with the
  // command that replays what is wrong.
  Status Explore(const Variant& variant, const Sequence& sequence);
  // One case, as a failure names it; with `again`, its recovery is cut there.
  Status Replay(const Variant& variant, const Sequence& sequence, const Cut& cut, const Cut* again);

  // Every command of `sequence`, a line each, by its number.
  Result<std::string> Describe(const Variant& variant, const Sequence& sequence);
  // Names as they are when a sequence begins.
  Result<Names> NamesAt(Start start);

  const Report& report() const { return report_; }

 private:
  struct Prepared {
    DeviceImage image;
    model::Oracle oracle;
    Names names;
  };
  struct Step {
    std::string name;
    size_t first_command = 0;
    model::Oracle oracle;
  };
  struct Run {
    std::vector<Step> steps;  // mount, each operation, unmount, and what comes after
    std::vector<Command> commands;
    DeviceImage end;

    const Step& At(size_t command) const;
    std::vector<std::pair<Outcome, DeviceImage>> Cut(size_t command) const;
  };

  Result<const Prepared*> Prepare(Start start, Fua fua);
  Status MakeFiles(Prepared& prepared);
  Result<Run> Record(const Variant& variant, const Sequence& sequence);
  // Recovers `image`; OK where it is as the oracle wants it.
  Status Check(const DeviceImage& image, const model::Oracle& oracle, uint32_t depth);
  // The same without either copy of the metadata, where there are two.
  Status CheckWithoutCopies(const DeviceImage& image, const model::Oracle& oracle);
  Status CheckAgain(const DeviceImage& image, const std::vector<Command>& commands, const DeviceImage& end,
                    const model::Oracle& oracle);

  const uint32_t depth_;
  const bool loses_copies_;
  std::map<std::pair<Start, Fua>, Prepared> prepared_;
  Report report_;
};

}  // namespace isozone::crash
