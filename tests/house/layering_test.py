#!/usr/bin/env python3
"""Holds every #include in src/ against the order of layers in docs: a layer includes only itself and those below."""

import re
import unittest

import house

# From the lowest; names in one row do not know each other.
ORDER = [("base",), ("nand",), ("device",), ("izg",), ("zone", "io"), ("gc",), ("fs",), ("lsm",), ("sim", "rocksdb")]
RANK = {layer: rank for rank, row in enumerate(ORDER) for layer in row}
# Decisions and models that the simulator drives in virtual time: no threads, no clock, no I/O.
PURE = ("nand", "zone", "lsm")
IMPURE_HEADER = re.compile(r"<(thread|condition_variable|future|mutex|shared_mutex|sys/.*|unistd\.h|fcntl\.h)>"
                           r"|\"base/(mutex|clock)\.h\"")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"][^>"]+[>"])', re.MULTILINE)
ROCKSDB_USERS = re.compile(r"^(src/rocksdb|tests|bench|lab|examples)/")


def violations(path, text):
    """What is wrong with the includes of the file `path` (relative to the repository) that contains `text`."""
    found = []
    parts = path.split("/")
    layer = parts[1] if parts[0] == "src" and len(parts) > 2 else None
    if layer is not None and layer not in RANK:
        return [f"{path}: layer {layer} has no place in the order"]
    for included in INCLUDE.findall(text):
        name = included[1:-1]
        if name.startswith("rocksdb/") and included[0] == "<" and not ROCKSDB_USERS.match(path):
            found.append(f"{path}: only src/rocksdb may include {included}")
        if layer is None:
            continue
        target = name.split("/")[0]
        if included[0] == '"' and "/" not in name:
            found.append(f"{path}: include {included} by its path from src/")
        if included[0] == '"' and target in RANK and target != layer and RANK[target] >= RANK[layer]:
            found.append(f"{path}: layer {layer} must not include {included}")
        is_test = path.endswith("_test.cc")
        if layer in PURE and not is_test and IMPURE_HEADER.fullmatch(included):
            found.append(f"{path}: layer {layer} is pure and must not include {included}")
    return found


class Layering(unittest.TestCase):
    def test_every_include_obeys_the_order(self):
        sources = [path for path in house.our_files() if path.endswith((".h", ".cc"))]
        self.assertGreater(len(sources), 0)
        found = [line for path in sources for line in violations(path, house.read(path))]
        self.assertEqual([], found, "\n" + "\n".join(found))

    def test_violations_are_found(self):
        cases = {
            ("src/base/a.h", '#include "device/zoned_device.h"'): "base must not include",
            ("src/zone/a.cc", '#include "io/io_class.h"'): "zone must not include",
            ("src/fs/a.cc", '#  include "rocksdb/adapter.h"'): "fs must not include",
            ("src/fs/a.cc", "#include <rocksdb/env.h>"): "only src/rocksdb",
            ("tools/isozone/a.cc", "#include <rocksdb/env.h>"): "only src/rocksdb",
            ("src/fs/a.cc", '#include "journal.h"'): "by its path",
            ("src/nand/a.h", "#include <thread>"): "is pure",
            ("src/attic/a.h", ""): "no place",
        }
        for (path, text), complaint in cases.items():
            with self.subTest(path=path, text=text):
                self.assertIn(complaint, "".join(violations(path, text)))

    def test_allowed_includes_pass(self):
        text = '#include "base/status.h"\n#include "fs/journal.h"\n#include <thread>\n// #include <rocksdb/db.h>\n'
        self.assertEqual([], violations("src/fs/journal.cc", text))
        self.assertEqual([], violations("src/rocksdb/a.cc", "#include <rocksdb/env.h>\n"))


if __name__ == "__main__":
    unittest.main()
