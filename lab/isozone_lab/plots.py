"""What the plots share: a figure, the colour of each series, labels, and files. Needs matplotlib."""
import math
import os
import statistics
from collections.abc import Collection, Sequence
from typing import Any

from .results import Results, X

Figure = Any  # of matplotlib, which says nothing of its types
Axes = Any

COLOURS = {"zenfs": "#8a8f98", "zenfs+gc": "#4f545c", "zenfs+full-gc": "#b9a1c9", "striping": "#4c9be8",
           "lifetime": "#9cc3a5", "one victim": "#c9a227", "lifetime+gc": "#3a9d5d", "gc=zenfs": "#4f545c",
           "gc=full": "#8a8f98", "gc=zenfs+": "#4c9be8", "gc=lifetime": "#3a9d5d", "gc=lsm-zgc": "#c9a227",
           "gc=isozone": "#e4572e", "gc=none": "#3a9d5d", "basic": "#8a8f98",
           "basic, 16 in flight": "#4f545c", "lsm-zgc": "#e4572e", "alone": "#3a9d5d", "isozone": "#e4572e",
           "conventional": "#8a8f98", "tmpfs": "#3a9d5d", "device": "#4c9be8",
           "BL": "#8a8f98", "GC": "#4f545c", "LS": "#9cc3a5", "Gear": "#c9a227", "LL": "#4c9be8",
           "leveled": "#8a8f98", "greedy": "#4c9be8", "isozone picker": "#e4572e",
           "isozone dev": "#b9421f", "XFS": "#4c9be8", "XFS tuned": "#9cc3e8", "F2FS": "#3a9d5d"}
LABELS = {"zenfs": "zenfs (baseline)", "zenfs+gc": "zenfs, its collector",
          "zenfs+full-gc": "zenfs, full GC, waited for", "striping": "striping", "lifetime": "lifetime",
          "one victim": "lifetime, one victim", "lifetime+gc": "lifetime, its collector",
          "gc=zenfs": "zenfs' own", "gc=lifetime": "lifetime's", "gc=lsm-zgc": "LSM_ZGC's",
          "gc=full": "full GC alone", "gc=zenfs+": "full and minor GC", "gc=isozone": "isozone's collector",
          "gc=none": "no collector", "basic": "Basic_ZGC", "basic, 16 in flight": "Basic_ZGC, 16 in flight",
          "lsm-zgc": "LSM_ZGC", "alone": "no GC",
          "isozone": "isozone (striping and isolation)", "conventional": "conventional SSD", "tmpfs": "tmpfs (limit)",
          "device": "small-zone device", "BL": "BL: leveled, no GC", "GC": "GC: BL, collected",
          "LS": "LS: and levels apart", "Gear": "Gear", "LL": "LL-compaction", "leveled": "leveled", "greedy": "greedy",
          "isozone picker": "isozone's picker", "isozone dev": "isozone, through the kernel", "XFS": "XFS",
          "XFS tuned": "XFS, 8 jobs", "F2FS": "F2FS"}
ORDER = list(COLOURS)
# Of files, and how each is written.
KINDS: dict[str, dict[str, Any]] = {"png": {"dpi": 130}, "svg": {"metadata": {"Date": None}}}
STYLE = {"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
         "grid.color": "#e3e6ea", "axes.axisbelow": True, "axes.edgecolor": "#9aa0a8", "legend.frameon": False,
         "axes.titlesize": 11, "axes.titlelocation": "left", "svg.hashsalt": "isozone", "figure.dpi": 100}


def figure(rows: int = 1, columns: int = 1, height: float = 3.6, share_x: bool = False) -> tuple[Figure, list[Axes]]:
    """A figure and its axes, as a flat list."""
    import matplotlib
    matplotlib.use("Agg")
    matplotlib.rcParams.update(STYLE)
    from matplotlib import pyplot
    drawn, axes = pyplot.subplots(rows, columns, figsize=(9, height * rows), squeeze=False, sharex=share_x,
                                  layout="constrained")
    return drawn, list(axes.flat)


def save(drawn: Figure, directory: str, name: str) -> None:
    """As PNG and SVG."""
    from matplotlib import pyplot
    for kind, options in KINDS.items():
        drawn.savefig(os.path.join(directory, f"{name}.{kind}"), bbox_inches="tight", **options)
    pyplot.close(drawn)


def measured_series(results: Results, metric: str) -> list[str]:
    """In the order of the legend."""
    return [series for series in ORDER if results.values(series, metric)]


def label(axes: Axes, x: str, y: str, title: str = "") -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title)


def whole_decades(low: float, high: float) -> tuple[float, float]:
    """The powers of ten around two positive numbers."""
    return 10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high))


def logarithmic(axes: Axes) -> None:
    """The y axis in powers of ten, written out."""
    from matplotlib import ticker
    axes.autoscale(axis="y")
    axes.set_yscale("log")
    axes.set_ylim(whole_decades(*axes.get_ylim()))
    axes.yaxis.set_major_formatter("{x:,.10g}")
    axes.yaxis.set_minor_formatter(ticker.NullFormatter())


def legend_below(drawn: Figure, axes: Sequence[Axes]) -> None:
    """One legend of all axes, under the figure."""
    entries: dict[str, Any] = {}
    for one in axes:
        for handle, name in zip(*one.get_legend_handles_labels(), strict=True):
            entries.setdefault(name, handle)
    if entries:
        drawn.legend(entries.values(), entries.keys(), loc="upper center", bbox_to_anchor=(0.5, 0), ncols=len(entries))


def error_bars(results: Results, points: Sequence[tuple[str, str, X]]) -> list[list[float]] | None:
    """How far the least and the greatest repeat are from the median at each (series, metric, x); None if that is 0."""
    below, above = [], []
    for point in points:
        values = results.values(*point).values()
        median = statistics.median(values)
        below.append(median - min(values))
        above.append(max(values) - median)
    return [below, above] if any(below + above) else None


def short(value: float) -> str:
    """A number above a bar: 107k, 1.32M, 22.1."""
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if value >= 0.9995 * size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def bar_number(results: Results, series: str, metric: str, x: X) -> str:
    """What stands above the bar of a median."""
    median = statistics.median(results.values(series, metric, x).values())
    return short(median) + (" or more" if results.is_or_more(series, metric, x) else "")


def grouped_bars(axes: Axes, results: Results, metric: str, xs: Sequence[X],
                 names: Sequence[str] | None = None, without: Collection[str] = ()) -> None:
    """A group of bars for each x, a bar for each series but those of `without`, with its number on top."""
    shown = [series for series in measured_series(results, metric) if series not in without]
    width = 0.8 / max(1, len(shown))
    for index, series in enumerate(shown):
        present = [x for x in xs if results.median(series, metric, x) is not None]
        positions = [xs.index(x) + (index - (len(shown) - 1) / 2) * width for x in present]
        medians = [results.median(series, metric, x) for x in present]
        bars = axes.bar(positions, medians, width * 0.92, color=COLOURS[series], label=LABELS[series],
                        yerr=error_bars(results, [(series, metric, x) for x in present]), ecolor="#444", capsize=2)
        axes.bar_label(bars, [bar_number(results, series, metric, x) for x in present], fontsize=6.5, padding=2)
    axes.set_xticks(range(len(xs)), names or xs, fontsize=9)
    axes.yaxis.set_major_formatter("{x:,.10g}")
    axes.grid(axis="x", visible=False)
    axes.margins(y=0.12)


def limit_line(axes: Axes, results: Results, metric: str, series: str) -> None:
    """A line at what `series` reaches, with its name, where that was measured."""
    limit = results.median(series, metric)
    if limit is not None:
        axes.axhline(limit, color="#444", linewidth=0.8, linestyle="--")
        axes.annotate(series, (1, limit), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=8)


def put_latencies(axes: Axes, results: Results, percentiles: Sequence[float], title: str) -> None:
    """Bars for each percentile, on a logarithmic scale."""
    grouped_bars(axes, results, "put latency", percentiles, [f"P{percent:g}" for percent in percentiles])
    logarithmic(axes)
    label(axes, "", "latency of a put, us", title)


def lines_over_x(axes: Axes, results: Results, metric: str, xs: Sequence[X]) -> None:
    """A line for each series, through the medians."""
    for series in measured_series(results, metric):
        present = [x for x in xs if results.median(series, metric, x) is not None]
        axes.errorbar(present, [results.median(series, metric, x) for x in present],
                      yerr=error_bars(results, [(series, metric, x) for x in present]), color=COLOURS[series],
                      label=LABELS[series], marker="o", markersize=4, capsize=2)


def lines_over_time(axes: Axes, results: Results, key: str, times: str = "", first: int = 0) -> None:
    """A line for each series, from the list `key` of its details, over the list `times`; without it one value a second,
    the first at `first`.
    """
    for series in ORDER:
        details = results.details(series)
        values = details.get(key, [])
        moments = details.get(times, []) if times else range(first, first + len(values))
        if values and moments:
            axes.plot(moments, values, color=COLOURS[series], label=LABELS[series], linewidth=1.3)
    axes.margins(x=0.01)
    axes.set_ylim(bottom=0)
