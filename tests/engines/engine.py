"""What the tests of the engines share: the pages of docs/engines, whose programs and commands they run as they are, and
skipping where packages cannot be had."""

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Callable, Mapping

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(sys.argv.pop(1))
LIBRARIES = os.path.join(BUILD, "src", "rocksdb", "library")
ISOZONE = os.path.join(BUILD, "tools", "isozone", "isozone")
# ```LANGUAGE [FILE], the lines, and ```.
BLOCK = re.compile(r"^```(\w+)(?: ([\w./-]+))?\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks_of_page(name: str) -> list[tuple[str, str, str]]:
    """The fenced blocks of docs/engines/NAME.md: language, file name or "", text."""
    with open(os.path.join(ROOT, "docs", "engines", f"{name}.md"), encoding="utf-8") as file:
        return BLOCK.findall(file.read())


def compare_with_local_files(turns: int, unit: str, measure: Callable[[str, int], float]) -> None:
    """Measures "isozone" and "local" in turn, and prints their medians and that of the ratios."""
    rates: dict[str, list[float]] = {"isozone": [], "local": []}
    for turn in range(turns):
        for kind in ("isozone", "local") if turn % 2 == 0 else ("local", "isozone"):
            rates[kind].append(measure(kind, turn))
    for kind, each in rates.items():
        print(f"{kind}: {statistics.median(each):,.0f} {unit} ({min(each):,.0f} to {max(each):,.0f})")
    ratios = [isozone / local for isozone, local in zip(rates["isozone"], rates["local"], strict=True)]
    print(f"ratio: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


class EngineTest(unittest.TestCase):
    """A test in a scratch directory, in which Isozone is found as if it were installed."""

    def setUp(self) -> None:
        self.scratch = tempfile.mkdtemp(prefix="isozone-engine-")
        self.addCleanup(shutil.rmtree, self.scratch)
        self.environment = dict(os.environ, HOME=self.scratch)
        for variable, value in (("PATH", os.path.dirname(ISOZONE)), ("LD_LIBRARY_PATH", LIBRARIES),
                                ("LIBRARY_PATH", LIBRARIES), ("CPATH", os.path.join(ROOT, "include"))):
            self.environment[variable] = ":".join(filter(None, [value, os.environ.get(variable)]))

    def run_command(self, *command: str, fails: bool = False, timeout_s: int = 240) -> str:
        """What `command` prints; it succeeds, or `fails`."""
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                text=True, errors="replace", cwd=self.scratch, env=self.environment, timeout=timeout_s)
        self.assertEqual(fails, result.returncode != 0,
                         f"{' '.join(command)}: exit status {result.returncode}\n{result.stdout[-4000:]}")
        return result.stdout

    def need(self, *commands: str) -> None:
        """Skips the test where one of `commands` is not there."""
        for command in commands:
            if shutil.which(command) is None:
                self.skipTest(f"{command} is not there")

    def write(self, name: str, text: str) -> str:
        path = os.path.join(self.scratch, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def files_of_page(self, name: str) -> dict[str, str]:
        """The files that docs/engines/NAME.md shows."""
        return {path: text for _, path, text in blocks_of_page(name) if path}

    def follow_page(self, name: str, timeout_s: int = 240, changes: Mapping[str, str] | None = None) -> str:
        """Makes the files of docs/engines/NAME.md, runs its commands in order, and returns what they print. `changes`
        are words that are replaced by others, such as ports by free ones."""
        def change(text: str) -> str:
            for word, other in (changes or {}).items():
                text = text.replace(word, other)
            return text

        for path, text in self.files_of_page(name).items():
            self.write(path, change(text))
        commands = [command for language, _, text in blocks_of_page(name) if language == "console"
                    for command in re.findall(r"^\$ ((?:.*\\\n)*.*)", text, re.MULTILINE)]
        self.assertTrue(commands, "the page shows no command")
        return self.run_command("bash", "-c", "set -e -o pipefail\n" + change("\n".join(commands)), timeout_s=timeout_s)
