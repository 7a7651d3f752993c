"""How close puts come to memory: fillrandom beside RocksDB on tmpfs."""
from .. import plots
from ..plots import Figure
from ..results import Results
from ..targets import ratios
from . import zenfsplus_fillrandom
from .base import Experiment


def plot(results: Results) -> Figure:
    drawn, (axes,) = plots.figure(height=3.6)
    plots.grouped_bars(axes, results, "put", [None], ["fillrandom"])
    plots.label(axes, "", "put, MB/s")
    plots.legend_below(drawn, [axes])
    return drawn


EXPERIMENT = Experiment(
    name="limit",
    title="How close puts come to memory",
    source="not published: the limit of this machine",
    what="RocksDB on tmpfs has no device to wait for; what is missing to it is the device and the file system.",
    setup=zenfsplus_fillrandom.SETUP + "The device is in real time; tmpfs has POSIX files in memory.",
    checks=ratios("isozone against tmpfs", "-", "put", "isozone", "tmpfs", at_least=0.85),
    plot=plot, runs_of=zenfsplus_fillrandom.RECORDED, **zenfsplus_fillrandom.COMMON)
