// Exhaustive tests of crash consistency. Every short sequence of operations is run, its power is cut in every command
// that it sends to the device and in every way in which a cut may end, and each outcome is recovered and compared with
// what must and what may be there. After ACE and CrashMonkey (Mohan et al., OSDI 2018) and Chipmunk (LeBlanc et al.,
// EuroSys 2023): most known crash bugs of file systems appear within three operations on few files.
//
// 1. A sequence runs once, from a prepared device, on a CrashDevice: mount, the operations, unmount. The device keeps
//    its state before each command. The run keeps the oracle of each step (model/oracle.h): what had been promised when
//    the step began, and what the step itself may add.
// 2. The device is cut in each command, in each way that leaves another image (crash_device.h). Commands before the
//    last operation belong to a shorter sequence, and were cut there.
// 3. Each image is checked by fsck, mounted for writing, read back completely and compared with the oracle, used once
//    more (a new file, synced), unmounted, and checked by fsck again. With a depth of 2, the power is also cut in every
//    command of that mount, and the result must satisfy the same oracle.
// 4. If copies of the metadata are to be lost, each image is recovered again without the first and without the second.
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

// The state in which a sequence begins.
enum class Start : uint8_t {
  kEmpty,       // nothing; the two files and directories are alike
  kFiles,       // /A data, /B a log, /C/A data, /D empty; zones in four groups, so that files lie in several
  kJournal,     // the same, but both copies of the metadata were written again
  kCheckpoint,  // the same, but one more batch makes a checkpoint due
};

struct Variant {
  Start start = Start::kFiles;
  Fua fua = Fua::kZone;
  bool closes = false;  // files are closed after each operation; otherwise when the file system is unmounted

  // "files,zone,kept", in the form that Parse takes.
  std::string ToString() const;
  static Result<Variant> Parse(const std::string& text);
};
// All variants except those with Fua::kNone.
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
  uint64_t commands = 0;  // commands that were cut
  uint64_t cases = 0;     // images that were recovered
  uint64_t again = 0;     // of these, after a cut while recovering
  uint64_t lost = 0;      // of these, without one of the copies of the metadata
};

class Explorer {
 public:
  // `depth` 2: recovery is cut as well. `loses_copies`: either copy of the metadata is lost.
  explicit Explorer(uint32_t depth, bool loses_copies = false) : depth_(depth), loses_copies_(loses_copies) {}

  // Cuts the last operation of `sequence`, and the unmount after it; for the empty sequence, the mount. kCorruption
  // with the command that replays the failure.
  Status Explore(const Variant& variant, const Sequence& sequence);
  // Replays one case, in the form in which a failure names it. With `again`, its recovery is cut there.
  Status Replay(const Variant& variant, const Sequence& sequence, const Cut& cut, const Cut* again);

  // Describes every command of `sequence`, one on each line, by its number.
  Result<std::string> Describe(const Variant& variant, const Sequence& sequence);
  // The names that exist when a sequence begins.
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
    std::vector<Step> steps;  // mount, each operation, unmount, and the commands afterwards
    std::vector<Command> commands;
    DeviceImage end;

    const Step& At(size_t command) const;
    std::vector<std::pair<Outcome, DeviceImage>> Cut(size_t command) const;
  };

  Result<const Prepared*> Prepare(Start start, Fua fua);
  Status MakeFiles(Prepared& prepared);
  Result<Run> Record(const Variant& variant, const Sequence& sequence);
  // Recovers `image`. OK if the result satisfies the oracle.
  Status Check(const DeviceImage& image, const model::Oracle& oracle, uint32_t depth);
  // The same without either copy of the metadata, if there are two.
  Status CheckWithoutCopies(const DeviceImage& image, const model::Oracle& oracle);
  Status CheckAgain(const DeviceImage& image, const std::vector<Command>& commands, const DeviceImage& end,
                    const model::Oracle& oracle);

  const uint32_t depth_;
  const bool loses_copies_;
  std::map<std::pair<Start, Fua>, Prepared> prepared_;
  Report report_;
};

}  // namespace isozone::crash
