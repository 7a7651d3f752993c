"""What an experiment is, and what several of them share."""
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from ..db_bench import KEY_BYTES, VALUE_BYTES
from ..plots import Figure
from ..results import Outcome, Parameters, Results, Variant
from ..runner import Context
from ..targets import Check, OfSeveral

Target = Check | OfSeveral

ZENFS_PLUS = "ZenFS+: Nurturing Performance and Isolation to ZenFS"
PARALLEL = "Parallel I/O for small-zone ZNS SSDs with RocksDB and ZenFS (thesis)"
ENTRY_BYTES = KEY_BYTES + VALUE_BYTES
# The published host has eight cores and the machines that this is made for two: with a device of a quarter of the
# speed, a core has as much of a device to keep busy as published, and the processor does not hide what a device can do.
SPEED = 2 / 8
SCALED = "{scaled}"  # in `setup`: a sentence about the speed of the device where it is not the published one
SERIES = ["zenfs", "striping", "isozone"]
WITH_LIMIT = [*SERIES, "tmpfs"]
PERCENTILES = [99, 99.9, 99.99, 99.999]  # of a latency
TIME_LIMIT_S = {"quick": 300, "night": 3600, "full": 3600}  # of one command


@dataclasses.dataclass(frozen=True)
class Experiment:
    """`quick`, `night` and `full` are the parameters of the modes; all but the plot and the checks depends on them.

    Every set of parameters has `data_bytes`, what the database grows to, and `expected_s`, how long a run takes about.
    as_run() fills `setup` with them.
    """
    name: str
    title: str
    source: str       # where it was published
    what: str
    setup: str
    quick: Parameters
    full: Parameters
    variants: Callable[[Parameters], list[Variant]]
    run: Callable[[Context, Variant], Outcome]
    checks: Sequence[Target]
    plot: Callable[[Results], Figure]
    driver: str = "db_bench"  # what makes the load, as versions.collect calls it
    night: Parameters | None = None  # those of `full` if there are none
    runs_of: str = ""   # the experiment whose runs this one shows from another side; its own if empty
    by_name: bool = False  # whether it is run only if it is named, since it needs packages that bring services
    why_slower: str = "the published host has eight cores, not two"  # the device, where it is

    @property
    def records_name(self) -> str:
        """Of the file with its runs."""
        return f"{self.runs_of or self.name}.json"

    def parameters(self, mode: str) -> Parameters:
        sizes: Parameters = getattr(self, mode) or self.full
        return {"time_limit_s": TIME_LIMIT_S[mode], **sizes}

    def as_run(self, parameters: Parameters) -> str:
        """The setup in words."""
        return self.setup.format(**parameters, scaled=scaled(parameters.get("speed", 1), self.why_slower))


def scaled(speed: float, why_slower: str) -> str:
    """What SCALED stands for; empty at the published speed."""
    if speed < 1:
        return f" The device runs at {speed:g} of the published speed, since {why_slower}."
    return "" if speed == 1 else f" The device runs at {speed:g} times the published speed."


def each_series(parameters: Parameters) -> list[Variant]:
    return [Variant(series) for series in parameters["series"]]


def puts(num: int, expected_s: float, series: Sequence[str], **others: Any) -> Parameters:
    """The parameters of an experiment that puts `num` entries."""
    return {"num": num, "data_bytes": num * ENTRY_BYTES, "expected_s": expected_s, "series": series, **others}


def put_mb(operations: float) -> float:
    """MB of user data, key and value."""
    return operations * ENTRY_BYTES / 1e6
