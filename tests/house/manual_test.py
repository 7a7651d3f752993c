#!/usr/bin/env python3
"""Holds the manual page and the shell completion against the tool itself: each names every command and option of
`isozone --help`.

    manual_test.py ISOZONE
"""

import re
import subprocess
import sys
import unittest

import house

PROGRAM = sys.argv.pop(1)


def help_text(*command):
    result = subprocess.run([PROGRAM, *command, "--help"], capture_output=True, text=True, check=True)
    return result.stdout


def commands():
    """The names under the heading `Subcommands:` or `Commands:`."""
    section = re.search(r"^(?:Subcommands|Commands):\n((?:[ ].*\n)+)", help_text(), re.MULTILINE | re.IGNORECASE)
    return re.findall(r"^  ([a-z]\S*)", section.group(1), re.MULTILINE) if section else []


def options(command):
    return sorted(set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", help_text(command))))


class Manual(unittest.TestCase):
    def test_the_tool_has_commands(self):
        self.assertIn("mkfs", commands())

    def test_the_manual_page_names_every_command_and_option(self):
        page = house.read("docs/man/isozone.1").replace("Fl -", "--")
        for command in commands():
            with self.subTest(command=command):
                self.assertRegex(page, rf"(?m)^\.(SS|B|BR|TP|Cm|Nm|It).*\b{re.escape(command)}\b")
            for option in options(command):
                with self.subTest(command=command, option=option):
                    self.assertIn(option, page)

    def test_the_completion_names_every_command(self):
        completion = house.read("tools/isozone/completion/isozone.bash")
        for command in commands():
            with self.subTest(command=command):
                self.assertRegex(completion, rf"\b{re.escape(command)}\b")


if __name__ == "__main__":
    unittest.main()
