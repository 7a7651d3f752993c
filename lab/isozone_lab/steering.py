"""db_bench with compaction that Isozone steers, by an options file on the device."""
from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from .device import DeviceStore

if TYPE_CHECKING:
    from .runner import Context

ON_DEVICE = "/options.ini"


def options_text(picker: str, family: Mapping[str, object]) -> str:
    """An options file of RocksDB in which the listener steers; `family`: more options of the column family."""
    return "\n".join([
        "[Version]", "  rocksdb_version=7.8.3", "  options_file_version=1.1",
        "[DBOptions]", "  create_if_missing=true", "  max_background_jobs=2",
        f"  listeners={{id=isozone;compaction={picker}}}",
        '[CFOptions "default"]', "  compaction_style=kCompactionStyleNone", "  sst_partitioner_factory=isozone",
        "  compression=kNoCompression", *(f"  {name}={value}" for name, value in family.items()),
        '[TableOptions/BlockBasedTable "default"]', ""])


def put_options(context: Context, place: DeviceStore, picker: str, family: Mapping[str, object]) -> str:
    """Puts such a file onto the device. Its path there, for --options_file."""
    path = os.path.join(context.shelf.scratch, "options.ini")
    with open(path, "w", encoding="utf-8") as file:
        file.write(options_text(picker, family))
    context.execute([place.tool, "cp", f"emu:{place.image}", path, f":{ON_DEVICE}"])
    return ON_DEVICE
