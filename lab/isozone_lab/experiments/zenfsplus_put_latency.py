"""Put latency over time, in buckets of 100 ms."""
from typing import Any

from .. import plots, ycsb
from ..db_bench import VALUE_BYTES
from ..plots import Figure
from ..results import Measurement, Outcome, Results, Variant
from ..runner import Context
from ..targets import ratios
from . import zenfsplus_put_tail
from .base import PERCENTILES, SCALED, SERIES, SPEED, WITH_LIMIT, ZENFS_PLUS, Experiment, each_series, puts

INTERVAL_MS = 100


def run(context: Context, variant: Variant) -> Outcome:
    with context.store(variant.series) as store:
        report = ycsb.run(context, store, "a", "load", records=context.parameters["num"],
                          **{"value-size": VALUE_BYTES, "interval-ms": INTERVAL_MS})
    return outcome(report)


def with_stalls(intervals: list[Any]) -> list[Any]:
    """Those in which no put ended get the latency of the put that they waited for, the longest of the next one that has
    any; after the last put nothing waits.
    """
    filled, longest = [], None
    for interval in reversed(intervals):
        if interval["operations"]:
            longest = interval["max"]
            filled.append(interval)
        elif longest is not None:
            filled.append({**interval, "p99": longest, "max": longest})
    return filled[::-1]


def outcome(report: Any) -> Outcome:
    latencies, intervals = report["latency_us"]["insert"], with_stalls(report["intervals"])
    tails = sorted(interval["p99"] for interval in intervals)
    measurements = [Measurement("put latency", latencies[f"p{percent:g}"], "us", percent)
                    for percent in PERCENTILES]
    measurements.append(Measurement("P99 of 100 ms", tails[int(0.95 * (len(tails) - 1))], "us", "95 % of buckets"))
    return Outcome(measurements, {key: [interval[key] for interval in intervals] for key in ("t_s", "p99", "max")})


def plot(results: Results) -> Figure:
    drawn, axes = plots.figure(rows=2, height=2.7, share_x=True)
    for one, key, title in zip(axes, ("p99", "max"), ("99th percentile", "longest"), strict=True):
        plots.lines_over_time(one, results, key, "t_s")
        plots.logarithmic(one)
        plots.label(one, "seconds", "us", f"latency of the puts in {INTERVAL_MS} ms: {title}")
    plots.legend_below(drawn, axes)
    return drawn


EXPERIMENT = Experiment(
    name="zenfsplus-put-latency",
    title="Put latency over time",
    source=f"{ZENFS_PLUS}, Fig. 10 and Table 1",
    what="The tail of every 100 ms of puts: stalls show as peaks.",
    setup="The load of the YCSB driver: {num:,} inserts of 800-byte values in random order, memtable 64 MB, one "
          "writer, on 1,024 zones and 32 dies. (Published: fillrandom.) 100 ms in which no put ended count with "
          "the latency of the put that they waited for." + SCALED,
    quick=puts(640_000, 11, SERIES, speed=SPEED),
    full=puts(6_000_000, 150, WITH_LIMIT, speed=SPEED),
    variants=each_series,
    run=run,
    checks=[*zenfsplus_put_tail.checks("put latency"),
            *ratios("P99 of 100 ms, all but the 5 % worst buckets, striping against zenfs",
                    "1.5 ms to 20 us (1/75)", "P99 of 100 ms", "striping", "zenfs", xs=["95 % of buckets"])],
    plot=plot,
    driver="ycsb")
