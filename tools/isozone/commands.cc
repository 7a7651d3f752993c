#include <array>

#include "isozone/command.h"

namespace isozone::cli {
namespace {

constexpr auto kCommands = std::to_array<Command>({
    {"mkfs", "Format a device, making its image if there is none",
     "  isozone mkfs 'emu:/data/ssd.img?profile=small-zone&zones=1024' --label database", DefineMkfs},
    {"info", "Show what a device is, its limits and counters, and the file system on it",
     "  isozone info emu:/data/ssd.img", DefineInfo},
    {"df", "Show how much space is used and free", "  isozone df emu:/data/ssd.img --json", DefineDf},
    {"ls", "List a directory", "  isozone ls -l emu:/data/ssd.img /db", DefineLs},
    {"stat", "Show a file's attributes and where it lies", "  isozone stat emu:/data/ssd.img /db/000012.sst",
     DefineStat},
    {"cat", "Write files to standard output", "  isozone cat emu:/data/ssd.img /db/CURRENT", DefineCat},
    {"cp", "Copy files into, out of and within a device",
     "  isozone cp -r emu:/data/ssd.img backup :/db      (in: the device's paths begin with ':')\n"
     "  isozone cp emu:/data/ssd.img :/db/LOG .          (out)",
     DefineCp},
    {"rm", "Remove files and directories", "  isozone rm -r emu:/data/ssd.img /db", DefineRm},
    {"backup", "Copy everything on a device into a folder or an archive, also beside a running writer",
     "  isozone backup emu:/data/ssd.img /backups/ssd       (again later: only what has changed is copied)\n"
     "  isozone backup emu:/data/ssd.img - | zstd > ssd.tar.zst\n"
     "  isozone backup --verify /backups/ssd",
     DefineBackup},
    {"restore", "Write a backup onto a formatted device",
     "  isozone restore /backups/ssd emu:/data/new.img\n"
     "  isozone restore - emu:/data/new.img < ssd.tar.zst",
     DefineRestore},
    {"import", "Copy the files of a ZenFS device", "  isozone import dev:/dev/nvme0n2 dev:/dev/nvme1n2", DefineImport},
    {"zones", "Draw the map of the zones",
     "  isozone zones emu:/data/ssd.img --svg zones.svg\n"
     "  isozone zones emu:/data/ssd.img --table\n"
     "  isozone zones emu:/data/ssd.img --zone 12",
     DefineZones},
    {"fsck", "Check every invariant of the file system, changing nothing",
     "  isozone fsck --read-data emu:/data/ssd.img", DefineFsck},
    {"dump", "Write all metadata as JSON",
     "  isozone dump emu:/data/ssd.img | jq '.files[] | select(.size > 1e6) | .paths'", DefineDump},
    {"izg", "Find and show the independent zone groups: which zones share hardware",
     "  isozone izg identify emu:/data/ssd.img\n"
     "  isozone izg show emu:/data/ssd.img --svg groups.svg",
     DefineIzg},
    {"gc", "Collect garbage, and show what there is of it",
     "  isozone gc run emu:/data/ssd.img --until 30\n"
     "  isozone gc status emu:/data/ssd.img\n"
     "  isozone gc plan emu:/data/ssd.img --all --scheme lifetime",
     DefineGc},
    {"bench", "Measure a device: zone interference, throughput and latency",
     "  isozone bench device emu:/data/ssd.img --svg interference.svg\n"
     "  isozone bench io emu:/data/ssd.img --depth 32",
     DefineBench},
    {"stats", "Show what the process that has a device mounted does",
     "  isozone stats emu:/data/ssd.img\n"
     "  isozone stats emu:/data/ssd.img --json --watch\n"
     "  isozone stats emu:/data/ssd.img --prometheus",
     DefineStats},
    {"top", "Show the same on the whole terminal, again and again", "  isozone top emu:/data/ssd.img", DefineTop},
    {"serve", "Serve metrics for Prometheus, and a live map of the zones for browsers",
     "  isozone serve emu:/data/ssd.img                              (http://127.0.0.1:9464)\n"
     "  isozone serve --listen [::1]:8080 dev:/dev/nvme0n2 dev:/dev/nvme1n2",
     DefineServe},
    {"advise", "Give options of RocksDB that fit a device, each with its reason",
     "  isozone advise emu:/data/ssd.img --memory 8G --workload write --database 500G --output options.ini",
     DefineAdvise},
    {"why", "Show where space has gone, and what gives it back", "  isozone why emu:/data/ssd.img", DefineWhy},
    {"mount", "Show the file system of a device as a directory, for programs that know nothing of Isozone",
     "  isozone mount -o allow_other dev:/dev/nvme0n2 /mnt/db\n  umount /mnt/db", DefineMount},
    {"run", "Run a program whose RocksDB keeps a directory on a device",
     "  isozone run --map /var/lib/app=dev:/dev/nvme0n2 -- app --data /var/lib/app/db", DefineRunProgram},
    {"export", "Serve a device as a zoned block device of the kernel, /dev/ublkbN",
     "  isozone export emu:/data/ssd.img              (until SIGINT or SIGTERM)\n"
     "  isozone export emu:/data/ssd.img --id 0 --recover\n"
     "  isozone export --remove 0",
     DefineExport},
    {"simulate", "Tell what a device would do under a load, in virtual time",
     "  isozone simulate --data 40G --phase sequential --phase zipfian:80G --zones 1024\n"
     "  isozone simulate --profile ll-paper --compaction ll --policy level --data 8G --phase shuffled",
     DefineSimulate},
});

}  // namespace

std::span<const Command> Commands() { return kCommands; }

}  // namespace isozone::cli
