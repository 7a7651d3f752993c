"""What it costs to collect zones, block by block and segment by segment: the tool of the LSM_ZGC paper."""
from collections.abc import Sequence
from typing import Any

from .. import device, outputs, plots
from ..plots import Figure
from ..results import Measurement, Outcome, Parameters, Results, Variant
from ..runner import Context
from ..targets import Check, MeanOf, MostOf, Point, ratios
from .base import Experiment, each_series

LSM_ZGC = "LSM_ZGC (segment-based GC of zones)"
BASIC, DEEP, LSM, OURS, ALONE = "basic", "basic, 16 in flight", "lsm-zgc", "gc=isozone", "alone"
# As isozone_gc_bench calls them, and commands in flight.
SCHEMES = {BASIC: ("basic", 1), DEEP: ("basic", 16), LSM: ("lsm-zgc", 16), OURS: ("isozone", 16)}
KIB = 1 << 10
DEVICE = "Profile zgc-paper in real time, {zones_on_device} zones of {zone_kib:,} KiB (published: 1 GiB). "


def bench(context: Context, command: str, *words: object, options: str = "") -> Any:
    """What isozone_gc_bench COMMAND reports, on a new device; `options`: of its URI, as ?KEY=VALUE."""
    parameters = context.parameters
    image = f"{context.shelf.scratch}/zgc.img"
    shape = device.Shape(zones=parameters["zones_on_device"], profile="zgc-paper", zone_kib=parameters["zone_kib"])
    try:
        context.shelf.format(image, shape, context.execute)
        uri = f"emu:{image}{options}"
        report = context.execute([context.build.gc_bench, command, uri, "--json", *words])
        return outputs.read(report, f"gc-bench-{command}")
    finally:
        device.remove(image)


def sizes(parameters: Parameters) -> list[object]:
    return ["--zones", parameters["zones"], "--reclaim", parameters["reclaim"]]


def collect(context: Context, variant: Variant, utilisation: float, *words: object) -> Any:
    """One scheme with the sizes of the experiment; what isozone_gc_bench reports of it."""
    scheme, depth = SCHEMES[variant.series]
    report = bench(context, "collect", *sizes(context.parameters), "--seed", context.seed, "--scheme", scheme,
                   "--basic-depth", depth, "--utilisation", utilisation, *words)
    return report["schemes"][0]


def parameters(expected_s: float, **others: Any) -> Parameters:
    return {"data_bytes": 512 << 20, "expected_s": expected_s, "zones_on_device": 48, "zone_kib": 32 * KIB,
            **others}


# --- Fig. 1 and 2: one zone ---

def run_group(context: Context, _: object) -> Outcome:
    return group_outcome(bench(context, "groups"), bench(context, "reclaim", "--seed", context.seed))


def group_outcome(groups: Any, reclaim: Any) -> Outcome:
    reads = [Measurement("reading", point["seconds_per_gib"], "s a GiB", point["request"] // KIB)
             for point in groups["points"]]
    reclaims = [Measurement("reclaiming", point["seconds_per_gib"], "s a GiB", point["utilisation"])
                for point in reclaim["points"]]
    return Outcome(reads + reclaims)


def plot_group(results: Results) -> Figure:
    drawn, axes = plots.figure(columns=2, height=3.6)
    units = ("KiB a request", "utilisation")
    for one, metric, words in zip(axes, ("reading", "reclaiming"), units, strict=True):
        xs = sorted({row["x"] for row in results.rows() if row["metric"] == metric})
        plots.lines_over_x(one, results, metric, xs)
        plots.label(one, words, "seconds a GiB", f"{metric} a zone")
        one.set_ylim(bottom=0)
    return drawn


GROUP = Experiment(
    name="zgc-group",
    title="Reading in groups, and reclaiming block by block",
    source=f"{LSM_ZGC}, Fig. 1 and 2",
    what="Reclaiming a zone block by block takes long where much is valid; reading in groups is far faster.",
    setup=DEVICE + "isozone_gc_bench groups reads one zone in requests of 4 to 128 KiB, one at a time; "
          "isozone_gc_bench reclaim copies what is valid of one. Both as a zone of 1 GiB would take.",
    quick=parameters(9),
    full=parameters(12),
    variants=lambda _: [Variant("device")],
    run=run_group,
    checks=[Check("reclaiming at a utilisation of 0.5", "more than 20 s (beyond 0.4)",
                  Point("device", "reclaiming", 0.5), at_least=20),
            *ratios("reading, {x} KiB against 4 KiB", "far faster", "reading", "device", "device", xs=[128],
                    against_x=4, at_most=0.5)],
    plot=plot_group,
    driver="gc_bench")


# --- Fig. 5: uniform updates ---

def uniform_variants(parameters: Parameters) -> list[Variant]:
    return [Variant(series, utilisation) for utilisation in parameters["utilisations"]
            for series in parameters["series"]]


def run_uniform(context: Context, variant: Variant) -> Outcome:
    total = collect(context, variant, variant.x)["total"]
    return Outcome([Measurement("collection", total["seconds"], "s"),
                    Measurement("copied", total["blocks_copied"], "blocks")])


def plot_uniform(results: Results) -> Figure:
    drawn, (axes,) = plots.figure(height=3.8)
    plots.lines_over_x(axes, results, "collection", results.header["parameters"]["utilisations"])
    plots.label(axes, "utilisation", "seconds of GC")
    axes.set_ylim(bottom=0)
    plots.legend_below(drawn, [axes])
    return drawn


def speed_ups(against: str, utilisations: Sequence[float]) -> tuple[Check, ...]:
    return tuple(ratios(f"against {against}, utilisation {{x}}", "up to 2.3x", "collection", against, LSM,
                        xs=utilisations))


UTILISATIONS = [0.4, 0.6, 0.8]  # that every mode has

UNIFORM = Experiment(
    name="zgc-uniform",
    title="Collecting by segments: uniform updates",
    source=f"{LSM_ZGC}, Fig. 5",
    what="Segments are read whole, and reading, merging and writing overlap; as many blocks are copied.",
    setup=DEVICE + "isozone_gc_bench collect: {zones} zones filled and updated, then {reclaim:,} blocks reclaimed; "
          "updates are uniform. LSM_ZGC has 16 commands in flight. How many Basic_ZGC has, the paper does not say: "
          "here one, as its description reads, and 16.",
    quick=parameters(1, zones=16, reclaim=8192, series=[BASIC, DEEP, LSM], utilisations=UTILISATIONS),
    full=parameters(8, zones=32, reclaim=16384, series=[BASIC, DEEP, LSM],
                    utilisations=[0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]),
    variants=uniform_variants,
    run=run_uniform,
    checks=[MeanOf("speed-up on average, Basic_ZGC with one command in flight", "1.9x", speed_ups(BASIC, UTILISATIONS),
                   1.9),
            MeanOf("the same, with 16 in flight", "1.9x", speed_ups(DEEP, UTILISATIONS), 1.9),
            MostOf("speed-up at best, with one command in flight", "2.3x", speed_ups(BASIC, UTILISATIONS), 2.3),
            *speed_ups(BASIC, UTILISATIONS),
            *ratios("blocks copied, utilisation {x}", "the same", "copied", LSM, BASIC, xs=UTILISATIONS, at_least=0.99,
                    at_most=1.01)],
    plot=plot_uniform,
    driver="gc_bench")


# --- Fig. 6 and 7: skewed updates ---

def run_skew(context: Context, variant: Variant) -> Outcome:
    parameters = context.parameters
    scheme = collect(context, variant, parameters["utilisation"], "--skewed", "--rounds", parameters["rounds"])
    return skew_outcome(scheme["total"], scheme["rounds"][-1]["zones_by_utilisation_before"])


def skew_outcome(total: Any, histogram: list[int]) -> Outcome:
    return Outcome([Measurement("collection", total["seconds"], "s"),
                    Measurement("copied", total["blocks_copied"], "blocks"),
                    Measurement("bimodality", bimodality(histogram), "")], {"zones": histogram})


def bimodality(histogram: Sequence[int]) -> float:
    """Sarle's coefficient of a histogram: 1 for two points, above 5/9 (that of an even spread) for two peaks."""
    count = sum(histogram)
    mean = sum(at * number for at, number in enumerate(histogram)) / count
    second, third, fourth = (sum((at - mean) ** power * number for at, number in enumerate(histogram)) / count
                             for power in (2, 3, 4))
    return (third ** 2 / second ** 3 + 1) * second ** 2 / fourth if second else 0.0


def plot_skew(results: Results) -> Figure:
    drawn, axes = plots.figure(columns=2, height=3.6)
    plots.grouped_bars(axes[0], results, "copied", [None], [""])
    plots.label(axes[0], "", "blocks copied")
    for series in (BASIC, LSM):
        zones = results.details(series).get("zones", [])
        axes[1].plot([10 * at + 5 for at in range(len(zones))], zones, marker="o", markersize=3,
                     color=plots.COLOURS[series], label=plots.LABELS[series])
    plots.label(axes[1], "utilisation, %", "zones", "before the last round")
    plots.legend_below(drawn, axes)
    return drawn


SKEW = Experiment(
    name="zgc-skew",
    title="Collecting by segments: skewed updates",
    source=f"{LSM_ZGC}, Fig. 6 and 7",
    what="Survivors of cold and hot segments go to different zones, so that zones end up full or nearly empty.",
    setup=DEVICE + "isozone_gc_bench collect: 70 % of updates go to 30 % of the data, utilisation {utilisation}, "
          "{zones} zones; {rounds} rounds of updates and of reclaiming {reclaim:,} blocks. Bimodality is Sarle's "
          "coefficient of the zones' utilisations: above 0.56 for two peaks.",
    quick=parameters(4, zones=16, reclaim=4096, rounds=10, utilisation=0.8, series=[BASIC, LSM]),
    full=parameters(60, zones=32, reclaim=4096, rounds=50, utilisation=0.8, series=[BASIC, LSM]),
    variants=each_series,
    run=run_skew,
    checks=[*ratios("speed-up", "faster (no number)", "collection", BASIC, LSM, at_least=1.0),
            *ratios("blocks copied", "fewer (no number)", "copied", LSM, BASIC, at_most=0.995),
            Check("bimodality, LSM_ZGC", "two peaks", Point(LSM, "bimodality"), at_least=0.56),
            Check("bimodality, Basic_ZGC", "one peak", Point(BASIC, "bimodality"))],
    plot=plot_skew,
    driver="gc_bench")


# --- As many zones as published, long after the first round ---

def scale_variants(parameters: Parameters) -> list[Variant]:
    return [Variant(series, hot) for hot in parameters["hot_updates"] for series in parameters["series"]]


def run_scale(context: Context, variant: Variant) -> Outcome:
    parameters = context.parameters
    hot = float(variant.x or 0) / 100
    report = bench(context, "collect", *sizes(parameters), "--seed", context.seed, "--scheme",
                   SCHEMES[variant.series][0], "--utilisation", parameters["utilisation"], "--skewed", "--hot-updates",
                   hot, "--hot-data", round(1 - hot, 3), "--rounds", parameters["rounds"], options="?timing=off")
    return scale_outcome(report["schemes"][0]["rounds"])


def scale_outcome(rounds: Sequence[Any]) -> Outcome:
    """The last half of the rounds: the first ones find zones in the order in which they were filled."""
    late = rounds[len(rounds) // 2:]
    copied = sum(one["blocks_copied"] for one in late)
    return Outcome([Measurement("copied of updated", copied / sum(one["blocks_reclaimed"] for one in late), "")])


def plot_scale(results: Results) -> Figure:
    drawn, (axes,) = plots.figure(height=3.6)
    hot = results.header["parameters"]["hot_updates"]
    plots.grouped_bars(axes, results, "copied of updated", hot, [f"{one} % to {100 - one} %" for one in hot])
    plots.label(axes, "updates", "blocks copied for each one updated")
    plots.legend_below(drawn, [axes])
    return drawn


SCALE = Experiment(
    name="zgc-scale",
    title="Collecting by age, with as many zones as published",
    source=f"{LSM_ZGC}, Fig. 6 and 7",
    what="Where the least utilised zones are collected, cold ones wait no longer than hot ones, and separation gains "
         "nothing. Age in the choice makes it pay.",
    setup="Profile zgc-paper, timing off, {zones} zones as published, but of {zone_kib:,} KiB (published: 1 GiB). "
          "isozone_gc_bench collect: utilisation {utilisation}, {rounds} rounds of updates and of reclaiming "
          "{reclaim:,} blocks, of which the last half counts. {hot_updates} % of updates go to hot blocks, which are "
          "the rest to 100 % of all.",
    quick=parameters(6, zones_on_device=528, zone_kib=512, zones=512, reclaim=128, rounds=3584, utilisation=0.8,
                     series=[BASIC, OURS], hot_updates=[70, 90]),
    full=parameters(35, zones_on_device=528, zone_kib=4 * KIB, zones=512, reclaim=1024, rounds=3072, utilisation=0.8,
                    series=[BASIC, LSM, OURS], hot_updates=[70, 90]),
    variants=scale_variants,
    run=run_scale,
    checks=[*ratios("isozone against Basic_ZGC, {x} % of updates hot", "-", "copied of updated", OURS, BASIC, xs=[70],
                    at_most=0.95),
            *ratios("isozone against Basic_ZGC, {x} % of updates hot", "-", "copied of updated", OURS, BASIC, xs=[90],
                    at_most=0.35)],
    plot=plot_scale,
    driver="gc_bench")


# --- Fig. 8 and 9: a worker beside GC ---

def run_worker(context: Context, _: object) -> Outcome:
    parameters = context.parameters
    report = bench(context, "worker", *sizes(parameters), "--seed", context.seed, "--utilisation", 0.5,
                   "--worker-bytes", f"{parameters['worker_mib']}M",
                   "--threads", ",".join(map(str, parameters["threads"])))
    return Outcome([Measurement(f"worker, {case['beside'] or ALONE}", case["seconds"], "s", case["threads"])
                    for case in report["cases"]])


def plot_worker(results: Results) -> Figure:
    drawn, (axes,) = plots.figure(height=3.6)
    threads = results.header["parameters"]["threads"]
    for beside in (ALONE, LSM, BASIC):
        present = [x for x in threads if results.median("device", f"worker, {beside}", x) is not None]
        axes.plot(present, [results.median("device", f"worker, {beside}", x) for x in present], marker="o",
                  color=plots.COLOURS[beside], label=plots.LABELS[beside])
    axes.set_xticks(threads)
    axes.set_ylim(bottom=0)
    plots.label(axes, "threads of the worker", "seconds")
    plots.legend_below(drawn, [axes])
    return drawn


def beside(scheme: str, paper: str, threads: Sequence[int], **bound: float) -> list[Check]:
    return ratios(f"worker beside {plots.LABELS[scheme]} against alone, threads: {{x}}", paper, f"worker, {scheme}",
                  "device", "device", xs=threads, against_metric=f"worker, {ALONE}", **bound)


WORKER: dict[str, Any] = {
    "source": f"{LSM_ZGC}, Fig. 8 and 9", "variants": lambda _: [Variant("device")], "run": run_worker,
    "quick": parameters(11, zones=16, reclaim=8192, worker_mib=48, threads=[1, 2, 4]),
    "full": parameters(90, zones=32, reclaim=16384, worker_mib=128, threads=[1, 2, 4, 8]),
    "plot": plot_worker, "driver": "gc_bench",
    "setup": DEVICE + "isozone_gc_bench worker: {worker_mib} MiB are written and then read at random in blocks of 4 "
                      "KiB (published: 1 GiB), alone, and beside GC of {reclaim:,} blocks of {zones} zones "
                      "at a utilisation of 0.5; as many threads as {threads}."}

INTERFERENCE = Experiment(
    name="zgc-interference",
    title="A worker beside GC",
    what="GC that is done sooner holds others up less.",
    checks=[*beside(LSM, "1.13x (45 to 40 s)", [1], at_most=1.13), *beside(BASIC, "1.33x (53 to 40 s)", [1])], **WORKER)

THREADS = Experiment(
    name="zgc-threads",
    title="More threads beside GC",
    what="Workers of several threads gain more from their threads beside LSM_ZGC.",
    checks=ratios("beside LSM_ZGC against beside Basic_ZGC, threads: {x}", "less (no number)", f"worker, {LSM}",
                  "device", "device", xs=[2, 4], against_metric=f"worker, {BASIC}", at_most=1.0),
    runs_of="zgc-interference", **WORKER)

EXPERIMENTS = [GROUP, UNIFORM, SKEW, SCALE, INTERFERENCE, THREADS]
