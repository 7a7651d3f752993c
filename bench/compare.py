"""Contestants measured in turn, and the table of what came out: all that the scripts of this folder share.

A script names its options and its contestants, and has a function that measures one of them once. `Bench.compare` calls
it for each of them, in an order that turns every other time, so that no contestant is always first and all meet the
same state of the machine. Each call finds a new, empty directory, which is removed after it. The table has the medians
of the calls, their ratios to the first contestant, and their spread. A script exits with 0 where all was measured, and
with 1 and a message where a run failed. Its scratch directory is removed however it ends, but for SIGKILL.
"""
import argparse
import contextlib
import glob
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lab"))

from isozone_lab import db_bench, processes, runner, versions  # noqa: E402 - only found by the line above

Contestant = TypeVar("Contestant")
Figures = dict[str, float]  # of one run, by what is shown beside them
SHARED_MEMORY = "/dev/shm"  # where Isozone has its pages of statistics and the memory that it keeps
LONGEST_RUN_S = 24 * 3600
ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class NoFigures(Exception):
    """A contestant cannot do what is measured; the message says why. The others are measured nevertheless."""


class Option(NamedTuple):
    """Of the command line. The default says the type: a list takes several, and False is a flag."""
    default: Any
    help: str
    quick: Any = None  # the default with --quick, if that is another one
    choices: Collection[str] | None = None


COMMON = {
    "build": Option("build/release", "build directory with libisozone.so and isozone"),
    "directory": Option("/dev/shm", "where devices and databases lie, on tmpfs"),
    "repeats": Option(3, "runs of each, in turn and every other time backwards", quick=1),
    "seed": Option(1, "of what is random"),
}


def parse(description: str | None, options: Mapping[str, Option],
          words: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line, or `words`, by `options` and those that all scripts have; the former have precedence."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="in small, to see that it runs")
    every = {**COMMON, **options}
    for name, option in every.items():
        flag, default = f"--{name.replace('_', '-')}", option.default
        if default is False:
            parser.add_argument(flag, action="store_true", help=option.help)
            continue
        several = isinstance(default, list)
        kind = str if default is None else type(default[0] if several else default)
        parser.add_argument(flag, type=kind, default=default, nargs="+" if several else None, choices=option.choices,
                            help=option.help if default is None else f"{option.help} (%(default)s)")
    if parser.parse_args(words).quick:
        parser.set_defaults(**{name: option.quick for name, option in every.items() if option.quick is not None})
    return parser.parse_args(words)


def rates(results: Mapping[str, db_bench.Result]) -> Figures:
    """Operations a second of each benchmark."""
    return {f"{name}/s": result.rate for name, result in results.items()}


def processor_seconds(process: int) -> float:
    """What a process has used of the processors so far."""
    with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
        fields = file.read().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def remove(directory: str) -> None:
    """Removes it, and what a process that was killed has left in shared memory of the devices in it."""
    for name in os.listdir(directory):
        found = os.lstat(os.path.join(directory, name))
        page = f"{SHARED_MEMORY}/isozone-{found.st_dev:x}-{found.st_ino:x}"
        for path in [page, *glob.glob(f"{page}[-.]*")]:
            with contextlib.suppress(FileNotFoundError):
                os.remove(path)
    shutil.rmtree(directory, ignore_errors=True)


def number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.2f}"


def medians(runs: Mapping[str, Sequence[Figures]], greatest: Collection[str] = ()) -> dict[str, Figures]:
    """The medians of each contestant, and of the figures `greatest` the greatest ones; none where a run has none."""
    return {name: {figure: (max if figure in greatest else statistics.median)(run[figure] for run in results)
                   for figure in results[0]} if all(results) else {}
            for name, results in runs.items()}


def table(title: str, runs: Mapping[str, Sequence[Figures]], greatest: Collection[str] = (),
          paired: bool = False) -> Iterator[str]:
    """The lines of a table: a row for each figure, a column for each contestant with the ratio to the first one.

    The ratio is that of the medians or, where runs are `paired`, the median of the ratios of runs that followed each
    other. The spread is that of the runs of a contestant, in percent of their median: of the contestant where it is
    greatest.
    """
    found = medians(runs, greatest)
    base, *others = runs

    def cell(name: str, figure: str) -> str:
        if figure not in found[name]:
            return "-"
        text = number(found[name][figure])
        if not others or not found[base].get(figure):
            return text
        ratio = found[name][figure] / found[base][figure]
        if paired:
            ratio = statistics.median(run[figure] / beside[figure] for run, beside in
                                      zip(runs[name], runs[base], strict=True) if beside[figure])
        return f"{text} ({ratio:.2f})"

    def spread(figure: str) -> str:
        of_each = [[run[figure] for run in results] for results in runs.values() if all(results)]
        parts = [(max(values) - min(values)) / (abs(statistics.median(values)) or 1) for values in of_each]
        return f"{max(parts):.0%}" if len(of_each[0]) > 1 else "-"

    figures = next((list(of_one) for of_one in found.values() if of_one), [])
    width = max(map(len, [title, *figures])) + 2
    yield f"{title:<{width}}" + "".join(f"{name:>20}" for name in runs) + f"{'spread':>9}"
    for figure in figures:
        yield (f"{figure:<{width}}" + "".join(f"{cell(name, figure):>20}" for name in runs)
               + f"{spread(figure):>9}")


class Bench:
    """What a script measures with. `scratch` is new and empty in each run; what is in `kept` stays for the next."""

    def __init__(self, arguments: argparse.Namespace, kept: str) -> None:
        self.arguments = arguments
        self.kept = kept
        self.scratch = os.path.join(kept, "run")
        self.build = versions.Build(arguments.build)

    def compare(self, contestants: Mapping[str, Contestant], measure: Callable[["Bench", Contestant], Figures],
                title: str = "", greatest: Collection[str] = (), paired: bool = False) -> dict[str, Figures]:
        """Measures each contestant as often as the command line says, prints the table, and returns the medians."""
        runs: dict[str, list[Figures]] = {name: [] for name in contestants}
        reasons: dict[str, str] = {}
        repeats = self.arguments.repeats
        for name, repeat in runner.in_turn(list(contestants), repeats):
            os.mkdir(self.scratch)
            try:
                runs[name].append(measure(self, contestants[name]))
                said = "  ".join(f"{figure} {number(value)}" for figure, value in runs[name][-1].items())
            except NoFigures as why:
                runs[name].append({})
                reasons[name] = said = str(why)
            finally:
                remove(self.scratch)
            print(f"{repeat}/{repeats} {title and title + ', '}{name}: {said}", file=sys.stderr)
        for line in table(f"{title and title + ', '}median of {repeats}", runs, greatest, paired):
            print(line)
        for name, reason in reasons.items():
            print(f"{name}: {reason}")
        sys.stdout.flush()
        return medians(runs, greatest)

    def tool(self, *words: str) -> str:
        """What the command line tool prints."""
        return processes.run([self.build.tool, *words])

    def device(self, options: str) -> str:
        """The URI of a new emulated SSD in the scratch directory, which is formatted with `options`."""
        uri = f"emu:{self.scratch}/ssd.img"
        self.tool("mkfs", f"{uri}?{options}")
        return uri

    def copy(self, name: str, make: Callable[[str], None]) -> str:
        """The URI of a device in the scratch directory: a copy of the image that `make` makes once, at a path."""
        image = os.path.join(self.kept, name)
        if not os.path.exists(image):
            make(image)
        processes.run(["cp", "--sparse=always", image, f"{self.scratch}/ssd.img"])
        return f"emu:{self.scratch}/ssd.img"

    def db_bench(self, benchmarks: Sequence[str], uri: str = "", database: str = "",
                 build: versions.Build | None = None, **options: object) -> dict[str, db_bench.Result]:
        """Runs the stock db_bench on the device of `uri` or, without one, on POSIX files in the scratch directory."""
        where = database or ("/db" if uri else f"{self.scratch}/posix")
        command = db_bench.arguments(where, uri and f"isozone://{uri}", self.arguments.seed, benchmarks, **options)
        environment = {"LD_PRELOAD": (build or self.build).shared_object} if uri else {}
        return db_bench.results_of(processes.run(command, environment, LONGEST_RUN_S), benchmarks)

    @contextlib.contextmanager
    def mounted(self, uri: str, directory: str, *options: str) -> Iterator[int]:
        """Mounts the device in `directory`, which it makes; gives the process that serves it."""
        os.mkdir(directory)
        with subprocess.Popen([self.build.tool, "mount", "-f", *options, uri, directory],
                              stdout=subprocess.PIPE) as daemon:
            assert daemon.stdout is not None
            if b"is mounted on" not in daemon.stdout.readline():
                raise processes.RunFailed(f"the mount failed with exit code {daemon.wait()}; see above")
            try:
                yield daemon.pid
            finally:
                daemon.terminate()


def end(which: int, _: object) -> None:
    for other in ENDINGS:
        signal.signal(other, signal.SIG_IGN)  # so that cleaning up ends
    sys.exit(128 + which)


@contextlib.contextmanager
def bench(description: str | None, **options: Option) -> Iterator[Bench]:
    """Parses the command line, and gives what to measure with."""
    arguments = parse(description, options)
    for which in ENDINGS:
        signal.signal(which, end)
    kept = None
    try:
        kept = tempfile.mkdtemp(prefix="isozone-bench-", dir=arguments.directory)
        yield Bench(arguments, kept)
    except (processes.RunFailed, OSError) as failure:
        sys.exit(f"{os.path.basename(sys.argv[0])}: {failure}")
    finally:
        if kept is not None:
            remove(kept)
