"""What was measured, as JSON: one file an experiment, replaced as a whole after each run, so that a lab that was
interrupted continues where it stopped.

`runs` has a record of every run, failed ones included; `results` is made from it: for each series, x and metric the
median of the repeats and every repeat's value. A run counts as done if it succeeded with the same parameters, seed and
versions (the fingerprint). NAME.json is the newest; a file of another fingerprint is kept beside it as
NAME.FINGERPRINT.json, and becomes the newest again when the same is asked for once more.
"""
from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

# Versions that decide, with that of the driver, whether two runs may stand side by side; others are for the reader.
DECISIVE = ("isozone", "library", "conventional", "tool", "profile", "lab", "cpu", "kernel")
X = Any                       # what is varied beside the series: a number or a word, or None
Parameters = dict[str, Any]   # sizes, by name
Versions = Mapping[str, str]  # of programs, libraries and the machine
Header = dict[str, Any]       # experiment, mode, parameters, seed, versions, fingerprint
Record = dict[str, Any]       # a run or a measurement, as the file has it

# Parameters that change nothing that is measured.
INCIDENTAL = ("expected_s", "time_limit_s")


# What every file has.
PARTS = {"experiment", "mode", "parameters", "seed", "versions", "fingerprint", "results", "runs"}


class Damaged(Exception):
    """A file is not one of records as they were written; the message is for people."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is cut off or no record of the lab; remove it, or move it away")


@dataclasses.dataclass(frozen=True)
class Variant:
    """What is run: a series, and where the experiment has several devices or sizes, which."""
    series: str
    x: X = None

    def __str__(self) -> str:
        return self.series if self.x is None else f"{self.series} at {self.x}"


@dataclasses.dataclass(frozen=True)
class Measurement:
    metric: str
    value: float
    unit: str
    x: X = None  # None: the variant's
    or_more: bool = False  # the value is where the search for it ended: it may be greater


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Of one run: its measurements, and what only the plot needs."""
    measurements: list[Measurement]
    details: dict[str, Any] = dataclasses.field(default_factory=dict)


def fingerprint(mode: str, parameters: Parameters, seed: int, versions: Versions, driver: str) -> str:
    """`driver`: the version that counts of the programs that make the load."""
    decisive = {name: versions.get(name) for name in (*DECISIVE, driver)}
    chosen = {name: value for name, value in parameters.items() if name not in INCIDENTAL}
    text = json.dumps([mode, chosen, seed, decisive], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def write_atomically(path: str, text: str) -> None:
    """The file has the old or the new content, whatever happens."""
    temporary = f"{path}.new"
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def beside(path: str, fingerprint: str) -> str:
    """Where the records of a fingerprint are kept while `path` has those of another."""
    return f"{path.removesuffix('.json')}.{fingerprint}.json"


def take_back(path: str, fingerprint: str) -> Results | None:
    """The records of a fingerprint that were put aside, which `path` has from now on; None if there are none."""
    kept = beside(path, fingerprint)
    records = Results.load(kept)
    if records is not None:
        os.replace(kept, path)
    return records


def has_open_median(measured: Iterable[Record]) -> bool:
    """Whether the median, or the greater of the two that it is made of, is a value that may be greater."""
    ordered = sorted(measured, key=lambda one: one["value"])
    return bool(ordered) and ordered[len(ordered) // 2].get("or_more", False)


class Results:
    """The records of one experiment."""

    def __init__(self, header: Header, runs: Iterable[Record] = ()) -> None:
        self.header = header
        self.runs = list(runs)

    @staticmethod
    def load(path: str) -> Results | None:
        """None if there is no such file."""
        try:
            with open(path, encoding="utf-8") as file:
                document = json.load(file)
        except FileNotFoundError:
            return None
        except ValueError:
            raise Damaged(path) from None
        if not isinstance(document, dict) or not document.keys() >= PARTS:
            raise Damaged(path)
        runs = document.pop("runs")
        document.pop("results")
        return Results(document, runs)

    @staticmethod
    def resume(path: str, header: Header) -> tuple[Results, str | None]:
        """The records that were made the same way, now or earlier; and where those of `path` were put aside, if so."""
        newest, aside = Results.load(path), None
        if newest is not None and newest.header["fingerprint"] != header["fingerprint"]:
            aside = beside(path, newest.header["fingerprint"])
            os.replace(path, aside)
            newest = None
        found = newest or take_back(path, header["fingerprint"])
        return Results(header, found.runs if found else ()), aside

    def save(self, path: str) -> None:
        document = {**self.header, "results": self.rows(), "runs": self.runs}
        write_atomically(path, json.dumps(document, indent=1) + "\n")

    def record(self, variant: Variant, repeat: int, **fields: Any) -> None:
        """Adds a run; it replaces an earlier one of the same variant and repeat."""
        self.runs = [run for run in self.runs if not is_of(run, variant, repeat)]
        self.runs.append({"series": variant.series, "x": variant.x, "repeat": repeat, **fields})

    def succeeded(self, variant: Variant, repeat: int, outcome: Outcome, **fields: Any) -> None:
        measurements = [{**dataclasses.asdict(one), "x": variant.x if one.x is None else one.x}
                        for one in outcome.measurements]
        self.record(variant, repeat, status="done", measurements=measurements, details=outcome.details, **fields)

    def failed(self, variant: Variant, repeat: int, error: str, **fields: Any) -> None:
        self.record(variant, repeat, status="failed", error=error, measurements=[], details={}, **fields)

    def is_done(self, variant: Variant, repeat: int) -> bool:
        return any(is_of(run, variant, repeat) and run["status"] == "done" for run in self.runs)

    def failures(self) -> list[Record]:
        return [run for run in self.runs if run["status"] == "failed"]

    def measured(self, series: str, metric: str, x: X = None) -> dict[int, Record]:
        """The measurement of each repeat."""
        return {run["repeat"]: one for run in self.runs for one in run["measurements"]
                if run["series"] == series and one["metric"] == metric and (x is None or one["x"] == x)}

    def xs(self, series: str, metric: str) -> list[X]:
        """At which it was measured, in the order of the runs."""
        return list(dict.fromkeys(one["x"] for run in self.runs for one in run["measurements"]
                                  if run["series"] == series and one["metric"] == metric))

    def values(self, series: str, metric: str, x: X = None) -> dict[int, float]:
        """By repeat."""
        return {repeat: one["value"] for repeat, one in self.measured(series, metric, x).items()}

    def median(self, series: str, metric: str, x: X = None) -> float | None:
        """None if nothing was measured."""
        values = self.values(series, metric, x).values()
        return statistics.median(values) if values else None

    def is_or_more(self, series: str, metric: str, x: X = None) -> bool:
        """Whether the median may be greater than it was measured."""
        return has_open_median(self.measured(series, metric, x).values())

    def unit(self, metric: str) -> str:
        return next((one["unit"] for run in self.runs for one in run["measurements"] if one["metric"] == metric), "")

    def details(self, series: str, x: X = None) -> dict[str, Any]:
        """Of the first run that has them; empty if none does."""
        runs = sorted(self.runs, key=lambda run: run["repeat"])
        return next((run["details"] for run in runs
                     if run["series"] == series and run["details"] and (x is None or run["x"] == x)), {})

    def rows(self) -> list[Record]:
        """One for each series, x and metric."""
        groups: dict[tuple[str, X, str], list[tuple[Record, Record]]] = {}
        for run in sorted(self.runs, key=lambda run: run["repeat"]):
            for one in run["measurements"]:
                groups.setdefault((run["series"], one["x"], one["metric"]), []).append((run, one))
        return [self._row(group) for group in groups.values()]

    def _row(self, group: Sequence[tuple[Record, Record]]) -> Record:
        run, one = group[0]
        values = [measured["value"] for _, measured in group]
        return {"experiment": self.header["experiment"], "series": run["series"], "x": one["x"],
                "metric": one["metric"], "value": statistics.median(values), "unit": one["unit"],
                "or_more": has_open_median(measured for _, measured in group), "repeats": len(values),
                "values": values, "seed": self.header["seed"], "versions": self.header["versions"],
                "command": run["commands"]}


def is_of(run: Record, variant: Variant, repeat: int) -> bool:
    return (run["series"], run["x"], run["repeat"]) == (variant.series, variant.x, repeat)
