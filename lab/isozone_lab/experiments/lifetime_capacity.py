"""The largest key range that fits: how much of the device a placement and its collector let be used."""
from collections.abc import Callable, Sequence

from .. import plots
from ..plots import Figure
from ..results import Measurement, Outcome, Parameters, Results, Variant
from ..runner import Context
from ..targets import Check, Point
from . import space
from .base import Experiment, each_series

STEERED = "isozone picker"
SERIES = ["zenfs", "zenfs+full-gc", "lifetime", "lifetime+gc", "isozone", STEERED]


def largest(fits: Callable[[float], bool], steps: Sequence[float]) -> float | None:
    """The greatest of `steps`, ascending, that fits, if each below one that fits does; None if none does."""
    low, high = 0, len(steps)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if fits(steps[middle]) else (low, middle)
    return steps[low - 1] if low else None


def steps(parameters: Parameters) -> list[float]:
    """Key ranges, in M."""
    first, last, step = (parameters[name] for name in ("least_m", "most_m", "step_m"))
    return [first + index * step for index in range(round((last - first) / step) + 1)]


def run(context: Context, variant: Variant) -> Outcome:
    tried, ranges = {}, steps(context.parameters)

    def fits(millions: float) -> bool:
        with space.store(context, variant.series) as place:
            num = space.keys(context.parameters, millions)
            load = space.run_steered if variant.series == STEERED else space.run
            tried[millions] = space.survives(
                lambda: load(context, place, ["fillseq", "overwrite"], num)) is not None
        return tried[millions]

    return outcome(largest(fits, ranges), ranges[-1], tried)


def outcome(found: float | None, last: float, tried: dict[float, bool]) -> Outcome:
    """If the last of the ranges fits, a larger one might, too."""
    return Outcome([Measurement("key range", found or 0, "M", or_more=found == last)],
                   {"tried": sorted(tried.items())})


def plot(results: Results) -> Figure:
    drawn, (axes,) = plots.figure(height=3.6)
    plots.grouped_bars(axes, results, "key range", [None], [""])
    plots.label(axes, "", "largest key range, M")
    plots.legend_below(drawn, [axes])
    return drawn


def at_least(what: str, paper: str, series: str, millions: float) -> Check:
    return Check(what, paper, Point(series, "key range"), at_least=millions)


EXPERIMENT = Experiment(
    name="lifetime-capacity",
    title="The largest key range that fits",
    source=f"{space.LIFETIME}, Fig. 13",
    what="Zones that are mixed of data that dies at different times are neither needed nor free. Placement by lifetime "
         "and GC make room for more keys.",
    setup=space.SCALE + "fillseq, then overwrite of as many keys: the largest range, in steps of {step_m} M from "
          "{least_m} M to {most_m} M, at which neither runs out of space; found by bisection. 0: none; or more: "
          "the last one fits. The collector of ZenFS looks every 10 s, about as long as a small run takes, and no "
          "writer waits for it; so the placement of ZenFS is shown with a collector that is waited for. Where "
          "Isozone picks compactions, the limits of debt are RocksDB's defaults: it bounds debt by the space itself.",
    quick=space.parameters(space.QUICK, 6, SERIES, least_m=4, most_m=8, step_m=1),
    night=space.parameters(space.NIGHT, 225, SERIES, least_m=2, most_m=10.5, step_m=0.25),
    full=space.parameters(space.FULL, 900, SERIES, least_m=2, most_m=10.5, step_m=0.25),
    variants=each_series,
    run=run,
    checks=[Check("zenfs", "4 M", Point("zenfs", "key range"), at_least=3.5, at_most=4.5),
            at_least("zenfs with collector", "6 M", "zenfs+full-gc", 6),
            Check("lifetime without collector", "6 M", Point("lifetime", "key range"), at_least=5, at_most=7),
            at_least("lifetime with collector", "7 M", "lifetime+gc", 7),
            at_least("isozone", "-", "isozone", 8),
            at_least("isozone, compaction steered", "-", STEERED, 8)],
    plot=plot)
