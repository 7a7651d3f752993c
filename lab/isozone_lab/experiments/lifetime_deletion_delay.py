"""How long deleted files go on taking room: until every file that shares a zone with them is deleted, too."""
from typing import Any

from .. import plots
from ..plots import Figure
from ..processes import RunFailed
from ..results import Measurement, Outcome, Results, Variant
from ..runner import Context
from ..targets import Check, Point, ratios
from . import space
from .base import Experiment, each_series

SERIES = ["zenfs", "lifetime", "lifetime+gc", "isozone"]
LIFETIMES = ["short", "medium", "long", "extreme"]


def run(context: Context, variant: Variant) -> Outcome:
    num = space.keys(context.parameters, context.parameters["range_m"])
    with space.store(context, variant.series) as place:
        space.run(context, place, ["fillseq", "overwrite"], num)
        return outcome(place.statistics())


def outcome(counted: Any) -> Outcome:
    """Lifetimes of which nothing was deleted have no value."""
    delays = counted["deletion_delay_us"]
    measured = [Measurement("delay", delays[name]["mean"] / 1e6, "s", name) for name in LIFETIMES if name in delays]
    if not measured:
        raise RunFailed("no zone with a deleted file was reset")
    return Outcome(measured)


def plot(results: Results) -> Figure:
    drawn, (axes,) = plots.figure(height=3.8)
    plots.grouped_bars(axes, results, "delay", LIFETIMES)
    axes.set_yscale("log")
    plots.label(axes, "lifetime of the file", "seconds from deletion to reset, mean")
    plots.legend_below(drawn, [axes])
    return drawn


EXPERIMENT = Experiment(
    name="lifetime-deletion-delay",
    title="From the deletion of a file to that of its bytes",
    source=f"{space.LIFETIME}, Fig. 14",
    what="A deleted file takes room until its zones are reset. Short-lived files wait for long-lived ones where both "
         "share a zone.",
    setup=space.SCALE + "fillseq, then overwrite of as many keys, {range_m} M. The time from when the last name of a "
          "file goes to when a zone that it lay in is reset, mean over files and zones; zones that were not reset do "
          "not count. What waits for long waits in proportion to the run, which is shorter here than published. Short "
          "are logs: with policy zenfs they have zones of their own here, which in the original tables share.",
    quick=space.parameters(space.QUICK, 2, SERIES, range_m=4),
    full=space.parameters(space.FULL, 120, SERIES, range_m=4),
    variants=each_series,
    run=run,
    checks=[Check("short, lifetime", "0.08 s", Point("lifetime", "delay", "short"), at_most=0.1),
            Check("short, zenfs", "45 s", Point("zenfs", "delay", "short")),
            *ratios("{x}, lifetime against zenfs", "3x (4 to 12 s)", "delay", "lifetime", "zenfs", xs=["medium"]),
            *ratios("{x}, lifetime against zenfs", "1.4x (8 to 11 s)", "delay", "lifetime", "zenfs", xs=["extreme"])],
    plot=plot)
