// why: where the space of a device has gone, part by part, what gives each part back, and which readers hold some.
//
// Zones are as the process that has the device mounted sees them (its statistics page), or else as they are on the
// device. What the files in them are comes from the metadata on the device, which a read-only mount reads beside a
// writer. So data that the process counts as live and that no file on the device has is known as such.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "insight/advice/space_account.h"
#include "isozone/command.h"
#include "isozone/output/report.h"
#include "isozone/session.h"
#include "isozone/statistics_source.h"
#include "store/mount/statistics_at_rest.h"
#include "store/pins/pinning_readers.h"

namespace isozone::cli {
namespace {

struct WhyArguments {
  std::string device;
  bool json = false;
};

struct Why {
  SpaceAccount account;
  std::vector<std::string> remarks;
  std::string device;
  std::string source;  // one line for a person: whose view this is
  bool mounted = false;
};

// Adds the sizes of files with a name, zone by zone.
Status AddFiles(const FileSystemState& state, std::vector<ZoneSpace>& zones) {
  for (uint32_t i = 0; i < zones.size(); ++i) {
    ZoneSpace& zone = zones[i];
    if (zone.written == 0 || zone.use == ZoneUse::kMetadata || zone.phase == ZonePhase::kOffline) continue;
    ISOZONE_ASSIGN_OR_RETURN(const std::vector<FileInZone> files, state.FilesIn(ZoneId(i)));
    for (const FileInZone& file : files) {
      zone.named[static_cast<size_t>(FileGroupOf(file.paths))] += file.bytes;
    }
  }
  return Status::Ok();
}

std::vector<ZoneSpace> ZonesOf(const Statistics& statistics) {
  std::vector<ZoneSpace> zones;
  zones.reserve(statistics.zones.size());
  for (const PageZone& page : statistics.zones) {
    ZoneSpace zone;
    zone.phase = page.phase;
    zone.use = page.use;
    zone.lifetime = page.data.lifetime;
    zone.sealed = page.sealed;
    zone.capacity = statistics.zone_capacity;
    zone.written = uint64_t{page.write_pointer} * statistics.block_size;
    zone.live = uint64_t{page.live} * statistics.block_size;
    zones.push_back(zone);
  }
  // The oldest event comes first: a zone that was reset later is no finished one.
  for (const EventView& event : statistics.events) {
    if (event.zone >= zones.size()) continue;
    if (event.kind == PageEventKind::kFinish) zones[event.zone].finished_at = event.a;
    if (event.kind == PageEventKind::kReset) zones[event.zone].finished_at.reset();
  }
  return zones;
}

// Who keeps zones in which nothing lives from being used again.
Status AddReaders(const FileSystemState& state, const std::vector<ZoneSpace>& zones,
                  std::vector<std::string>& remarks) {
  const auto device = PageOwner::Of(state.device().name());
  if (!device.ok()) return Status::Ok();  // no other process knows it by a name
  ISOZONE_ASSIGN_OR_RETURN(const auto readers, FindPinningReaders(*device, state.options().kept_memory_directory,
                                                                  state.uuid(), static_cast<uint32_t>(zones.size())));
  for (const PinningReader& reader : readers) {
    uint64_t bytes = 0;
    uint64_t held = 0;
    for (uint32_t i = 0; i < zones.size(); ++i) {
      if (zones[i].live > 0 || zones[i].written == 0 || !reader.Pins(ZoneId(i))) continue;
      bytes += zones[i].written;
      ++held;
    }
    if (held == 0) continue;
    remarks.push_back(fmt::format(
        "Process {} ({}) reads files that were removed or moved. They hold {} in {} zones, which can be used "
        "again when it has closed them, or has ended. reader_hold= bounds what readers may hold.",
        reader.process.pid, Printable(reader.process.program), FormatSize(bytes), held));
  }
  return Status::Ok();
}

Result<Why> FindOut(const std::string& uri) {
  ISOZONE_ASSIGN_OR_RETURN(Look look, LookAt(uri));
  ISOZONE_ASSIGN_OR_RETURN(const std::unique_ptr<FileSystem> fs, MountByUri(uri, OpenMode::kReadOnly));
  Why why;
  why.mounted = look.statistics.life == PageLife::kMounted;
  // Of a process that is gone, only what is on the device still holds space.
  if (!why.mounted) look.statistics = StatisticsAtRest(*fs, Clock::Real());
  const Statistics& statistics = look.statistics;
  std::vector<ZoneSpace> zones = ZonesOf(statistics);
  ISOZONE_RETURN_IF_ERROR(AddFiles(fs->state(), zones));
  why.account = AccountSpace(zones, statistics.figures.reserved, statistics.block_size);
  why.remarks = RemarksOn(why.account, statistics.max_active_zones);
  ISOZONE_RETURN_IF_ERROR(AddReaders(fs->state(), zones, why.remarks));
  why.device = fs->state().device().name();
  why.source = why.mounted ? fmt::format("Process {} ({}) has it mounted and goes on meanwhile.",
                                         statistics.process.pid, Printable(statistics.process.program))
                           : "No process shows that it has it mounted: this is the state on the device.";
  return why;
}

Json WhyJson(const Why& why) {
  Json parts = Json::array();
  for (int i = 0; i < kSpacePartCount; ++i) {
    const auto part = static_cast<SpacePart>(i);
    const SpaceShare& share = why.account[part];
    const SpacePartText& text = DescribeSpacePart(part);
    parts.push_back({{"part", SpacePartName(part)},
                     {"bytes", share.bytes},
                     {"zones", share.zones},
                     {"meaning", text.meaning},
                     {"freed_by", text.freed}});
  }
  const SpaceAccount& account = why.account;
  return {{"device", why.device},
          {"mounted", why.mounted},
          {"capacity", account.capacity},
          {"live", account.live()},
          {"dead", account.dead()},
          {"writable", account.writable()},
          {"zones", {{"all", account.zones}, {"in_use", account.in_use}, {"partly_written", account.partly}}},
          {"parts", parts},
          {"remarks", why.remarks}};
}

// `text` in lines of at most `width` columns, each behind `indent`.
std::string Wrapped(std::string_view text, std::string_view indent, size_t width) {
  std::string lines;
  std::string line;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.empty() && indent.size() + line.size() + 1 + word.size() > width) {
      lines += fmt::format("{}{}\n", indent, line);
      line.clear();
    }
    if (!line.empty()) line += ' ';
    line += word;
  }
  return lines + fmt::format("{}{}\n", indent, line);
}

void Print(const Why& why, Console& console) {
  const SpaceAccount& account = why.account;
  console.Print("{}\n{}\n", console.Bold(Printable(why.device)), why.source);
  console.Print("{} in {} zones: {} live, {} dead, {} can be written.\n\n", FormatSize(account.capacity), account.zones,
                FormatSize(account.live()), FormatSize(account.dead()), FormatSize(account.writable()));
  const size_t width = std::clamp<size_t>(static_cast<size_t>(console.width()), 60, 120);
  const std::string indent(28, ' ');
  console.Print("{}\n", console.Bold("      SIZE    SHARE  ZONES  WHAT, AND WHAT GIVES IT BACK"));
  for (int i = 0; i < kSpacePartCount; ++i) {
    const auto part = static_cast<SpacePart>(i);
    const SpaceShare& share = account[part];
    if (share.bytes == 0) continue;
    const SpacePartText& text = DescribeSpacePart(part);
    console.Print("{:>10}  {:>7}  {:>5}  {}\n", FormatSize(share.bytes), FormatShare(share.bytes, account.capacity),
                  share.zones, console.Bold(text.title));
    console.Write(Wrapped(text.meaning, indent, width));
    console.Write(Wrapped(text.freed, indent, width));
  }
  console.Print("{:>10}  {:>7}  {:>5}  {}\n", FormatSize(account.capacity), "100.0 %", account.zones,
                console.Bold("All zones"));
  for (const std::string& remark : why.remarks) console.Print("\n{}", Wrapped(remark, "", width));
}

Status ExplainSpace(const WhyArguments& arguments, Console& console) {
  ISOZONE_ASSIGN_OR_RETURN(const Why why, FindOut(arguments.device));
  if (arguments.json) {
    console.PrintJson(WhyJson(why));
  } else {
    Print(why, console);
  }
  return Status::Ok();
}

Action DefineWhy(CLI::App& app) {
  auto arguments = std::make_shared<WhyArguments>();
  AddDeviceArgument(app, arguments->device);
  AddJsonFlag(app, arguments->json);
  return [arguments](Console& console) { return ExplainSpace(*arguments, console); };
}

}  // namespace

extern const Command kWhyCommand = {"why", "Show where space has gone, and what gives it back",
                                    "  isozone why emu:/data/ssd.img", DefineWhy};

}  // namespace isozone::cli
