"""The bandwidth of puts, flushes and compactions over time."""
from .. import plots
from ..plots import Figure
from ..results import Results
from ..targets import Check, Point, ratios
from . import zenfsplus_fillrandom
from .base import ZENFS_PLUS, Experiment

PANELS = ("put", *zenfsplus_fillrandom.JOBS)


def plot(results: Results) -> Figure:
    drawn, axes = plots.figure(rows=3, height=2.3, share_x=True)
    for one, kind in zip(axes, PANELS, strict=True):
        plots.lines_over_time(one, results, kind)
        plots.label(one, "seconds" if kind == PANELS[-1] else "", "MB/s", kind)
    plots.legend_below(drawn, axes)
    return drawn


EXPERIMENT = Experiment(
    name=zenfsplus_fillrandom.RECORDED,
    title="Bandwidth of puts, flushes and compactions over time",
    source=f"{ZENFS_PLUS}, Fig. 9",
    what="Striping makes flushes and compactions faster, and isolation keeps flushes steady beside compaction, so that "
         "puts run at one even rate.",
    setup=zenfsplus_fillrandom.SETUP + "(Published: about 20 GB.) Flush and compaction: bytes of all jobs, read and "
          "written, by the time that they ran. Variation: standard deviation by mean of the puts in each second, after "
          "a warm-up of a tenth of the run, at least 3 s.",
    checks=[*ratios("put", "2.6x (35 to 91 MB/s)", "put", "isozone", "zenfs", at_least=3.0),
            *ratios("flush", "up to 4.8x (from 30 MB/s)", "flush", "isozone", "zenfs", at_least=4.8),
            *ratios("compaction", "3x (70-90 to 230-300 MB/s)", "compaction", "isozone", "zenfs", at_least=3.0),
            Check("variation of put, isozone", "one narrow band", Point("isozone", "variation of put"), at_most=15),
            Check("variation of put, zenfs", "two bands: 50-68 and 5-7 MB/s", Point("zenfs", "variation of put"))],
    plot=plot, **zenfsplus_fillrandom.COMMON)
