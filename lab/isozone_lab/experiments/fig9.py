"""The bandwidth of puts, flushes and compactions over time."""
from .. import db_bench, event_log, plots
from ..results import Measurement, Outcome
from ..targets import Check, Point, ratios, variation
from .base import SERIES, WITH_LIMIT, ZENFS_PLUS, Experiment, each_series, put_mb, puts

PANELS = ("put", "flush", "compaction")


def after_warm_up(rates):
    """Without the first tenth, at least 3 s: no compaction runs yet."""
    return rates[max(3, len(rates) // 10):]


def run(context, variant):
    with context.store(variant.series) as store:
        rate = db_bench.run(context, store, ["fillrandom"], num=context.parameters["num"], report_interval_seconds=1,
                            report_file=store.report)["fillrandom"].rate
        return outcome(rate, db_bench.report_rates(store.read_report(context.execute)), store.info_log())


def outcome(rate, put_rates, log):
    done, start = event_log.jobs(log), event_log.start_us(log)
    steady = after_warm_up(put_rates)
    measurements = [Measurement("put", put_mb(rate), "MB/s"),
                    *(Measurement(kind, event_log.bandwidth(done, kind), "MB/s") for kind in PANELS[1:]
                      if event_log.bandwidth(done, kind))]
    if len(steady) > 1:
        measurements.append(Measurement("variation of put", 100 * variation(steady), "%"))
    details = {kind: rounded(event_log.per_second(done, start, (kind,))) for kind in PANELS[1:]}
    return Outcome(measurements, {"put": rounded(map(put_mb, put_rates)), **details})


def rounded(values):
    return [round(value, 2) for value in values]


def plot(results):
    drawn, axes = plots.figure(rows=3, height=2.3, share_x=True)
    for one, kind in zip(axes, PANELS):
        plots.lines_over_time(one, results, kind)
        plots.label(one, "seconds" if kind == PANELS[-1] else "", "MB/s", kind)
    plots.legend_below(drawn, axes)
    return drawn


EXPERIMENT = Experiment(
    name="fig9",
    title="Bandwidth of puts, flushes and compactions over time",
    source=f"{ZENFS_PLUS}, Fig. 9",
    what="Striping makes flushes and compactions faster, and isolation keeps flushes steady beside compaction, so that "
         "puts run at one even rate.",
    setup="fillrandom: {num:,} puts of 20 + 800 bytes, memtable 64 MB, one writer, on 1,024 zones and 32 dies. "
          "(Published: about 20 GB.) Flush and compaction: bytes of all jobs, read and written, by the time that they "
          "ran. Variation: standard deviation by mean of the puts in each second, after a warm-up of a tenth of the "
          "run, at least 3 s.",
    quick=puts(1_500_000, 22, SERIES),
    full=puts(6_000_000, 90, WITH_LIMIT),
    variants=each_series,
    run=run,
    checks=[*ratios("put", "2.6x (35 to 91 MB/s)", "put", "isozone", "zenfs", at_least=3.0),
            *ratios("flush", "up to 4.8x (from 30 MB/s)", "flush", "isozone", "zenfs", at_least=4.8),
            *ratios("compaction", "3x (70-90 to 230-300 MB/s)", "compaction", "isozone", "zenfs", at_least=3.0),
            Check("variation of put, isozone", "one narrow band", Point("isozone", "variation of put"), at_most=15),
            Check("variation of put, zenfs", "two bands: 50-68 and 5-7 MB/s", Point("zenfs", "variation of put"))],
    plot=plot)
