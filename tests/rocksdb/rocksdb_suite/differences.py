"""The list of known differences: which cases end otherwise on Isozone than on POSIX, and why that is no defect."""

import fnmatch
from collections.abc import Collection, Container, Iterable, Sequence

Case = tuple[str, str]  # a program, and the name of one of its cases


class ListError(Exception):
    """A line of the list says nothing; the message is for people."""


class Entry:
    def __init__(self, program: str, pattern: str, reason: str) -> None:
        self.program, self.pattern, self.reason = program, pattern, reason

    def covers(self, program: str, case: str) -> bool:
        return program == self.program and fnmatch.fnmatchcase(case, self.pattern)

    def __str__(self) -> str:
        return f"{self.program} {self.pattern}"


def parse(text: str, programs: Sequence[str], name: str = "differences.txt") -> list[Entry]:
    """The entries of a list: on each line a program, a glob of its cases, and the reason. # begins a comment."""
    entries = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        words = line.split(maxsplit=2)
        if len(words) < 3:
            raise ListError(f"{name}:{number}: a program, a glob of its cases and a reason are needed: {line.strip()}")
        if words[0] not in programs:
            raise ListError(f"{name}:{number}: {words[0]} is no program that is run; use one of {', '.join(programs)}")
        entries.append(Entry(*words))
    return entries


class Judgement:
    """Holds differences against the list. An entry of a program in `programs`, those that have run, must cover a
    case of `different` or `unsteady`."""

    def __init__(self, entries: Sequence[Entry], different: Iterable[Case], unsteady: Collection[Case],
                 programs: Container[str]) -> None:
        self.reasons: dict[Case, Entry] = {}  # the entry that covers it
        self.unlisted: list[Case] = []
        for pair in different:
            entry = next((entry for entry in entries if entry.covers(*pair)), None)
            if entry is None:
                self.unlisted.append(pair)
            else:
                self.reasons[pair] = entry
        applied = set(self.reasons.values())
        applied |= {entry for entry in entries for pair in unsteady if entry.covers(*pair)}
        self.unused = [entry for entry in entries if entry.program in programs and entry not in applied]

    @property
    def good(self) -> bool:
        return not self.unlisted and not self.unused
