"""How much I/O to one zone slows I/O to the others, and the groups that isozone finds from it."""
import collections
import math
from typing import Any

from .. import device, outputs, plots
from ..plots import Axes, Figure
from ..results import Measurement, Outcome, Results, Variant
from ..runner import Context
from ..targets import Check, Point
from .base import ZENFS_PLUS, Experiment

# Kind and sharing, as isozone bench device calls them, and what the metric is called here.
BANDS = (("reads", "nothing shared", "read, nothing shared"), ("reads", "same channel", "read, channel shared"),
         ("reads", "same die", "read, die shared"), ("writes", "nothing shared", "write, nothing shared"),
         ("writes", "same die", "write, die shared"))
PUBLISHED = (("490 us", 490), ("550 us", 550), ("850 us", 850), ("1.9 to 2.0 ms", 1950), ("about 4 ms", 4000))
UNKNOWN = 65535  # a zone in use, by metadata, that could not be measured


def run(context: Context, variant: Variant) -> Outcome:
    parameters = context.parameters
    image = f"{context.shelf.scratch}/interference.img"
    try:
        context.shelf.format(image, device.Shape(parameters["zones"]), context.execute)
        tool = [context.build.tool]
        bench = outputs.read(context.execute([*tool, "bench", "device", f"emu:{image}", "--json", "--samples",
                                              parameters["samples"]]), "bench-device")
        groups = outputs.read(context.execute([*tool, "izg", "identify", f"emu:{image}", "--json"]), "izg-identify")
    finally:
        device.remove(image)
    return outcome(bench, groups)


def outcome(bench: Any, groups: Any) -> Outcome:
    measurements = [Measurement(name, bench[kind]["bands_us"][sharing], "us") for kind, sharing, name in BANDS
                    if sharing in bench[kind]["bands_us"]]
    zone_groups = groups["group_of_zone"]
    measurements += [Measurement("groups", groups["groups"], ""),
                     Measurement("zones in a wrong group", misplaced(zone_groups), "")]
    points = {kind: [[point["distance"], point["median_us"]] for point in bench[kind]["points"]]
              for kind in ("reads", "writes")}
    return Outcome(measurements, {**points, "groups": zone_groups})


def misplaced(zone_groups: list[int], dies: int = device.Shape.dies) -> int:
    """Zones that are not in the group of most others on their die: the device maps zones to dies in turn."""
    wrong = 0
    for die in range(dies):
        known = [group for group in zone_groups[die::dies] if group != UNKNOWN]
        wrong += len(known) - max(collections.Counter(known).values(), default=0)
    return wrong


def plot(results: Results) -> Figure:
    drawn, (reads, writes, groups) = plots.figure(rows=3, height=2.6)
    details = results.details("device")
    for axes, kind, limit in ((reads, "reads", 1000), (writes, "writes", 5000)):
        distances, medians = zip(*details[kind], strict=True)
        axes.plot(distances, medians, "o", markersize=4, color=plots.COLOURS["device"])
        plots.label(axes, "distance to the busy zone, in zones", "latency, us", f"192 KiB {kind} beside {kind}")
        axes.set_ylim(0, limit)
    plot_groups(drawn, groups, details["groups"])
    return drawn


def plot_groups(drawn: Figure, axes: Axes, zone_groups: list[int], width: int = 64) -> None:
    """A square for each zone, in rows of `width`; a colour for each group."""
    cells = [math.nan if group == UNKNOWN else group for group in zone_groups]
    rows = [cells[start:start + width] for start in range(0, len(cells), width)]
    image = axes.imshow(rows, cmap="turbo", aspect="auto", interpolation="nearest")
    drawn.colorbar(image, ax=axes, label="group")
    plots.label(axes, f"zone modulo {width}", f"zone / {width}", "Groups that were found by latency alone")
    axes.grid(visible=False)


def band(metric: str, paper: str, value: float) -> Check:
    """Within a tenth of what was published."""
    return Check(metric, paper, Point("device", metric), at_least=value * 0.9, at_most=value * 1.1)


EXPERIMENT = Experiment(
    name="zenfsplus-interference",
    title="Zones that share hardware slow one another",
    source=f"{ZENFS_PLUS}, Fig. 3",
    what="Latency of one zone while another is kept busy shows which zones share a channel or a die; from this alone "
         "the independent zone groups (IZGs) are found.",
    setup="A small-zone device of {zones:,} zones on 32 dies and 8 channels, 192 KiB commands at queue depth 1, "
          "{samples} of each zone; targets are within a tenth of the published value.",
    quick={"zones": 1024, "samples": 24, "data_bytes": 0, "expected_s": 15},
    full={"zones": 2048, "samples": 100, "data_bytes": 0, "expected_s": 60},
    variants=lambda _: [Variant("device")],
    run=run,
    checks=[*(band(metric, paper, value)
              for (*_, metric), (paper, value) in zip(BANDS, PUBLISHED, strict=True)),
            Check("independent zone groups found", "32", Point("device", "groups"), at_least=32, at_most=32),
            Check("zones in a wrong group", "-", Point("device", "zones in a wrong group"), at_most=0)],
    plot=plot,
    driver="isozone")
