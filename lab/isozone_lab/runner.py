"""Runs what is missing of the experiments, in turn, and records each run as soon as it has ended.

Within a repeat the series of an experiment follow one another on copies of the same device; every other repeat goes in
the opposite order, so that no series is always first.
"""
import dataclasses
import os
import shutil
import statistics
import tempfile
import time

from . import device, processes, results

GIB = 1 << 30
MEMORY_OF_PROGRAMS = 2 * GIB  # what RocksDB and the emulator need beside the data
SMALL_ZONE = device.Shape()


class Context:
    """What one run has at hand; it keeps the commands that were run."""

    def __init__(self, build, shelf, parameters, seed):
        self.build = build
        self.shelf = shelf
        self.parameters = parameters
        self.seed = seed
        self.commands = []

    def execute(self, command, environment=None):
        command = [str(word) for word in command]
        self.commands.append(processes.shown(command, environment))
        return processes.run(command, environment, self.parameters["time_limit_s"])

    def store(self, series, shape=SMALL_ZONE, options=""):
        return self.shelf.store(series, shape, self.execute, options, self.speed)

    def conventional(self, size_mib, age):
        return self.shelf.conventional(size_mib, age, self.seed, self.speed)

    @property
    def speed(self):
        """How many times as fast as its profile a device is."""
        return self.parameters.get("speed", 1)


@dataclasses.dataclass
class Run:
    """One that is to be made."""
    experiment: object
    records: results.Results
    path: str
    variant: results.Variant
    repeat: int

    def __str__(self):
        return f"{self.experiment.name}: {self.variant}, repeat {self.repeat}"


def in_turn(variants, repeats):
    """(variant, repeat): series beside series, the order of a repeat the opposite of the last one's."""
    for repeat in range(1, repeats + 1):
        for variant in variants if repeat % 2 else reversed(variants):
            yield variant, repeat


def missing_runs(experiment, records, path, repeats):
    return [Run(experiment, records, path, variant, repeat)
            for variant, repeat in in_turn(experiment.variants(records.header["parameters"]), repeats)
            if not records.is_done(variant, repeat)]


def expected_seconds(run):
    """From what the same variant, or the same experiment, took before; else what the experiment expects."""
    done = [one for one in run.records.runs if one["status"] == "done"]
    same = [one["seconds"] for one in done if one["x"] == run.variant.x and one["series"] == run.variant.series]
    times = same or [one["seconds"] for one in done]
    return statistics.fmean(times) if times else run.records.header["parameters"]["expected_s"]


def free_memory(directory):
    """Bytes that a file in `directory`, a tmpfs, can still take."""
    space = os.statvfs(directory)
    with open("/proc/meminfo", encoding="utf-8") as file:
        available = next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable:"))
    return min(space.f_bavail * space.f_frsize, available)


def needed_memory(data_bytes):
    """Files of an LSM-tree take up to three times its data while it is compacted."""
    return 3 * data_bytes + MEMORY_OF_PROGRAMS


def check_memory(directory, data_bytes):
    needed, free = needed_memory(data_bytes), free_memory(directory)
    if free < needed:
        raise processes.RunFailed(
            f"this run needs {needed / GIB:.1f} GiB in {directory}, {free / GIB:.1f} GiB are free")


def in_words(measurement):
    where = "" if measurement.x is None else f" ({measurement.x})"
    value = f"{measurement.metric} {measurement.value:,.4g} {measurement.unit}"
    return value + (" or more" if measurement.or_more else "") + where


def summary(outcome):
    """The first measurements, for the progress."""
    return ", ".join(map(in_words, outcome.measurements[:3]))


class Runner:
    """Makes runs in a scratch directory of its own."""

    def __init__(self, build, tmpfs, progress):
        self.build = build
        self.tmpfs = tmpfs
        self.progress = progress
        self.scratch = None

    def __enter__(self):
        self.scratch = tempfile.mkdtemp(prefix="isozone-lab-", dir=self.tmpfs)
        self.shelf = device.Shelf(self.build, self.scratch)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.scratch, ignore_errors=True)

    def run_all(self, runs):
        """How many failed."""
        failures = 0
        for index, run in enumerate(runs):
            self.progress.start(index + 1, str(run), sum(map(expected_seconds, runs[index:])))
            failures += not self.run_one(run)
        return failures

    def run_one(self, run):
        """Whether it succeeded."""
        parameters = run.records.header["parameters"]
        context = Context(self.build, self.shelf, parameters, run.records.header["seed"] + run.repeat - 1)
        start = time.monotonic()
        try:
            check_memory(self.tmpfs, parameters["data_bytes"])
            outcome, error = run.experiment.run(context, run.variant), None
        except (processes.RunFailed, OSError, ValueError, KeyError, IndexError) as failure:
            outcome, error = None, f"{failure}" if isinstance(failure, processes.RunFailed) else repr(failure)
        seconds = time.monotonic() - start
        facts = {"seconds": round(seconds, 2), "seed": context.seed, "commands": context.commands}
        if error is None:
            run.records.succeeded(run.variant, run.repeat, outcome, **facts)
        else:
            run.records.failed(run.variant, run.repeat, error, **facts)
        run.records.save(run.path)
        self.progress.finish(str(run), seconds, summary(outcome) if error is None else f"FAILED: {error}")
        return error is None
