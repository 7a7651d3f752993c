#!/usr/bin/env python3
"""Holds every file against the rules on text: no promises to finish later, no paths of one machine, source lines of 120
columns at most, headers that say what they are for."""

import re
import unittest

import house

# Written in halves, so that this file obeys its own rule.
LATER = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX|HA" r"CK)\b")
MACHINE_PATH = re.compile(r"(?<![\w.])/(wo" r"rk|ro" r"ot|ho" r"me/\w+)/")
SOURCES = (".h", ".cc", ".c", ".py", ".sh", ".cmake", "CMakeLists.txt")
COLUMNS = 120
BINARY = (".svg", ".png", ".bin", ".img", ".gz")


def violations(path: str, text: str) -> list[str]:
    found = []
    is_source = path.endswith(SOURCES) or text.startswith("#!")
    for number, line in enumerate(text.splitlines(), 1):
        if LATER.search(line):
            found.append(f"{path}:{number}: do it now or write it into an issue: {line.strip()}")
        if MACHINE_PATH.search(line):
            found.append(f"{path}:{number}: a path of one machine: {line.strip()}")
        if is_source and len(line) > COLUMNS:
            found.append(f"{path}:{number}: {len(line)} columns, and {COLUMNS} are allowed")
    if path.endswith((".h", ".cc")) and path.startswith("src/"):
        is_test = path.endswith("_test.cc")
        if not is_test and path.endswith(".h") and not text.startswith("// "):
            found.append(f"{path}:1: a header opens with a comment that says what it is for")
    if path.endswith(".h") and "#pragma once" not in text:
        found.append(f"{path}: no #pragma once")
    return found


class Text(unittest.TestCase):
    def test_every_file_obeys(self) -> None:
        files = [path for path in house.our_files()
                 if not path.endswith(BINARY) and not path.startswith("fuzz/corpus/")]
        self.assertGreater(len(files), 0)
        found = [line for path in files for line in violations(path, house.read(path))]
        self.assertEqual([], found, "\n" + "\n".join(found))

    def test_violations_are_found(self) -> None:
        cases = {
            ("a.cc", "// TO" "DO: later"): "do it now",
            ("a.sh", "cd /ro" "ot/project"): "one machine",
            ("a.cc", "//" + "x" * 119): "121 columns",
            ("a", "#!/bin/sh\n#" + "x" * 120): "121 columns",
            ("src/base/a.h", "#pragma once\n"): "opens with a comment",
            ("src/base/a.h", "// Things.\n"): "no #pragma once",
        }
        for (path, text), complaint in cases.items():
            with self.subTest(path=path, text=text):
                self.assertIn(complaint, "".join(violations(path, text)))

    def test_allowed_text_passes(self) -> None:
        self.assertEqual([], violations("a.cc", 'mkdtemp("/tmp/XXXXXX"); // hacksaw, usr/home\n'))
        self.assertEqual([], violations("a.cc", "//" + "\u2588" * 118))


if __name__ == "__main__":
    unittest.main()
