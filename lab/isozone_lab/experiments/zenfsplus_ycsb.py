"""YCSB A to F."""
from collections.abc import Sequence

from .. import plots, ycsb
from ..plots import Axes, Figure
from ..results import Measurement, Outcome, Parameters, Results, Variant
from ..runner import Context
from ..targets import ratios
from .base import SCALED, SERIES, SPEED, WITH_LIMIT, ZENFS_PLUS, Experiment, each_series

WORKLOADS = list("ABCDEF")
ORDER = "ABCFDE"  # those that insert come last
GAIN_PERCENT = {"A": 105, "B": 32, "C": 26, "D": 29, "E": 50, "F": 57}
VALUE_BYTES = 1000
CACHE_BYTES = 8 << 20  # the default of RocksDB


def run(context: Context, variant: Variant) -> Outcome:
    parameters = context.parameters
    options = {"records": parameters["records"], "value-size": VALUE_BYTES, "cache-size": CACHE_BYTES}
    with context.store(variant.series) as store:
        load = ycsb.run(context, store, "a", "load", **options)
        rates = {name: ycsb.run(context, store, name.lower(), "run", operations=operations(parameters, name),
                                **options)["throughput"] for name in ORDER}
    return Outcome([Measurement("throughput", rates[name], "ops/s", name) for name in WORKLOADS] +
                   [Measurement("throughput", load["throughput"], "ops/s", "load")])


def operations(parameters: Parameters, workload: str) -> int:
    """A scan of E reads some 50 records."""
    count: int = parameters["operations"]
    return count // 10 if workload == "E" else count


def plot(results: Results) -> Figure:
    drawn, axes = plots.figure(rows=2, height=3)
    plots.grouped_bars(axes[0], results, "throughput", WORKLOADS)
    plots.label(axes[0], "workload", "operations a second")
    plot_gains(axes[1], results)
    plots.legend_below(drawn, axes)
    return drawn


def plot_gains(axes: Axes, results: Results) -> None:
    """What each series gains over zenfs, beside what was published."""
    shown = [series for series in plots.measured_series(results, "throughput") if series not in ("zenfs", "tmpfs")]
    for series in shown:
        present = [name for name in WORKLOADS if gain(results, series, name) is not None]
        axes.plot(present, [gain(results, series, name) for name in present], "o-", color=plots.COLOURS[series],
                  label=plots.LABELS[series])
    axes.plot(WORKLOADS, [GAIN_PERCENT[name] for name in WORKLOADS], "k_", markersize=14, label="published")
    axes.axhline(0, color="#888", linewidth=1)
    plots.label(axes, "workload", "% more than zenfs")


def gain(results: Results, series: str, workload: str) -> float | None:
    """In percent; None if it was not measured."""
    rate, base = (results.median(one, "throughput", workload) for one in (series, "zenfs"))
    return None if rate is None or not base else 100 * (rate / base - 1)


def parameters(records: int, operations_of_each: int, expected_s: float, series: Sequence[str]) -> Parameters:
    return {"records": records, "operations": operations_of_each, "data_bytes": records * 1024,
            "expected_s": expected_s, "series": series, "speed": SPEED}


EXPERIMENT = Experiment(
    name="zenfsplus-ycsb",
    title="YCSB A to F",
    source=f"{ZENFS_PLUS}, Fig. 14 and Table 3",
    what="Throughput of the standard workloads: A half updates, B 5 % updates, C reads only, D reads what is new, "
         "E short scans, F read-modify-write.",
    setup="{records:,} records of 1,000 bytes (published: 20 GB) are loaded once, then A, B, C, F, D and E run on "
          "them, {operations:,} operations each, E a tenth of that; one client, memtable 64 MB, block cache 8 MB, "
          "1,024 zones and 32 dies. There is no pause between them: reads run beside the compaction that is left, and "
          "on as many tables of level 0 as there happen to be. Both differ between series, so that a gain of reads is "
          "not one of the device alone." + SCALED,
    quick=parameters(400_000, 4_000, 28, SERIES),
    full=parameters(3_000_000, 40_000, 600, WITH_LIMIT),
    variants=each_series,
    run=run,
    checks=[check for name, percent in GAIN_PERCENT.items()
            for check in ratios("{x}", f"+{percent} % ({1 + percent / 100:.2f}x)", "throughput", "isozone", "zenfs",
                                xs=[name], at_least=1 + percent / 100)],
    plot=plot,
    driver="ycsb")
