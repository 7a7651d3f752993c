"""What the experiments on space share: devices without timing on which space runs short, and db_bench filling them.

The published device has 512 zones of 16 MiB. A smaller one, of 1/scale of the bytes, has as many times smaller levels
and fewer keys, so that it is as full; tables and memtables are as large as a zone, as published. Key ranges are told as
on the published device, in millions (M).
"""
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from .. import db_bench, steering
from ..device import DeviceStore, Shape
from ..processes import RunFailed
from ..results import Parameters
from ..runner import Context

T = TypeVar("T")

LIFETIME = "Efficient Key-Value Data Placement for ZNS SSD"
KIB, MIB = 1 << 10, 1 << 20
DEVICE_BYTES = 512 * 16 * MIB
KEY_BYTES = 16
ENTRY_BYTES = KEY_BYTES + db_bench.VALUE_BYTES
FIRST_LEVEL_BYTES = 256 * MIB    # RocksDB's default
CHECKPOINT_AFTER_KIB = 32 * KIB  # Isozone's default
DEBT_KIB = 256 * KIB             # of compaction, from which on writers are slowed; at twice as much they stop
QUICK = {"zones": 256, "zone_kib": 512}
NIGHT = {"zones": 512, "zone_kib": 4 * KIB}
FULL = {"zones": 512, "zone_kib": 16 * KIB}
SCALE = "Profile lifetime-paper, timing off: {zones} zones of {zone_kib:,} KiB, 1/{scale} of the published 8 GiB; " \
        "levels are as many times smaller, and so are key ranges, which are told as of the published device. Tables " \
        "and memtables are as large as a zone. Keys of 16 bytes, values of 800, no compression. RocksDB sizes levels " \
        "from the last one up, and holds writers up from 6 tables in level 0 or {debt_kib:,} KiB of compaction debt " \
        "on: without timing, puts are otherwise faster than compaction, and what it has not dropped yet decides what " \
        "fits. "


def parameters(device: Parameters, expected_s: float, series: Sequence[str], **others: Any) -> Parameters:
    """Of an experiment on the device QUICK, NIGHT or FULL."""
    scale = DEVICE_BYTES // device_bytes(device)
    return {**device, "scale": scale, "debt_kib": DEBT_KIB // scale, "expected_s": expected_s,
            "data_bytes": device_bytes(device) // 3, "series": series, **others}


def device_bytes(device: Parameters) -> int:
    return int(device["zones"] * device["zone_kib"] * KIB)


def shape(parameters: Parameters) -> Shape:
    return Shape(zones=parameters["zones"], profile="lifetime-paper", zone_kib=parameters["zone_kib"])


def keys(parameters: Parameters, millions: float) -> int:
    """How many keys there are here, for so many millions on the published device."""
    return round(millions * 1_000_000 / int(parameters["scale"]))


def entries(parameters: Parameters, times: float) -> int:
    """How many have so many times the bytes of the device."""
    return round(times * device_bytes(parameters) / ENTRY_BYTES)


def store(context: Context, series: str) -> DeviceStore:
    """A new device of the experiment's size."""
    options = f"&checkpoint_after={max(64, CHECKPOINT_AFTER_KIB // context.parameters['scale'])}K"
    return context.zoned(series, shape(context.parameters), options)


def run_steered(context: Context, place: DeviceStore, benchmarks: Sequence[str],
                num: int) -> dict[str, db_bench.Result]:
    """The same with compaction that Isozone steers, and with RocksDB's default limits of debt."""
    parameters = context.parameters
    family = {**db_bench.tables_of(parameters["zone_kib"] * KIB),
              "max_bytes_for_level_base": FIRST_LEVEL_BYTES // parameters["scale"]}
    path = steering.put_options(context, place, "isozone", family)
    return db_bench.run(context, place, benchmarks, num=num, key_size=KEY_BYTES, options_file=path)


def run(context: Context, place: DeviceStore, benchmarks: Sequence[str], num: int,
        **options: object) -> dict[str, db_bench.Result]:
    """db_bench with tables of the size of a zone; Result by name."""
    parameters = context.parameters
    table_bytes, debt_bytes = parameters["zone_kib"] * KIB, parameters["debt_kib"] * KIB
    return db_bench.run(context, place, benchmarks, num=num, key_size=KEY_BYTES, **db_bench.tables_of(table_bytes),
                        level_compaction_dynamic_level_bytes="true",
                        max_bytes_for_level_base=FIRST_LEVEL_BYTES // parameters["scale"],
                        level0_slowdown_writes_trigger=6, level0_stop_writes_trigger=8,
                        soft_pending_compaction_bytes_limit=debt_bytes,
                        hard_pending_compaction_bytes_limit=2 * debt_bytes, **options)


def survives(action: Callable[[], T]) -> T | None:
    """What `action` gives; None if the device has run out of space, which is a result. Other failures are failures."""
    try:
        return action()
    except RunFailed as failure:
        if db_bench.OUT_OF_SPACE not in str(failure):
            raise
        return None


def live_percent(statistics: Any) -> float:
    """How much of the device belongs to files."""
    return float(100 * statistics["space"]["live_bytes"] / statistics["space"]["capacity_bytes"])


def copied_bytes(statistics: Any) -> int:
    """What the collector has written."""
    return int(statistics["classes"]["gc"]["bytes_written"])
