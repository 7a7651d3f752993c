"""The tail of put latency."""
from .. import plots
from ..plots import Figure
from ..results import Results
from ..targets import Check, ratios
from . import zenfsplus_fillrandom
from .base import PERCENTILES, ZENFS_PLUS, Experiment

TARGETS = {99.9: 1 / 51, 99.99: 1 / 7, 99.999: 1 / 8}
PAPER = {99: "20.8 / 7.3 / 7.7 us (1/2.7)", 99.9: "1,166 / 22.1 / 22.7 us (1/51)",
         99.99: "1,191 / 286 / 175 us (1/7)", 99.999: "2,122 / 462 / 258 us (1/8)"}


def plot(results: Results) -> Figure:
    drawn, (axes,) = plots.figure(height=4)
    plots.put_latencies(axes, results, PERCENTILES, "fillrandom")
    plots.legend_below(drawn, [axes])
    return drawn


def checks(metric: str) -> list[Check]:
    return [check for percent in PERCENTILES
            for check in ratios("P{x:g}, isozone against zenfs", PAPER[percent], metric, "isozone", "zenfs",
                                xs=[percent], at_most=TARGETS.get(percent))]


EXPERIMENT = Experiment(
    name="zenfsplus-put-tail",
    title="The tail of put latency",
    source=f"{ZENFS_PLUS}, Table 1",
    what="Puts wait where flushes do not keep up. Published are ZenFS / striping / striping and isolation.",
    setup=zenfsplus_fillrandom.SETUP + "(Published: 1,000 s of puts.) Percentiles from the histogram of db_bench.",
    checks=checks("put latency"),
    plot=plot, runs_of=zenfsplus_fillrandom.RECORDED, **zenfsplus_fillrandom.COMMON)
