"""docs/rocksdb-tests.md: what RocksDB's tests say about Isozone, as they were run last."""

import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypedDict

from . import crashtest, outcomes
from .differences import Case, Entry, Judgement

HEAD = """# RocksDB's own tests on Isozone

`make rocksdb-tests` builds the test programs of RocksDB and runs each of their cases on POSIX and on Isozone, on an
emulated SSD of its own; this page is what it wrote. It takes hours and is not part of what runs for every change. A
case that ends otherwise on Isozone is run again by itself, on both, and once more with Isozone in the place of
`rocksdb::FileSystem::Default()`, since some tests use that file system beside the one under test. What differs then
must be in `tests/rocksdb/differences.txt`, with the reason.

"""
COLUMNS = ("program", "cases", "pass", "skipped", "fail on both", "with the default replaced", "unsteady", "differ",
           "run on")
LEGEND = ("*pass*, *skipped*: on both. *With the default replaced*: as on POSIX so, and only so. *Unsteady*: otherwise "
          "at first, and as on POSIX when repeated by itself, or not always the same on POSIX.")
DEFAULT = ("These prepare or look at files through `Env::Default()`, and at the same files through the file system "
           "under test. They pass where both are Isozone.")
UNSTEADY = ("These differed among other cases, and did not when repeated by themselves. Some tests run out of the "
            "time that they give themselves when the machine is busy; some find what the case before has left: a "
            "database in the default file system, or a thread of the pool that its task still holds.")
CRASH_TEST = (
    "`db_crashtest.py` runs `db_stress` on Isozone, kills it at any time (blackbox) or where RocksDB asks it to "
    "(whitebox), and lets it check its database against what it has written. Faults are injected now and then. In the "
    "third way (unsynced) it is killed at any time, nothing is ever synced, no faults are injected, and no option of "
    "RocksDB excuses a loss: every write that had returned must be there. Without backups: `db_stress` opens restored "
    "ones in the default file system.")


class ProgramResult(TypedDict):
    """Of one program: when it ran, and the record of each of its cases."""
    date: str
    records: dict[str, outcomes.Record]


Results = Mapping[str, ProgramResult]  # by program


def paragraph(text: str) -> list[str]:
    return [*textwrap.wrap(text, 120, break_long_words=False, break_on_hyphens=False), ""]


def counts(records: Mapping[str, outcomes.Record]) -> Counter[str]:
    """How many cases there are of each verdict, and of those with the same outcome how many passed."""
    found = Counter(outcomes.verdict(record) for record in records.values())
    for record in records.values():
        if outcomes.verdict(record) == outcomes.SAME:
            found[record["isozone"]] += 1
    return found


def program_rows(results: Results, programs: Iterable[str]) -> list[str]:
    rows = ["| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
    total: Counter[str] = Counter()
    for program in programs:
        if program not in results:
            rows.append(f"| `{program}` | not run | | | | | | | |")
            continue
        records = results[program]["records"]
        found = counts(records)
        found["cases"] = len(records)
        found["bad"] = sum(found[name] for name in (outcomes.FAILED, outcomes.CRASHED, outcomes.HUNG))
        total += found
        rows.append(row(f"`{program}`", found, results[program]["date"]))
    return rows + [row("all", total, "")]


def row(name: str, found: Counter[str], date: str) -> str:
    numbers = [found[one] for one in ("cases", outcomes.PASSED, outcomes.SKIPPED, "bad", outcomes.DEFAULT_ONLY,
                                      outcomes.UNSTEADY, outcomes.DIFFERENT)]
    return f"| {name} | " + " | ".join(f"{number:,}" for number in numbers) + f" | {date} |"


def pairs(results: Results, wanted: str) -> list[Case]:
    """(program, case) of all cases with the verdict `wanted`."""
    return [(program, case) for program, result in results.items() for case, record in result["records"].items()
            if outcomes.verdict(record) == wanted]


def listed_rows(judgement: Judgement) -> list[str]:
    """One row for each entry of the list that applies."""
    by_entry: dict[Entry, list[Case]] = defaultdict(list)
    for pair, entry in judgement.reasons.items():
        by_entry[entry].append(pair)
    return [f"| `{entry.program}` | `{entry.pattern}` | {len(covered)} | {entry.reason} |"
            for entry, covered in by_entry.items()]


def case_lines(title: str, introduction: str, found: Sequence[Case], results: Results) -> list[str]:
    if not found:
        return []
    lines = [f"## {title}", "", *paragraph(introduction)]
    for program, case in found:
        record = results[program]["records"][case]
        lines.append(f"* `{program}`: `{case}`, {record['isozone']} on Isozone, {record['posix']} on POSIX")
    return lines + [""]


def default_lines(found: Sequence[Case]) -> list[str]:
    """Which cases need the default file system replaced, a paragraph for each program."""
    if not found:
        return []
    cases: dict[str, list[str]] = defaultdict(list)
    for program, case in found:
        cases[program].append(f"`{case}`")
    lines = ["## Only with the default file system replaced", "", *paragraph(DEFAULT)]
    for program, names in cases.items():
        lines += paragraph(f"`{program}`: " + ", ".join(names))
    return lines


def crash_lines(crashtests: Sequence[crashtest.DatedResult]) -> list[str]:
    lines = ["## The crash test", "", *paragraph(CRASH_TEST)]
    for result in crashtests:
        end = result["failure"] or "no error"
        device = "clean" if result["fsck"] is None else "not clean: " + result["fsck"].splitlines()[0]
        lines.append(f"* {result['kind']}, {result['minutes']:g} minutes, {result['date']}: {result['runs']} runs of "
                     f"`db_stress`, {end}; fsck afterwards: {device}")
    run = [result["kind"] for result in crashtests]
    lines += [f"* {kind}: not run" for kind in crashtest.KINDS if kind not in run]
    return lines + [""]


def render(results: Results, programs: Iterable[str], judgement: Judgement,
           crashtests: Sequence[crashtest.DatedResult], versions: Iterable[str]) -> str:
    """The whole page."""
    lines = [*paragraph(", ".join(versions) + "."), *program_rows(results, programs), "", *paragraph(LEGEND)]
    if judgement.reasons:
        lines += ["## What differs, and why", "", "| program | cases | how many | why |", "|---|---|---|---|",
                  *listed_rows(judgement), ""]
    lines += case_lines("What differs and is not explained", "These fail the run.", judgement.unlisted, results)
    lines += case_lines("Unsteady", UNSTEADY,
                        pairs(results, outcomes.UNSTEADY), results)
    lines += default_lines(pairs(results, outcomes.DEFAULT_ONLY))
    lines += crash_lines(crashtests)
    return HEAD + "\n".join(lines).rstrip() + "\n"
