"""The command lines of lab/run and lab/report."""
import argparse
import math
import os
import signal
import sys
from collections.abc import Callable, Sequence

from . import durations, experiments, processes, progress, report, results, runner, sources, versions
from .experiments.base import Experiment

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130
DEFAULT_OUT = {"quick": "build/lab/quick", "night": "build/lab/night", "full": "build/lab"}
DEFAULT_REPEATS = {"quick": 1, "night": 1, "full": 3}
LIMIT_S = {"quick": math.inf, "night": 8 * 3600, "full": math.inf}
NEEDS = (("matplotlib", "python3-matplotlib"),)


class Refused(Exception):
    """What cannot be done, in one line, and the exit code for it."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def factor(text: str) -> float:
    value = float(text)
    if not 0 < value <= 100:
        raise argparse.ArgumentTypeError("above 0, at most 100")
    return value


def add_out(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", metavar="DIR", help="directory of results and page (build/lab, with --quick "
                        "build/lab/quick, with --night build/lab/night)")


def add_modes(parser: argparse.ArgumentParser, quick: str, night: str) -> None:
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument("--quick", action="store_true", help=quick)
    modes.add_argument("--night", action="store_true", help=night)


def mode_of(arguments: argparse.Namespace) -> str:
    return "quick" if arguments.quick else "night" if arguments.night else "full"


def out_of(arguments: argparse.Namespace) -> str:
    return arguments.out or DEFAULT_OUT[mode_of(arguments)]


def run_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="lab/run", description="Run experiments, draw them and write the page. What "
                                     "is recorded already, with the same versions and sizes, is not run again.")
    parser.add_argument("experiments", nargs="*", metavar="EXPERIMENT", help="names as --list shows them; all if none")
    parser.add_argument("--list", action="store_true", help="list the experiments")
    add_modes(parser, "small sizes and one repeat: all within 20 minutes", "one repeat, of sizes that fit a night; "
              "runs that would not end within 8 hours are left out, and the same command continues")
    add_out(parser)
    parser.add_argument("--build", default="build/release", metavar="DIR", help="build directory (build/release)")
    parser.add_argument("--guest-kernel", default=versions.GUEST_KERNEL, metavar="DIR", help="kernel of "
                        f"experiments in a virtual machine ({versions.GUEST_KERNEL}): what scripts/fetch-guest-kernel "
                        "--newest has unpacked")
    parser.add_argument("--tmpfs", default="/dev/shm", metavar="DIR", help="where devices are made (/dev/shm)")
    parser.add_argument("--repeats", type=positive, metavar="N", help="runs of each (3, with --quick or --night 1)")
    parser.add_argument("--speed", type=factor, metavar="FACTOR", help="of the device, in times the published one, for "
                        "experiments that say how fast theirs is (as each says)")
    parser.add_argument("--seed", type=positive, default=1, metavar="N", help="of the first repeat (1)")
    return parser


def choose(names: Sequence[str]) -> list[Experiment]:
    """The experiments of these names; for none, or for `all`, all but those that want to be named."""
    if not names or names == ["all"]:
        return [one for one in experiments.ALL if not one.by_name]
    known = {one.name: one for one in experiments.ALL}
    names = [experiments.EARLIER_NAMES.get(name, name) for name in names]
    for name in names:
        if name not in known:
            raise Refused(USAGE, f"unknown experiment '{name}'; there are: {', '.join(known)}")
    return [known[name] for name in dict.fromkeys(names)]


def check_modules() -> None:
    for module, package in NEEDS:
        try:
            __import__(module)
        except ImportError:
            raise Refused(FAILED, f"{package} is missing; use scripts/install-dependencies lab") from None


def open_build(directory: str, guest_kernel: str = versions.GUEST_KERNEL) -> versions.Build:
    build = versions.Build(directory, guest_kernel)
    if build.missing():
        raise Refused(FAILED, f"{build.missing()[0]} is missing; use make lab-build")
    return build


def header_of(experiment: Experiment, arguments: argparse.Namespace, found: results.Versions) -> results.Header:
    mode = mode_of(arguments)
    parameters = experiment.parameters(mode)
    if arguments.speed and "speed" in parameters:
        parameters["speed"] = arguments.speed
    found = {**found, "lab": sources.digest(sources.of(experiment))}
    fingerprint = results.fingerprint(mode, parameters, arguments.seed, found, experiment.driver)
    return {"experiment": experiment.name, "mode": mode, "parameters": parameters, "seed": arguments.seed,
            "versions": found, "fingerprint": fingerprint}


def prepare(arguments: argparse.Namespace, chosen: Sequence[Experiment], found: results.Versions,
            pace: durations.Pace) -> list[runner.Run]:
    """The runs that are missing; experiments that show the same runs have them once."""
    repeats = arguments.repeats or DEFAULT_REPEATS[mode_of(arguments)]
    runs = []
    for experiment in experiments.that_run(chosen):
        path = os.path.join(out_of(arguments), experiment.records_name)
        records, aside = results.Results.resume(path, header_of(experiment, arguments, found))
        if aside:
            print(f"{experiment.name}: what was recorded is of other versions or sizes; kept as {aside}, and found "
                  "again when they are back", file=sys.stderr)
        runs += runner.missing_runs(experiment, records, path, repeats, pace.of(experiment.name))
    return runs


def pace_of(arguments: argparse.Namespace, found: results.Versions) -> durations.Pace:
    """From what is recorded, in any mode."""
    names = {one.records_name for one in experiments.ALL}
    directories = {os.path.normpath(path) for path in (out_of(arguments), *DEFAULT_OUT.values())}
    recorded = [results.Results.load(os.path.join(directory, name)) for directory in directories for name in names]
    return durations.Pace([records for records in recorded if records is not None], found["cpu"])


def forecast(runs: Sequence[runner.Run], pace: durations.Pace, limit_s: float) -> str:
    """How long the runs will take, before the first one begins."""
    seconds = sum(map(runner.expected_seconds, runs))
    words = f"{report.counted(len(runs), 'run')} will take about {progress.duration(seconds)}, {pace.basis()}"
    return words if seconds <= limit_s else f"{words}; what does not fit into {progress.duration(limit_s)} is left out"


def execute(arguments: argparse.Namespace, chosen: Sequence[Experiment]) -> int:
    """Runs what is missing; how many runs failed."""
    build = open_build(arguments.build, arguments.guest_kernel)
    check_modules()
    os.makedirs(out_of(arguments), exist_ok=True)
    rename_results(out_of(arguments))
    found = versions.collect(build)
    pace = pace_of(arguments, found)
    runs = prepare(arguments, chosen, found, pace)
    with progress.create(len(runs)) as shown, runner.Runner(build, arguments.tmpfs, shown) as work:
        if not runs:
            shown.note("everything asked for is recorded already")
            return 0
        limit_s = LIMIT_S[mode_of(arguments)]
        shown.note(forecast(runs, pace, limit_s))
        return work.run_all(runs, limit_s)


def list_experiments() -> None:
    for one in experiments.ALL:
        print(f"{one.name:<24} {one.title} ({one.source})")


def rename_results(directory: str) -> None:
    """Files of results whose experiments were called otherwise get the names of now, unless there is such a file."""
    for name in sorted(os.listdir(directory) if os.path.isdir(directory) else ()):
        experiment, _, rest = name.partition(".")
        if experiment in experiments.EARLIER_NAMES and rest.endswith("json"):
            present = f"{experiments.EARLIER_NAMES[experiment]}.{rest}"
            if not os.path.exists(os.path.join(directory, present)):
                os.rename(os.path.join(directory, name), os.path.join(directory, present))
                print(f"{name} is {present} from now on", file=sys.stderr)


def print_page(directory: str) -> None:
    path = report.write(directory)
    if path is None:
        raise Refused(FAILED, f"no results in {directory}; use lab/run")
    print(path)


def guarded(prog: str, action: Callable[[], int]) -> int:
    """The exit code of `action`; what it refuses is said in one line."""
    try:
        return action()
    except Refused as refused:
        print(f"{prog}: {refused}", file=sys.stderr)
        return refused.code
    except (OSError, processes.RunFailed, results.Damaged) as error:
        print(f"{prog}: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print(f"{prog}: interrupted; the same command continues", file=sys.stderr)
        return INTERRUPTED


def run_experiments(words: Sequence[str] | None = None) -> int:
    arguments = run_parser().parse_args(words)

    def action() -> int:
        chosen = choose(arguments.experiments)
        if arguments.list:
            list_experiments()
            return OK
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.default_int_handler)
        failures = execute(arguments, chosen)
        print_page(out_of(arguments))
        return FAILED if failures else OK

    return guarded("lab/run", action)


def write_report(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="lab/report", description="Draw what has been run and write one page of it.")
    add_modes(parser, "the page of the quick runs", "the page of the runs of a night")
    add_out(parser)
    arguments = parser.parse_args(words)

    def action() -> int:
        check_modules()
        rename_results(out_of(arguments))
        print_page(out_of(arguments))
        return OK

    return guarded("lab/report", action)
