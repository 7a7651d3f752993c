"""The tail of put latency."""
from .. import db_bench, plots
from ..results import Measurement, Outcome
from ..targets import ratios
from .base import SERIES, WITH_LIMIT, ZENFS_PLUS, Experiment, each_series, puts

PERCENTILES = [99, 99.9, 99.99, 99.999]
TARGETS = {99.9: 1 / 51, 99.99: 1 / 7, 99.999: 1 / 8}
PAPER = {99: "20.8 / 7.3 / 7.7 us (1/2.7)", 99.9: "1,166 / 22.1 / 22.7 us (1/51)",
         99.99: "1,191 / 286 / 175 us (1/7)", 99.999: "2,122 / 462 / 258 us (1/8)"}


def run(context, variant):
    with context.store(variant.series) as store:
        result = db_bench.run(context, store, ["fillrandom"], num=context.parameters["num"], histogram=1)["fillrandom"]
    latencies = result.histograms["write"]
    return Outcome([Measurement("put latency", latencies.percentile(percent), "us", percent)
                    for percent in PERCENTILES])


def plot(results):
    drawn, (axes,) = plots.figure(height=4)
    plots.grouped_bars(axes, results, "put latency", PERCENTILES, [f"P{percent:g}" for percent in PERCENTILES])
    plots.logarithmic(axes)
    plots.label(axes, "", "latency of a put, us", "fillrandom")
    plots.legend_below(drawn, [axes])
    return drawn


def checks(metric):
    return [check for percent in PERCENTILES
            for check in ratios("P{x:g}, isozone against zenfs", PAPER[percent], metric, "isozone", "zenfs",
                                xs=[percent], at_most=TARGETS.get(percent))]


EXPERIMENT = Experiment(
    name="table1",
    title="The tail of put latency",
    source=f"{ZENFS_PLUS}, Table 1",
    what="Puts wait where flushes do not keep up. Published are ZenFS / striping / striping and isolation.",
    setup="fillrandom: {num:,} puts of 20 + 800 bytes, memtable 64 MB, one writer, on 1,024 zones and 32 dies. "
          "(Published: 1,000 s of puts.) Percentiles from the histogram of db_bench.",
    quick=puts(1_500_000, 22, SERIES),
    full=puts(6_000_000, 90, WITH_LIMIT),
    variants=each_series,
    run=run,
    checks=checks("put latency"),
    plot=plot)
