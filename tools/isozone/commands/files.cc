// ls, stat, cat, rm: the commands that name files.
#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/aligned_buffer.h"
#include "isozone/command.h"
#include "isozone/output/report.h"
#include "isozone/output/table.h"
#include "isozone/path.h"
#include "isozone/session.h"

namespace isozone::cli {
namespace {

constexpr size_t kExtentsShown = 40;
constexpr size_t kZonesShown = 8;

struct LsArguments {
  std::string device;
  std::string path = "/";
  bool long_format = false;
  bool recursive = false;
  bool json = false;
};

struct Listing {
  std::string directory;
  std::vector<DirectoryEntry> entries;  // by name
};

Status Collect(FileSystem& file_system, const std::string& directory, bool recursive, std::vector<Listing>& listings) {
  ISOZONE_ASSIGN_OR_RETURN(std::vector<DirectoryEntry> entries, file_system.List(directory));
  std::ranges::sort(entries, {}, &DirectoryEntry::name);
  listings.push_back({directory, entries});
  if (!recursive) return Status::Ok();
  for (const DirectoryEntry& entry : entries) {
    if (!entry.attributes.is_directory) continue;
    const Status collected = Collect(file_system, JoinPath(directory, entry.name), recursive, listings);
    if (!collected.Is(StatusCode::kNotFound)) ISOZONE_RETURN_IF_ERROR(collected);  // else it was removed meanwhile
  }
  return Status::Ok();
}

Result<std::vector<Listing>> ListingsOf(FileSystem& file_system, const LsArguments& arguments) {
  ISOZONE_ASSIGN_OR_RETURN(const FileAttributes attributes, file_system.Stat(arguments.path));
  std::vector<Listing> listings;
  if (attributes.is_directory) {
    ISOZONE_RETURN_IF_ERROR(Collect(file_system, arguments.path, arguments.recursive, listings));
  } else {
    listings.push_back({ParentPath(arguments.path), {{BaseName(arguments.path), attributes}}});
  }
  return listings;
}

Result<Json> ListingsJson(FileSystem& file_system, const std::vector<Listing>& listings) {
  Json files = Json::array();
  for (const Listing& listing : listings) {
    for (const DirectoryEntry& entry : listing.entries) {
      const std::string path = JoinPath(listing.directory, entry.name);
      const Result<uint64_t> allocated = file_system.state().AllocatedBytes(path);
      if (allocated.status().Is(StatusCode::kNotFound)) continue;  // it was removed meanwhile
      ISOZONE_RETURN_IF_ERROR(allocated.status());
      Json file = {{"path", path}};
      file.update(AttributesJson(entry.attributes, *allocated));
      files.push_back(std::move(file));
    }
  }
  return files;
}

void PrintLong(const Listing& listing, Console& console) {
  using Align = Table::Align;
  Table table({{"KIND"},
               {"LIFETIME"},
               {"MODE"},
               {"USER", Align::kRight},
               {"GROUP", Align::kRight},
               {"LINKS", Align::kRight},
               {"SIZE", Align::kRight},
               {"MODIFIED (UTC)"},
               {"NAME"}});
  for (const auto& [name, attributes] : listing.entries) {
    const bool directory = attributes.is_directory;
    const bool regular = attributes.type == InodeType::kRegular;
    table.AddRow({std::string(regular ? FileKindName(attributes.kind) : TypeName(attributes.type)),
                  regular ? std::string(LifetimeName(attributes.lifetime)) : "", fmt::format("{:04o}", attributes.mode),
                  std::to_string(attributes.user), std::to_string(attributes.group), std::to_string(attributes.links),
                  directory ? "" : std::to_string(attributes.size), FormatTime(attributes.modified_s),
                  Printable(name) + (directory ? "/" : "")});
  }
  table.Print(console);
}

void PrintShort(const Listing& listing, Console& console) {
  for (const auto& [name, attributes] : listing.entries) {
    console.Print("{}\n",
                  attributes.is_directory ? console.Paint(Color::kBlue, Printable(name)) + "/" : Printable(name));
  }
}

Status Ls(const LsArguments& arguments, Console& console) {
  ISOZONE_ASSIGN_OR_RETURN(const auto file_system, MountByUri(arguments.device, OpenMode::kReadOnly));
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<Listing> listings, ListingsOf(*file_system, arguments));
  if (arguments.json) {
    ISOZONE_ASSIGN_OR_RETURN(const Json files, ListingsJson(*file_system, listings));
    console.PrintJson(files);
    return Status::Ok();
  }
  for (const Listing& listing : listings) {
    if (arguments.recursive)
      console.Print("{}{}:\n", &listing == &listings.front() ? "" : "\n", Printable(listing.directory));
    arguments.long_format ? PrintLong(listing, console) : PrintShort(listing, console);
  }
  return Status::Ok();
}

struct StatArguments {
  std::string device;
  std::string path;
  bool all = false;  // extents
  bool json = false;
};

// The file's names and extents; empty for a directory.
Result<FileDetails> DetailsOf(const FileSystem& file_system, const FileAttributes& attributes) {
  FileDetails found;
  ISOZONE_RETURN_IF_ERROR(file_system.state().VisitFiles([&](const FileDetails& details) {
    if (details.attributes.inode == attributes.inode) found = details;
  }));
  return found;
}

// "3 (1.0 MiB), 4 (512.0 KiB)": the zone numbers, and what lies in each.
std::string ZonesText(const std::vector<ZoneOfFile>& zones, bool all) {
  std::string text;
  const size_t shown = all ? zones.size() : std::min(zones.size(), kZonesShown);
  for (const ZoneOfFile& zone : std::span(zones).first(shown)) {
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", zone.zone.value(), FormatSize(zone.bytes));
  }
  if (shown < zones.size()) text += fmt::format(", and {} more: --all", zones.size() - shown);
  return text;
}

void PrintStat(const std::string& path, const FileAttributes& attributes, const FileDetails& details,
               const std::vector<ZoneOfFile>& zones, const DeviceGeometry& geometry, bool all, Console& console) {
  Facts facts(Printable(path));
  const bool regular = attributes.type == InodeType::kRegular;
  facts.Add("Type",
            regular ? fmt::format("file, {}", FileKindName(attributes.kind)) : std::string(TypeName(attributes.type)));
  facts.Add("Inode", std::to_string(attributes.inode));
  facts.Add("Size", fmt::format("{} bytes ({})", attributes.size, FormatSize(attributes.size)));
  facts.Add("Allocated", fmt::format("{} bytes", details.allocated));
  const uint64_t on_device = details.extents.end_offset();
  if (attributes.kind == FileKind::kLog && on_device < attributes.size) {
    facts.Add("In memory",
              fmt::format("{} bytes at the end, which the device does not have yet", attributes.size - on_device));
  }
  if (!zones.empty()) facts.Add("Zones", ZonesText(zones, all));
  facts.Add("Lifetime", std::string(LifetimeName(attributes.lifetime)));
  if (attributes.level != DataClass::kNoLevel) facts.Add("Level", std::to_string(attributes.level));
  facts.Add("Mode", fmt::format("{:04o}", attributes.mode));
  facts.Add("Owner", fmt::format("user {}, group {}", attributes.user, attributes.group));
  facts.Add("Modified", FormatTime(attributes.modified_s) + " UTC");
  facts.Add("Changed", FormatTime(attributes.changed.s) + " UTC");
  facts.Add("Links", std::to_string(attributes.links));
  for (const std::string& name : details.paths) {
    if (details.paths.size() > 1) facts.Add("Name", Printable(name));
  }
  facts.Print(console);
  if (details.extents.empty()) return;

  using Align = Table::Align;
  Table table({{"FILE OFFSET", Align::kRight},
               {"LENGTH", Align::kRight},
               {"ZONE", Align::kRight},
               {"OFFSET IN ZONE", Align::kRight}});
  const uint64_t shown = all ? details.extents.size() : std::min<uint64_t>(details.extents.size(), kExtentsShown);
  auto next = details.extents.begin();
  for (uint64_t i = 0; i < shown; ++i, ++next) {
    const FileExtent extent = *next;
    const bool hole = extent.is_hole();
    table.AddRow({std::to_string(extent.file_offset), std::to_string(extent.length),
                  hole ? "hole" : std::to_string(geometry.ZoneOf(extent.device_offset).value()),
                  hole ? "" : std::to_string(geometry.OffsetInZone(extent.device_offset))});
  }
  table.Print(console);
  if (shown < details.extents.size()) console.Print("{} more extents: --all\n", details.extents.size() - shown);
}

Status Stat(const StatArguments& arguments, Console& console) {
  ISOZONE_ASSIGN_OR_RETURN(const auto file_system, MountByUri(arguments.device, OpenMode::kReadOnly));
  ISOZONE_ASSIGN_OR_RETURN(const FileAttributes attributes, file_system->Stat(arguments.path));
  ISOZONE_ASSIGN_OR_RETURN(const FileDetails details, DetailsOf(*file_system, attributes));
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<ZoneOfFile> zones, file_system->state().ZonesOf(arguments.path));
  const DeviceGeometry& geometry = file_system->state().device().geometry();
  if (!arguments.json) {
    PrintStat(arguments.path, attributes, details, zones, geometry, arguments.all, console);
    return Status::Ok();
  }
  Json document = {{"path", arguments.path}};
  document.update(AttributesJson(attributes, details.allocated));
  document["paths"] = details.paths;
  document["zones"] = Json::array();
  for (const ZoneOfFile& zone : zones) document["zones"].push_back(ZoneOfFileJson(zone));
  document["extents"] = Json::array();
  for (const FileExtent extent : details.extents) document["extents"].push_back(ExtentJson(extent, geometry));
  console.PrintJson(document);
  return Status::Ok();
}

struct PathsArguments {
  std::string device;
  std::vector<std::string> paths;
  bool recursive = false;
};

Status CatFile(FileSystem& file_system, const std::string& path, Console& console) {
  ISOZONE_ASSIGN_OR_RETURN(const auto reader, file_system.OpenForRead(path));
  AlignedBuffer buffer(1 * kMiB);
  for (uint64_t offset = 0;;) {
    ISOZONE_ASSIGN_OR_RETURN(const size_t length, reader->Read(offset, buffer.span(), IoClass::kOther));
    if (length == 0) return Status::Ok();
    console.Write({reinterpret_cast<const char*>(buffer.data()), length});
    ISOZONE_RETURN_IF_ERROR(console.Flush());
    offset += length;
  }
}

Status Cat(const PathsArguments& arguments, Console& console) {
  ISOZONE_ASSIGN_OR_RETURN(const auto file_system, MountByUri(arguments.device, OpenMode::kReadOnly));
  for (const std::string& path : arguments.paths) ISOZONE_RETURN_IF_ERROR(CatFile(*file_system, path, console));
  return Status::Ok();
}

Status RemoveTree(FileSystem& file_system, const std::string& directory) {
  ISOZONE_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, file_system.List(directory));
  for (const DirectoryEntry& entry : entries) {
    const std::string path = JoinPath(directory, entry.name);
    ISOZONE_RETURN_IF_ERROR(entry.attributes.is_directory ? RemoveTree(file_system, path) : file_system.Unlink(path));
  }
  return file_system.RemoveDirectory(directory);
}

// Everything is checked before anything is removed.
Status CheckRemovable(FileSystem& file_system, const PathsArguments& arguments) {
  for (const std::string& path : arguments.paths) {
    ISOZONE_ASSIGN_OR_RETURN(const FileAttributes attributes, file_system.Stat(path));
    if (BaseName(path).empty())
      return Status::InvalidArgument("the root directory cannot be removed; name what is in it");
    if (attributes.is_directory && !arguments.recursive) {
      return Status::IsDirectory(path + " is a directory; give -r to remove it with everything in it");
    }
  }
  return Status::Ok();
}

Status Rm(const PathsArguments& arguments, Console& /*console*/) {
  ISOZONE_ASSIGN_OR_RETURN(const auto file_system, MountByUri(arguments.device, OpenMode::kReadWrite));
  ISOZONE_RETURN_IF_ERROR(CheckRemovable(*file_system, arguments));
  for (const std::string& path : arguments.paths) {
    const auto attributes = file_system->Stat(path);
    if (attributes.status().Is(StatusCode::kNotFound)) continue;  // it went with a path before it
    ISOZONE_RETURN_IF_ERROR(attributes.status());
    ISOZONE_RETURN_IF_ERROR(attributes->is_directory ? RemoveTree(*file_system, path) : file_system->Unlink(path));
  }
  ISOZONE_RETURN_IF_ERROR(file_system->SyncMetadata());
  return file_system->Unmount();
}

void AddPaths(CLI::App& app, std::vector<std::string>& paths) {
  app.add_option("PATH", paths, "Absolute paths on the device")->required()->option_text("...");
}

Action DefineLs(CLI::App& app) {
  auto arguments = std::make_shared<LsArguments>();
  AddDeviceArgument(app, arguments->device);
  app.add_option("PATH", arguments->path, "Absolute path on the device; / if none is given")->option_text(" ");
  app.add_flag("-l,--long", arguments->long_format, "Kind, lifetime, links, size and time, too");
  app.add_flag("-R,--recursive", arguments->recursive, "All directories below, too");
  AddJsonFlag(app, arguments->json);
  return [arguments](Console& console) { return Ls(*arguments, console); };
}

Action DefineStat(CLI::App& app) {
  auto arguments = std::make_shared<StatArguments>();
  AddDeviceArgument(app, arguments->device);
  app.add_option("PATH", arguments->path, "Absolute path on the device")->required()->option_text(" ");
  app.add_flag("--all", arguments->all,
               fmt::format("Every zone and extent, not only the first {} and {}", kZonesShown, kExtentsShown));
  AddJsonFlag(app, arguments->json);
  return [arguments](Console& console) { return Stat(*arguments, console); };
}

Action DefineCat(CLI::App& app) {
  auto arguments = std::make_shared<PathsArguments>();
  AddDeviceArgument(app, arguments->device);
  AddPaths(app, arguments->paths);
  return [arguments](Console& console) { return Cat(*arguments, console); };
}

Action DefineRm(CLI::App& app) {
  auto arguments = std::make_shared<PathsArguments>();
  AddDeviceArgument(app, arguments->device);
  AddPaths(app, arguments->paths);
  app.add_flag("-r,--recursive", arguments->recursive, "Directories with everything in them");
  return [arguments](Console& console) { return Rm(*arguments, console); };
}

}  // namespace

extern const Command kLsCommand = {"ls", "List a directory", "  isozone ls -l emu:/data/ssd.img /db", DefineLs};

extern const Command kStatCommand = {"stat", "Show a file's attributes and where it lies",
                                     "  isozone stat emu:/data/ssd.img /db/000012.sst", DefineStat};

extern const Command kCatCommand = {"cat", "Write files to standard output",
                                    "  isozone cat emu:/data/ssd.img /db/CURRENT", DefineCat};

extern const Command kRmCommand = {"rm", "Remove files and directories", "  isozone rm -r emu:/data/ssd.img /db",
                                   DefineRm};

}  // namespace isozone::cli
