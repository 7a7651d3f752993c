"""RocksDB's own db_bench, as the experiments run it, and what it reports."""
from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from . import processes
from .device import Store

if TYPE_CHECKING:
    from .runner import Context

OUT_OF_SPACE = "IO error: No space left on device"  # what RocksDB says of it; a full host is another error

KEY_BYTES = 20
VALUE_BYTES = 800
# As in the papers where they say it, the defaults of db_bench where they do not (a memtable of 64 MB).
SETTINGS = {"key_size": KEY_BYTES, "value_size": VALUE_BYTES, "compression_type": "none", "threads": 1,
            "max_background_jobs": 2}

LINE = re.compile(r"^(\w+)\s+:\s+[\d.]+ micros/op (\d+) ops/sec ([\d.]+) seconds", re.M)
HISTOGRAM = re.compile(r"^Microseconds per (\w+):\n(.*?)(?=^Microseconds per|^\w+\s+:\s|\Z)", re.M | re.S)
BUCKET = re.compile(r"^[\[(]\s*(\d+),\s*(\d+)\s*[\])]\s+(\d+)\s", re.M)
RANGE = re.compile(r"^Min: ([\d.]+)\s+Median: [\d.]+\s+Max: ([\d.]+)", re.M)


@dataclasses.dataclass(frozen=True)
class Histogram:
    """Latencies in microseconds: (from, to, count) of each bucket, and the least and greatest value."""
    buckets: list[tuple[int, int, int]]
    least: float
    greatest: float

    @staticmethod
    def parse(text: str) -> Histogram:
        bounds = RANGE.search(text)
        buckets = [(int(low), int(high), int(count)) for low, high, count in BUCKET.findall(text)]
        if bounds is None or not buckets:
            raise processes.RunFailed("db_bench has printed no histogram")
        return Histogram(buckets, float(bounds.group(1)), float(bounds.group(2)))

    def percentile(self, percent: float) -> float:
        """Linear within a bucket, as RocksDB does it for the percentiles that it prints."""
        rank = sum(count for *_, count in self.buckets) * percent / 100
        below = 0
        for low, high, count in self.buckets:
            if below + count >= rank:
                value = low + (high - low) * (rank - below) / count
                return min(max(value, self.least), self.greatest)
            below += count
        return self.greatest


@dataclasses.dataclass(frozen=True)
class Result:
    """Of one benchmark."""
    rate: float         # operations a second
    seconds: float      # from the first operation to the end of the last one
    histograms: dict[str, Histogram]  # by kind of operation: "write", "read"; with --histogram


def parse(text: str) -> dict[str, Result]:
    """Result by name of the benchmark."""
    lines = list(LINE.finditer(text))
    ends = [*(line.start() for line in lines), len(text)][1:]
    return {line.group(1): Result(float(line.group(2)), float(line.group(3)),
                                  {kind: Histogram.parse(body)
                                   for kind, body in HISTOGRAM.findall(text[line.end():end])})
            for line, end in zip(lines, ends, strict=True)}


def tables_of(size: int) -> dict[str, int]:
    """The options for memtables and tables of so many bytes."""
    return {"write_buffer_size": size, "target_file_size_base": size}


def arguments(database: str, uri: str, seed: int, benchmarks: Sequence[str], **options: object) -> list[str]:
    """The command line of `benchmarks`, one after the other, on a database; `uri`: of its file system, if not POSIX."""
    settings = {"benchmarks": ",".join(benchmarks), "db": database, **SETTINGS, "seed": seed, **options}
    if uri:
        settings["fs_uri"] = uri
    return ["db_bench", *(f"--{name}={value}" for name, value in settings.items())]


def results_of(text: str, benchmarks: Sequence[str]) -> dict[str, Result]:
    """Result by name, where db_bench has printed `text`: of each of `benchmarks` that has one."""
    results = parse(text)
    missing = set(benchmarks) - set(results) - {"waitforcompaction"}
    if missing:
        raise processes.RunFailed(f"db_bench has reported nothing of {', '.join(sorted(missing))}")
    return results


def run(context: Context, store: Store, benchmarks: Sequence[str], **options: object) -> dict[str, Result]:
    """Runs `benchmarks`, a list, one after the other on `store`; Result by name."""
    command = arguments(store.database, store.uri, context.seed, benchmarks, **options)
    return results_of(context.execute(command, store.environment), benchmarks)


def report_rates(text: str) -> list[float]:
    """Operations of each second, from what --report_file has collected."""
    rows = [line.split(",") for line in text.splitlines()[1:] if line.count(",") == 1]
    return [float(rate) for _, rate in rows]
