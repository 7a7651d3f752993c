"""What a device writes in place of data because zones are finished before they are full."""
from typing import Any

from .. import db_bench, plots
from ..device import Shape
from ..plots import Figure
from ..results import Measurement, Outcome, Parameters, Results, Variant
from ..runner import Context
from ..targets import Check, Point, ratios
from .base import ENTRY_BYTES, Experiment

SERIES = ["zenfs", "lifetime", "isozone"]
KIB, MIB = 1 << 10, 1 << 20
ZONE_KIB = 1077 * KIB  # of the published device
# RocksDB's defaults.
TABLE_KIB = 64 * KIB
FIRST_LEVEL_KIB = 256 * KIB
METRICS = ["dummy bytes", "copied"]  # of what RocksDB writes
# How many threads of RocksDB write tables at once: few, as by default, and as on a large machine.
FEW, MANY = "2 jobs", "8 jobs, 4 subcompactions"
THREADS = {FEW: {"max_background_jobs": 2}, MANY: {"max_background_jobs": 8, "subcompactions": 4}}


def sized(zones: int, zone_kib: int, filled: float, overwritten: float, expected_s: float) -> Parameters:
    """`filled`, `overwritten`: with so many times what the device holds."""
    data_bytes = round(zones * zone_kib * KIB * filled)
    return {"zones": zones, "zone_kib": zone_kib, "scale": ZONE_KIB // zone_kib, "filled": filled,
            "overwritten": overwritten, "data_bytes": data_bytes, "expected_s": expected_s, "series": SERIES}


def variants(parameters: Parameters) -> list[Variant]:
    return [Variant(series, threads) for threads in THREADS for series in parameters["series"]]


def run(context: Context, variant: Variant) -> Outcome:
    parameters = context.parameters
    scale = parameters["scale"]
    num = parameters["data_bytes"] // ENTRY_BYTES
    writes = round(num * parameters["overwritten"] / parameters["filled"])
    shape = Shape(zones=parameters["zones"], profile="large-zone", zone_kib=parameters["zone_kib"])
    with context.zoned(variant.series, shape, "&timing=off") as place:
        options = {**db_bench.tables_of(TABLE_KIB * KIB // scale),
                   "max_bytes_for_level_base": FIRST_LEVEL_KIB * KIB // scale, **THREADS[str(variant.x)]}
        db_bench.run(context, place, ["fillrandom"], num=num, **options)
        filling = place.statistics()
        db_bench.run(context, place, ["overwrite"], num=num, writes=writes, use_existing_db=1, **options)
        return outcome([filling, place.statistics()], str(variant.x))


def outcome(mounts: list[Any], threads: str) -> Outcome:
    """`mounts`: the statistics of each; the device counts on from one to the next."""
    users = sum(one["user_bytes_appended"] for one in mounts)
    copied = sum(one["classes"]["gc"]["bytes_written"] for one in mounts)
    device = mounts[-1]["device_lifetime"]
    values = [("dummy bytes", 100 * device["dummy_bytes_written"] / users, "%"),
              ("copied", 100 * copied / users, "%"),
              ("dummies", device["dummy_bytes_written"] / MIB, "MiB"),
              ("written by RocksDB", users / MIB, "MiB"),
              ("written to flash", device["media_bytes_written"] / users, "times"),
              ("finishes", device["finishes"], ""),
              ("resets", device["resets"], "")]
    return Outcome([Measurement(metric, value, unit, threads) for metric, value, unit in values])


def plot(results: Results) -> Figure:
    drawn, axes = plots.figure(columns=2, height=3.4)
    for one, metric, title in zip(axes, METRICS, ("dummy bytes", "copied by GC"), strict=True):
        plots.grouped_bars(one, results, metric, list(THREADS))
        plots.label(one, "", "% of what RocksDB writes", title)
    plots.legend_below(drawn, axes)
    return drawn


EXPERIMENT = Experiment(
    name="dummy-writes",
    title="What finishing zones makes a device write",
    source="the cost that \"Eliminating the Hidden Cost of Zone Management in ZNS SSDs\" describes",
    what="A device allows few zones to be partly written. Who needs another one has to finish one of them, and the "
         "device fills its rest with dummy bytes. Whoever lets zones fill up wears the flash less.",
    setup="Profile large-zone, a ZN540 with 14 active zones, timing off: {zones} zones of {zone_kib:,} KiB, 1/{scale} "
          "of the real ones; memtables, tables and the first level are as many times smaller than RocksDB's defaults. "
          "fillrandom of {filled} times what the device holds, then overwrite of the same keys with {overwritten} "
          "times that. Dummy bytes of the device, and what the collector has copied, by what RocksDB has written, "
          "logs included; zenfs and lifetime have no collector.",
    quick=sized(zones=256, zone_kib=2 * KIB, filled=0.2, overwritten=0.2, expected_s=7),
    full=sized(zones=256, zone_kib=4 * KIB, filled=0.2, overwritten=0.6, expected_s=30),
    variants=variants,
    run=run,
    checks=[*ratios("dummy bytes of isozone against zenfs, {x}", "-", "dummy bytes", "isozone", "zenfs",
                    list(THREADS), at_most=0.1),
            *ratios("dummy bytes of isozone against lifetime, {x}", "-", "dummy bytes", "isozone", "lifetime", [MANY]),
            *ratios("written to flash, isozone against zenfs, {x}", "-", "written to flash", "isozone", "zenfs",
                    list(THREADS), at_most=1.0),
            *(Check(f"dummy bytes of zenfs, {threads}", "-", Point("zenfs", "dummy bytes", threads))
              for threads in THREADS)],
    plot=plot)
