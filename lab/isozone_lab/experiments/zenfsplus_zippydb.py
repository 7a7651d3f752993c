"""A model of ZippyDB's production workload: mixgraph of db_bench."""
from collections.abc import Sequence

from .. import db_bench, plots
from ..plots import Figure
from ..results import Measurement, Outcome, Parameters, Results, Variant
from ..runner import Context
from ..targets import ratios
from .base import SCALED, SERIES, SPEED, WITH_LIMIT, ZENFS_PLUS, Experiment, each_series

# As RocksDB's documentation gives them for ZippyDB, with the paper's shares; the sine that bounds the rate is off.
MODEL = {"key_size": 48, "value_size": 43, "keyrange_dist_a": 14.18, "keyrange_dist_b": -2.917,
         "keyrange_dist_c": 0.0164, "keyrange_dist_d": -0.08082, "keyrange_num": 30, "value_k": 0.2615,
         "value_sigma": 25.45, "iter_k": 2.517, "iter_sigma": 14.236, "mix_get_ratio": 0.83, "mix_put_ratio": 0.14,
         "mix_seek_ratio": 0.03}
PUBLISHED_ENTRIES = 50_000_000
PUBLISHED_CACHE = 256 << 20


def run(context: Context, variant: Variant) -> Outcome:
    parameters = context.parameters
    cache = PUBLISHED_CACHE * parameters["num"] // PUBLISHED_ENTRIES
    with context.store(variant.series) as store:
        results = db_bench.run(context, store, ["fillrandom", "mixgraph"], num=parameters["num"],
                               reads=parameters["reads"], cache_size=cache, **MODEL)
    return Outcome([Measurement("throughput", results[name].rate, "ops/s", name)
                    for name in ("mixgraph", "fillrandom")])


def plot(results: Results) -> Figure:
    drawn, axes = plots.figure(columns=2, height=3.6)
    for one, name in zip(axes, ("mixgraph", "fillrandom"), strict=True):
        plots.grouped_bars(one, results, "throughput", [name])
        plots.label(one, "", "operations a second")
    plots.legend_below(drawn, axes)
    return drawn


def parameters(num: int, reads: int, expected_s: float, series: Sequence[str]) -> Parameters:
    return {"num": num, "reads": reads, "data_bytes": num * 100, "expected_s": expected_s, "series": series,
            "speed": SPEED}


EXPERIMENT = Experiment(
    name="zenfsplus-zippydb",
    title="ZippyDB's production workload",
    source=f"{ZENFS_PLUS}, section V.E",
    what="83 % gets, 14 % puts and 3 % seeks with the key, value and scan sizes that were modelled on production.",
    setup="{num:,} entries with keys of 48 bytes (published: 50 million), block cache scaled alike from 256 MiB, "
          "memtable 64 MB, one client; then {reads:,} operations of mixgraph, as fast as they go. 1,024 zones and "
          "32 dies." + SCALED,
    quick=parameters(1_600_000, 4_000, 13, SERIES),
    full=parameters(20_000_000, 100_000, 500, WITH_LIMIT),
    variants=each_series,
    run=run,
    checks=ratios("mixgraph", "+18 % (17.6 to 20.5 MB/s)", "throughput", "isozone", "zenfs", xs=["mixgraph"],
                  at_least=1.18),
    plot=plot)
