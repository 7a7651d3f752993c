"""Puts against the number of independent zone groups."""
from .. import db_bench, plots
from ..device import Shape
from ..plots import Figure
from ..results import Measurement, Outcome, Parameters, Results, Variant
from ..runner import Context
from ..targets import Check, Point
from .base import SCALED, SERIES, SPEED, ZENFS_PLUS, Experiment, put_mb, puts


def variants(parameters: Parameters) -> list[Variant]:
    return [Variant(series, groups) for groups in parameters["groups"] for series in parameters["series"]]


def run(context: Context, variant: Variant) -> Outcome:
    with context.store(variant.series, Shape(dies=variant.x)) as store:
        rate = db_bench.run(context, store, ["fillrandom"], num=context.parameters["num"])["fillrandom"].rate
    return Outcome([Measurement("put", put_mb(rate), "MB/s"), Measurement("puts", rate, "ops/s")])


def plot(results: Results) -> Figure:
    drawn, (axes,) = plots.figure(height=4)
    groups = results.header["parameters"]["groups"]
    plots.lines_over_x(axes, results, "put", groups)
    axes.set_xscale("log", base=2)
    axes.set_xticks(groups, groups)
    axes.set_ylim(bottom=0)
    plots.label(axes, "independent zone groups", "put, MB/s", "fillrandom")
    plots.legend_below(drawn, [axes])
    return drawn


def compare(what: str, paper: str, series: str, groups: int, other: str, other_groups: int, **bound: float) -> Check:
    return Check(what, paper, Point(series, "put", groups), Point(other, "put", other_groups), **bound)


EXPERIMENT = Experiment(
    name="zenfsplus-groups",
    title="Puts against the number of independent zone groups",
    source=f"{ZENFS_PLUS}, Fig. 8",
    what="A file system that writes a table to one zone gains nothing from more groups; striping does, and isolation "
         "adds to it.",
    setup="Small-zone devices with as many dies as groups, on up to 8 channels, 1,024 zones each. fillrandom: {num:,} "
          "puts of 20 + 800 bytes, memtable 64 MB, one writer. (Published: about 20 GB, one device of which so many "
          "groups are used.)" + SCALED,
    quick=puts(150_000, 10, SERIES, groups=[1, 8, 32], speed=SPEED),
    full=puts(3_000_000, 120, SERIES, groups=[1, 2, 4, 8, 16, 32], speed=SPEED),
    variants=variants,
    run=run,
    checks=[compare("zenfs, 32 groups against 8", "almost the same", "zenfs", 32, "zenfs", 8),
            compare("striping, 32 groups against 1", "scales (no number)", "striping", 32, "striping", 1, at_least=1.1),
            compare("striping, 32 groups against 8", "scales (no number)", "striping", 32, "striping", 8, at_least=1.1),
            compare("striping against zenfs, 32 groups", "more (no number)", "striping", 32, "zenfs", 32, at_least=1.1),
            compare("isozone against striping, 32 groups", "isolation adds (no number)", "isozone", 32, "striping", 32,
                    at_least=1.0)],
    plot=plot)
