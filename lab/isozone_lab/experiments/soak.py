"""A nearly full device that is written over ten times: it must not tire, lose zones, or leave damage."""
import statistics

from .. import outputs, plots
from ..device import DeviceStore
from ..plots import Figure
from ..results import Measurement, Outcome, Results, Variant
from ..runner import Context
from ..targets import Check, Point
from . import space
from .base import Experiment, each_series

TENTHS = 10


def run(context: Context, variant: Variant) -> Outcome:
    parameters = context.parameters
    num = space.entries(parameters, parameters["keys_percent"] / 100)
    writes = space.entries(parameters, parameters["overwritten"] / TENTHS)
    with space.store(context, variant.series) as place:
        space.run(context, place, ["fillseq"], num)
        rates, filled = [], []
        for _ in range(TENTHS):
            rates.append(space.run(context, place, ["overwrite"], num, writes=writes,
                                   use_existing_db=1)["overwrite"].rate)
            filled.append(space.live_percent(place.statistics()))
        context.execute([context.build.tool, "fsck", "--read-data", f"emu:{place.image}"])
        context.execute([context.build.tool, "rm", "-r", f"emu:{place.image}", place.database])
        return outcome(rates, filled, lost_bytes(context, place), parameters["zone_kib"] * space.KIB)


def lost_bytes(context: Context, place: DeviceStore) -> int:
    """What is not to be had on a device without files, which nobody has mounted, and is not metadata either."""
    space_now = outputs.read(context.execute([context.build.tool, "df", f"emu:{place.image}", "--json"]), "df")
    return int(space_now["capacity"] - sum(space_now[part] for part in ("free", "reserved", "metadata")))


def outcome(rates: list[float], filled: list[float], lost: int, zone_bytes: int) -> Outcome:
    """`rates`, `filled`: of each tenth. `lost`: bytes that did not come back when everything was deleted."""
    return Outcome([Measurement("last tenth of second", 100 * rates[-1] / rates[1], "%"),
                    Measurement("puts", statistics.median(rates), "ops/s"),
                    Measurement("filled", statistics.median(filled), "%"),
                    Measurement("lost", lost / zone_bytes, "zones")],
                   {"puts": [round(rate) for rate in rates], "filled": [round(one, 1) for one in filled]})


def plot(results: Results) -> Figure:
    drawn, axes = plots.figure(columns=2, height=3.4)
    units = ("puts a second", "of the device belongs to files, %")
    for one, key, words in zip(axes, ("puts", "filled"), units, strict=True):
        plots.lines_over_time(one, results, key, first=1)
        plots.label(one, "tenth of the run", words)
    axes[1].set_ylim(top=100)
    plots.legend_below(drawn, axes)
    return drawn


EXPERIMENT = Experiment(
    name="soak",
    title="Written over ten times",
    source="not published: what users of such a file system rely on",
    what="A device that stays nearly full, and is written over again and again, keeps its throughput; every zone comes "
         "back when the files are deleted, and no damage is found.",
    setup=space.SCALE + "fillseq of keys and values of {keys_percent} % of the device, which with what RocksDB keeps "
          "of older entries is the share in the plot; then overwrite, ten times, with a tenth of {overwritten} times "
          "what the device holds, mounted anew each time. At last fsck reads every block, and all is deleted: then "
          "every zone is free or holds metadata.",
    quick=space.parameters({**space.QUICK, "zones": 128}, 20, ["isozone"], keys_percent=67, overwritten=10),
    full=space.parameters(space.FULL, 2400, ["isozone"], keys_percent=67, overwritten=10),
    variants=each_series,
    run=run,
    checks=[Check("throughput of the last tenth, of that of the second", "-", Point("isozone", "last tenth of second"),
                  at_least=90),
            Check("zones that are not free again", "-", Point("isozone", "lost"), at_most=0),
            Check("of the device belongs to files", "-", Point("isozone", "filled"), at_least=75)],
    plot=plot)
