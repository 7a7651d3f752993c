#!/usr/bin/env python3
"""Help, completion and exit codes agree with each other and with the manual page.

    help_test.py ISOZONE
"""

import os
import re
import subprocess
import unittest
from collections.abc import Iterable

import harness

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BASH_COMPLETION = os.path.join(ROOT, "tools/isozone/completion/isozone.bash")
COMMON_OPTIONS = {"--help", "--color"}
SUBCOMMAND = re.compile(r"^  ([a-z]+) ", re.MULTILINE)


def read(name: str) -> str:
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        return file.read()


# Commands that are several.
WITH_PARTS = {
    "izg": {"identify"},
    "gc": {"run", "status"},
    "bench": {"device", "io"},
}


class Help(harness.CliTest):
    def help(self, *command: str) -> str:
        return self.ok(*command, "--help").decode()

    def commands(self) -> list[list[str]]:
        """Every command, the parts of those that have some too, as lists of words."""
        names = SUBCOMMAND.findall(self.help().split("Subcommands:")[1].split("Exit codes:")[0])
        self.assertIn("mkfs", names)
        return [command for name in names for command in self.with_parts([name])]

    def with_parts(self, command: list[str]) -> list[list[str]]:
        """The command, or the parts that it is."""
        known = WITH_PARTS.get(" ".join(command))
        if known is None:
            return [command]
        parts = SUBCOMMAND.findall(self.help(*command).split("Subcommands:")[1].split("Example:")[0])
        self.assertEqual(set(parts), known)
        return [leaf for part in parts for leaf in self.with_parts([*command, part])]

    def options(self, command: Iterable[str]) -> set[str]:
        usage = self.help(*command).split("Example:")[0]
        return set(re.findall(r"^  (?:-\w,)?(--[a-z][a-z-]+)", usage, re.MULTILINE)) | COMMON_OPTIONS

    def complete(self, *words: str) -> set[str]:
        """What bash offers for the last of `words`."""
        script = ('source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}; '
                  '_isozone "$1"; echo "${COMPREPLY[@]}"')
        result = subprocess.run(["bash", "-c", script, BASH_COMPLETION, harness.PROGRAM, *words], capture_output=True,
                                text=True, check=True)
        return set(result.stdout.split())

    def offered(self, *words: str) -> list[str]:
        """What the program offers to any shell, with what each candidate means."""
        return self.ok("--complete", *words).decode().splitlines()

    def test_every_command_has_help_with_an_example_that_names_it(self) -> None:
        for command in self.commands():
            with self.subTest(command=command):
                self.assertRegex(self.help(*command), rf"Example:\n  isozone {' '.join(command)} ")

    def test_bash_completes_names_of_files_where_they_stand(self) -> None:
        os.makedirs(os.path.join(self.directory, "directory"))
        with open(os.path.join(self.directory, "file"), "w", encoding="utf-8"):
            pass
        begun = self.directory + "/"
        self.assertEqual(self.complete("mount", "emu:ssd.img", begun), {begun + "directory"})
        self.assertEqual(self.complete("backup", "--verify", begun), {begun + "directory", begun + "file"})

    def test_bash_completes_commands(self) -> None:
        names = {command[0] for command in self.commands()}
        self.assertEqual(self.complete(""), names)
        self.assertEqual(self.complete("mk"), {"mkfs"})
        for command, parts in WITH_PARTS.items():
            self.assertEqual(self.complete(command, ""), parts)

    def test_bash_completes_the_options_of_each_command(self) -> None:
        for command in self.commands():
            with self.subTest(command=command):
                offered = {word for word in self.complete(*command, "--")}
                self.assertEqual(offered, self.options(command))

    def test_bash_completes_values(self) -> None:
        self.assertEqual(self.complete("--color", ""), {"auto", "always", "never"})
        self.assertEqual(self.complete("simulate", "--wal", "o"), {"on", "off"})
        self.assertEqual(self.complete("gc", "run", "--scheme", "lsm"), {"lsm-zgc"})
        self.assertEqual(self.complete("df", "emu:ssd.img", "--color", "n"), {"never"})

    def test_a_candidate_comes_with_its_meaning(self) -> None:
        self.assertIn("df\tShow how much space is used and free", self.offered(""))
        self.assertIn("--json\tWrite JSON", self.offered("df", "--"))
        self.assertEqual(self.offered("--color=a"), ["auto\t", "always\t", "never\t"])

    def test_names_are_for_the_shell_to_complete(self) -> None:
        self.assertEqual(self.offered("zones", "emu:ssd.img", "--svg", ""), [":files"])
        self.assertEqual(self.offered("backup", "emu:ssd.img", ""), [":files"])
        self.assertEqual(self.offered("mount", "emu:ssd.img", ""), [":directories"])
        self.assertEqual(self.offered("df", ""), [])

    def test_nothing_is_offered_for_words_that_are_wrong(self) -> None:
        for words in (["nonsense", ""], ["nonsense", "--"], ["df", "--no-such=", "x"], [], ["gc", "nonsense", ""],
                      ["--no-such="], ["", "", ""], ["df", "--", "-"]):
            with self.subTest(words=words):
                self.assertEqual([line for line in self.offered(*words) if not line.startswith("--")], [])

    def test_manual_page_has_the_options_of_bench(self) -> None:
        page = read("docs/man/isozone.1").replace("Fl -", "--")
        for command in self.commands():
            for option in self.options(command):
                with self.subTest(command=command, option=option):
                    self.assertIn(option, page)

    def test_manual_page_has_the_exit_codes_of_help(self) -> None:
        codes = re.findall(r"^ +(\d+)  (.*)$", self.help().split("Exit codes:")[1], re.MULTILINE)
        self.assertEqual(len(codes), harness.READ_ONLY + 1)
        page = " ".join(read("docs/man/isozone.1").split())
        for code, meaning in codes:
            with self.subTest(code=code):
                self.assertIn(f".It {code} {meaning}", page)

    def test_version(self) -> None:
        self.assertRegex(self.ok("--version").decode(), r"^isozone \d+\.\d+\.\d+\n$")


if __name__ == "__main__":
    unittest.main()
