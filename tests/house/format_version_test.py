#!/usr/bin/env python3
"""Holds docs/format.md, the newest section of CHANGELOG.md and the comments of the format's header against the version
that the code writes."""

import re
import unittest

import house

CONSTANT = re.compile(r"\bkFormatVersion = (\d+);")
STATED = re.compile(r"\bformat version:?\s+(\d+)")


def header() -> str:
    """The header that defines the version, wherever it lies."""
    found = [path for path in house.our_files() if path.endswith(".h") and CONSTANT.search(house.read(path))]
    if len(found) != 1:
        raise AssertionError(f"not one header defines kFormatVersion: {found}")
    return found[0]


class FormatVersion(unittest.TestCase):
    def test_the_document_and_the_header_say_what_the_code_writes(self) -> None:
        path = header()
        written = house.find(CONSTANT, house.read(path))[1]
        for document, least in (("docs/format.md", 2), (path, 1)):  # the title and the superblock's field
            stated = STATED.findall(house.read(document))
            with self.subTest(document=document):
                self.assertGreaterEqual(len(stated), least)
                self.assertEqual({written}, set(stated))

    def test_the_newest_section_of_the_changelog_says_it(self) -> None:
        newest = house.read("CHANGELOG.md").split("\n## [")[1]
        self.assertEqual([house.find(CONSTANT, house.read(header()))[1]], STATED.findall(newest))

    def test_a_stated_version_is_found(self) -> None:
        self.assertEqual(["6", "6"], STATED.findall("# Title: format version 6\n| 12 | 4 | format version: 6 |"))


if __name__ == "__main__":
    unittest.main()
