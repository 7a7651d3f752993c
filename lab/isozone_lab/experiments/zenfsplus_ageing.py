"""What a device loses with age: five workloads on a new one and on one that was written over before."""
from collections.abc import Sequence

from .. import db_bench, plots
from ..device import ConventionalStore, DeviceStore, Shape
from ..plots import Figure
from ..results import Measurement, Outcome, Parameters, Results, Variant
from ..runner import Context
from ..targets import Check, Point, ratios
from . import space, zenfsplus_workloads
from .base import ENTRY_BYTES, SCALED, ZENFS_PLUS, Experiment, puts

NEW, AGED = "new", "aged"
SERIES = ["isozone", "conventional"]
MIB = 1 << 20
# Reads depend on what is left to compact.
ORDER = [*zenfsplus_workloads.WRITING, "waitforcompaction", *zenfsplus_workloads.MIXED]
OLD_DATA = 0.25  # of the device


def variants(parameters: Parameters) -> list[Variant]:
    return [Variant(series, age) for age in (NEW, AGED) for series in parameters["series"]]


def run(context: Context, variant: Variant) -> Outcome:
    make = isozone if variant.series == "isozone" else conventional
    with make(context, variant.x == AGED) as place:
        sizes = {name: context.parameters[name] for name in ("num", "reads")}
        results = db_bench.run(context, place, ORDER, **memtable(context.parameters), **sizes)
        counted = place.statistics()
    return outcome({name: results[name].rate for name in zenfsplus_workloads.WORKLOADS}, variant.x,
                   counted["media_bytes_written"] / counted["host_bytes_written"] if "media_bytes_written" in counted
                   else None)


def memtable(parameters: Parameters) -> dict[str, int]:
    return db_bench.tables_of(parameters["memtable_mib"] * MIB)


def isozone(context: Context, aged: bool) -> DeviceStore:
    """Ages a device with a database, without taking time, that the first workload deletes."""
    parameters = context.parameters
    place = context.zoned("isozone", Shape(zones=parameters["zones"], zone_kib=parameters["zone_kib"]))
    if aged:
        in_time = place.uri
        place.uri += "&timing=off"
        entries = space.device_bytes(parameters) / ENTRY_BYTES
        db_bench.run(context, place, ["overwrite"], num=round(entries * OLD_DATA),
                     writes=round(entries * parameters["age"]), **memtable(parameters))
        place.uri = in_time
    return place


def conventional(context: Context, aged: bool) -> ConventionalStore:
    parameters = context.parameters
    size_mib = space.device_bytes(parameters) // MIB
    return context.conventional(size_mib, parameters["age"] if aged else 0)


def outcome(rates: dict[str, float], age: str, amplification: float | None = None) -> Outcome:
    """`amplification`: what a conventional SSD wrote by what it was given."""
    measurements = [Measurement(f"throughput, {age}", rate, "ops/s", name) for name, rate in rates.items()]
    if amplification is not None:
        measurements.append(Measurement(f"write amplification, {age}", amplification, "", "all five"))
    return Outcome(measurements)


def change(results: Results, series: str, workload: str) -> float | None:
    """From new to aged, in percent; None if one was not measured."""
    new, aged = (results.median(series, f"throughput, {age}", workload) for age in (NEW, AGED))
    return None if not new or aged is None else 100 * (aged / new - 1)


def plot(results: Results) -> Figure:
    drawn, (axes,) = plots.figure(height=4)
    width = 0.8 / len(SERIES)
    for index, series in enumerate(SERIES):
        changes = {at: change(results, series, name) for at, name in enumerate(zenfsplus_workloads.WORKLOADS)}
        known = {at: value for at, value in changes.items() if value is not None}
        bars = axes.bar([at + (index - 0.5) * width for at in known], list(known.values()), width * 0.92,
                        color=plots.COLOURS[series], label=plots.LABELS[series])
        axes.bar_label(bars, [f"{value:+.0f} %" for value in known.values()], fontsize=7, padding=2)
    axes.set_xticks(range(len(zenfsplus_workloads.WORKLOADS)), zenfsplus_workloads.WORKLOADS, fontsize=8)
    axes.axhline(0, color="#444", linewidth=0.8)
    plots.label(axes, "", "throughput, aged against new, %")
    plots.legend_below(drawn, [axes])
    return drawn


def against_new(paper: str, series: str, workloads: Sequence[str], **bound: float) -> list[Check]:
    return ratios(f"{series}, {{x}}: aged against new", paper, f"throughput, {AGED}", series, series, workloads,
                  against_metric=f"throughput, {NEW}", **bound)


WRITING = [name for name in zenfsplus_workloads.WORKLOADS if name != "readrandom"]

EXPERIMENT = Experiment(
    name="zenfsplus-ageing",
    title="A device that was written over before",
    source=f"{ZENFS_PLUS}, Fig. 11 and 12",
    what="A zoned device has nothing to collect by itself, however old it is; a conventional SSD moves what it takes "
         "for live.",
    setup="{zones} zones of {zone_kib:,} KiB on 32 dies, and a conventional SSD of the same dies and size, both in "
          "real time." + SCALED + " Aged: written with {age} times their size, the zoned one by overwrite of a "
          "database that is then deleted (published: 10 TB on 2 TB), the conventional one to its end and then at "
          "random places. Then, in one process, fillrandom and overwrite of {num:,} entries of 20 + 800 bytes, and, "
          "compacted, {reads:,} each of the other three; memtables and tables of {memtable_mib} MiB.",
    quick=puts(200_000, 41, SERIES, reads=500, zones=480, zone_kib=3840, age=1, memtable_mib=16, speed=0.1),
    full=puts(1_000_000, 400, SERIES, reads=20_000, zones=1600, zone_kib=3840, age=5, memtable_mib=64,
              speed=0.1),
    variants=variants,
    run=run,
    checks=[*against_new("-2 to -4 %", "isozone", WRITING, at_least=0.96),
            *against_new("-8 %", "isozone", ["readrandom"], at_least=0.92),
            *against_new("-44 to -58 %", "conventional", WRITING, at_most=0.8),
            *against_new("-25 %", "conventional", ["readrandom"]),
            *(Check(f"write amplification inside the conventional SSD, {age}", "-",
                    Point("conventional", f"write amplification, {age}")) for age in (NEW, AGED))],
    plot=plot,
    why_slower="at full speed the processor limits, and what a device does inside does not show")
