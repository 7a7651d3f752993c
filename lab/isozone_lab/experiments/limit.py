"""How close puts come to memory: fillrandom beside RocksDB on tmpfs."""
from .. import db_bench, plots
from ..results import Measurement, Outcome
from ..targets import ratios
from .base import WITH_LIMIT, Experiment, each_series, puts


def run(context, variant):
    with context.store(variant.series) as store:
        rate = db_bench.run(context, store, ["fillrandom"], num=context.parameters["num"])["fillrandom"].rate
    return Outcome([Measurement("puts", rate, "ops/s", "fillrandom")])


def plot(results):
    drawn, (axes,) = plots.figure(height=3.6)
    plots.grouped_bars(axes, results, "puts", ["fillrandom"])
    plots.label(axes, "", "operations a second")
    plots.legend_below(drawn, [axes])
    return drawn


EXPERIMENT = Experiment(
    name="limit",
    title="How close puts come to memory",
    source="not published: the limit of this machine",
    what="RocksDB on tmpfs has no device to wait for; what is missing to it is the device and the file system.",
    setup="fillrandom: {num:,} puts of 20 + 800 bytes, memtable 64 MB, one writer, on 1,024 zones and 32 dies in real "
          "time, and on POSIX files in tmpfs.",
    quick=puts(1_000_000, 14, WITH_LIMIT),
    full=puts(6_000_000, 80, WITH_LIMIT),
    variants=each_series,
    run=run,
    checks=ratios("isozone against tmpfs", "-", "puts", "isozone", "tmpfs", xs=["fillrandom"], at_least=0.85),
    plot=plot)
