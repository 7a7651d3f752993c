"""Five workloads of db_bench."""
from .. import db_bench, plots
from ..plots import Figure
from ..results import Measurement, Outcome, Results, Variant
from ..runner import Context
from ..targets import LeastOf, ratios
from .base import SCALED, SERIES, SPEED, WITH_LIMIT, ZENFS_PLUS, Experiment, each_series, puts

WRITING = ["fillrandom", "overwrite"]
MIXED = ["updaterandom", "readrandom", "readwhilewriting"]
WORKLOADS = [*WRITING, *MIXED]
EQUAL_MB_PER_S = 33  # at the published speed
EQUAL = "readwhilewriting paced"  # the writer writes equally much on every series


def run(context: Context, variant: Variant) -> Outcome:
    parameters = context.parameters
    with context.store(variant.series) as store:
        sizes = {"num": parameters["num"], "reads": parameters["reads"]}
        rates = {name: result.rate for name, result in db_bench.run(context, store, WORKLOADS, **sizes).items()}
        equal = db_bench.run(context, store, MIXED[-1:], use_existing_db=1,
                             benchmark_write_rate_limit=round(EQUAL_MB_PER_S * 10**6 * context.speed), **sizes)
    rates[EQUAL] = equal[MIXED[-1]].rate
    return Outcome([Measurement("throughput", rates[name], "ops/s", name) for name in (*WORKLOADS, EQUAL)])


def plot(results: Results) -> Figure:
    drawn, axes = plots.figure(columns=2, height=4)
    for one, workloads in zip(axes, (WRITING, [*MIXED, EQUAL]), strict=True):
        names = [name.replace("random", "\nrandom").replace("while", "\nwhile").replace("ing ", "ing\n")
                 for name in workloads]
        plots.grouped_bars(one, results, "throughput", workloads, names)
        plots.label(one, "", "operations a second")
    plots.legend_below(drawn, axes)
    return drawn


COMPARISONS = [
    *ratios("{x}", "4.7 to 4.8x", "throughput", "isozone", "zenfs", xs=WRITING, at_least=4.7),
    *ratios("{x}", "2.5 to 2.8x", "throughput", "isozone", "zenfs", xs=MIXED, at_least=2.5)]

EXPERIMENT = Experiment(
    name="zenfsplus-workloads",
    title="Five workloads of db_bench",
    source=f"{ZENFS_PLUS}, Fig. 11",
    what="Writing gains most from striping; reads gain where compaction no longer holds them up.",
    setup="fillrandom and overwrite of {num:,} entries of 20 + 800 bytes, then {reads:,} operations each of "
          "updaterandom, readrandom and readwhilewriting, in one process one after the other, without a pause: reads "
          "run beside the compaction that is left, and on as many tables of level 0 as there happen to be. Both differ "
          "between series, so that a gain of reads is not one of the device alone. The writer of readwhilewriting goes "
          "as fast as it can, which is not the same either; at last (paced) at 33 MB/s by the device's speed, which "
          "is. Memtable 64 MB, one client, 1,024 zones and 32 dies." + SCALED,
    quick=puts(500_000, 43, SERIES, reads=1_800, speed=SPEED),
    full=puts(3_000_000, 500, WITH_LIMIT, reads=20_000, speed=SPEED),
    variants=each_series,
    run=run,
    checks=[*COMPARISONS,
            *ratios("{x}", "2.5 to 2.8x (rate not given)", "throughput", "isozone", "zenfs", xs=[EQUAL], at_least=2.5),
            LeastOf("none of the five is slower", "the least: 2.5x", tuple(COMPARISONS), 1.0)],
    plot=plot)
