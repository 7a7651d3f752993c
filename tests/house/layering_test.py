#!/usr/bin/env python3
"""Holds every #include in src/ against the order of the rooms: code in a room includes only that room and those below.
A room is a folder of a district (docs/architecture.md), or a district that has no order inside."""

import re
import unittest

import house

# From the lowest; names in one row do not know each other.
ORDER = [("base",), ("device/emulated/nand",), ("device/emulated/ftl",), ("device",), ("device/izg", "device/export"),
         ("store/zone", "store/io", "rocksdb/lsm"), ("store/zone/allocator", "insight/stats"),
         ("simulator", "store/gc", "insight/advice"), ("store/kept", "store/pins"), ("store",), ("store/space",),
         ("store/metadata",), ("store/file",), ("store/mount",), ("rocksdb/adapter", "fuse"),
         ("rocksdb/steering",), ("rocksdb/library",), ("testing",)]
RANK = {room: rank for rank, row in enumerate(ORDER) for room in row}
# Folders that are no room, but a part of the one above them.
PARTS = {"device/emulated": "device", "device/linux": "device", "device/zonefs": "device",
         "store/zone/published": "store/zone", "rocksdb/lsm/published": "rocksdb/lsm"}
# Rooms that are a library by themselves; all others of a district are one.
LIBRARIES = ("device/emulated/nand", "device/emulated/ftl", "device/izg", "device/export", "store/io", "store/zone",
             "store/gc", "rocksdb/lsm", "rocksdb/adapter", "rocksdb/steering", "insight/stats", "insight/advice")
# Decisions and models in virtual time: no threads, no clock, no I/O.
PURE = ("device/emulated/nand", "device/emulated/ftl", "store/zone", "store/zone/allocator", "rocksdb/lsm",
        "insight/advice", "simulator")
IMPURE_HEADER = re.compile(r"<(thread|condition_variable|future|mutex|shared_mutex|sys/.*|unistd\.h|fcntl\.h)>"
                           r"|\"base/(mutex|clock|latch)\.h\"")
# The libraries that get the time from a Clock that is handed in, and wait by it, so that tests can set it.
HANDED_A_CLOCK = ("store", "store/gc", "store/zone")
DIRECT_CLOCK = re.compile(r"\b(MonotonicNs|WallSeconds|RealClock|steady_clock|system_clock|clock_gettime)\b"
                          r"|\bClock::Real\(\)\.|(?<!clock)(?<!clock_)\.WaitUntil\(")
# A thread that cannot be had is a status (base/thread.h).
THREAD_MADE = re.compile(r"\bstd::(jthread|async)\b|\bstd::thread\s*[({]|threads?_?\.emplace(_back)?\(\[")
# What is live in a zone belongs to the metadata or to a SpaceClaim, and nobody else counts it.
LIVE_BYTES = re.compile(r"(\.|->)(AddLive|RemoveLive)\(")
LIVE_BYTES_USERS = ("src/store/space/space_claim.cc", "src/store/space/zone_pool.cc")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"][^>"]+[>"])', re.MULTILINE)
ROCKSDB_USERS = re.compile(r"^(include|src/rocksdb/(adapter|steering|library)|tests|bench|lab|examples)/")
# What tests share is for tests only. The tests of a library may use all of it, whatever the order inside.
TESTS = re.compile(r"^(src/testing|tests|fuzz)/|_test\.cc$|_test_util\.h$")


def room_of(path: str) -> str | None:
    """The room of a path below src/; None if it has no place in the order."""
    folder = path.rpartition("/")[0]
    folder = PARTS.get(folder, folder)
    return folder if folder in RANK else None


def library_of(room: str) -> str:
    own = [library for library in LIBRARIES if room == library or room.startswith(library + "/")]
    return own[0] if own else room.split("/")[0]


def may_include(room: str, target: str, is_test: bool) -> bool:
    if is_test and (target == "testing" or library_of(room) == library_of(target)):
        return True
    return target == room or RANK[target] < RANK[room]


def violations(path: str, text: str) -> list[str]:
    """What is wrong with the includes of the file `path` (relative to the repository) that contains `text`."""
    found = []
    is_test = TESTS.search(path) is not None
    in_src = path.startswith("src/") and path.count("/") > 1
    room = room_of(path.removeprefix("src/")) if in_src else None
    if in_src and room is None:
        return [f"{path}: {path.rpartition('/')[0]} has no place in the order"]
    library = library_of(room) if room else None
    if library in HANDED_A_CLOCK and not is_test and DIRECT_CLOCK.search(text):
        found.append(f"{path}: {library} gets the time from a Clock")
    if library == "store" and not is_test and path not in LIVE_BYTES_USERS and LIVE_BYTES.search(text):
        found.append(f"{path}: live bytes are a SpaceClaim's")
    makes_threads = path.startswith(("src/", "tools/")) and not is_test and path != "src/base/thread.cc"
    if makes_threads and THREAD_MADE.search(text):
        found.append(f"{path}: threads are made by StartThread")
    for included in INCLUDE.findall(text):
        name = included[1:-1]
        own = included[0] == '"'
        if name.startswith("rocksdb/") and not own and not ROCKSDB_USERS.match(path):
            found.append(f"{path}: only src/rocksdb may include {included}")
        target = room_of(name) if own else None
        if target == "testing" and not is_test:
            found.append(f"{path}: only tests may include {included}")
        if room is None:
            continue
        if own and "/" not in name:
            found.append(f"{path}: include {included} by its path from src/")
        if target is not None and not may_include(room, target, is_test):
            found.append(f"{path}: {room} must not include {included}")
        if room in PURE and not path.endswith("_test.cc") and IMPURE_HEADER.fullmatch(included):
            found.append(f"{path}: {room} is pure and must not include {included}")
    return found


class Layering(unittest.TestCase):
    def test_every_include_obeys_the_order(self) -> None:
        sources = [path for path in house.our_files() if path.endswith((".h", ".cc"))]
        self.assertGreater(len(sources), 0)
        found = [line for path in sources for line in violations(path, house.read(path))]
        self.assertEqual([], found, "\n" + "\n".join(found))

    def test_every_room_exists(self) -> None:
        folders = {path.removeprefix("src/").rpartition("/")[0] for path in house.our_files()
                   if path.startswith("src/")}
        self.assertEqual(set(), (set(RANK) | set(PARTS)) - folders)

    def test_violations_are_found(self) -> None:
        cases = {
            ("src/base/a.h", '#include "device/zoned_device.h"'): "base must not include",
            ("src/store/zone/a.cc", '#include "store/io/io_class.h"'): "zone must not include",
            ("src/rocksdb/lsm/a.h", '#include "store/zone/zone_table.h"'): "lsm must not include",
            ("src/rocksdb/lsm/a.cc", '#include "base/clock.h"'): "is pure",
            ("src/store/mount/a.cc", '#  include "rocksdb/adapter/file_class.h"'): "store/mount must not include",
            ("src/store/a.cc", "#include <rocksdb/env.h>"): "only src/rocksdb",
            ("src/rocksdb/lsm/a.cc", "#include <rocksdb/env.h>"): "only src/rocksdb",
            ("tools/isozone/a.cc", "#include <rocksdb/env.h>"): "only src/rocksdb",
            ("src/store/a.cc", '#include "journal.h"'): "by its path",
            ("src/device/emulated/nand/a.h", "#include <thread>"): "is pure",
            ("src/store/gc/a.cc", "now_ns = MonotonicNs();"): "from a Clock",
            ("src/store/file/a.cc", "modified_s = WallSeconds();"): "from a Clock",
            ("src/store/space/a.cc", "changed.WaitUntil(mu, until_ns);"): "from a Clock",
            ("src/store/zone/allocator/a.h", "Clock::Real().NowNs()"): "from a Clock",
            ("src/store/file/a.cc", "context_.pool->RemoveLive(zone, bytes);"): "a SpaceClaim's",
            ("src/store/io/a.cc", "thread_ = std::thread([this] { Run(); });"): "by StartThread",
            ("tools/isozone/a.cc", "const std::jthread second([] {});"): "by StartThread",
            ("src/store/io/a.h", "threads_.emplace_back([this] { Run(); });"): "by StartThread",
            ("src/attic/a.h", ""): "no place",
            ("src/device/attic/a.h", ""): "no place",
            # The order inside of a district.
            ("src/device/emulated/a.h", '#include "device/izg/identify.h"'): "device must not include",
            ("src/device/emulated/nand/a.h", '#include "device/emulated/faults.h"'): "nand must not include",
            ("src/store/a.h", '#include "store/space/zone_pool.h"'): "store must not include",
            ("src/store/space/a.cc", '#include "store/metadata/superblock.h"'): "store/space must not include",
            ("src/store/metadata/a.h", '#include "store/file/log_frame.h"'): "store/metadata must not include",
            ("src/store/file/a.cc", '#include "store/mount/fsck.h"'): "store/file must not include",
            ("src/store/gc/a.cc", '#include "store/space/zone_pool.h"'): "gc must not include",
            ("src/store/gc/a_test.cc", '#include "store/space/zone_pool.h"'): "gc must not include",
            ("src/store/attic/a.h", ""): "no place",
            ("src/rocksdb/adapter/a.cc", '#include "rocksdb/steering/output_guide.h"'): "adapter must not include",
            ("src/rocksdb/steering/a.cc", '#include "rocksdb/library/java.h"'): "steering must not include",
            ("src/device/emulated/ftl/a.h", '#include "device/emulated/conventional_device.h"'): "ftl must not",
            ("src/device/emulated/ftl/a.h", "#include <thread>"): "is pure",
            ("src/device/emulated/a.h", "#include <rocksdb/env.h>"): "only src/rocksdb",
            # What tests share.
            ("src/store/file/b.cc", '#include "testing/test_volume.h"'): "only tests",
            ("tools/isozone/b.cc", '#include "testing/test_volume.h"'): "only tests",
        }
        for (path, text), complaint in cases.items():
            with self.subTest(path=path, text=text):
                self.assertIn(complaint, "".join(violations(path, text)))

    def test_allowed_includes_pass(self) -> None:
        text = ('#include "base/status.h"\n#include "store/file_system.h"\n#include "store/space/zone_pool.h"\n'
                '#include <thread>\n// #include <rocksdb/db.h>\n')
        self.assertEqual([], violations("src/store/metadata/journal.cc", text))
        self.assertEqual([], violations("src/device/emulated/a.h", '#include "device/emulated/nand/flash.h"\n'))
        self.assertEqual([], violations("src/rocksdb/adapter/a.cc", "#include <rocksdb/env.h>\n"))
        text = '#include "store/mount/fsck.h"\n#include "testing/test_volume.h"\n'
        self.assertEqual([], violations("src/store/metadata/journal_test.cc", text))
        self.assertEqual([], violations("src/store/metadata/journal_test_util.h", text))
        self.assertEqual([], violations("tests/model/volume.cc", text))
        text = "clock.WaitUntil(changed, mu, until_ns);\nclock_.WaitUntil(wake_, mu_, now_ns);\n"
        self.assertEqual([], violations("src/store/space/a.cc", text))


if __name__ == "__main__":
    unittest.main()
