#!/usr/bin/env python3
"""Breaks the backends for block devices and zonefs, one way after another, and expects the tests to notice each time.

    mutants_test.py BUILD_DIRECTORY

A mutant is one source file with a few characters changed. It is compiled as the build compiles that file, and linked in
front of the library in each test program, so that its functions take the place of the right ones.
"""

import json
import os
import shlex
import subprocess
import sys
import tempfile
import unittest
from dataclasses import dataclass

BUILD = os.path.abspath(sys.argv.pop(1))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOURCES = os.path.join(ROOT, "src", "device")
# The programs that must notice, and which of their tests are of the backend.
TESTS = {"src/device/isozone_device_test": "LinuxDevice*:ZoneLayout*:QueueFacts*:KernelErrors*:*ZonefsKernel*",
         "tests/device/device_conformance_test": "*/Disk*:*/Zonefs*"}


@dataclass(frozen=True)
class Mutant:
    name: str
    file: str
    right: str
    wrong: str


MUTANTS = (
    Mutant("Force Unit Access is dropped", "linux/linux_device.cc",
           "&& request.fua && facts_.durable == DurableWrites::kForced", "&& false"),
    Mutant("no flush follows a forced write", "linux/linux_device.cc",
           "if (!is_flush && request.fua && facts_.durable == DurableWrites::kFlushed)", "if (false)"),
    Mutant("a flush is not sent", "linux/linux_device.cc",
           "if (read_only() || facts_.durable == DurableWrites::kAlways)", "if (true)"),
    Mutant("a second write goes to a zone", "linux/zone_book.cc",
           "if (zone.writing) return DeviceStatus::kZoneInvalidWrite;", ""),
    Mutant("appends do not wait", "linux/zone_book.cc",
           "waits = zone.writing || (zone.appends != nullptr && !zone.appends->empty());", "waits = false;"),
    Mutant("a reset that is noted late takes back a write", "linux/zone_book.cc",
           "const bool overtaken = zone.version != version;", "const bool overtaken = false;"),
    Mutant("a zone that does not report is written", "linux/linux_device.cc",
           "if (!book_.IsInDoubt(ZoneOf(request))) return StartWrite(request);", "return StartWrite(request);"),
    Mutant("a write may begin anywhere", "linux/zone_book.cc",
           "if (offset != zone.written.load(std::memory_order_relaxed)) return DeviceStatus::kZoneInvalidWrite;", ""),
    Mutant("limits of zones are ignored", "linux/zone_layout.cc", ".max_active_zones = facts.max_active_zones,",
           ".max_active_zones = 0,"),
    Mutant("memory is aligned to a block that is larger than a page", "linux/queue_facts.cc",
           "if (logical_block <= kPage) return logical_block;", "return logical_block;"),
    Mutant("transfers are longer than the kernel sends in one part", "linux/queue_facts.cc",
           "std::min(sectors_kb * kKiB, pages * kPage)", "sectors_kb * kKiB * 64"),
    Mutant("a failed write is taken to have stored nothing", "linux/linux_device.cc",
           "learnt = book_.Relearn(zone, version);",
           "zone.write_pointer = 0; learnt = book_.Relearn(zone, version);"),
    Mutant("what lies behind the write pointer is not zero", "linux/linux_device.cc",
           "std::memset(request.data + stored, 0, request.length - stored);", ""),
    Mutant("conventional zones are used", "linux/zone_layout.cc", "if (!IsSequential(zone)) {", "if (false) {"),
    Mutant("a large zone stays active", "linux/linux_device.cc", "if (fills && layout_.IsLarge(ZoneOf(request)))",
           "if (false)"),
    Mutant("a large zone that a crash left stays active", "linux/linux_device.cc",
           "finishes_first_ = !left_active_.empty();", ""),
    Mutant("a range is reset from its second zone on", "linux/linux_device.cc",
           "kernel_->Manage(ZoneCommand::kReset, first, taken.size() * zone_size)",
           "kernel_->Manage(ZoneCommand::kReset, first + (taken.size() > 1 ? zone_size : 0), "
           "std::max<size_t>(taken.size() - 1, 1) * zone_size)"),
    Mutant("a device that is gone is asked again", "linux/linux_device.cc",
           "is_gone_.store(true, std::memory_order_relaxed);", ""),
    Mutant("more files are open for writing than zones may be open", "zonefs/zonefs_kernel.cc",
           "if (!files.Reserve()) return writes && limits_.max_open_zones != 0 ? ETOOMANYREFS : EMFILE;",
           "files.Reserve();"),
    Mutant("a file that is written is closed for another", "zonefs/open_files.cc",
           "if (entry->second.kept || entry->second.file.use_count() > 1) continue;", ""),
    Mutant("a flush ends with the zone by which it goes", "zonefs/zonefs_kernel.cc",
           "asked.kind == KernelTransfer::Kind::kFlush && result == -EPERM", "false"),
    Mutant("a read-only zone of zonefs is an open one", "zonefs/zonefs_kernel.cc",
           "} else if ((status.mode & kMayWrite) == 0) {", "} else if (false) {"),
    Mutant("a zone of zonefs is finished by a reset", "zonefs/zonefs_kernel.cc",
           "command == ZoneCommand::kReset ? 0 : capacities_[zone]", "0"),
)


def compile_command(path: str) -> list[str]:
    """How the build compiles the file, alone or in a batch, up to the names of the files."""
    with open(os.path.join(BUILD, "compile_commands.json"), encoding="utf-8") as file:
        entries = json.load(file)
    for entry in entries:
        source = entry["file"]
        if os.sep + "Unity" + os.sep in source:
            with open(source, encoding="utf-8") as batch:
                found = path in batch.read()
        else:
            found = source == path
        if found:
            words = shlex.split(entry["command"])
            # The compiler comes behind the cache, which needs settings of its own.
            begin = next(at for at, word in enumerate(words) if word.startswith("-D") or word.startswith("-I")) - 1
            return words[begin:words.index("-o")]
    raise AssertionError(f"the build does not compile {path}")


def link_command(target: str) -> list[str]:
    commands = subprocess.run(["ninja", "-C", BUILD, "-t", "commands", "-s", target], capture_output=True, text=True,
                              check=True).stdout
    return shlex.split(next(part for part in reversed(commands.split("&&")) if " -o " in part))


class Mutants(unittest.TestCase):
    def build(self, mutant: Mutant, scratch: str) -> str:
        path = os.path.join(SOURCES, mutant.file)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertEqual(1, text.count(mutant.right), f"{mutant.file} has not exactly one '{mutant.right}'")
        changed = os.path.join(scratch, os.path.basename(mutant.file))
        with open(changed, "w", encoding="utf-8") as file:
            file.write(text.replace(mutant.right, mutant.wrong))
        command = [word for word in compile_command(path) if word != "-Werror" and not word.startswith("-M")]
        subprocess.run([*command, "-w", "-O0", "-o", changed + ".o", "-c", changed], check=True, cwd=BUILD)
        return changed + ".o"

    def notices(self, mutant: str, target: str, scratch: str) -> bool:
        program = os.path.join(scratch, os.path.basename(target))
        words = link_command(target)
        output = words.index("-o")
        words = [*words[:output], "-Wl,--allow-multiple-definition", "-o", program, mutant, *words[output + 2:]]
        subprocess.run(words, check=True, cwd=BUILD, stderr=subprocess.DEVNULL)
        try:
            return subprocess.run([program, f"--gtest_filter={TESTS[target]}"], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, timeout=60).returncode != 0
        except subprocess.TimeoutExpired:
            return True

    def test_every_mutant_is_noticed(self) -> None:
        for mutant in MUTANTS:
            with self.subTest(mutant=mutant.name), tempfile.TemporaryDirectory() as scratch:
                built = self.build(mutant, scratch)
                self.assertTrue(any(self.notices(built, target, scratch) for target in TESTS), "no test notices it")

    def test_without_a_mutant_the_tests_pass(self) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            same = "void LinuxDevice::Read("
            built = self.build(Mutant("none", "linux/linux_device.cc", same, same), scratch)
            for target in TESTS:
                self.assertFalse(self.notices(built, target, scratch), target)


if __name__ == "__main__":
    unittest.main()
