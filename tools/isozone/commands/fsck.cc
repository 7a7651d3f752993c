#include "store/mount/fsck.h"

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "isozone/command.h"
#include "isozone/output/progress.h"
#include "isozone/output/report.h"
#include "isozone/session.h"

namespace isozone::cli {
namespace {

struct FsckArguments {
  std::string device;
  bool read_data = false;
  bool repair = false;
  bool json = false;
};

// Opens the device as its only writer, so that nothing changes meanwhile; read-only if it may only be read.
Result<OpenedDevice> OpenAlone(const std::string& uri) {
  auto opened = OpenByUri(uri, OpenMode::kReadWrite);
  const Status status = opened.status();
  if (!status.Is(StatusCode::kPermissionDenied) && !status.Is(StatusCode::kReadOnly)) return opened;
  return OpenByUri(uri, OpenMode::kReadOnly);
}

// Mounts the device, which writes missing or damaged copies of the metadata again. What is left of it may be older than
// what was lost: then a warning says so.
Status Repair(const std::string& uri) {
  ISOZONE_ASSIGN_OR_RETURN(OpenedDevice opened, OpenByUri(uri, OpenMode::kReadWrite));
  opened.mount_options.accept_older_metadata = true;
  ISOZONE_ASSIGN_OR_RETURN(const auto file_system, MountOpened(std::move(opened)));
  ISOZONE_RETURN_IF_ERROR(file_system->state().RestoreMetadataCopies());
  return file_system->Unmount();
}

Result<FsckReport> RunFsck(const OpenedDevice& opened, bool read_data) {
  Progress progress("checking", 0, Progress::Unit::kBytes);
  FsckOptions options;
  options.read_data = read_data;
  options.kept_memory_directory = opened.mount_options.kept_memory_directory;
  options.progress = [&progress](uint64_t done, uint64_t total) { progress.Update(done, total); };
  return Fsck(*opened.device, options);
}

void PrintReport(const FsckReport& report, Console& console) {
  for (const FsckFinding& finding : report.findings) {
    const bool error = finding.severity == FsckSeverity::kError;
    console.Print("{}  {}\n", error ? console.Paint(Color::kRed, "error") : console.Paint(Color::kGrey, "note "),
                  Printable(finding.text));
  }
  if (report.copies_wanted > 0) {
    console.Print("{} of {} copies of the metadata are whole, in zones {}\n", report.copies.size(),
                  report.copies_wanted, CopiesText(report.copies));
  }
  console.Print("{} files, {} directories, {} extents, {} in files; {} checkpoint inodes, {} journal records: {}\n",
                report.files, report.directories, report.extents, FormatSize(report.file_bytes),
                report.checkpoint_inodes, report.journal_records,
                report.clean() ? console.Paint(Color::kGreen, "clean") : console.Paint(Color::kRed, "damaged"));
}

Json ReportJson(const FsckReport& report) {
  Json findings = Json::array();
  for (const FsckFinding& finding : report.findings) {
    findings.push_back(
        {{"severity", finding.severity == FsckSeverity::kError ? "error" : "note"}, {"text", finding.text}});
  }
  return {{"clean", report.clean()},
          {"files", report.files},
          {"directories", report.directories},
          {"extents", report.extents},
          {"file_bytes", report.file_bytes},
          {"checkpoint_inodes", report.checkpoint_inodes},
          {"journal_records", report.journal_records},
          {"metadata", MetadataJson({report.copies_wanted, report.copies})},
          {"findings", std::move(findings)}};
}

// Says what to do: a repair, unless there is an error that it leaves.
Status Damage(std::span<const FsckFinding> findings) {
  const auto errors = std::ranges::count(findings, FsckSeverity::kError, &FsckFinding::severity);
  const bool mends_all = std::ranges::all_of(
      findings, [](const FsckFinding& f) { return f.severity != FsckSeverity::kError || f.repairable; });
  return Status::Corruption(fmt::format(
      "{} of the invariants checked do not hold; {}", errors,
      mends_all ? "isozone fsck --repair mends that" : "copy out with isozone cp what still reads, then format"));
}

Status RunAndReport(const FsckArguments& arguments, Console& console) {
  if (arguments.repair) ISOZONE_RETURN_IF_ERROR(Repair(arguments.device));
  ISOZONE_ASSIGN_OR_RETURN(const OpenedDevice opened, OpenAlone(arguments.device));
  auto report = RunFsck(opened, arguments.read_data);
  if (!report.ok()) {
    const Status& status = report.status();
    return status.Is(StatusCode::kNotFound) ? Status::NotSupported(std::string(status.message())) : status;
  }
  arguments.json ? console.PrintJson(ReportJson(*report)) : PrintReport(*report, console);
  if (report->clean()) return Status::Ok();
  return Damage(report->findings);
}

Action DefineFsck(CLI::App& app) {
  auto arguments = std::make_shared<FsckArguments>();
  AddDeviceArgument(app, arguments->device);
  app.add_flag("--read-data", arguments->read_data, "Read every block of every file, too");
  app.add_flag("--repair", arguments->repair,
               "First replace missing or damaged copies of the metadata, from what is left of it");
  AddJsonFlag(app, arguments->json);
  return [arguments](Console& console) { return RunAndReport(*arguments, console); };
}

}  // namespace

extern const Command kFsckCommand = {"fsck", "Check every invariant of the file system, changing nothing",
                                     "  isozone fsck --read-data emu:/data/ssd.img", DefineFsck};

}  // namespace isozone::cli
