"""What collectors copy over terabytes, in the simulator: ZenFS+ at the scale of its device."""
from .. import plots, simulation
from ..plots import Figure
from ..results import Outcome, Parameters, Results, Variant
from ..runner import Context
from ..targets import ratios
from .base import ZENFS_PLUS, Experiment, each_series

FULL, MINOR, OURS = "gc=full", "gc=zenfs+", "isozone picker"
# Of each series: the GC scheme and the picker of compactions.
SCHEMES = {FULL: ("full", "leveled"), MINOR: ("zenfs+", "leveled"), OURS: ("isozone", "isozone")}


def run(context: Context, variant: Variant) -> Outcome:
    parameters = context.parameters
    gc, picker = SCHEMES[variant.series]
    return simulation.outcome(simulation.run(
        context, ["shuffled", f"uniform:{parameters['overwritten_gib']}G"], profile="small-zone",
        data=f"{parameters['filled_gib']}G", zones=parameters["zones"], gc=gc, compaction=picker,
        **parameters["smaller"]))


def plot(results: Results) -> Figure:
    drawn, (axes,) = plots.figure(height=3.6)
    plots.grouped_bars(axes, results, "copied", [None], [""])
    plots.label(axes, "", "copied, GiB")
    plots.legend_below(drawn, [axes])
    return drawn


def sizes(expected_s: float, zones: int, filled_gib: int, overwritten_gib: int, **smaller: str) -> Parameters:
    """`smaller`: options of the tree and of zones, where they are smaller than RocksDB's and the device's own."""
    return {"data_bytes": 0, "expected_s": expected_s, "series": [FULL, MINOR, OURS], "zones": zones,
            "filled_gib": filled_gib, "overwritten_gib": overwritten_gib, "smaller": smaller}


SMALL = sizes(6, 3646, 22, 51, zone_size="9M", table="8M", memtable="8M", level_base="32M", soft_pending="1G",
              hard_pending="4G")

EXPERIMENT = Experiment(
    name="zenfsplus-scale",
    title="What collectors copy, at the scale of the published device",
    source=f"{ZENFS_PLUS}, Fig. 13",
    what="Zones that are reset when all in them has died need no copies; zones that die whole need no collector.",
    setup="isozone simulate, profile small-zone with {zones:,} zones: {filled_gib:,} GiB are put in random order, then "
          "{overwritten_gib:,} GiB under uniform keys. (Published: 1.5 TB and 3.5 TB on 2 TB.) With --quick and "
          "--night, zones are an eighth as large, and memtables, tables and levels with them.",
    quick=SMALL,
    night=SMALL,
    full=sizes(330, 29172, 1397, 3260),
    variants=each_series,
    run=run,
    checks=[*ratios("with minor GC against full GC alone", "1/2.2 to 0.55x (1.1-3.3 to 0.5-1.8 TB)", "copied", MINOR,
                    FULL, at_most=0.55),
            *ratios("isozone, compaction steered, against full GC alone", "-", "copied", OURS, FULL, at_most=0.10)],
    plot=plot,
    driver="isozone")
