"""What GC writes at several key ranges, simulated on the whole device of the Lifetime paper."""
from .. import plots, simulation
from ..plots import Figure
from ..results import Measurement, Outcome, Parameters, Results, Variant
from ..runner import Context
from ..targets import Check, Point, ratios
from . import space
from .base import Experiment

ORIGINAL, LIFETIME, OURS = "zenfs+full-gc", "lifetime+gc", "isozone"
# Of each series: the policy, the GC scheme, and what placement knows of a table.
SCHEMES = {ORIGINAL: ("zenfs", "full", "lifetime"), LIFETIME: ("lifetime", "lifetime", "lifetime"),
           OURS: ("isozone", "isozone", "level")}
LEAST, MOST = 4, 6  # ranges, in M


def variants(parameters: Parameters) -> list[Variant]:
    return [Variant(series, millions) for millions in parameters["ranges"] for series in parameters["series"]]


def run(context: Context, variant: Variant) -> Outcome:
    policy, gc, hints = SCHEMES[variant.series]
    report = simulation.run(
        context, ["sequential", "uniform"], profile="lifetime-paper", zones=512, table="16M", memtable="16M",
        keys=round(float(variant.x or 0) * 1_000_000), policy=policy, gc=gc, hints=hints)
    written = report["written_bytes"]
    users = written["flush"] + written["compaction"] + written["log"]
    return Outcome([*simulation.outcome(report).measurements,
                    Measurement("WAF of GC", 1 + written["copied"] / users, "")])


def plot(results: Results) -> Figure:
    drawn, (axes,) = plots.figure(height=3.6)
    ranges = results.header["parameters"]["ranges"]
    plots.grouped_bars(axes, results, "WAF of GC", ranges, [f"{millions:g} M" for millions in ranges])
    plots.label(axes, "key range", "WAF of GC")
    axes.set_ylim(bottom=0.98)
    plots.legend_below(drawn, [axes])
    return drawn


SIZES: Parameters = {"data_bytes": 0, "expected_s": 0.5, "series": list(SCHEMES), "ranges": [LEAST, 5, MOST]}

EXPERIMENT = Experiment(
    name="lifetime-scale",
    title="What GC writes, on the whole published device",
    source=f"{space.LIFETIME}, Fig. 15",
    what="With the placement of ZenFS, GC writes the more the more keys there are. With placement by lifetime "
         "it writes hardly anything.",
    setup="isozone simulate, profile lifetime-paper with its 512 zones of 16 MiB: key ranges of {ranges} M, entries of "
          "820 bytes, put in order and then as many under uniform keys. Tables and memtables are as large as a zone. A "
          "record stands for 64 KiB.",
    quick=SIZES,
    full=SIZES,
    variants=variants,
    run=run,
    checks=[*ratios("original with GC: 6 M against 4 M", "grows", "WAF of GC", ORIGINAL, ORIGINAL, [MOST],
                    against_x=LEAST, at_least=1.05),
            Check("lifetime with GC, 6 M", "flat", Point(LIFETIME, "WAF of GC", MOST), at_most=1.03),
            *ratios("copied, isozone against the original with GC, 6 M", "-", "copied", OURS, ORIGINAL, [MOST],
                    at_most=0.5)],
    plot=plot,
    driver="isozone")
