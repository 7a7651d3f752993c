"""fillrandom until all compactions are done: total time and peak throughput."""
from .. import db_bench, event_log, plots
from ..plots import Axes, Figure
from ..results import Measurement, Outcome, Results, Variant
from ..runner import Context
from ..targets import ratios
from .base import PARALLEL, SERIES, WITH_LIMIT, Experiment, each_series, puts
from .zenfsplus_fillrandom import rounded

MIB = 1 << 20


def run(context: Context, variant: Variant) -> Outcome:
    parameters = context.parameters
    with context.store(variant.series) as store:
        db_bench.run(context, store, ["fillrandom", "waitforcompaction"], num=parameters["num"],
                     **db_bench.tables_of(parameters["table_mib"] * MIB),
                     compaction_readahead_size=parameters["read_buffer_mib"] * MIB)
        return outcome(store.info_log())


def outcome(log: str) -> Outcome:
    done, start = event_log.jobs(log), event_log.start_us(log)
    throughput = event_log.per_second(done, start)
    total = (max(job.end_us for job in done) - start) / 1e6
    return Outcome([Measurement("total time", total, "s"), Measurement("peak throughput", max(throughput), "MB/s")],
                   {"throughput": rounded(throughput)})


def plot(results: Results) -> Figure:
    drawn, axes = plots.figure(rows=2, height=2.8)
    plots.lines_over_time(axes[0], results, "throughput")
    plots.label(axes[0], "seconds", "MB/s", "Flushes and compactions, read and written")
    plot_times(axes[1], results)
    plots.legend_below(drawn, axes[:1])
    return drawn


def plot_times(axes: Axes, results: Results) -> None:
    shown = plots.measured_series(results, "total time")[::-1]
    medians = [results.median(series, "total time") for series in shown]
    spread = plots.error_bars(results, [(series, "total time", None) for series in shown])
    bars = axes.barh(shown, medians, color=[plots.COLOURS[series] for series in shown], xerr=spread, ecolor="#444",
                     capsize=2)
    axes.bar_label(bars, [f"{median:.0f} s" for median in medians], padding=4)
    axes.grid(axis="y", visible=False)
    axes.margins(x=0.1)
    plots.label(axes, "seconds until all compactions are done", "")


EXPERIMENT = Experiment(
    name="parallel",
    title="Until all compactions are done",
    source=PARALLEL,
    what="Flushes and compactions that write and read several zones at a time finish sooner, and reach a higher peak.",
    setup="fillrandom: {num:,} puts of 20 + 800 bytes, then waitforcompaction. Published with memtables and tables of "
          "2 GB, here {table_mib} MiB; read buffer {read_buffer_mib} MiB and two background jobs. The time runs from "
          "opening the database to the end of the last compaction; the throughput is what flushes and compactions read "
          "and write in a second. The bytes of a job are spread evenly over its time, so that the peak is one "
          "of jobs and not of the device.",
    quick=puts(1_000_000, 18, SERIES, table_mib=64, read_buffer_mib=16),
    full=puts(6_000_000, 200, WITH_LIMIT, table_mib=128, read_buffer_mib=16),
    variants=each_series,
    run=run,
    checks=[*ratios("total time", "0.43 of ZenFS", "total time", "isozone", "zenfs", at_most=0.43),
            *ratios("peak throughput", "about 3x", "peak throughput", "isozone", "zenfs", at_least=3.0)],
    plot=plot)
