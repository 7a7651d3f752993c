"""`isozone simulate`, as the experiments run it, and what they measure of what it reports."""
from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import outputs
from .results import Measurement, Outcome

if TYPE_CHECKING:
    from .runner import Context

GIB = 1 << 30
ABOVE_90 = -1  # the last tenth of a histogram of utilisation


def run(context: Context, phases: Sequence[str], **options: object) -> Any:
    """What is reported of the phases, each as --phase takes it, with the options of the command line by their names."""
    words = [word for phase in phases for word in ("--phase", phase)]
    for name, value in options.items():
        words += [f"--{name.replace('_', '-')}", str(value)]
    return outputs.read(context.execute([context.build.tool, "simulate", "--json", "--seed", context.seed, *words]),
                        "simulate")


def rates(samples: Sequence[Mapping[str, float]]) -> list[float]:
    """MB of puts a second between one sample and the next."""
    return [(later["put_bytes"] - earlier["put_bytes"]) / (later["seconds"] - earlier["seconds"]) / 1e6
            for earlier, later in zip(samples, samples[1:], strict=False) if later["seconds"] > earlier["seconds"]]


def variation(values: Sequence[float]) -> float:
    """The standard deviation, in percent of the mean."""
    return 100 * statistics.pstdev(values) / statistics.fmean(values) if values else 0.0


def outcome(report: Any) -> Outcome:
    written, end = report["written_bytes"], report["end"]
    used = sum(end["zones_by_utilisation"])
    put_rates = rates(report["samples"])
    measured = {
        "put": (report["put_bytes_per_second"] / 1e6, "MB/s"),
        "variation of put": (variation(put_rates), "%"),
        "time": (report["settled_seconds"], "s"),
        "compaction": (written["compaction"] / GIB, "GiB"),
        "compaction read": (report["read_bytes"]["compaction"] / GIB, "GiB"),
        "compactions": (report["compactions"], ""),
        "copied": (written["copied"] / GIB, "GiB"),
        "written": ((written["flush"] + written["compaction"] + written["copied"]) / GIB, "GiB"),
        "short-lived": (written["short_lived"] / GIB, "GiB"),
        "zones": (end["zones_in_use"], ""),
        "zones above 90 %": (100 * end["zones_by_utilisation"][ABOVE_90] / used if used else 0, "%"),
        "tables": (report["files"], "")}
    return Outcome([Measurement(metric, value, unit) for metric, (value, unit) in measured.items()],
                   {"zones by utilisation": end["zones_by_utilisation"], "put rates": put_rates})
