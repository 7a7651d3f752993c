"""What a case came to, read from the output of a GoogleTest program; and where two file systems differ."""

import re

PASSED, SKIPPED, FAILED, CRASHED, HUNG, ABSENT = "passed", "skipped", "failed", "crashed", "hung", "absent"
SAME, UNSTEADY, DEFAULT_ONLY, DIFFERENT = "same", "unsteady", "default only", "different"

Record = dict[str, str]  # of a case: its outcomes, under the names that verdict() gives them

# Not bound to the beginning of a line: what a case prints last often lacks a line end.
BEGUN = re.compile(r"\[ RUN      \] (\S+)")
ENDED = re.compile(r"\[(       OK |  FAILED  )\] ([\w./-]+)(?:, where .*)?(?: \(\d+ ms\))?$")
SKIP = re.compile(r"\b(?:SKIPPED|BYPASSED): ")  # how RocksDB's tests say so; GoogleTest then calls them passed


class Cases:
    """The cases that `PROGRAM --gtest_list_tests` prints, without those that are disabled."""

    @staticmethod
    def parse(text: str) -> list[str]:
        found: list[str] = []
        suite = ""
        for line in text.splitlines():
            name = line.split("#")[0].strip()
            if not line.startswith(" "):
                suite = name if re.fullmatch(r"[\w/]+\.", name) else ""
            elif suite and name and "DISABLED_" not in suite + name:
                found.append(suite + name)
        return found


class OutputReader:
    """Follows the output of one run, in pieces as they come."""

    def __init__(self) -> None:
        self.outcomes: dict[str, str] = {}  # of the cases that have ended
        self.running: str | None = None     # the case that has begun and not ended
        self.last: str | None = None        # the last that has begun
        self._skipped = False
        self._rest = ""

    def feed(self, text: str) -> None:
        lines = (self._rest + text).split("\n")
        self._rest = lines.pop()
        for line in lines:
            self._line(line)

    def end(self, abnormally: str | None) -> None:
        """The run is over; `abnormally` is CRASHED, HUNG, or None where the program ended by itself. What it did after
        its last case, such as unmounting, counts for that case."""
        self._line(self._rest)
        self._rest = ""
        if self.running is not None:
            self.outcomes[self.running] = abnormally or CRASHED
            self.running = None
        elif abnormally and self.last is not None:
            self.outcomes[self.last] = abnormally

    def _line(self, line: str) -> None:
        begun = BEGUN.search(line)
        if begun:
            self.running = self.last = begun.group(1)
            self._skipped = False
            return
        if self.running is None:
            return  # the summary names failed cases once more
        ended = ENDED.search(line)
        if ended and ended.group(2) == self.running:
            passed = SKIPPED if self._skipped else PASSED
            self.outcomes[self.running] = passed if "OK" in ended.group(1) else FAILED
            self.running = None
        elif SKIP.search(line):
            self._skipped = True


def agree(posix: str | None, isozone: str | None) -> bool:
    """Whether Isozone does what is expected of it. A case that only Isozone has must pass."""
    return posix == isozone or (posix == ABSENT and isozone in (PASSED, SKIPPED))


def verdict(record: Record) -> str:
    """What the outcomes of a case say. `record` has `posix` and `isozone`, and where these differ what came of the
    case alone: `isozone_again`, `posix_again`, and `with_default`, with FileSystem::Default() replaced."""
    posix, isozone = record["posix"], record["isozone"]
    if agree(posix, isozone):
        return SAME
    if agree(posix, record.get("isozone_again")) or agree(record.get("posix_again"), isozone):
        return UNSTEADY
    if agree(posix, record.get("with_default")):
        return DEFAULT_ONLY
    return DIFFERENT
