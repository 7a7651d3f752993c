"""The list of known differences: which cases end otherwise on Isozone than on POSIX, and why that is no defect."""

import fnmatch


class ListError(Exception):
    """A line of the list says nothing; the message is for people."""


class Entry:
    def __init__(self, program, pattern, reason):
        self.program, self.pattern, self.reason = program, pattern, reason

    def covers(self, program, case):
        return program == self.program and fnmatch.fnmatchcase(case, self.pattern)

    def __str__(self):
        return f"{self.program} {self.pattern}"


def parse(text, programs, name="differences.txt"):
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
    """Holds differences against the list. `different` and `unsteady` are pairs of program and case; an entry of a
    program in `programs`, those that have run, must cover one of them."""

    def __init__(self, entries, different, unsteady, programs):
        self.reasons = {}   # (program, case) to the entry that covers it
        self.unlisted = []  # pairs of program and case
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
    def good(self):
        return not self.unlisted and not self.unused
