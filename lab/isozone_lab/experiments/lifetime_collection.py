"""What GC writes and costs at several key ranges; three published figures from the same runs."""
from collections.abc import Callable
from typing import Any

from .. import db_bench, plots
from ..plots import Figure
from ..results import Measurement, Outcome, Parameters, Results, Variant
from ..runner import Context
from ..targets import Check, Point, ratios
from . import space
from .base import Experiment

SERIES = ["zenfs", "zenfs+gc", "lifetime", "one victim", "lifetime+gc", "isozone"]
BENCHMARKS = ["fillseq", "overwrite"]


def variants(parameters: Parameters) -> list[Variant]:
    return [Variant(series, millions) for millions in parameters["ranges"] for series in parameters["series"]]


def run(context: Context, variant: Variant) -> Outcome:
    num = space.keys(context.parameters, variant.x)
    with space.store(context, variant.series) as place:
        results = space.survives(lambda: space.run(context, place, BENCHMARKS, num))
        return outcome(results, place.statistics() if results else None)


def outcome(results: dict[str, db_bench.Result] | None, counted: Any) -> Outcome:
    """Both None if the device has run out of space."""
    measurements = [Measurement("survives", int(results is not None), "")]
    if results is None:
        return Outcome(measurements)
    copied, written = space.copied_bytes(counted), counted["user_bytes_appended"]
    return Outcome(measurements + [Measurement("WAF of GC", 1 + copied / written, ""),
                                   Measurement("copied", copied / 2**20, "MiB"),
                                   *(Measurement(name, results[name].rate, "ops/s") for name in BENCHMARKS)])


def plot_of(metric: str, title: str) -> Callable[[Results], Figure]:
    def plot(results: Results) -> Figure:
        drawn, (axes,) = plots.figure(height=3.8)
        ranges = results.header["parameters"]["ranges"]
        plots.grouped_bars(axes, results, metric, ranges, [f"{millions:g} M" for millions in ranges])
        plots.label(axes, "key range", title, "no bar: no space")
        plots.legend_below(drawn, [axes])
        return drawn
    return plot


SETUP = space.SCALE + "fillseq, then overwrite of as many keys; key ranges of {ranges} M. A range at which the " \
                      "device runs out of space has no numbers. "
COMMON: dict[str, Any] = {
    "source": f"{space.LIFETIME}, Fig. 15, 16 and 18", "variants": variants, "run": run,
    "quick": space.parameters(space.QUICK, 2, SERIES, ranges=[4, 6, 7]),
    "night": space.parameters(space.NIGHT, 38, SERIES, ranges=[4, 5, 6, 7, 8]),
    "full": space.parameters(space.FULL, 150, SERIES, ranges=[4, 5, 6, 7, 8])}
LEAST, FULLER, MOST = 4, 6, 7  # ranges that every mode has
NOISE = 0.03  # by which equal runs differ; less is no gain

RECORDED = "lifetime-waf"

WAF = Experiment(
    name=RECORDED,
    title="What GC writes",
    what="With zones of one lifetime there is little to copy, and it stays little as the device fills.",
    setup=SETUP + "Write amplification: bytes that RocksDB wrote and bytes that were copied, by the former.",
    checks=[Check(f"lifetime with collector, {LEAST} M", "about 1",
                  Point("lifetime+gc", "WAF of GC", LEAST), at_most=1.05),
            Check(f"lifetime with collector, {MOST} M", "the same: flat",
                  Point("lifetime+gc", "WAF of GC", MOST), at_most=1.1),
            Check(f"zenfs with its collector, {MOST} M", "grows", Point("zenfs+gc", "WAF of GC", MOST)),
            *ratios("copied, isozone against lifetime, {x} M", "-", "copied", "isozone", "lifetime+gc", xs=[MOST],
                    at_most=0.5)],
    plot=plot_of("WAF of GC", "(written + copied) / written"), **COMMON)

IOPS = Experiment(
    name="lifetime-throughput",
    title="What GC costs in throughput",
    what="GC takes little from a device that is half full, where there is little to collect.",
    setup=SETUP + "Puts of overwrite, without timing: processor time decides.",
    checks=[*ratios("lifetime against zenfs, both without collector, {x} M", "1.05x", "overwrite", "lifetime", "zenfs",
                    xs=[LEAST]),
            *ratios("zenfs with its collector against without, {x} M", "0.91x", "overwrite", "zenfs+gc", "zenfs",
                    xs=[LEAST]),
            *ratios("lifetime with collector, zenfs without, {x} M", "0.97x", "overwrite", "lifetime+gc", "zenfs",
                    xs=[LEAST], at_least=0.97)],
    plot=plot_of("overwrite", "puts a second"), runs_of=RECORDED, **COMMON)

VICTIMS = Experiment(
    name="lifetime-victims",
    title="As many victims as the device is full",
    what="The paper's two equations choose how many victims there are at a time, and how full they may be. Without "
         "them: one victim at a time, of any queue.",
    setup=SETUP + "Puts of overwrite, without timing.",
    checks=[*ratios("with the equations against one victim, {x} M", "a gain, up to 1.1x", "overwrite", "lifetime+gc",
                    "one victim", xs=[FULLER, MOST], at_least=1 + NOISE),
            Check(f"{MOST} M fit with the equations: 1 for yes", "yes", Point("lifetime+gc", "survives", MOST),
                  at_least=1),
            Check(f"{MOST} M fit with one victim", "-", Point("one victim", "survives", MOST))],
    plot=plot_of("overwrite", "puts a second"), runs_of=RECORDED, **COMMON)

EXPERIMENTS = [WAF, IOPS, VICTIMS]
