"""Runs what is missing of the experiments, in turn, and records each run as soon as it has ended.

Within a repeat the series of an experiment follow one another on copies of the same device; every other repeat goes in
the opposite order, so that no series is always first.
"""
from __future__ import annotations

import dataclasses
import math
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

from . import device, processes, results
from .guest import timed
from .processes import Environment
from .progress import duration
from .results import Parameters

if TYPE_CHECKING:
    from .progress import Progress
    from .versions import Build

One = TypeVar("One")
GIB = 1 << 30
MEMORY_OF_PROGRAMS = 2 * GIB  # what RocksDB and the emulator need beside the data
SMALL_ZONE = device.Shape()


class Context:
    """What one run has at hand; it keeps the commands that were run."""

    def __init__(self, build: Build, shelf: device.Shelf, parameters: Parameters, seed: int,
                 note: Callable[[str], None] = lambda text: None) -> None:
        """`note` is told how a run that takes long gets on."""
        self.build = build
        self.shelf = shelf
        self.parameters = parameters
        self.seed = seed
        self.note = note
        self.commands: list[str] = []

    def execute(self, command: Sequence[object], environment: Environment | None = None) -> str:
        words = [str(word) for word in command]
        self.commands.append(processes.shown(words, environment))
        return processes.run(words, environment, self.parameters["time_limit_s"])

    def guest(self, job: Sequence[str], add: timed.Add | None = None) -> dict[str, str]:
        """Does a job in a guest in virtual time; gives the output of each program that it runs, by name. `add` adds
        programs to those that every guest has."""
        self.commands += job
        memory = needed_memory(self.parameters["data_bytes"])
        return timed.run(self.build, job, self.shelf.scratch, memory, self.seed, self.parameters["time_limit_s"],
                         self.note, add)

    def store(self, series: str, shape: device.Shape = SMALL_ZONE,
              options: str = "") -> device.PosixStore | device.DeviceStore:
        return self.shelf.store(series, shape, self.execute, options, self.speed)

    def zoned(self, series: str, shape: device.Shape = SMALL_ZONE, options: str = "") -> device.DeviceStore:
        return self.shelf.zoned(series, shape, self.execute, options, self.speed)

    def conventional(self, size_mib: int, age: float) -> device.ConventionalStore:
        return self.shelf.conventional(size_mib, age, self.seed, self.speed)

    @property
    def speed(self) -> float:
        """How many times as fast as its profile a device is."""
        speed: float = self.parameters.get("speed", 1)
        return speed


class Runnable(Protocol):
    """What is to be known of an experiment (experiments/base.py) to run it."""

    @property
    def name(self) -> str: ...

    @property
    def variants(self) -> Callable[[Parameters], list[results.Variant]]: ...

    @property
    def run(self) -> Callable[[Context, results.Variant], results.Outcome]: ...


@dataclasses.dataclass
class Run:
    """One that is to be made."""
    experiment: Runnable
    records: results.Results
    path: str
    variant: results.Variant
    repeat: int
    pace: float = 1.0  # how many times as long as expected it will take

    def __str__(self) -> str:
        return f"{self.experiment.name}: {self.variant}, repeat {self.repeat}"


def in_turn(variants: Sequence[One], repeats: int) -> Iterator[tuple[One, int]]:
    """(variant, repeat): series beside series, the order of a repeat the opposite of the last one's."""
    for repeat in range(1, repeats + 1):
        for variant in variants if repeat % 2 else reversed(variants):
            yield variant, repeat


def missing_runs(experiment: Runnable, records: results.Results, path: str, repeats: int,
                 pace: float = 1.0) -> list[Run]:
    return [Run(experiment, records, path, variant, repeat, pace)
            for variant, repeat in in_turn(experiment.variants(records.header["parameters"]), repeats)
            if not records.is_done(variant, repeat)]


def expected_seconds(run: Run) -> float:
    """From what the same variant, or the same experiment, took before; else what the experiment expects."""
    done = [one for one in run.records.runs if one["status"] == "done"]
    same = [one["seconds"] for one in done if one["x"] == run.variant.x and one["series"] == run.variant.series]
    times = same or [one["seconds"] for one in done]
    expected: float = run.records.header["parameters"]["expected_s"]
    return statistics.fmean(times) if times else run.pace * expected


def free_memory(directory: str) -> int:
    """Bytes that a file in `directory`, a tmpfs, can still take."""
    space = os.statvfs(directory)
    with open("/proc/meminfo", encoding="utf-8") as file:
        available = next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable:"))
    return min(space.f_bavail * space.f_frsize, available)


def needed_memory(data_bytes: int) -> int:
    """Files of an LSM-tree take up to three times its data while it is compacted."""
    return 3 * data_bytes + MEMORY_OF_PROGRAMS


def check_memory(directory: str, data_bytes: int) -> None:
    needed, free = needed_memory(data_bytes), free_memory(directory)
    if free < needed:
        raise processes.RunFailed(
            f"this run needs {needed / GIB:.1f} GiB in {directory}, {free / GIB:.1f} GiB are free")


def in_words(measurement: results.Measurement) -> str:
    where = "" if measurement.x is None else f" ({measurement.x})"
    value = f"{measurement.metric} {measurement.value:,.4g} {measurement.unit}"
    return value + (" or more" if measurement.or_more else "") + where


def summary(outcome: results.Outcome) -> str:
    """The first measurements, for the progress."""
    return ", ".join(map(in_words, outcome.measurements[:3]))


class Runner:
    """Makes runs in a scratch directory of its own."""

    def __init__(self, build: Build, tmpfs: str, progress: Progress) -> None:
        self.build = build
        self.tmpfs = tmpfs
        self.progress = progress

    def __enter__(self) -> Self:
        self.scratch = tempfile.mkdtemp(prefix="isozone-lab-", dir=self.tmpfs)
        self.shelf = device.Shelf(self.build, self.scratch)
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.scratch, ignore_errors=True)

    def run_all(self, runs: Sequence[Run], within_s: float = math.inf) -> int:
        """How many failed. A run that would not end within so many seconds from now is left out."""
        failures, left_out = 0, 0
        deadline = time.monotonic() + within_s
        for index, run in enumerate(runs):
            if time.monotonic() + expected_seconds(run) > deadline:
                left_out += 1
                continue
            self.progress.start(index + 1, str(run), sum(map(expected_seconds, runs[index:])))
            failures += not self.run_one(run)
        if left_out:
            self.progress.note(f"left out, since they would not end within {duration(within_s)}: {left_out} of "
                               f"{len(runs)} runs; the same command continues")
        return failures

    def run_one(self, run: Run) -> bool:
        """Whether it succeeded."""
        parameters = run.records.header["parameters"]
        context = Context(self.build, self.shelf, parameters, run.records.header["seed"] + run.repeat - 1,
                          lambda text: self.progress.note(f"{run}: {text}"))
        start = time.monotonic()
        outcome: results.Outcome | None
        error = ""
        try:
            check_memory(self.tmpfs, parameters["data_bytes"])
            outcome = run.experiment.run(context, run.variant)
        except (processes.RunFailed, OSError, ValueError, KeyError, IndexError) as failure:
            outcome, error = None, str(failure) if isinstance(failure, processes.RunFailed) else repr(failure)
        seconds = time.monotonic() - start
        facts = {"seconds": round(seconds, 2), "seed": context.seed, "commands": context.commands}
        if outcome is not None:
            run.records.succeeded(run.variant, run.repeat, outcome, **facts)
        else:
            run.records.failed(run.variant, run.repeat, error, **facts)
        run.records.save(run.path)
        self.progress.finish(str(run), seconds, summary(outcome) if outcome is not None else f"FAILED: {error}")
        return outcome is not None
