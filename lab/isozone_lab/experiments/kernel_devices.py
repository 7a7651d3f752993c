"""The kernel's zoned file systems and Isozone on the same emulated SSD, in a guest in virtual time.

Isozone reaches the SSD inside the process of db_bench, or as the block device that `isozone export` makes of it in
another process. The file systems of the kernel have that block device, and beside it a device without zones for their
metadata (and XFS's log), which is memory and takes no time. Each system has a guest, and an SSD, of its own. One series
has no SSD: on tmpfs RocksDB is as fast as the guest's processor lets it be.
"""
from __future__ import annotations

import dataclasses
import shlex
from typing import Any

from .. import db_bench, outputs, plots
from ..db_bench import Result
from ..device import POLICIES
from ..plots import Figure
from ..results import Measurement, Outcome, Parameters, Results, Variant
from ..runner import Context
from ..targets import Check, Point, ratios
from .base import SCALED, Experiment, each_series, puts

LIBRARY = "/bin/libisozone.so"
IMAGE = "emu:/tmp/ssd.img"
INSIDE = IMAGE + "?speed={speed}"
BLOCK_DEVICE = "dev:/dev/ublkb0"
SERVE = "serve speed={speed}"
# The kernel wants zones whose size is a power of two.
SSD = "profile=small-zone&zones={zones}&zone_size=128M&zone_capacity=72M"
DIRECT = {"use_direct_io_for_flush_and_compaction": "true", "use_direct_reads": "true"}
TUNED = {"max_background_jobs": 8, "subcompactions": 4}
# A machine that is five times as fast as the guest has a device of a quarter of the published speed elsewhere in the
# lab.
SPEED = 0.05
WRITE_RATE = 2_000_000  # bytes a second that are put beside reads
PERCENTILES = (50, 99, 99.9, 99.99)  # of reads beside writes
WRITES = ("fillrandom", "compact")
READS = ("readrandom",)


@dataclasses.dataclass(frozen=True)
class System:
    """Where the database of a series is: the commands that prepare the SSD, those that make the place on it and take it
    away, and what db_bench is told of it."""
    prepare: tuple[str, ...] = ()
    make: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    database: str = "/db"
    uri: str = ""
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    reads: bool = True  # whether reads are measured


def isozone(location: str, make: tuple[str, ...] = (), remove: tuple[str, ...] = ()) -> System:
    """The file system that is on the SSD when it is made. Its zone groups are measured, as everywhere in the lab."""
    return System((f"run identify isozone izg identify '{INSIDE}'",), make, remove,
                  uri=f"isozone://{location}&log_dir=/tmp/log")


def mounted(command: str, **options: Any) -> System:
    """A file system of the kernel on the exported SSD."""
    return System((), (SERVE, command), ("umount /mnt", "stop_serving"), database="/mnt/db", options=options)


def systems() -> dict[str, System]:
    """By series; {speed} is to be filled in."""
    return {
        "isozone": isozone(f"{INSIDE}&{POLICIES['isozone']}"), "zenfs": isozone(f"{INSIDE}&{POLICIES['zenfs']}"),
        "isozone dev": isozone(f"{BLOCK_DEVICE}?{POLICIES['isozone']}", (SERVE,), ("stop_serving",)),
        "XFS": mounted("mount_xfs"), "XFS tuned": mounted("mount_xfs", **TUNED), "F2FS": mounted("mount_f2fs"),
        "tmpfs": System(make=("mount_memory",), remove=("umount /mnt",), database="/mnt/db", reads=False)}


def job(system: System, parameters: Parameters, seed: int, speed: float) -> list[str]:
    """The commands of a guest that measures `system`."""
    def bench(name: str, benchmarks: tuple[str, ...], **options: Any) -> str:
        words = db_bench.arguments(system.database, system.uri, seed, benchmarks, num=parameters["num"], histogram=1,
                                   **DIRECT, **db_bench.tables_of(parameters["table_bytes"]),
                                   max_bytes_for_level_base=4 * parameters["table_bytes"], **options, **system.options)
        preloaded = [f"LD_PRELOAD={LIBRARY}"] if system.uri else []
        return shlex.join(["run", name, "env", *preloaded, *words])

    def look(name: str) -> str:
        return f"run {name} isozone info --json {IMAGE}"

    ssd = f"make_image '{SSD.format(**parameters)}'"
    benches = [bench("load", WRITES + READS, reads=parameters["reads"]),
               bench("mixed", ("readwhilewriting",), use_existing_db=1, reads=parameters["mixed_reads"],
                     benchmark_write_rate_limit=WRITE_RATE)] if system.reads else [bench("load", WRITES)]
    lines = (ssd, *system.prepare, look("before"), *system.make, *benches, *system.remove, look("after"))
    return [line.replace("{speed}", f"{speed:g}") for line in lines]


def run(context: Context, variant: Variant) -> Outcome:
    commands = job(systems()[variant.series], context.parameters, context.seed, context.speed)
    return outcome(context.guest(commands))


def outcome(printed: dict[str, str]) -> Outcome:
    """`printed`: what the programs of a job have printed, by their names in it."""
    load = db_bench.results_of(printed["load"], WRITES)
    before, after = (outputs.read(printed[name], "info")["device"]["counters"] for name in ("before", "after"))
    return Outcome([
        Measurement("puts", load["fillrandom"].rate, "puts/s"),
        Measurement("longest put", longest(load["fillrandom"]), "s"),
        Measurement("compaction", load["compact"].seconds, "s"),
        *(reads_in(printed) if "mixed" in printed else []),
        Measurement("written by the host", (after["host_bytes_written"] - before["host_bytes_written"]) / 1e6, "MB")])


def reads_in(printed: dict[str, str]) -> list[Measurement]:
    mixed = db_bench.results_of(printed["mixed"], ("readwhilewriting",))["readwhilewriting"]
    return [
        Measurement("reads", db_bench.results_of(printed["load"], READS)["readrandom"].rate, "reads/s"),
        Measurement("reads beside writes", mixed.rate, "reads/s"),
        *(Measurement("latency beside writes", mixed.histograms["read"].percentile(percent) / 1000, "ms", f"P{percent}")
          for percent in PERCENTILES)]


def longest(result: Result) -> float:
    """The longest put, in seconds."""
    return result.histograms["write"].greatest / 1e6


def against(kernel: str, what: str, goal: str, metric: str, x: str | None = None, at_least: float | None = None,
            at_most: float | None = None) -> list[Check]:
    """Isozone on the block device against a file system of the kernel on it."""
    return ratios(f"{what}: isozone dev against {kernel}", goal, metric, "isozone dev", kernel, [x],
                  at_least=at_least, at_most=at_most)


def near(what: str, metric: str) -> Check:
    """On the block device as in the process, within a tenth."""
    return Check(f"{what}: isozone dev against isozone", "goal: at most 10 % apart", Point("isozone dev", metric),
                 Point("isozone", metric), at_least=0.9, at_most=1.1)


CHECKS = [
    *ratios("puts: isozone against tmpfs", "what the processor allows", "puts", "isozone", "tmpfs"),
    near("puts", "puts"), near("compaction", "compaction"), near("reads", "reads"),
    near("reads beside writes", "reads beside writes"),
    *ratios("puts: isozone against zenfs", "goal: 18,600 against 6,150 a second", "puts", "isozone", "zenfs",
            at_least=18_600 / 6150),
    *against("XFS", "puts", "goal: 18,600 against 3,330 a second", "puts", at_least=18_600 / 3330),
    *against("XFS tuned", "puts", "goal: 18,600 against 5,360 a second", "puts", at_least=18_600 / 5360),
    *against("F2FS", "puts", "goal: 18,600 against 4,230 a second", "puts", at_least=18_600 / 4230),
    Check("longest put: isozone dev", "goal: 0.03 to 0.23 s", Point("isozone dev", "longest put"), at_most=0.23),
    *against("XFS", "longest put", "goal: 0.23 s against 13.6 s", "longest put", at_most=0.23 / 13.6),
    *against("XFS tuned", "longest put", "goal: 0.23 s against 5.2 s", "longest put", at_most=0.23 / 5.2),
    *against("XFS", "full compaction", "goal: 5 s against 50 s", "compaction", at_most=5 / 50),
    *against("XFS tuned", "full compaction", "goal: 5 s against 26 s", "compaction", at_most=5 / 26),
    *against("XFS", "reads", "goal: equal", "reads", at_least=0.95),
    *against("XFS", "reads beside writes", "goal: 241 against 203 a second", "reads beside writes",
             at_least=241 / 203),
    *against("XFS", "P99 of reads beside writes", "goal: below", "latency beside writes", "P99", at_most=1)]

PANELS = (("puts", None, "puts a second"), ("longest put", None, "the longest put, s"),
          ("compaction", None, "full compaction, s"), ("reads", None, "reads a second"),
          ("reads beside writes", None, "reads beside writes, a second"),
          ("latency beside writes", "P99", "P99 of these reads, ms"))


def plot(results: Results) -> Figure:
    drawn, panels = plots.figure(rows=2, columns=3, height=2.9)
    for axes, (metric, x, title) in zip(panels, PANELS, strict=True):
        plots.grouped_bars(axes, results, metric, [x], [""], without=["tmpfs"])
        plots.label(axes, "", "", title)
    plots.limit_line(panels[0], results, PANELS[0][0], "tmpfs")
    plots.legend_below(drawn, panels)
    return drawn


SERIES = list(systems())

QUICK = puts(12_000, 24, SERIES, speed=SPEED, zones=48, reads=500, mixed_reads=300, table_mb=2, table_bytes=2 << 20)

EXPERIMENT = Experiment(
    name="kernel-devices",
    title="Isozone beside the kernel's zoned file systems",
    source="not published",
    what="RocksDB on Isozone, inside its process and through a zoned block device of the kernel, and on zoned XFS and "
         "F2FS on the same block device; and on tmpfs.",
    setup="A guest with the newest kernel and one processor, in virtual time: an instruction takes 1 ns. db_bench with "
          "direct I/O: {num:,} puts of 20 + 800 bytes in random order, a full compaction, {reads:,} random reads, and "
          "{mixed_reads:,} beside 2 MB/s of puts; tables and memtables of {table_mb} MB, levels four times as "
          "large. {zones} zones of 72 MiB on 32 dies. XFS tuned has 8 background jobs and 4 subcompactions." + SCALED,
    quick=QUICK,
    night=QUICK,
    full=puts(300_000, 250, SERIES, speed=SPEED, zones=128, reads=6000, mixed_reads=25_000, table_mb=64,
              table_bytes=64 << 20),
    variants=each_series,
    run=run,
    checks=CHECKS,
    plot=plot,
    driver="guest",
    why_slower="a put takes about five times as long there as on a machine of today")
