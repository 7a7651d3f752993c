"""How many bytes collectors copy on a device that is three quarters full, and on one that is nearly full."""
from typing import Any

from .. import plots
from ..plots import Figure
from ..results import Measurement, Outcome, Results, Variant
from ..runner import Context
from ..targets import Check, Point, ratios
from . import space
from .base import ZENFS_PLUS, Experiment, each_series

SERIES = ["gc=full", "gc=zenfs+", "gc=isozone"]
OTHERS = ["gc=zenfs", "gc=full", "gc=zenfs+", "gc=lifetime", "gc=lsm-zgc"]


def run(context: Context, variant: Variant) -> Outcome:
    parameters = context.parameters
    num = space.entries(parameters, parameters["filled"] / 100)
    writes = space.entries(parameters, parameters["overwritten"])
    with space.store(context, variant.series) as place:
        space.run(context, place, ["fillseq"], num)
        filling = place.statistics()
        done = space.survives(lambda: space.run(context, place, ["overwrite"], num, writes=writes, use_existing_db=1))
        return outcome([filling, place.statistics()] if done else None)


def outcome(mounts: list[Any] | None) -> Outcome:
    """`mounts`: the statistics of each, the last one at the end; None where the device has run out of space."""
    if mounts is None:
        return Outcome([Measurement("survives", 0, "")])
    copied = sum(map(space.copied_bytes, mounts))
    written = sum(one["user_bytes_appended"] for one in mounts)
    return Outcome([Measurement("survives", 1, ""), Measurement("copied", copied / 2**20, "MiB"),
                    Measurement("written", written / 2**20, "MiB"),
                    Measurement("copied of written", 100 * copied / written, "%"),
                    Measurement("filled", space.live_percent(mounts[-1]), "%")])


def plot(results: Results) -> Figure:
    drawn, (axes,) = plots.figure(height=3.6)
    plots.grouped_bars(axes, results, "copied", [None], [""])
    ended = [plots.LABELS[series] for series in plots.measured_series(results, "survives")
             if results.median(series, "survives", None) == 0]
    plots.label(axes, "", "copied, MiB", f"ran out of space: {', '.join(ended)}" if ended else "")
    plots.legend_below(drawn, [axes])
    return drawn


COPIES = Experiment(
    name="zenfsplus-gc-copies",
    title="What collectors copy",
    source=f"{ZENFS_PLUS}, Fig. 13",
    what="Zones that are reset as soon as all in them has died need no GC; what is left is copied, and less of "
         "it where victims are chosen well.",
    setup=space.SCALE + "fillseq of keys and values of {filled} % of the device, which with what RocksDB keeps of "
          "older entries makes it three quarters full, then overwrite with {overwritten} times what the device holds, "
          "all with the policy isozone. Bytes that the collector wrote. (Published: 1.5 TB of 2 TB, overwritten with "
          "3.5 TB; at another distribution of writes.)",
    quick=space.parameters(space.QUICK, 8, SERIES, filled=63, overwritten=2.3),
    night=space.parameters(space.NIGHT, 300, SERIES, filled=63, overwritten=2.3),
    full=space.parameters(space.FULL, 1200, SERIES, filled=63, overwritten=2.3),
    variants=each_series,
    run=run,
    checks=[*ratios("with minor GC against full GC alone", "1/2.2 to 0.55x (1.1-3.3 to 0.5-1.8 TB)", "copied",
                    "gc=zenfs+", "gc=full", at_most=0.55),
            Check("of the device belongs to files at the end", "75 %", Point("gc=isozone", "filled"), at_least=74,
                  at_most=77),
            *ratios("isozone against full GC alone", "-", "copied", "gc=isozone", "gc=full", at_most=0.25)],
    plot=plot)

SCHEMES = Experiment(
    name="gc-schemes",
    title="What collectors copy where space is short",
    source="the collectors of ZenFS, ZenFS+, Lifetime and LSM_ZGC, under one policy",
    what="The fuller the device, the more every collector has to copy; which victims it takes, and when, decides how "
         "much. A collector that begins too late, or wins too little, runs out of space.",
    setup=space.SCALE + "fillseq of keys and values of {filled} % of the device, then overwrite with {overwritten} "
          "times what the device holds: nine tenths of it are live then. All with the policy isozone.",
    quick=space.parameters(space.QUICK, 6, [*OTHERS, "gc=isozone"], filled=74, overwritten=0.7),
    night=space.parameters(space.NIGHT, 300, [*OTHERS, "gc=isozone"], filled=74, overwritten=2.3),
    full=space.parameters(space.FULL, 1200, [*OTHERS, "gc=isozone"], filled=74, overwritten=2.3),
    variants=each_series,
    run=run,
    checks=[Check("isozone has space to the end: 1 for yes", "-", Point("gc=isozone", "survives"), at_least=1),
            Check("zenfs has, too", "-", Point("gc=zenfs", "survives")),
            *(check for other in OTHERS[1:]
              for check in ratios(f"isozone against {other}", "-", "copied", "gc=isozone", other, at_most=1.0)),
            Check("of the device belongs to files at the end", "-", Point("gc=isozone", "filled"))],
    plot=plot)

EXPERIMENTS = [COPIES, SCHEMES]
