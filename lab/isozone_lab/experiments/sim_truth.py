"""The same small set-up on the real engine and in the simulator: how far the simulator can be believed."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .. import outputs, plots
from ..plots import Figure
from ..results import Measurement, Outcome, Parameters, Results, Variant
from ..runner import Context
from ..targets import GreatestOf, Point
from .base import Experiment

MIB = 1 << 20
POLICIES = ["zenfs", "lifetime", "isozone"]
PICKERS = ["leveled", "ll", "isozone"]
WORKLOADS = ["sequential", "uniform", "zipfian", "70/30"]
# How far the simulator may be off: in percent of what was measured. Copies may also be off by a part of what was
# written.
COMPACTION, COPIES, COPIES_OF_WRITTEN, ZONES, THROUGHPUT = 10, 15, 2, 10, 15
METRICS = {"compaction apart": COMPACTION, "copies apart, of what is allowed": 100, "zones apart": ZONES,
           "throughput apart": THROUGHPUT}


def name(workload: str, picker: str) -> str:
    return f"{workload}, {picker}"


def variants(parameters: Parameters) -> list[Variant]:
    return [Variant(policy, name(workload, picker)) for policy, workload, picker in parameters["combinations"]]


def program(context: Context, variant: Variant, data_mib: int, **options: object) -> Any:
    """What the program has found of a combination, with the options of its command line by their names."""
    workload, picker = variant.x.split(", ")
    words = ["--workload", workload, "--policy", variant.series, "--compaction", picker, "--data-mib", data_mib,
             "--zones", context.parameters["zones"], "--seed", context.seed, "--directory", context.shelf.scratch]
    for option, value in options.items():
        words += [f"--{option.replace('_', '-')}", value]
    return outputs.read(context.execute([context.build.sim_truth, *words]), "sim-truth")


def run(context: Context, variant: Variant) -> Outcome:
    parameters = context.parameters
    bytes_alone = program(context, variant, parameters["data_mib"])
    rates = bytes_alone["rates"]
    timed = program(context, variant, parameters["timed_mib"], speed=parameters["device_speed"],
                    put_rate=rates["put_bytes_per_second"], compaction_rate=rates["merged_bytes_per_second"])
    return outcome(bytes_alone, timed)


def apart(pair: Mapping[str, Mapping[str, float]], metric: str) -> float:
    """In percent of what was measured on the real engine."""
    return 100 * abs(pair["simulated"][metric] / pair["mounted"][metric] - 1)


def copies_apart(pair: Mapping[str, Mapping[str, float]]) -> float:
    """In percent of what is allowed."""
    mounted = pair["mounted"]
    written = mounted["flushed_bytes"] + mounted["compacted_bytes"] + mounted["copied_bytes"]
    allowed = max(COPIES / 100 * mounted["copied_bytes"], COPIES_OF_WRITTEN / 100 * written)
    return 100 * abs(pair["simulated"]["copied_bytes"] - mounted["copied_bytes"]) / allowed


def throughput(side: Mapping[str, float], puts: int) -> float:
    """Puts a second, until nothing is left to compact."""
    return puts / side["settled_seconds"]


def outcome(bytes_alone: Any, timed: Any) -> Outcome:
    measured = [Measurement("compaction apart", apart(bytes_alone, "compacted_bytes"), "%"),
                Measurement("copies apart, of what is allowed", copies_apart(bytes_alone), "%"),
                Measurement("zones apart", apart(bytes_alone, "zones"), "%")]
    rates = {side: throughput(timed[side], timed["puts"]) for side in ("mounted", "simulated")}
    measured.append(Measurement("throughput apart", 100 * abs(rates["simulated"] / rates["mounted"] - 1), "%"))
    for side in ("mounted", "simulated"):
        found = bytes_alone[side]
        measured += [Measurement(f"compaction, {side}", found["compacted_bytes"] / MIB, "MiB"),
                     Measurement(f"copies, {side}", found["copied_bytes"] / MIB, "MiB"),
                     Measurement(f"zones, {side}", found["zones"], ""),
                     Measurement(f"throughput, {side}", rates[side], "puts/s"),
                     Measurement(f"puts alone, {side}", timed[side]["puts_per_second"], "puts/s")]
    return Outcome(measured)


def plot(results: Results) -> Figure:
    xs = [x for x in (name(workload, picker) for workload in WORKLOADS for picker in PICKERS)
          if any(results.values(policy, "compaction apart", x) for policy in POLICIES)]
    drawn, axes = plots.figure(rows=len(METRICS), height=2.4, share_x=True)
    for one, (metric, bound) in zip(axes, METRICS.items(), strict=True):
        plots.grouped_bars(one, results, metric, xs)
        one.axhline(bound, color="#444", linewidth=0.8, linestyle="--")
        plots.label(one, "", "%", metric)
        one.tick_params(axis="x", rotation=45)
    plots.legend_below(drawn, axes)
    return drawn


def sizes(expected_s: float, combinations: Sequence[tuple[str, str, str]], data_mib: int, timed_mib: int,
          zones: int, device_speed: float) -> Parameters:
    return {"data_bytes": 2 * data_mib * MIB, "expected_s": expected_s, "combinations": combinations,
            "data_mib": data_mib, "timed_mib": timed_mib, "zones": zones, "device_speed": device_speed}


EVERY = [(policy, workload, picker) for workload in WORKLOADS for picker in PICKERS for policy in POLICIES]
FULL = sizes(18, EVERY, data_mib=256, timed_mib=64, zones=40, device_speed=0.25)

EXPERIMENT = Experiment(
    name="sim-truth",
    title="How far the simulator can be believed",
    source="-",
    what="The simulator finds what the real engine does.",
    setup="isozone_sim_truth: each key is put once, {data_mib} MiB in all, and then as much over them, on {zones} "
          "zones of 18 MiB; tables and memtables have 4 MiB, level 1 has 18 MiB. Bytes and zones are those of a device "
          "that takes no time, where nothing is left to compact after each flush. Throughput is that of {timed_mib} "
          "MiB, and as much over them, on a device of {device_speed:g} times the speed of small-zone, until nothing is "
          "left to compact.",
    quick=sizes(7, [("zenfs", "70/30", "leveled"), ("lifetime", "zipfian", "ll"), ("isozone", "uniform", "isozone")],
                data_mib=64, timed_mib=24, zones=120, device_speed=0.25),
    night=FULL,
    full=FULL,
    variants=variants,
    run=run,
    checks=[GreatestOf(f"{metric}, {policy}", "-", Point(policy, metric), at_most=bound)
            for metric, bound in METRICS.items() for policy in POLICIES],
    plot=plot,
    driver="sim_truth")
