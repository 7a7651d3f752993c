"""How much longer puts take while zones are collected."""
from typing import Any

from .. import db_bench, plots
from ..device import Shape
from ..plots import Figure
from ..results import Measurement, Outcome, Parameters, Results, Variant
from ..runner import Context
from ..targets import Check, Point, ratios
from . import space
from .base import PERCENTILES, Experiment, each_series

WITHOUT, WITH = "gc=none", "gc=isozone"  # as a URI has it
SERIES = [WITHOUT, WITH]
MIB = 1 << 20
ZONE_BYTES = 72 * MIB


def run(context: Context, variant: Variant) -> Outcome:
    """The database that is overwritten is the same for both series, and made without taking time."""
    parameters = context.parameters
    sizes = {"num": parameters["num"], **db_bench.tables_of(parameters["memtable_mib"] * MIB)}
    with context.zoned("isozone", Shape(zones=parameters["zones"])) as place:
        device = place.uri
        place.uri = f"{device}&gc=none&timing=off"
        db_bench.run(context, place, ["fillrandom", "waitforcompaction"], **sizes)
        place.uri = f"{device}&{variant.series}&gc_start={parameters['gc_start']}"
        result = db_bench.run(context, place, ["overwrite"], writes=parameters["writes"], use_existing_db=1,
                              benchmark_write_rate_limit=parameters["rate_mb"] * 10**6, histogram=1,
                              **sizes)["overwrite"]
        return outcome(result, place.statistics())


def outcome(result: db_bench.Result, counted: Any) -> Outcome:
    latencies = result.histograms["write"]
    return Outcome([*(Measurement("put latency", latencies.percentile(percent), "us", percent)
                      for percent in PERCENTILES),
                    Measurement("copied", space.copied_bytes(counted) / MIB, "MiB"),
                    Measurement("waits for space", counted["gc"]["space_waits"], "")])


def parameters(expected_s: float, zones: int, **others: Any) -> Parameters:
    """On a device that may fill."""
    return {"data_bytes": zones * ZONE_BYTES // 3, "expected_s": expected_s, "series": SERIES, "zones": zones,
            "gc_start": 70, **others}


def plot(results: Results) -> Figure:
    drawn, (axes,) = plots.figure(height=3.8)
    plots.put_latencies(axes, results, PERCENTILES, f"overwrite at {results.header['parameters']['rate_mb']} MB/s")
    plots.legend_below(drawn, [axes])
    return drawn


EXPERIMENT = Experiment(
    name="gc-latency",
    title="What GC costs in latency",
    source="not published: what users feel of a collector",
    what="The collector works below all other I/O and long before space runs out, so that puts hardly wait for it.",
    setup="A database of {num:,} puts of 20 + 800 bytes on {zones} zones and 32 dies, compacted; then {writes:,} "
          "puts to it in real time, at {rate_mb} MB/s, which both series keep up with. Memtables and tables of "
          "{memtable_mib} MiB. The collector begins at {gc_start} % free instead of 10 %, and slows flushes as it does "
          "there, so that it works while no put waits for space, and the run without it has space enough.",
    quick=parameters(20, num=400_000, writes=250_000, zones=32, memtable_mib=16, rate_mb=20),
    full=parameters(110, num=800_000, writes=2_000_000, zones=64, memtable_mib=32, rate_mb=20),
    variants=each_series,
    run=run,
    checks=[*ratios("P{x:g} of puts, with the collector against without", "-", "put latency", WITH, WITHOUT,
                    xs=[99.9], at_most=1.5),
            Check("copied meanwhile", "-", Point("gc=isozone", "copied"), at_least=50),
            Check("waits of writers for space", "-", Point("gc=isozone", "waits for space"), at_most=0)],
    plot=plot)
