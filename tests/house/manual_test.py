#!/usr/bin/env python3
"""Holds the manual page and the options of a mount in docs/rocksdb.md against the tool itself: they name every command
and option of `isozone --help`.

    manual_test.py ISOZONE
"""

import re
import subprocess
import sys
import unittest

import house

PROGRAM = sys.argv.pop(1)


def help_text(*command: str) -> str:
    result = subprocess.run([PROGRAM, *command, "--help"], capture_output=True, text=True, check=True)
    return result.stdout


def commands() -> list[str]:
    """The names under the heading `Subcommands:` or `Commands:`."""
    section = re.search(r"^(?:Subcommands|Commands):\n((?:[ ].*\n)+)", help_text(), re.MULTILINE | re.IGNORECASE)
    return re.findall(r"^  ([a-z]\S*)", section.group(1), re.MULTILINE) if section else []


def options(command: str) -> list[str]:
    return sorted(set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", help_text(command))))


class Manual(unittest.TestCase):
    def test_the_tool_has_commands(self) -> None:
        self.assertIn("mkfs", commands())

    def test_the_manual_page_names_every_command_and_option(self) -> None:
        page = house.read("docs/man/isozone.1").replace("Fl -", "--")
        for command in commands():
            with self.subTest(command=command):
                self.assertRegex(page, rf"(?m)^\.(SS|B|BR|TP|Cm|Nm|It).*\b{re.escape(command)}\b")
            for option in options(command):
                with self.subTest(command=command, option=option):
                    self.assertIn(option, page)

    def test_the_document_has_every_option_of_a_mount_with_its_default(self) -> None:
        section = house.find(r"^Options of a mount.*:\n((?:  .*\n)+)", help_text(), re.MULTILINE)
        listed = re.findall(r"^  (\S+=\S+)  +(\S.*?)  +\S", section.group(1), re.MULTILINE)
        rows = re.findall(r"^\| `(\w+=[^`]+)` \| (.*?) \|", house.read("docs/rocksdb.md"), re.MULTILINE)
        documented = [(option, default.strip("`")) for option, default in rows]
        self.assertIn(("stripe_width=N", "16"), listed)
        self.assertEqual(listed, documented[:len(listed)])
        # Behind those of the mount come those of the adapter.
        self.assertEqual("read_only=on", documented[len(listed)][0])


if __name__ == "__main__":
    unittest.main()
