#!/usr/bin/env python3
"""Runs every command that the documentation shows, so that none of it goes stale.

    docs_commands.py BUILD_DIRECTORY

In the *.md files of the root, of docs and of docs/measurements, a fenced block marked `console` holds commands, on
lines that begin with `$ `, and what they print. The commands of one file run in order in one bash, in a scratch
directory that looks like the repository with the build in build/release and build/checked. The README says how the tool
and the library are found; for the other files they are, as if they were installed. Each must succeed; its output is not
compared.

Commands of a page that mounts a directory are run where /dev/fuse is.

Commands on a block device (`dev:`), and those of docs/export.md, which make one, are not run here, but in the guest
(tests/guest), which has such devices. Commands that take minutes or change the machine are not run here either. What
`make` is asked for, in such blocks or in `code`, must be a target, and .ci/run must run it, or the target that does
the same in small.
"""

import functools
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Iterable

import house

BUILD = os.path.abspath(sys.argv.pop(1))
BLOCK = re.compile(r"^```console[ \t]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
FOLDERS = ("", "docs", "docs/measurements")
NOT_RUN = re.compile(r"^(sudo\s+)?(make|git|cd|apt|apt-get|cmake|ctest|\.ci/run|scripts/\S+|lab/\S+)\b")
NEEDS_FUSE = re.compile(r"^isozone mount ")
IN_THE_GUEST = re.compile(r"dev:/dev/|/dev/ublkb|isozone export ")
# Targets that .ci/run leaves out, and what it runs of them: these take an hour and more.
IN_SMALL = {"torture": "power-cuts", "asan": "asan-unit", "lab": "report", "lab-build": "report", "build": "demo",
            "format": "check", "format-check": "check", "help": None, "tsan": None, "rocksdb-tests": None,
            "guest-torture": "guest-test"}
TIMEOUT_S = 300


def shown_commands(text: str) -> list[str]:
    """The commands of all console blocks, those continued with a backslash joined."""
    found = []
    for block in BLOCK.findall(text):
        lines = iter(block.splitlines())
        for line in lines:
            if not line.startswith("$ "):
                continue
            command = line[2:]
            while command.endswith("\\"):
                command = command[:-1] + next(lines).removeprefix("> ").lstrip()
            found.append(command)
    return found


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z][a-z-]*):", house.read("Makefile"), re.MULTILINE))


def targets_in_code(text: str) -> set[str]:
    """The targets of `make ...` in the running text."""
    return set(re.findall(r"`(?:sudo )?make ([a-z][a-z-]*)", text))


def targets_run_by_ci() -> set[str]:
    return set(re.findall(r"\bmake ([a-z][a-z-]*)", house.read(".ci/run")))


def missing_targets(command: str) -> list[str]:
    """The words of a `make ...` command that are neither targets nor assignments."""
    words = command.split("#")[0].removeprefix("sudo ").split()
    if not words or words[0] != "make":
        return []
    return [word for word in words[1:] if "=" not in word and word not in make_targets()]


def prepare(scratch: str, installed: bool) -> dict[str, str]:
    """Makes `scratch` look like the repository, and returns the environment to run in."""
    for name in os.listdir(house.ROOT):
        if name not in house.GENERATED:
            os.symlink(os.path.join(house.ROOT, name), os.path.join(scratch, name))
    os.mkdir(os.path.join(scratch, "build"))
    for preset in ("release", "checked"):
        os.symlink(BUILD, os.path.join(scratch, "build", preset))
    environment = dict(os.environ, HOME=scratch, TMPDIR=scratch)
    environment.pop("LD_LIBRARY_PATH", None)
    places = (("PATH", "tools/isozone"), ("LD_LIBRARY_PATH", "src/rocksdb/library"))
    for variable, place in places if installed else ():
        folder = os.path.join(BUILD, place)
        environment[variable] = os.pathsep.join(filter(None, [folder, environment.get(variable)]))
    return environment


def run(commands: Iterable[str], installed: bool = True) -> str | None:
    """Runs `commands` in one shell; returns what failed and why, or None."""
    with tempfile.TemporaryDirectory(prefix="isozone-docs-") as scratch:
        environment = prepare(scratch, installed)
        script = "set -e -o pipefail\n" + "".join(
            f"printf '%s\\n' {quote('$ ' + command)}\n{command}\n" for command in commands)
        try:
            result = subprocess.run(["bash", "-c", script], cwd=scratch, env=environment, stdin=subprocess.DEVNULL,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT_S)
        finally:
            take_mounts_off(scratch)
        return None if result.returncode == 0 else result.stdout[-4000:]


def take_mounts_off(scratch: str) -> None:
    """What failed commands left mounted below `scratch`."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        directories = [line.split()[4] for line in file]
    for directory in reversed(directories):
        if directory.startswith(os.path.realpath(scratch) + "/"):
            subprocess.run(["fusermount3", "-uz", directory], check=False)


@functools.cache
def why_no_fuse() -> str | None:
    """Why nothing can be mounted here; None where it can."""
    if not os.path.exists("/dev/fuse"):
        return "there is no /dev/fuse"
    device = "emu:ssd.img?timing=off"
    failure = run([f"isozone mkfs '{device}&zones=32&zone_size=4M'", "mkdir directory",
                   f"isozone mount '{device}' directory || {{ echo exit code $?; exit 1; }}",
                   "fusermount3 -u directory"])
    # Unusable, or not allowed; all else is for the commands themselves to tell.
    return failure if failure is not None and re.search(r"^exit code [38]$", failure, re.MULTILINE) else None


def pages() -> list[str]:
    return [page for folder in FOLDERS for page in sorted(glob.glob(os.path.join(house.ROOT, folder, "*.md")))]


def missing_presets_and_targets(command: str) -> list[str]:
    """What of a `cmake ...` command there is not: its preset, and the target where that is a test of a layer."""
    presets = json.loads(house.read("CMakePresets.json"))["configurePresets"]
    names = {preset["name"] for preset in presets if not preset.get("hidden")}
    layers = {f"isozone_{name}_test" for path in house.our_files() if path.endswith("CMakeLists.txt")
              for name in re.findall(r"^isozone_layer\((\w+)", house.read(path), re.MULTILINE)}
    words = command.split()
    wanted = [(names, words[at + 1]) for at, word in enumerate(words) if word == "--preset"]
    wanted += [(layers, words[at + 1]) for at, word in enumerate(words) if word == "--target"]
    return [name for known, name in wanted if words[0] == "cmake" and name not in known]


def quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


class DocumentedCommands(unittest.TestCase):
    def test_every_command_succeeds(self) -> None:
        count = 0
        for page in pages():
            commands = shown_commands(house.read(page))
            count += len(commands)
            with self.subTest(page=os.path.relpath(page, house.ROOT)):
                for command in commands:
                    self.assertEqual([], missing_targets(command), f"no such make target: {command}")
                    self.assertEqual([], missing_presets_and_targets(command), f"no such preset or target: {command}")
                here = [command for command in commands
                        if not NOT_RUN.match(command) and not IN_THE_GUEST.search(command)]
                if any(NEEDS_FUSE.match(command) for command in here) and (reason := why_no_fuse()) is not None:
                    self.skipTest(reason)
                failure = run(here,
                              installed=page != os.path.join(house.ROOT, "README.md"))
                if failure is not None:
                    self.fail("the last of these commands failed:\n" + failure)
        self.assertGreater(count, 0, "the documentation shows no command")

    def test_ci_runs_every_target_that_is_shown(self) -> None:
        run_by_ci = targets_run_by_ci()
        self.assertEqual(set(), run_by_ci - make_targets())
        for page in pages():
            text = house.read(page)
            shown = {word for command in shown_commands(text) for word in command.split("#")[0].split()
                     if word in make_targets() and re.match(r"(sudo )?make\b", command)} | targets_in_code(text)
            for target in sorted(shown):
                with self.subTest(page=os.path.relpath(page, house.ROOT), target=target):
                    self.assertIn(target, make_targets())
                    self.assertTrue(target in run_by_ci or target in IN_SMALL, "neither .ci/run runs it nor IN_SMALL")
        self.assertEqual(set(), {target for target in IN_SMALL.values() if target} - run_by_ci)

    def test_commands_are_found(self) -> None:
        text = "```console\n$ echo a \\\n>   b\na b\n$ make test\n```\n```sh\n$ no\n```\n"
        self.assertEqual(["echo a b", "make test"], shown_commands(text))

    def test_a_missing_make_target_is_found(self) -> None:
        self.assertEqual(["tset"], missing_targets("make tset FUZZ_SECONDS=5"))
        self.assertEqual([], missing_targets("make fuzz FUZZ_SECONDS=5"))

    def test_a_missing_preset_or_target_is_found(self) -> None:
        self.assertEqual(["attic"], missing_presets_and_targets("cmake --preset attic"))
        self.assertEqual(["isozone_attic_test"],
                         missing_presets_and_targets("cmake --build --preset checked --target isozone_attic_test"))

    def test_a_failing_command_is_found(self) -> None:
        self.assertIn("$ false", run(["true", "false", "true"]) or "")
        self.assertIsNone(run(["true"]))


if __name__ == "__main__":
    unittest.main()
