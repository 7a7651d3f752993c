"""Every experiment, in the order of the page. A name begins with the paper that the experiment comes from, if
there is one: zenfsplus, parallel, lifetime, zgc or ll. What it shows follows; its source says which figure that is.
"""
from collections.abc import Iterable

from . import (
    dummy_writes,
    gc_copies,
    gc_latency,
    greedy,
    kernel_devices,
    kernel_myrocks,
    lifetime_capacity,
    lifetime_collection,
    lifetime_deletion_delay,
    lifetime_scale,
    limit,
    ll,
    parallel,
    sim_truth,
    soak,
    zenfsplus_ageing,
    zenfsplus_bandwidth,
    zenfsplus_groups,
    zenfsplus_interference,
    zenfsplus_put_latency,
    zenfsplus_put_tail,
    zenfsplus_scale,
    zenfsplus_workloads,
    zenfsplus_ycsb,
    zenfsplus_zippydb,
    zgc,
)
from .base import Experiment

ALL = [*(module.EXPERIMENT for module in (
           zenfsplus_interference, zenfsplus_groups, zenfsplus_bandwidth, zenfsplus_put_tail, zenfsplus_put_latency,
           zenfsplus_workloads, zenfsplus_ycsb, zenfsplus_zippydb, parallel, limit, lifetime_capacity,
           lifetime_deletion_delay)),
       *lifetime_collection.EXPERIMENTS, gc_latency.EXPERIMENT, *gc_copies.EXPERIMENTS, soak.EXPERIMENT,
       dummy_writes.EXPERIMENT, zenfsplus_ageing.EXPERIMENT, *zgc.EXPERIMENTS, *ll.EXPERIMENTS, greedy.EXPERIMENT,
       zenfsplus_scale.EXPERIMENT, lifetime_scale.EXPERIMENT, sim_truth.EXPERIMENT,
       kernel_devices.EXPERIMENT, kernel_myrocks.EXPERIMENT]

# What experiments were called earlier: the command line takes these names, too, and files of results are renamed.
EARLIER_NAMES = {
    "fig3": "zenfsplus-interference", "fig8": "zenfsplus-groups", "fig9": "zenfsplus-bandwidth",
    "table1": "zenfsplus-put-tail", "fig10": "zenfsplus-put-latency", "fig11": "zenfsplus-workloads",
    "fig14": "zenfsplus-ycsb", "zippydb": "zenfsplus-zippydb", "ageing": "zenfsplus-ageing",
    "gc-copies": "zenfsplus-gc-copies", "capacity": "lifetime-capacity", "deletion-delay": "lifetime-deletion-delay",
    "gc-waf": "lifetime-waf", "gc-iops": "lifetime-throughput", "victims": "lifetime-victims"}


def that_run(chosen: Iterable[Experiment]) -> list[Experiment]:
    """The experiments whose runs those of `chosen` show, each once."""
    known = {one.name: one for one in ALL}
    return [known[name] for name in dict.fromkeys(one.runs_of or one.name for one in chosen)]
