"""Greedy inputs of compaction and trivial moves, in the simulator: the thesis on parallel I/O, sections 2.8 and 2.9."""
from .. import plots, simulation
from ..plots import Figure
from ..results import Outcome, Parameters, Results, Variant
from ..runner import Context
from ..targets import Check, ratios
from .base import PARALLEL, Experiment, each_series

LEVELED, GREEDY, OURS = "leveled", "greedy", "isozone picker"
PICKERS = {LEVELED: "leveled", GREEDY: "greedy", OURS: "isozone"}
METRICS = ("time", "compaction", "compaction read", "compactions", "written")
PUBLISHED = {"time": 0.91, "compaction": 0.87, "compaction read": 0.85, "compactions": 0.61, "written": 0.88}
WORDS = {"time": "time until all is compacted", "compaction": "compaction writes",
         "compaction read": "compaction reads", "compactions": "compactions", "written": "written in all"}


def run(context: Context, variant: Variant) -> Outcome:
    parameters = context.parameters
    return simulation.outcome(simulation.run(
        context, ["uniform"], profile="small-zone-96", data=f"{parameters['data_gib']}G", limit="1T",
        table="2G", memtable="2G", compactions=2, gc="none", compaction=PICKERS[variant.series]))


def plot(results: Results) -> Figure:
    drawn, axes = plots.figure(columns=len(METRICS), height=3.2)
    for one, metric in zip(axes, METRICS, strict=True):
        plots.grouped_bars(one, results, metric, [None], [""])
        plots.label(one, "", results.unit(metric), metric)
    plots.legend_below(drawn, axes)
    return drawn


def sizes(expected_s: float, data_gib: int) -> Parameters:
    return {"data_bytes": 0, "expected_s": expected_s, "series": [LEVELED, GREEDY, OURS], "data_gib": data_gib}


def checks(series: str) -> list[Check]:
    return [check for metric in METRICS
            for check in ratios(f"{WORDS[metric]}, {plots.LABELS[series]}", f"{PUBLISHED[metric]:g}x", metric, series,
                                LEVELED, at_most=PUBLISHED[metric])]


EXPERIMENT = Experiment(
    name="greedy",
    title="Better inputs of compaction",
    source=f"{PARALLEL}, sections 2.8 and 2.9",
    what="If all that overlaps an output joins its compaction, the output is not written again soon.",
    setup="isozone simulate, profile small-zone-96: {data_gib} GiB are put under random keys, memtables and tables "
          "have 2 GiB, level 1 has 256 MiB, two compactions at a time, and all compactions are waited for.",
    quick=sizes(1, 100),
    full=sizes(8, 200),
    variants=each_series,
    run=run,
    checks=[*checks(GREEDY), *checks(OURS)],
    plot=plot,
    driver="isozone")
