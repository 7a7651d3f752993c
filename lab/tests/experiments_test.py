"""The experiments themselves: that they are whole, and what they make of what programs print."""
import collections
import json
import os
import re
import unittest
from collections.abc import Callable
from typing import Any, NoReturn

import event_log_test
import harness
from isozone_lab import cli, db_bench, experiments, plots, runner
from isozone_lab.experiments import (
    dummy_writes,
    gc_copies,
    gc_latency,
    kernel_devices,
    kernel_myrocks,
    lifetime_capacity,
    lifetime_collection,
    lifetime_deletion_delay,
    parallel,
    sim_truth,
    soak,
    space,
    zenfsplus_ageing,
    zenfsplus_fillrandom,
    zenfsplus_interference,
    zenfsplus_put_latency,
    zenfsplus_ycsb,
    zgc,
)
from isozone_lab.experiments.base import Experiment
from isozone_lab.guest import timed
from isozone_lab.processes import RunFailed
from isozone_lab.results import Outcome, Variant, X
from isozone_lab.targets import OfSeveral, Point


def by_metric(outcome: Outcome) -> dict[tuple[str, X], float]:
    return {(one.metric, one.x): one.value for one in outcome.measurements}


def points_of(experiment: Experiment) -> list[Point]:
    """All that its checks are about."""
    singles = [single for check in experiment.checks
               for single in (check.checks if isinstance(check, OfSeveral) else (check,))]
    return [point for check in singles for point in (check.value, check.against) if point]


class All(unittest.TestCase):
    def test_names_are_unique(self) -> None:
        names = collections.Counter(one.name for one in experiments.ALL)
        self.assertEqual(1, max(names.values()))

    def test_both_modes_are_complete(self) -> None:
        for one in experiments.ALL:
            for mode in ("quick", "night", "full"):
                with self.subTest(experiment=one.name, mode=mode):
                    parameters = one.parameters(mode)
                    self.assertNotIn("{", one.as_run(parameters))
                    self.assertGreater(parameters["expected_s"], 0)
                    self.assertGreaterEqual(parameters["data_bytes"], 0)
                    variants = one.variants(parameters)
                    self.assertEqual(len(variants), len(set(variants)))

    def test_the_speed_of_a_device_is_told_where_it_is_another(self) -> None:
        for one in experiments.ALL:
            if "speed" not in one.quick:
                continue
            for speed, words in ((0.25, "at 0.25 of the published speed, since"), (2.0, "at 2 times the published")):
                self.assertIn(words, one.as_run({**one.quick, "speed": speed}), one.name)
            self.assertNotIn("published speed", one.as_run({**one.quick, "speed": 1.0}), one.name)

    def test_quick_takes_at_most_twenty_minutes(self) -> None:
        seconds = sum(one.quick["expected_s"] * len(one.variants(one.quick))
                      for one in experiments.that_run(cli.choose([])))
        self.assertLessEqual(seconds, 1200)

    def test_shared_runs_are_of_one_kind(self) -> None:
        known = {one.name: one for one in experiments.ALL}
        for one in experiments.ALL:
            source = known[one.runs_of or one.name]
            self.assertEqual("", source.runs_of)
            self.assertEqual((source.run, source.variants, source.quick, source.night, source.full),
                             (one.run, one.variants, one.quick, one.night, one.full), one.name)
        shared = [known["lifetime-victims"], known["lifetime-throughput"]]
        self.assertEqual([known["lifetime-waf"]], experiments.that_run(shared))
        self.assertEqual("lifetime-waf.json", shared[0].records_name)

    def test_full_runs_fit_a_machine_of_24_gib(self) -> None:
        for one in experiments.ALL:
            self.assertLess(runner.needed_memory(one.full["data_bytes"]), 20 * runner.GIB, one.name)

    def test_the_guide_says_what_memory_runs_need(self) -> None:
        with open(os.path.join(harness.LAB, "../docs/lab.md"), encoding="utf-8") as file:
            words = " ".join(file.read().split())
        for mode in ("quick", "full"):
            most = max(runner.needed_memory(one.parameters(mode)["data_bytes"]) for one in experiments.ALL)
            self.assertIn(f"{most / runner.GIB:.1f} GiB in {mode}", words)

    def test_checks_are_about_series_that_are_run(self) -> None:
        for one in experiments.ALL:
            series = {variant.series for variant in one.variants(one.quick)}
            self.assertLessEqual({point.series for point in points_of(one)}, series, one.name)

    def test_checks_are_about_groups_and_ranges_that_are_run(self) -> None:
        for one in cli.choose(["zenfsplus-groups", "lifetime-waf", "lifetime-victims", "lifetime-throughput"]):
            for mode in ("quick", "night", "full"):
                run = {variant.x for variant in one.variants(one.parameters(mode))}
                self.assertLessEqual({point.x for point in points_of(one)}, run, one.name)


class Outcomes(unittest.TestCase):
    def test_interference_and_groups(self) -> None:
        bands = {"nothing shared": 490.0, "same die": 850.0}
        side = {"bands_us": bands, "points": [{"distance": 1, "median_us": 490.0}]}
        groups = [zenfsplus_interference.UNKNOWN, *range(1, 32), *range(32)]
        groups[40] = 9  # its die has group 8
        groups += range(32)
        found = by_metric(zenfsplus_interference.outcome({"reads": side, "writes": side},
                                                         {"groups": 32, "group_of_zone": groups}))
        self.assertEqual(850, found["read, die shared", None])
        self.assertEqual(490, found["write, nothing shared", None])
        self.assertNotIn(("read, channel shared", None), found)
        self.assertEqual((32, 1), (found["groups", None], found["zones in a wrong group", None]))

    def test_bandwidth_and_latency(self) -> None:
        rates = [1e5] * 3 + [5e4, 1.5e5] * 5
        latencies = db_bench.Histogram([(0, 100, 999), (100, 300, 1)], 5, 300)
        result = db_bench.Result(1e5, 3, {"write": latencies})
        found = by_metric(zenfsplus_fillrandom.outcome(result, rates, event_log_test.LOG))
        self.assertAlmostEqual(82, found["put", None])
        self.assertEqual((100, 300), (found["put latency", 99.9], round(found["put latency", 99.999], -1)))
        self.assertAlmostEqual(20, found["flush", None])
        self.assertAlmostEqual(22.5, found["compaction", None])
        self.assertAlmostEqual(50, found["variation of put", None])

    def test_variation(self) -> None:
        self.assertEqual(0, zenfsplus_fillrandom.variation([5.0, 5.0]))
        self.assertAlmostEqual(0.5, zenfsplus_fillrandom.variation([5.0, 15.0]))
        self.assertEqual(0, zenfsplus_fillrandom.variation([]))

    def test_latency_over_time(self) -> None:
        latencies = {f"p{percent:g}": percent for percent in (99, 99.9, 99.99, 99.999)}
        intervals = [{"t_s": index / 10, "operations": 1, "p99": index, "max": 2 * index} for index in range(100)]
        outcome = zenfsplus_put_latency.outcome({"latency_us": {"insert": latencies}, "intervals": intervals})
        found = by_metric(outcome)
        self.assertEqual(99.999, found["put latency", 99.999])
        self.assertEqual(94, found["P99 of 100 ms", "95 % of buckets"])
        self.assertEqual(198, outcome.details["max"][-1])
        self.assertEqual(9.9, outcome.details["t_s"][-1])

    def test_a_stall_lasts_until_a_put_ends(self) -> None:
        def interval(t_s: float, operations: int, p99: float, longest: float) -> dict[str, float]:
            return {"t_s": t_s, "operations": operations, "p99": p99, "max": longest}

        intervals = [interval(0.1, 900, 20, 50), interval(0.2, 0, 0, 0), interval(0.35, 0, 0, 0),
                     interval(0.4, 500, 30, 230_000), interval(0.5, 0, 0, 0)]
        found = zenfsplus_put_latency.outcome(
            {"latency_us": {"insert": dict.fromkeys(("p99", "p99.9", "p99.99", "p99.999"), 1)}, "intervals": intervals})
        self.assertEqual({"t_s": [0.1, 0.2, 0.35, 0.4], "p99": [20, 230_000, 230_000, 30],
                          "max": [50, 230_000, 230_000, 230_000]}, found.details)
        self.assertEqual(230_000, by_metric(found)["P99 of 100 ms", "95 % of buckets"])

    def test_total_time_and_peak(self) -> None:
        found = by_metric(parallel.outcome(event_log_test.LOG))
        self.assertAlmostEqual(3.5, found["total time", None])
        self.assertAlmostEqual(31.25, found["peak throughput", None])
        self.assertIn("spread evenly over its time", parallel.EXPERIMENT.as_run(parallel.EXPERIMENT.quick))

    def test_gains(self) -> None:
        records = harness.records({("zenfs", "A"): [100.0], ("isozone", "A"): [205.0]}, metric="throughput")
        self.assertAlmostEqual(105, zenfsplus_ycsb.gain(records, "isozone", "A") or 0)
        self.assertIsNone(zenfsplus_ycsb.gain(records, "isozone", "B"))
        self.assertTrue(zenfsplus_ycsb.EXPERIMENT.checks[0].verdict(records).met)

    @staticmethod
    def largest(limit: float, tried: list[float]) -> float | None:
        def fits(key_range: float) -> bool:
            tried.append(key_range)
            return key_range <= limit

        return lifetime_capacity.largest(fits, [2, 3, 4, 5, 6])

    def test_the_largest_key_range_is_found(self) -> None:
        for limit, found in ((0, None), (2, 2), (3.4, 3), (6, 6), (9, 6)):
            tried: list[float] = []
            self.assertEqual(found, self.largest(limit, tried))
            self.assertLessEqual(len(tried), 3)
        steps = lifetime_capacity.steps(lifetime_capacity.EXPERIMENT.full)
        self.assertEqual((2, 2.25, 10.5), (steps[0], steps[1], steps[-1]))

    def test_a_key_range_that_ends_the_search_may_be_larger(self) -> None:
        for found, words, bar in ((6, "6 M", "6"), (8, "8 M or more", "8 or more"), (None, "0 M", "0")):
            made = harness.records({})
            made.succeeded(Variant("isozone"), 1, lifetime_capacity.outcome(found, 8, {}), **harness.FACTS)
            self.assertEqual(words, lifetime_capacity.EXPERIMENT.checks[-2].verdict(made).measured)
            self.assertEqual(bar, plots.bar_number(made, "isozone", "key range", None))
            self.assertEqual([found == 8], [row["or_more"] for row in made.rows()])

    def test_in_full_the_search_goes_on_to_what_no_device_holds(self) -> None:
        last = lifetime_capacity.steps(lifetime_capacity.EXPERIMENT.full)[-1]
        self.assertGreater((last + 0.25) * 1e6 * space.ENTRY_BYTES, space.DEVICE_BYTES)

    def test_scaled_devices_are_as_full(self) -> None:
        quick, full = (getattr(lifetime_capacity.EXPERIMENT, mode) for mode in ("quick", "full"))
        self.assertEqual(4_000_000, space.keys(full, 4))
        self.assertEqual(8 << 30, space.device_bytes(full))
        self.assertEqual((1, 64), (full["scale"], quick["scale"]))
        self.assertEqual(space.device_bytes(full) / space.device_bytes(quick),
                         space.keys(full, 4) / space.keys(quick, 4))

    def test_only_a_full_device_is_a_result(self) -> None:
        def fails(words: str) -> Callable[[], NoReturn]:
            def action() -> NoReturn:
                raise RunFailed(words)
            return action

        self.assertEqual(5, space.survives(lambda: 5))
        self.assertIsNone(space.survives(fails("put error: IO error: No space left on device: /db/7.sst: full")))
        with self.assertRaises(RunFailed):
            space.survives(fails("Corruption: block checksum mismatch"))
        with self.assertRaises(RunFailed):
            space.survives(fails("cannot write to image \"ssd.img\": No space left on device"))

    def test_copies_of_all_mounts(self) -> None:
        def mount(copied: int, written: int) -> dict[str, Any]:
            return {"classes": {"gc": {"bytes_written": copied << 20}}, "user_bytes_appended": written << 20,
                    "space": {"live_bytes": written, "capacity_bytes": 400}}

        found = by_metric(gc_copies.outcome([mount(0, 100), mount(30, 200)]))
        self.assertEqual((30, 10, 50),
                         (found["copied", None], found["copied of written", None], found["filled", None]))
        rates = {name: db_bench.Result(7, 1, {}) for name in lifetime_collection.BENCHMARKS}
        found = by_metric(lifetime_collection.outcome(rates, mount(50, 200)))
        self.assertEqual((1, 1.25, 7),
                         (found["survives", None], found["WAF of GC", None], found["overwrite", None]))
        self.assertEqual({("survives", None): 0}, by_metric(lifetime_collection.outcome(None, None)))

    def test_deletion_delays(self) -> None:
        counted = {"deletion_delay_us": {"short": {"mean": 80_000}, "not-set": {"mean": 5}}}
        self.assertEqual({("delay", "short"): 0.08}, by_metric(lifetime_deletion_delay.outcome(counted)))
        with self.assertRaises(RunFailed):
            lifetime_deletion_delay.outcome({"deletion_delay_us": {}})

    def test_latency_beside_a_collection(self) -> None:
        result = db_bench.Result(9, 111, {"write": db_bench.Histogram([(0, 100, 999), (100, 300, 1)], 5, 300)})
        counted = {"classes": {"gc": {"bytes_written": 80 << 20}}, "gc": {"space_waits": 2}}
        found = by_metric(gc_latency.outcome(result, counted))
        self.assertEqual((100, 80, 2), (found["put latency", 99.9], found["copied", None],
                                        found["waits for space", None]))

    def test_change_with_age(self) -> None:
        made = harness.records({})
        for age, rate in (("new", 200), ("aged", 150)):
            made.succeeded(Variant("isozone", age), 1, zenfsplus_ageing.outcome({"overwrite": rate}, age),
                           **harness.FACTS)
        self.assertEqual(-25, zenfsplus_ageing.change(made, "isozone", "overwrite"))
        self.assertIsNone(zenfsplus_ageing.change(made, "conventional", "overwrite"))
        check = next(one for one in zenfsplus_ageing.EXPERIMENT.checks
                     if one.what == "isozone, overwrite: aged against new")
        self.assertFalse(check.verdict(made).met)

    def test_groups_and_reclaims_of_one_zone(self) -> None:
        found = by_metric(zgc.group_outcome({"points": [{"request": 4096, "seconds_per_gib": 27}]},
                                            {"points": [{"utilisation": 0.5, "seconds_per_gib": 23}]}))
        self.assertEqual({("reading", 4): 27, ("reclaiming", 0.5): 23}, found)

    def test_bimodality(self) -> None:
        self.assertAlmostEqual(1, zgc.bimodality([5, 0, 0, 0, 5]))
        self.assertAlmostEqual(5 / 9, zgc.bimodality([1] * 1000), delta=0.001)
        self.assertLess(zgc.bimodality([0, 1, 4, 6, 4, 1, 0]), 0.5)
        self.assertEqual(0, zgc.bimodality([0, 7, 0]))

    def test_two_sides_of_a_combination(self) -> None:
        def side(compacted: int, copied: int, zones: int, settled: float) -> dict[str, float]:
            return {"flushed_bytes": 1000, "compacted_bytes": compacted, "copied_bytes": copied, "zones": zones,
                    "settled_seconds": settled, "puts_per_second": 7}

        untimed = {"mounted": side(4000, 5000, 30, 9), "simulated": side(3600, 4600, 33, 9)}
        timed = {"puts": 100, "mounted": side(1, 0, 1, 10), "simulated": side(1, 0, 1, 8)}
        found = by_metric(sim_truth.outcome(untimed, timed))
        self.assertAlmostEqual(10, found["compaction apart", None])
        self.assertAlmostEqual(10, found["zones apart", None])
        self.assertAlmostEqual(25, found["throughput apart", None])
        self.assertAlmostEqual(100 * 400 / 750, found["copies apart, of what is allowed", None])
        # Where hardly anything is copied, two percent of what is written are allowed.
        few = {"mounted": side(4000, 0, 30, 9), "simulated": side(4000, 50, 30, 9)}
        self.assertAlmostEqual(50, sim_truth.copies_apart(few))

    def test_every_combination_is_run_in_full(self) -> None:
        found = sim_truth.EXPERIMENT.variants(sim_truth.EXPERIMENT.full)
        self.assertEqual(4 * 3 * 3, len(set(found)))
        quick = set(sim_truth.EXPERIMENT.variants(sim_truth.EXPERIMENT.quick))
        self.assertLess(quick, set(found))

    def test_dummy_bytes_of_both_mounts(self) -> None:
        def mount(users: int, dummies: int) -> dict[str, Any]:
            return {"user_bytes_appended": users, "classes": {"gc": {"bytes_written": users // 10}},
                    "device_lifetime": {"dummy_bytes_written": dummies, "media_bytes_written": 2 * users + dummies,
                                        "finishes": 3, "resets": 5}}

        few = dummy_writes.FEW
        found = by_metric(dummy_writes.outcome([mount(100, 7), mount(300, 40)], few))
        self.assertEqual((10, 10, 3, 1.6), (found["dummy bytes", few], found["copied", few],
                                            found["finishes", few], found["written to flash", few]))

    def test_tenths_of_a_soak(self) -> None:
        found = by_metric(soak.outcome([9, 100, *[80] * 7, 95], [70] * 10, 3 << 20, 1 << 20))
        self.assertEqual((95, 3), (found["last tenth of second", None], found["lost", None]))


class KernelDevices(unittest.TestCase):
    LOAD = """fillrandom   :      53.763 micros/op 18600 ops/sec 16.129 seconds 300000 operations;   14.5 MB/s
Microseconds per write:
Count: 3 Average: 12.7  StdDev: 2.2
Min: 2  Median: 5.7047  Max: 230000
Percentiles: P50: 5.70 P75: 8.02 P99: 14.97 P99.9: 109.18 P99.99: 9542.68
------------------------------------------------------
(       1,       2 ]        2  66.667%  66.667%
(  170000,  250000 ]        1  33.333% 100.000%

compact      : 5000000.000 micros/op 0 ops/sec 5.000 seconds 1 operations;
readrandom   :    1552.795 micros/op 644 ops/sec 9.317 seconds 6000 operations;    0.3 MB/s (3792 of 6000 found)
"""
    MIXED = """readwhilewriting :    4149.378 micros/op 241 ops/sec 90.000 seconds 21690 operations;    0.2 MB/s
Microseconds per read:
Count: 200 Average: 4149.0  StdDev: 1.0
Min: 900  Median: 2000.0000  Max: 40000
Percentiles: P50: 2000.00 P75: 5.50 P99: 7.00 P99.9: 7.00 P99.99: 7.00
------------------------------------------------------
(    1000,    3000 ]      196  98.000%  98.000% ##
(   20000,   40000 ]        4   2.000% 100.000%
"""

    @staticmethod
    def job_of(series: str) -> list[str]:
        return kernel_devices.job(kernel_devices.systems()[series], kernel_devices.EXPERIMENT.full, 7, 0.05)

    @staticmethod
    def device(written_mb: int) -> str:
        info = harness.example("info")
        info["device"]["counters"]["host_bytes_written"] = written_mb * 1_000_000
        return json.dumps(info)

    def outcome(self, load: str, mixed: str) -> Outcome:
        return kernel_devices.outcome({"load": load, "mixed": mixed, "before": self.device(100),
                                       "after": self.device(600)})

    def test_every_system_has_the_same_ssd_and_the_same_load(self) -> None:
        ssd = "make_image 'profile=small-zone&zones=128&zone_size=128M&zone_capacity=72M'"
        for series in kernel_devices.SERIES:
            lines = self.job_of(series)
            self.assertEqual(ssd, lines[0], series)
            self.assertEqual("run after isozone info --json emu:/tmp/ssd.img", lines[-1])
            load = next(line for line in lines if line.startswith("run load "))
            for option in ("--num=300000", "--use_direct_reads=true",
                           "--use_direct_io_for_flush_and_compaction=true", "--value_size=800", "--histogram=1",
                           "--seed=7"):
                self.assertIn(f" {option} ", f"{load} ")
            self.assertEqual(series == "XFS tuned", "--subcompactions=4" in load and "--max_background_jobs=8" in load)
            self.assertNotRegex("".join(lines), r"\{\w+\}")
            if series == "tmpfs":
                self.assertIn(" --benchmarks=fillrandom,compact ", load)
                self.assertNotIn("run mixed", "".join(lines))
                continue
            self.assertIn(" --benchmarks=fillrandom,compact,readrandom ", load)
            mixed = next(line for line in lines if line.startswith("run mixed "))
            for option in ("--benchmarks=readwhilewriting", "--use_existing_db=1", "--reads=25000",
                           "--benchmark_write_rate_limit=2000000", "--use_direct_reads=true"):
                self.assertIn(f" {option} ", f"{mixed} ")

    def test_where_each_system_is(self) -> None:
        uri = "--fs_uri=isozone://emu:/tmp/ssd.img?speed=0.05&policy=zenfs&log_dir="
        load = next(line for line in self.job_of("zenfs") if line.startswith("run load"))
        self.assertIn(uri, load)
        self.assertTrue(load.startswith("run load env LD_PRELOAD=/bin/libisozone.so db_bench "))
        self.assertNotIn("serve", " ".join(self.job_of("zenfs")))
        lines = self.job_of("isozone dev")
        self.assertEqual(["run identify isozone izg identify 'emu:/tmp/ssd.img?speed=0.05'",
                          "run before isozone info --json emu:/tmp/ssd.img", "serve speed=0.05"], lines[1:4])
        self.assertIn("isozone://dev:/dev/ublkb0?policy=isozone&log_dir=", " ".join(lines))
        self.assertEqual("stop_serving", lines[-2])
        self.assertEqual(["mount_memory", "umount /mnt"], [self.job_of("tmpfs")[place] for place in (2, -2)])
        lines = self.job_of("F2FS")
        self.assertEqual(["serve speed=0.05", "mount_f2fs"], lines[2:4])
        self.assertEqual(["umount /mnt", "stop_serving"], lines[-3:-1])
        self.assertNotRegex("".join(lines), "LD_PRELOAD|fs_uri")

    def test_every_command_of_a_job_exists(self) -> None:
        with open(os.path.join(timed.HERE, "devices.sh"), encoding="utf-8") as file:
            functions = re.findall(r"^(\w+)\(\) \{", file.read(), re.M)
        for series in kernel_devices.SERIES:
            self.assertLessEqual({line.split()[0] for line in self.job_of(series)}, {*functions, "isozone", "umount"})

    def test_what_db_bench_prints(self) -> None:
        found = by_metric(self.outcome(self.LOAD, self.MIXED))
        self.assertEqual({"puts": 18600, "longest put": 0.23, "compaction": 5, "reads": 644, "reads beside writes": 241,
                          "written by the host": 500}, {metric: value for (metric, x), value in found.items() if not x})
        self.assertAlmostEqual(30, found["latency beside writes", "P99"])

    def test_what_db_bench_prints_without_reads(self) -> None:
        found = kernel_devices.outcome({"load": self.LOAD[:self.LOAD.index("readrandom")], "before": self.device(100),
                                        "after": self.device(100)})
        self.assertEqual({("puts", None): 18600, ("longest put", None): 0.23, ("compaction", None): 5,
                          ("written by the host", None): 0}, by_metric(found))

    def test_what_is_not_printed_is_a_failure(self) -> None:
        for load, mixed in ((self.LOAD.replace("compact ", "compress "), self.MIXED), (self.LOAD, "")):
            with self.assertRaises(RunFailed):
                self.outcome(load, mixed)

    def test_the_goals_are_those_ratios(self) -> None:
        made = harness.records({("isozone dev", None): [18600], ("isozone", None): [18700], ("XFS", None): [3330],
                                ("XFS tuned", None): [5400], ("F2FS", None): [4230], ("zenfs", None): [6150]},
                               metric="puts")
        verdicts = {check.what: check.verdict(made).met for check in kernel_devices.EXPERIMENT.checks
                    if check.what.startswith("puts") and "tmpfs" not in check.what}
        self.assertEqual({"puts: isozone dev against XFS tuned"}, {what for what, met in verdicts.items() if not met})
        self.assertEqual(5, len(verdicts))


class KernelMyrocks(unittest.TestCase):
    CLIENT = "{rows}\t1767225757.250000\t1767225767.250000\t0.125000\n"
    PRINTED = {"fill": CLIENT.format(rows=150_000), "update": CLIENT.format(rows=1000),
               "sync": CLIENT.format(rows=2000), "compact": CLIENT.format(rows=1),
               **{f"before-{step}": "cpu  100 0 50 800 50 0 0 0 0 0\n" for step in kernel_myrocks.TIMED},
               **{f"after-{step}": "cpu  300 0 150 1050 100 0 0 0 0 0\n" for step in kernel_myrocks.TIMED},
               "requests": "come by io_uring\n",
               "sync-by-several": CLIENT.format(rows=2000) + "2000\t1767225758.000000\t1767225777.250000\t0.5\n"}

    @staticmethod
    def job_of(series: str) -> list[str]:
        return kernel_myrocks.job(kernel_myrocks.systems()[series], kernel_myrocks.EXPERIMENT.full, 7, 0.05)

    def outcome(self, **changes: str) -> Outcome:
        return kernel_myrocks.outcome({**self.PRINTED, "before": KernelDevices.device(100),
                                       "after": KernelDevices.device(600), **changes})

    def test_every_system_has_the_same_ssd_and_the_same_load(self) -> None:
        wanted = {line for line in self.job_of("XFS") if line.startswith(("make_image", "run "))}
        for series in kernel_myrocks.systems():
            lines = self.job_of(series)
            self.assertLessEqual(wanted, set(lines), series)
            start = next(line for line in lines if line.startswith("start_mariadb"))
            self.assertIn(" --rocksdb-use-direct-io-for-flush-and-compaction=1 --rocksdb-use-direct-reads=1 ", start)
            self.assertIn("write_buffer_size=16777216;target_file_size_base=16777216;max_bytes_for_level_base=67108864",
                          start)
            self.assertEqual(series == "XFS tuned", "max-background-jobs=8 --rocksdb-max-subcompactions=4" in start)
            self.assertNotIn("{speed}", "".join(lines))

    def test_where_each_system_is(self) -> None:
        lines = self.job_of("isozone")
        self.assertIn("mount_isozone 'emu:/tmp/ssd.img?speed=0.05'", lines)
        self.assertEqual(["stop_mariadb", "unmount_isozone"], lines[-3:-1])
        lines = self.job_of("isozone dev")
        self.assertEqual(["serve speed=0.05", "mount_isozone 'dev:/dev/ublkb0'"], lines[3:5])
        self.assertEqual(["stop_mariadb", "unmount_isozone", "stop_serving"], lines[-4:-1])
        for series, command in (("XFS", "mount_xfs"), ("XFS tuned", "mount_xfs"), ("F2FS", "mount_f2fs")):
            lines = self.job_of(series)
            self.assertEqual(["serve speed=0.05", command], lines[2:4])
            self.assertEqual(["stop_mariadb", "umount /mnt", "stop_serving"], lines[-4:-1])
        lines = self.job_of("tmpfs")
        self.assertEqual(["mount_memory", "stop_mariadb", "umount /mnt"], [lines[place] for place in (2, -3, -2)])

    def test_updates_begin_when_no_compaction_runs(self) -> None:
        order = ["compact", "settle", "update"]
        steps = [line.split()[1] for line in self.job_of("isozone") if line.startswith("run ")]
        self.assertEqual(order, [step for step in steps if step in order])

    def test_every_command_of_a_job_exists(self) -> None:
        functions = []
        for name in ("devices.sh", "mariadb.sh"):
            with open(os.path.join(timed.HERE, name), encoding="utf-8") as file:
                functions += re.findall(r"^(\w+)\(\) \{", file.read(), re.M)
        for series in kernel_myrocks.systems():
            self.assertLessEqual({line.split()[0] for line in self.job_of(series)}, {*functions, "umount"})

    def test_rows_have_keys_of_their_own(self) -> None:
        parameters = kernel_myrocks.EXPERIMENT.full
        added = parameters["rows"] + (kernel_myrocks.CLIENTS + 1) * parameters["synced"]
        for seed in (1, 2):
            first = seed * 1_000_000 + 1
            self.assertIn(f"set number = {first + parameters['rows']} + (@client + 1) * {parameters['synced']} + n",
                          kernel_myrocks.statements(parameters, seed)["sync-by-several"][1])
            keys = {number * 2654435761 % 4294967296 for number in range(first, first + added)}
            self.assertEqual(added, len(keys))
        self.assertLess(added, 1_000_000)

    def test_what_the_clients_say(self) -> None:
        outcome = self.outcome()
        self.assertEqual({
            "rows": 15_000, "longest transaction": 0.125, "compaction": 10, "updates": 100,
            "synced": 200, "longest synced": 0.125, "synced by several": 200, "written by the host": 500},
            {metric: value for (metric, x), value in by_metric(outcome).items() if x is None})
        self.assertEqual(dict.fromkeys(kernel_myrocks.TIMED, 50),
                         {x: value for (metric, x), value in by_metric(outcome).items() if metric == "processor"})
        self.assertEqual({"requests": "come by io_uring"}, outcome.details)

    def test_what_is_not_said_is_a_failure(self) -> None:
        for step in ("fill", "compact", "sync-by-several", "after-sync"):
            with self.assertRaises(RunFailed):
                self.outcome(**{step: "ERROR 1296 (HY000) at line 1: Got error\n"})

    def test_the_goal_is_three_times(self) -> None:
        made = harness.records({("isozone dev", None): [6000], ("XFS", None): [1900], ("XFS tuned", None): [2100]},
                               metric="rows")
        self.assertEqual([True, False], [check.verdict(made).met for check in kernel_myrocks.EXPERIMENT.checks
                                         if check.what.startswith("rows inserted")])


if __name__ == "__main__":
    unittest.main()
