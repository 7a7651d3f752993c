"""MariaDB with MyRocks on a directory that `isozone mount` makes, and on the kernel's zoned file systems, on the same
emulated SSD, in a guest in virtual time.

The systems are those of kernel_devices, but that Isozone is a directory: its daemon has the SSD, or the block device
that `isozone export` makes of it, which the file systems of the kernel have, too. One series has no SSD: on tmpfs
MyRocks is as fast as the guest's processor lets it be. The clients are loops in SQL that the server runs, so that they
cost the one processor little.
"""
from __future__ import annotations

import dataclasses
import re
import shlex
from typing import Any

from .. import outputs, plots, processors
from ..guest import mariadb
from ..plots import Figure
from ..processes import RunFailed
from ..results import Measurement, Outcome, Parameters, Results, Variant
from ..runner import Context
from ..targets import Check, ratios
from .base import SCALED, Experiment, each_series
from .kernel_devices import BLOCK_DEVICE, IMAGE, INSIDE, SERVE, SPEED, SSD

# Through the page cache XFS inserts fewer rows.
DIRECT = {"rocksdb-use-direct-io-for-flush-and-compaction": 1, "rocksdb-use-direct-reads": 1}
TUNED = {"rocksdb-max-background-jobs": 8, "rocksdb-max-subcompactions": 4}
# A bloom filter of 10 bits, so that a row that is not there is not looked for in every level.
COLUMN_FAMILY = ("write_buffer_size={table};target_file_size_base={table};max_bytes_for_level_base={level};"
                 "compression=kNoCompression;block_based_table_factory={{filter_policy=bloomfilter:10:false}}")
ROWS_AT_ONCE = 100  # of the transactions that fill the table
CLIENTS = 4
# The rows in random order: an odd multiplier makes another number of 32 bits from each.
KEY = "({number}) * 2654435761 % 4294967296"
# Returns when no compaction runs and none is due. Pausing waits for those that run; what is pending then is due.
SETTLE = ("begin not atomic declare pending int; repeat set global rocksdb_pause_background_work = 1; "
          "select sum(value) into pending from information_schema.rocksdb_cfstats "
          "where stat_type = 'COMPACTION_PENDING'; set global rocksdb_pause_background_work = 0; "
          "do sleep(0.1); until pending = 0 end repeat; end//")
TIMED = ("fill", "sync", "sync-by-several")  # the steps of which it is told how busy the processor is
ANSWER = re.compile(r"^(\d+)\t([\d.]+)\t([\d.]+)\t([\d.]+)$", re.M)


@dataclasses.dataclass(frozen=True)
class System:
    """The commands that prepare the SSD, those that make /mnt on it and take it away, and options of the server."""
    prepare: tuple[str, ...]
    make: tuple[str, ...]
    remove: tuple[str, ...]
    options: dict[str, Any] = dataclasses.field(default_factory=dict)


def isozone(device: str, make: tuple[str, ...] = (), remove: tuple[str, ...] = ()) -> System:
    """A directory on `device`. The zone groups are measured, as everywhere in the lab."""
    return System((f"run identify isozone izg identify '{INSIDE}'",),
                  (*make, f"mount_isozone '{device}'", "run requests grep -o 'come by .*' /tmp/mount"),
                  ("unmount_isozone", *remove))


def of_the_kernel(command: str, **options: Any) -> System:
    return System((), (SERVE, command), ("umount /mnt", "stop_serving"), options)


def systems() -> dict[str, System]:
    """By series; {speed} is to be filled in."""
    return {"isozone": isozone(INSIDE), "isozone dev": isozone(BLOCK_DEVICE, (SERVE,), ("stop_serving",)),
            "XFS": of_the_kernel("mount_xfs"), "XFS tuned": of_the_kernel("mount_xfs", **TUNED),
            "F2FS": of_the_kernel("mount_f2fs"), "tmpfs": System((), ("mount_memory",), ("umount /mnt",))}


@dataclasses.dataclass(frozen=True)
class Answer:
    """What clients say of their transactions: how many rows they changed, and when they began and ended."""
    rows: int
    begin_s: float
    end_s: float
    longest_s: float  # transaction

    @staticmethod
    def of(text: str) -> Answer:
        """Of all clients whose answers are in `text`."""
        found = [[float(word) for word in words] for words in ANSWER.findall(text)]
        if not found:
            raise RunFailed(f"the clients have said nothing of their transactions:\n{text}")
        rows, begins, ends, longest = zip(*found, strict=True)
        return Answer(int(sum(rows)), min(begins), max(ends), max(longest))

    @property
    def seconds(self) -> float:
        return self.end_s - self.begin_s

    @property
    def rate(self) -> float:
        return self.rows / self.seconds


def transactions(count: int, statement: str, number: str = "n") -> str:
    """SQL that makes `count` transactions, and answers how many rows they have changed. `n` is the number of one in the
    statement, from 0 on, and `number` what is made of it first."""
    return ("begin not atomic declare number, changed bigint default 0; "
            "declare longest, start, one decimal(20, 6) default unix_timestamp(sysdate(6)); set longest = 0; "
            f"for n in 0..{count - 1} do set number = {number}, one = unix_timestamp(sysdate(6)); {statement}; "
            "set changed = changed + row_count(), longest = greatest(longest, unix_timestamp(sysdate(6)) - one); "
            "end for; select changed, start, unix_timestamp(sysdate(6)), longest; end//")


def statements(parameters: Parameters, seed: int) -> dict[str, tuple[int, str]]:
    """By the name of a step: by how many clients, and the SQL of each."""
    rows, updates, synced = parameters["rows"], parameters["updates"], parameters["synced"]
    first = seed % 1000 * 1_000_000  # more than there are rows
    content = f"repeat('{{}}', {parameters['content_bytes']})"
    filled = KEY.format(number=f"{first} + number + seq")
    insert = f"insert into item values ({KEY.format(number='number')}, {content.format('c')})"
    added = f"{first + rows + 1} + (@client + {{}}) * {synced} + n"
    return {
        "make": (1, "create table item (id bigint primary key, content varbinary(8000) not null)//"),
        "fill": (1, "set unique_checks = 0//" + transactions(
            rows // ROWS_AT_ONCE, f"insert into item select {filled}, {content.format('a')} from "
            f"seq_1_to_{ROWS_AT_ONCE}", f"n * {ROWS_AT_ONCE}")),
        "compact": (1, "set @begin = sysdate(6)// set global rocksdb_compact_cf = 'default'// "
                       "select 1, unix_timestamp(@begin), unix_timestamp(sysdate(6)), 0//"),
        "settle": (1, SETTLE),
        "update": (1, f"set rand_seed1 = {seed}, rand_seed2 = {seed}//" + transactions(
            updates, f"update item set content = {content.format('b')} where id = {KEY.format(number='number')}",
            f"{first + 1} + floor(rand() * {rows})")),
        "sync": (1, "set global rocksdb_flush_log_at_trx_commit = 1// " + transactions(
            synced, insert, added.format(0))),
        "sync-by-several": (CLIENTS, transactions(synced, insert, added.format(1)))}


def job(system: System, parameters: Parameters, seed: int, speed: float) -> list[str]:
    """The commands of a guest that measures `system`."""
    def look(name: str) -> str:
        return f"run {name} isozone info --json {IMAGE}"

    def timed(name: str) -> list[str]:
        """The step, and how busy the processor is meanwhile."""
        before, after = (f"run {when}-{name} head -n 1 /proc/stat" for when in ("before", "after"))
        return [before, steps[name], after]

    table = parameters["table_bytes"]
    options = {"rocksdb-flush-log-at-trx-commit": 2, **DIRECT, **system.options,
               "rocksdb-default-cf-options": COLUMN_FAMILY.format(table=table, level=4 * table)}
    start = shlex.join(["start_mariadb", *(f"--{name}={value}" for name, value in options.items())])
    steps = {name: shlex.join(["run", name, "clients", str(clients), sql])
             for name, (clients, sql) in statements(parameters, seed).items()}
    lines = (f"make_image '{SSD.format(**parameters)}'", *system.prepare, look("before"), *system.make, start,
             steps["make"], *timed("fill"), steps["compact"], steps["settle"], steps["update"], *timed("sync"),
             *timed("sync-by-several"), "stop_mariadb", *system.remove, look("after"))
    return [line.replace("{speed}", f"{speed:g}") for line in lines]


def run(context: Context, variant: Variant) -> Outcome:
    commands = job(systems()[variant.series], context.parameters, context.seed, context.speed)
    return outcome(context.guest(commands, mariadb.add_to))


def outcome(printed: dict[str, str]) -> Outcome:
    """`printed`: what the programs of a job have printed, by their names in it."""
    fill, compact, update, sync, several = (Answer.of(printed[name]) for name in (
        "fill", "compact", "update", "sync", "sync-by-several"))
    before, after = (outputs.read(printed[name], "info")["device"]["counters"] for name in ("before", "after"))
    return Outcome([
        Measurement("rows", fill.rate, "rows/s"),
        Measurement("longest transaction", fill.longest_s, "s"),
        *(Measurement("processor", busy, "%", step) for step in TIMED
          for busy in [processors.busy_percent(printed[f"before-{step}"], printed[f"after-{step}"])]),
        Measurement("compaction", compact.seconds, "s"),
        Measurement("updates", update.rate, "updates/s"),
        Measurement("synced", sync.rate, "transactions/s"),
        Measurement("longest synced", sync.longest_s, "s"),
        Measurement("synced by several", several.rate, "transactions/s"),
        Measurement("written by the host", (after["host_bytes_written"] - before["host_bytes_written"]) / 1e6, "MB")],
        {"requests": printed.get("requests", "").strip()})


def against(kernel: str, what: str, goal: str, metric: str, at_least: float) -> list[Check]:
    """Isozone on the block device against a file system of the kernel on it."""
    return ratios(f"{what}: isozone dev against {kernel}", goal, metric, "isozone dev", kernel, at_least=at_least)


CHECKS = [
    *(check for metric in ("rows", "synced", "synced by several")
      for check in ratios(f"{metric}: isozone against tmpfs", "what the processor allows", metric, "isozone", "tmpfs")),
    *against("XFS", "rows inserted", "goal: three times as many", "rows", 3),
    *against("XFS tuned", "rows inserted", "goal: three times as many", "rows", 3),
    *against("XFS", "synced transactions", "goal: three times as many", "synced", 3),
    *against("XFS tuned", "synced transactions", "goal: three times as many", "synced", 3),
    *against("XFS", f"synced transactions of {CLIENTS} clients", "goal: three times as many", "synced by several", 3),
    *against("XFS", "updates, which wait for reads", "goal: equal", "updates", 0.95)]

PANELS = (("rows", "rows inserted a second"), ("longest transaction", "the longest of these, s"),
          ("compaction", "full compaction, s"), ("updates", "updates a second"),
          ("synced", "synced transactions a second"), ("synced by several", f"the same, {CLIENTS} clients"))


def plot(results: Results) -> Figure:
    drawn, panels = plots.figure(rows=2, columns=3, height=2.9)
    for axes, (metric, title) in zip(panels, PANELS, strict=True):
        plots.grouped_bars(axes, results, metric, [None], [""], without=["tmpfs"])
        plots.label(axes, "", "", title)
    plots.limit_line(panels[0], results, PANELS[0][0], "tmpfs")
    plots.legend_below(drawn, panels)
    return drawn


def sizes(rows: int, expected_s: float, **others: Any) -> Parameters:
    content_bytes = 2000
    return {"rows": rows, "content_bytes": content_bytes, "data_bytes": rows * (content_bytes + 20), "speed": SPEED,
            "expected_s": expected_s, "series": list(systems()), **others}


QUICK = sizes(6000, 40, zones=48, updates=50, synced=50, table_mb=1, table_bytes=1 << 20)

EXPERIMENT = Experiment(
    name="kernel-myrocks",
    title="MyRocks on a mounted directory beside the kernel's zoned file systems",
    source="not published",
    what="MariaDB with MyRocks on a directory of `isozone mount`, whose daemon has the SSD or a zoned block device of "
         "the kernel, and on zoned XFS and F2FS on the same block device.",
    setup="The guest, its time and the SSD are those of kernel-devices. {rows:,} rows of {content_bytes:,} bytes are "
          f"inserted in random order, in transactions of {ROWS_AT_ONCE} rows that are not synced. After a full "
          "compaction, {updates:,} rows are updated, and single rows inserted in synced transactions: {synced:,} by "
          f"one client, and as many by each of {CLIENTS}. RocksDB has direct I/O, a bloom filter, tables and "
          "memtables of {table_mb} MB, and levels four times as large; the other options are those of MyRocks. XFS "
          "tuned has 8 background jobs and 4 subcompactions." + SCALED,
    quick=QUICK,
    night=QUICK,
    full=sizes(150_000, 200, zones=128, updates=1000, synced=2000, table_mb=16, table_bytes=16 << 20),
    variants=each_series,
    run=run,
    checks=CHECKS,
    plot=plot,
    driver="mariadb",
    by_name=True,
    why_slower="a put takes about five times as long there as on a machine of today")
