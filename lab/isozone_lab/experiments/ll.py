"""Compaction that lets zones die whole, at the published scale, in the simulator: the LL-compaction paper."""
from typing import Any

from .. import plots, simulation
from ..plots import Figure
from ..results import Outcome, Parameters, Results, Variant
from ..runner import Context
from ..targets import Check, Point, ratios
from .base import Experiment, each_series

LL_PAPER = "LL-compaction (Lifetime-Leveling LSM-Tree Compaction for ZNS SSD)"
BL, GC, LS, GEAR, LL, OURS = "BL", "GC", "LS", "Gear", "LL", "isozone picker"
ALL_SERIES = [BL, GC, LS, GEAR, LL, OURS]

# Of each series: the picker, whether placement knows levels, whether short-lived tables have zones of their own, and
# whether zones are collected. The picker isozone has so few short-lived tables that such zones cost more than they
# gain.
COMPACTION = {BL: ("leveled", "none", "off", False), GC: ("leveled", "none", "off", True),
              LS: ("leveled", "level", "off", True), GEAR: ("gear", "level", "on", False),
              LL: ("ll", "level", "on", True), OURS: ("isozone", "level", "off", True)}
# LevelDB as the paper has it: tables of 4 MiB, ten times as much in each level, one thread that compacts. A table lies
# in one zone.
TREE = {"profile": "ll-paper", "table": "4M", "memtable": "4M", "level_base": "10M", "compactions": 1,
        "compaction_trigger": 4, "slowdown_trigger": 8, "stop_trigger": 12, "policy": "isozone", "stripe_width": 1}
# Greedy victims when hardly any zone is free. Dead zones are reset at once.
COLLECTION = {"gc": "lsm-zgc", "gc_start": 1}
SETUP = ("isozone simulate, profile ll-paper: zones of 64 MiB, tables of 4 MiB, one compaction at a time, zones of one "
         "level each but for BL and GC, others of short-lived tables for Gear and LL. A record stands for 64 KiB. ")


def run(context: Context, variant: Variant) -> Outcome:
    parameters = context.parameters
    picker, hints, t_zone, collects = COMPACTION[variant.series]
    limit = parameters["limit_gib"].get(variant.series, parameters["limit_gib"]["others"])
    return simulation.outcome(simulation.run(
        context, ["shuffled"], data=f"{parameters['data_mib']}M", limit=f"{limit}G", compaction=picker, hints=hints,
        t_zone=t_zone, **TREE, **(COLLECTION if collects else {"gc": "none"})))


def parameters(expected_s: float, series: list[str], **others: Any) -> Parameters:
    return {"data_bytes": 0, "expected_s": expected_s, "series": series, **others}


# --- Fig. 4: fillrandom ---

def plot_util(results: Results) -> Figure:
    drawn, axes = plots.figure(columns=2, height=3.8)
    plots.grouped_bars(axes[0], results, "zones", [None], [""])
    plots.label(axes[0], "", "zones in use at the end")
    for series in plots.measured_series(results, "zones"):
        zones = results.details(series).get("zones by utilisation", [])
        axes[1].plot([10 * at + 5 for at in range(len(zones))], zones, marker="o", markersize=3,
                     color=plots.COLOURS[series], label=plots.LABELS[series])
    plots.label(axes[1], "utilisation, %", "zones", "zones by what lives in them")
    plots.legend_below(drawn, axes)
    return drawn


def plot_put(results: Results) -> Figure:
    drawn, (axes,) = plots.figure(height=3.6)
    plots.grouped_bars(axes, results, "put", [None], [""])
    plots.label(axes, "", "puts, MB/s")
    plots.legend_below(drawn, [axes])
    return drawn


def plot_traffic(results: Results) -> Figure:
    drawn, axes = plots.figure(columns=2, height=3.6)
    for one, metric, words in zip(axes, ("compaction", "copied"), ("compaction writes", "copies of GC"),
                                  strict=True):
        plots.grouped_bars(one, results, metric, [None], [""])
        plots.label(one, "", "GiB", words)
    plots.legend_below(drawn, axes)
    return drawn


FILL: dict[str, Any] = {
    "quick": parameters(1, ALL_SERIES, data_mib=27 << 10, limit_gib={BL: 64, GEAR: 36, "others": 29}),
    "full": parameters(2, ALL_SERIES, data_mib=27 << 10, limit_gib={BL: 64, GEAR: 36, "others": 29}),
    "variants": each_series, "run": run, "driver": "isozone",
    "setup": SETUP + "27 GiB of keys in random order, once each, on 29 GiB of zones; BL is not limited, and Gear has "
                     "36 GiB (published: 31), since it needs up to 539 zones here."}

UTIL = Experiment(
    name="ll-util",
    title="How full zones are",
    source=f"{LL_PAPER}, Fig. 4a",
    what="Where files that are written together die together, few zones are partly dead.",
    checks=[Check("zones, BL", "624", Point(BL, "zones"), at_least=562, at_most=686),
            Check("zones, GC", "463", Point(GC, "zones"), at_least=417, at_most=463),
            Check("zones above 90 %, LL", "most", Point(LL, "zones above 90 %"), at_least=80),
            Check("zones above 90 %, isozone's picker", "-", Point(OURS, "zones above 90 %"), at_least=80),
            *ratios("zones, isozone's picker against LL", "-", "zones", OURS, LL, at_most=1.01),
            *ratios("tables, LL against BL", "1.09x", "tables", LL, BL),
            *ratios("tables, isozone's picker against BL", "-", "tables", OURS, BL, at_most=1.09)],
    plot=plot_util, **FILL)

PERF = Experiment(
    name="ll-perf",
    title="What GC costs puts, and what it costs to need none",
    source=f"{LL_PAPER}, Fig. 4b and 4c",
    what="Compaction that leaves nothing to collect is as fast as if nobody had to collect.",
    checks=[*ratios("LL against GC", "1.7x", "put", LL, GC, at_least=1.7),
            *ratios("LL against BL", "about 1", "put", LL, BL, at_least=0.95),
            *ratios("Gear against GC", "about 1", "put", GEAR, GC),
            *ratios("isozone's picker against LL", "-", "put", OURS, LL, at_least=1.0),
            *ratios("variation of puts, Gear against LL", "large swings", "variation of put", GEAR, LL, at_least=1.5)],
    plot=plot_put, runs_of="ll-util", **FILL)

TRAFFIC = Experiment(
    name="ll-traffic",
    title="What is written to flash",
    source=f"{LL_PAPER}, Fig. 4d",
    what="LL copies nothing, and compacts less than Gear.",
    checks=[Check("copies, LL", "none", Point(LL, "copied"), at_most=0),
            Check("copies, isozone's picker", "-", Point(OURS, "copied"), at_most=0),
            *ratios("compaction writes, LL against Gear", "fewer", "compaction", LL, GEAR, at_most=0.99),
            *(check for other in (BL, GC, LS, GEAR, LL)
              for check in ratios(f"written in all, isozone's picker against {other}", "-", "written", OURS, other,
                                  at_most=1.0))],
    plot=plot_traffic, runs_of="ll-util", **FILL)

SPACE = Experiment(
    name="ll-space",
    title="Space that short- and long-lived tables take",
    source=f"{LL_PAPER}, section 3.1",
    what="Tables that die early leave holes in zones that others keep.",
    setup=SETUP + "16.5 GB of keys in random order, once each, without a limit of space; they would fit into 258 "
                  "zones. Nothing is collected. LS is BL with zones of one level each.",
    quick=parameters(1, [LS, LL, OURS], data_mib=16500, limit_gib={"others": 40}),
    full=parameters(1, [LS, LL, OURS], data_mib=16500, limit_gib={"others": 40}),
    variants=each_series, run=run,
    checks=[Check("zones, levels apart", "348", Point(LS, "zones"), at_least=313, at_most=383),
            Check("zones, LL: a third of the overhead at most", "-", Point(LL, "zones"), at_most=292),
            Check("zones, isozone's picker", "-", Point(OURS, "zones"), at_most=292)],
    plot=plot_util, driver="isozone")

YCSB = Experiment(
    name="ll-ycsb",
    title="A device that is nearly full",
    source=f"{LL_PAPER}, Fig. 5",
    what="The less space there is, the more GC costs.",
    setup=SETUP + "{data_mib} MiB of keys in random order, once each, on {limit_gib[others]} GiB of zones (published: "
                  "75 GB on 78). The paper's keys are those of YCSB's load, which come in random order.",
    quick=parameters(1, [GC, LL, OURS], data_mib=(75 << 10) // 4, limit_gib={"others": 20}),
    full=parameters(20, [GC, LL, OURS], data_mib=75 << 10, limit_gib={"others": 78}),
    variants=each_series, run=run,
    checks=[*ratios("LL against GC", "1.22 to 1.65x", "put", LL, GC, at_least=1.22),
            *ratios("isozone's picker against GC", "-", "put", OURS, GC, at_least=1.22),
            Check("copies, LL", "none", Point(LL, "copied"), at_most=0),
            Check("copies, isozone's picker", "-", Point(OURS, "copied"), at_most=0)],
    plot=plot_put, driver="isozone")

EXPERIMENTS = [UTIL, PERF, TRAFFIC, SPACE, YCSB]
