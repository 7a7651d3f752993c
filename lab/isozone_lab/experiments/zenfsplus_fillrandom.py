"""The runs that three experiments show, each from its side: puts in random order, as fast as they go."""
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from .. import db_bench, event_log
from ..results import Measurement, Outcome, Variant
from ..runner import Context
from .base import PERCENTILES, SCALED, SPEED, WITH_LIMIT, each_series, put_mb, puts

JOBS = ("flush", "compaction")


def after_warm_up(rates: list[float]) -> list[float]:
    """Without the first tenth, at least 3 s: no compaction runs yet."""
    return rates[max(3, len(rates) // 10):]


def variation(values: Sequence[float]) -> float:
    """The coefficient of variation: the standard deviation as a part of the mean."""
    mean = statistics.fmean(values) if values else 0
    return statistics.pstdev(values) / mean if mean else 0.0


def run(context: Context, variant: Variant) -> Outcome:
    with context.store(variant.series) as store:
        result = db_bench.run(context, store, ["fillrandom"], num=context.parameters["num"], histogram=1,
                              report_interval_seconds=1, report_file=store.report)["fillrandom"]
        return outcome(result, db_bench.report_rates(store.read_report(context.execute)), store.info_log())


def outcome(result: db_bench.Result, put_rates: list[float], log: str) -> Outcome:
    done, start = event_log.jobs(log), event_log.start_us(log)
    steady = after_warm_up(put_rates)
    measurements = [Measurement("put", put_mb(result.rate), "MB/s"),
                    *(Measurement(kind, event_log.bandwidth(done, kind), "MB/s") for kind in JOBS
                      if event_log.bandwidth(done, kind))]
    if len(steady) > 1:
        measurements.append(Measurement("variation of put", 100 * variation(steady), "%"))
    latencies = result.histograms["write"]
    measurements += [Measurement("put latency", latencies.percentile(percent), "us", percent)
                     for percent in PERCENTILES]
    details = {kind: rounded(event_log.per_second(done, start, (kind,))) for kind in JOBS}
    return Outcome(measurements, {"put": rounded(map(put_mb, put_rates)), **details})


def rounded(values: Iterable[float]) -> list[float]:
    return [round(value, 2) for value in values]


SETUP = "fillrandom: {num:,} puts of 20 + 800 bytes, memtable 64 MB, one writer, on 1,024 zones and 32 dies." + \
        SCALED + " "
COMMON: dict[str, Any] = {
    "variants": each_series, "run": run, "quick": puts(1_050_000, 15, WITH_LIMIT, speed=SPEED),
    "full": puts(6_000_000, 150, WITH_LIMIT, speed=SPEED)}
RECORDED = "zenfsplus-bandwidth"
