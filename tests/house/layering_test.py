#!/usr/bin/env python3
"""Holds every #include in src/ against the order of the rooms: code in a room includes only that room and those below.
A room is a layer of docs/architecture.md, or one of the folders in a layer that has an order inside."""

import re
import unittest

import house

# From the lowest; names in one row do not know each other.
ORDER = [("base",), ("nand",), ("device", "conventional/model"), ("izg", "conventional/device", "export"),
         ("zone", "io", "lsm"), ("zone/allocator", "stats"), ("sim", "gc", "advice"), ("fs/kept", "fs/pins"), ("fs",),
         ("fs/space",), ("fs/metadata",), ("fs/file",), ("fs/mount",), ("adapter", "mount"), ("conventional/adapter",),
         ("adapter/library",), ("testing",)]
RANK = {room: rank for rank, row in enumerate(ORDER) for room in row}
# Layers of which every folder has its place in the order.
DIVIDED = {room.split("/")[0] for room in RANK if "/" in room}
# The conventional SSD can be removed as one: nothing else knows it.
CONVENTIONAL_USERS = ("conventional", "adapter/library")
# Decisions and models in virtual time: no threads, no clock, no I/O.
PURE = ("nand", "conventional/model", "zone", "zone/allocator", "lsm", "advice", "sim")
IMPURE_HEADER = re.compile(r"<(thread|condition_variable|future|mutex|shared_mutex|sys/.*|unistd\.h|fcntl\.h)>"
                           r"|\"base/(mutex|clock|latch)\.h\"")
# The layers that get the time from a Clock that is handed in, and wait by it, so that tests can set it.
HANDED_A_CLOCK = ("fs", "gc", "zone")
DIRECT_CLOCK = re.compile(r"\b(MonotonicNs|WallSeconds|RealClock|steady_clock|system_clock|clock_gettime)\b"
                          r"|\bClock::Real\(\)\.|(?<!clock)(?<!clock_)\.WaitUntil\(")
# A thread that cannot be had is a status (base/thread.h).
THREAD_MADE = re.compile(r"\bstd::(jthread|async)\b|\bstd::thread\s*[({]|threads?_?\.emplace(_back)?\(\[")
# What is live in a zone belongs to the metadata or to a SpaceClaim, and nobody else counts it.
LIVE_BYTES = re.compile(r"(\.|->)(AddLive|RemoveLive)\(")
LIVE_BYTES_USERS = ("src/fs/space/space_claim.cc", "src/fs/space/zone_pool.cc")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"][^>"]+[>"])', re.MULTILINE)
ROCKSDB_USERS = re.compile(r"^(include|src/adapter|src/conventional/adapter|tests|bench|lab|examples)/")
# What tests share is for tests only. The tests of a layer may use all of it, whatever the order inside.
TESTS = re.compile(r"^(src/testing|tests|fuzz)/|_test\.cc$|_test_util\.h$")


def room_of(path: str) -> str | None:
    """The room of a path below src/; None if it has no place in the order."""
    folder = path.rpartition("/")[0]
    if folder in RANK:
        return folder
    layer = folder.split("/")[0]
    return layer if layer in RANK and layer not in DIVIDED else None


def may_include(room: str, target: str, is_test: bool) -> bool:
    if is_test and (target == "testing" or room.split("/")[0] == target.split("/")[0]):
        return True
    if target.startswith("conventional/") and not room.startswith(CONVENTIONAL_USERS):
        return False
    return target == room or RANK[target] < RANK[room]


def violations(path: str, text: str) -> list[str]:
    """What is wrong with the includes of the file `path` (relative to the repository) that contains `text`."""
    found = []
    is_test = TESTS.search(path) is not None
    in_src = path.startswith("src/") and path.count("/") > 1
    room = room_of(path.removeprefix("src/")) if in_src else None
    if in_src and room is None:
        return [f"{path}: {path.rpartition('/')[0]} has no place in the order"]
    layer = room.split("/")[0] if room else None
    if layer in HANDED_A_CLOCK and not is_test and DIRECT_CLOCK.search(text):
        found.append(f"{path}: {layer} gets the time from a Clock")
    if layer == "fs" and not is_test and path not in LIVE_BYTES_USERS and LIVE_BYTES.search(text):
        found.append(f"{path}: live bytes are a SpaceClaim's")
    makes_threads = path.startswith(("src/", "tools/")) and not is_test and path != "src/base/thread.cc"
    if makes_threads and THREAD_MADE.search(text):
        found.append(f"{path}: threads are made by StartThread")
    for included in INCLUDE.findall(text):
        name = included[1:-1]
        own = included[0] == '"'
        if name.startswith("rocksdb/") and not own and not ROCKSDB_USERS.match(path):
            found.append(f"{path}: only src/adapter may include {included}")
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
        self.assertEqual(set(), set(RANK) - folders)

    def test_violations_are_found(self) -> None:
        cases = {
            ("src/base/a.h", '#include "device/zoned_device.h"'): "base must not include",
            ("src/zone/a.cc", '#include "io/io_class.h"'): "zone must not include",
            ("src/lsm/a.h", '#include "zone/zone_table.h"'): "lsm must not include",
            ("src/lsm/a.cc", '#include "base/clock.h"'): "is pure",
            ("src/fs/mount/a.cc", '#  include "adapter/file_class.h"'): "fs/mount must not include",
            ("src/fs/a.cc", "#include <rocksdb/env.h>"): "only src/adapter",
            ("tools/isozone/a.cc", "#include <rocksdb/env.h>"): "only src/adapter",
            ("src/fs/a.cc", '#include "journal.h"'): "by its path",
            ("src/nand/a.h", "#include <thread>"): "is pure",
            ("src/gc/a.cc", "now_ns = MonotonicNs();"): "from a Clock",
            ("src/fs/file/a.cc", "modified_s = WallSeconds();"): "from a Clock",
            ("src/fs/space/a.cc", "changed.WaitUntil(mu, until_ns);"): "from a Clock",
            ("src/zone/allocator/a.h", "Clock::Real().NowNs()"): "from a Clock",
            ("src/fs/file/a.cc", "context_.pool->RemoveLive(zone, bytes);"): "a SpaceClaim's",
            ("src/io/a.cc", "thread_ = std::thread([this] { Run(); });"): "by StartThread",
            ("tools/isozone/a.cc", "const std::jthread second([] {});"): "by StartThread",
            ("src/io/a.h", "threads_.emplace_back([this] { Run(); });"): "by StartThread",
            ("src/attic/a.h", ""): "no place",
            # The order inside of a layer.
            ("src/fs/a.h", '#include "fs/space/zone_pool.h"'): "fs must not include",
            ("src/fs/space/a.cc", '#include "fs/metadata/superblock.h"'): "fs/space must not include",
            ("src/fs/metadata/a.h", '#include "fs/file/log_frame.h"'): "fs/metadata must not include",
            ("src/fs/file/a.cc", '#include "fs/mount/fsck.h"'): "fs/file must not include",
            ("src/gc/a.cc", '#include "fs/space/zone_pool.h"'): "gc must not include",
            ("src/gc/a_test.cc", '#include "fs/space/zone_pool.h"'): "gc must not include",
            ("src/fs/attic/a.h", ""): "no place",
            ("src/adapter/a.cc", '#include "conventional/adapter/disk.h"'): "adapter must not include",
            ("src/zone/a.cc", '#include "conventional/model/page_map.h"'): "zone must not include",
            ("src/conventional/model/a.h", '#include "conventional/device/conventional_device.h"'): "model must not",
            ("src/conventional/model/a.h", "#include <thread>"): "is pure",
            ("src/conventional/device/a.h", "#include <rocksdb/env.h>"): "only src/adapter",
            # What tests share.
            ("src/fs/file/b.cc", '#include "testing/test_volume.h"'): "only tests",
            ("tools/isozone/b.cc", '#include "testing/test_volume.h"'): "only tests",
        }
        for (path, text), complaint in cases.items():
            with self.subTest(path=path, text=text):
                self.assertIn(complaint, "".join(violations(path, text)))

    def test_allowed_includes_pass(self) -> None:
        text = ('#include "base/status.h"\n#include "fs/file_system.h"\n#include "fs/space/zone_pool.h"\n'
                '#include <thread>\n// #include <rocksdb/db.h>\n')
        self.assertEqual([], violations("src/fs/metadata/journal.cc", text))
        self.assertEqual([], violations("src/device/emulated/a.h", '#include "nand/flash.h"\n'))
        self.assertEqual([], violations("src/adapter/a.cc", "#include <rocksdb/env.h>\n"))
        text = '#include "fs/mount/fsck.h"\n#include "testing/test_volume.h"\n'
        self.assertEqual([], violations("src/fs/metadata/journal_test.cc", text))
        self.assertEqual([], violations("src/fs/metadata/journal_test_util.h", text))
        self.assertEqual([], violations("tests/model/volume.cc", text))
        text = "clock.WaitUntil(changed, mu, until_ns);\nclock_.WaitUntil(wake_, mu_, now_ns);\n"
        self.assertEqual([], violations("src/fs/space/a.cc", text))


if __name__ == "__main__":
    unittest.main()
