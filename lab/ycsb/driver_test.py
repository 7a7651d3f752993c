#!/usr/bin/env python3
"""Runs isozone_ycsb as users do: every workload on the local file system and, with Isozone preloaded, on a device.

    driver_test.py ISOZONE_YCSB [ISOZONE LIBISOZONE]

Without ISOZONE and LIBISOZONE, on the local file system only.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Iterable
from typing import Any, NotRequired, TypedDict

PROGRAM, *PRELOADED = [os.path.abspath(path) for path in sys.argv[1:]]
del sys.argv[1:]

RECORDS, OPERATIONS, SCANS = 3000, 4000, 500
KINDS = {"a": {"read", "update"}, "b": {"read", "update"}, "c": {"read"}, "d": {"read", "insert"},
         "e": {"scan", "insert"}, "f": {"read", "read_modify_write"}}
PERCENTILES = ["p50", "p95", "p99", "p99.9", "p99.99", "p99.999", "max"]


class Phase(TypedDict):
    """Of ycsb.schema.json."""
    phase: str
    operations: int
    seconds: float
    throughput: float
    settle_seconds: NotRequired[float]  # with --settle
    latency_us: dict[str, dict[str, float]]  # by kind of operation
    intervals: list[dict[str, float]]


class Report(TypedDict):
    """Of ycsb.schema.json."""
    workload: str
    phase: list[Phase]
    seed: int
    options: dict[str, Any]


class DriverTest(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory(prefix="isozone-ycsb-")
        self.addCleanup(scratch.cleanup)
        self.directory = scratch.name
        self.environment = dict(os.environ)
        self.place: list[str] = []

    def path(self, name: str) -> str:
        return os.path.join(self.directory, name)

    def use_emulated_device(self) -> None:
        if not PRELOADED:
            self.skipTest("there is no library to preload")
        tool, library = PRELOADED
        image = f"emu:{self.path('ssd.img')}"
        subprocess.run([tool, "mkfs", f"{image}?profile=small-zone&zones=128&timing=off"], check=True,
                       stdout=subprocess.DEVNULL)
        self.environment["LD_PRELOAD"] = library
        self.place = [f"--fs-uri=isozone://{image}?timing=off"]

    def run_program(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run([PROGRAM, *self.place, *map(str, arguments)], capture_output=True, timeout=120, text=True,
                              env=self.environment, stdin=subprocess.DEVNULL)

    def ok(self, *arguments: object) -> Report:
        """Runs what must succeed, and say nothing on standard error; gives its report."""
        result = self.run_program(*arguments)
        self.assertEqual((0, ""), (result.returncode, result.stderr), arguments)
        report: Report = json.loads(result.stdout)
        return report

    def fails(self, words: Iterable[str], *arguments: object) -> None:
        """Runs what must fail with one line on standard error that holds all of `words`."""
        result = self.run_program(*arguments)
        self.assertEqual((1, ""), (result.returncode, result.stdout), arguments)
        self.assertRegex(result.stderr, r"\Aisozone_ycsb: [^\n]+\n\Z")
        for word in words:
            self.assertIn(word, result.stderr)

    def check_phase(self, phase: Phase, name: str, operations: int, kinds: set[str]) -> None:
        self.assertEqual((name, operations), (phase["phase"], phase["operations"]))
        self.assertAlmostEqual(phase["throughput"], operations / phase["seconds"], delta=1e-6 * phase["throughput"])
        self.assertEqual(kinds, set(phase["latency_us"]))
        self.assertEqual(operations, sum(latency["count"] for latency in phase["latency_us"].values()))
        for latency in phase["latency_us"].values():
            values = [latency[percentile] for percentile in PERCENTILES]
            self.assertEqual(sorted(values), values)
            self.assertGreater(values[0], 0)
            self.assertTrue(0 < latency["mean"] <= latency["max"])

    def check_every_workload(self) -> None:
        for workload, kinds in KINDS.items():
            with self.subTest(workload=workload):
                operations = SCANS if "scan" in kinds else OPERATIONS
                report = self.ok("--workload", workload, "--db", self.db(workload), "--records", RECORDS,
                                 "--operations", operations, "--threads", 3, "--write-buffer-size", "512K",
                                 "--target-file-size", "512K", "--settle", "--seed", 7)
                self.assertEqual((workload, 7), (report["workload"], report["seed"]))
                self.assertEqual(RECORDS, report["options"]["records"])
                self.assertEqual(512 << 10, report["options"]["write_buffer_size"])
                load, run = report["phase"]
                self.check_phase(load, "load", RECORDS, {"insert"})
                self.check_phase(run, "run", operations, kinds)
                self.assertGreater(load["settle_seconds"], 0)

    def db(self, name: str) -> str:
        return "/" + name if self.place else self.path(name)


class Workloads(DriverTest):
    def test_every_workload_runs_on_the_local_file_system(self) -> None:
        self.check_every_workload()

    def test_every_workload_runs_on_an_emulated_device(self) -> None:
        self.use_emulated_device()
        self.check_every_workload()
        self.assertFalse(os.path.exists("/a"))


class Phases(DriverTest):
    def test_phases_run_one_by_one(self) -> None:
        base = ["--workload", "a", "--db", self.db("db"), "--records", RECORDS, "--operations", OPERATIONS]
        load, = self.ok(*base, "--phase", "load")["phase"]
        self.check_phase(load, "load", RECORDS, {"insert"})
        for _ in range(2):
            run, = self.ok(*base, "--phase", "run")["phase"]
            self.check_phase(run, "run", OPERATIONS, KINDS["a"])

    def test_one_client_does_the_same_in_every_run(self) -> None:
        counts = []
        for name in ("one", "two"):
            report = self.ok("--workload", "a", "--db", self.db(name), "--records", 1000, "--operations", 1000)
            counts.append({kind: latency["count"] for kind, latency in report["phase"][1]["latency_us"].items()})
        self.assertEqual(*counts)

    def test_intervals_add_up(self) -> None:
        report = self.ok("--workload", "a", "--db", self.db("db"), "--records", RECORDS, "--operations", 20000,
                         "--interval-ms", 10)
        for phase in report["phase"]:
            intervals = phase["intervals"]
            self.assertEqual(phase["operations"], sum(interval["operations"] for interval in intervals))
            times = [interval["t_s"] for interval in intervals]
            self.assertEqual(sorted(times), times)
            self.assertAlmostEqual(phase["seconds"], times[-1], delta=1)
            for interval in intervals:
                self.assertLessEqual(interval["p50"], interval["p99"])
                self.assertLessEqual(interval["p99"], interval["max"])
        self.assertGreater(len(report["phase"][1]["intervals"]), 1)

    def test_without_an_interval_there_is_no_time_series(self) -> None:
        report = self.ok("--workload", "c", "--db", self.db("db"), "--records", 10, "--operations", 10)
        self.assertEqual([[], []], [phase["intervals"] for phase in report["phase"]])


class Errors(DriverTest):
    def test_bad_use_is_refused(self) -> None:
        base = ["--workload", "a", "--db", self.db("db")]
        self.fails(["unknown workload 'g'"], "--workload", "g", "--db", self.db("db"))
        self.fails(["--workload"], "--db", self.db("db"))
        self.fails(["--db"], "--workload", "a")
        self.fails(["--records"], *base, "--records", 0)
        self.fails(["--records"], *base, "--records=-5")
        self.fails(["--operations"], *base, "--operations", 0)
        self.fails(["--threads"], *base, "--threads", 0)
        self.fails(["--value-size"], *base, "--value-size", 7)
        self.fails(["--value-size"], *base, "--value-size", "big")
        self.fails(["--compression"], *base, "--compression", "zstd")
        self.fails(["--phase"], *base, "--phase", "drop")
        self.fails(["--nonsense"], *base, "--nonsense")
        self.assertFalse(os.path.exists(self.db("db")))

    def test_a_run_needs_a_database(self) -> None:
        self.fails([self.db("db"), "does not exist"], "--workload", "a", "--db", self.db("db"), "--phase", "run")

    def test_a_load_needs_a_new_database(self) -> None:
        load = ["--workload", "a", "--db", self.db("db"), "--records", 10, "--phase", "load"]
        self.ok(*load)
        self.fails([self.db("db"), "exists"], *load)

    def test_a_file_system_that_is_not_loaded_is_refused(self) -> None:
        self.fails(["isozone://emu:none"], "--workload", "a", "--db", "/db", "--fs-uri", "isozone://emu:none")

    def test_records_that_are_missing_end_the_run(self) -> None:
        self.ok("--workload", "a", "--db", self.db("db"), "--records", 100, "--phase", "load")
        for workload in ("a", "e", "f"):
            self.fails(["user", "ot"], "--workload", workload, "--db", self.db("db"), "--records", 1000, "--operations",
                       1000, "--threads", 2, "--phase", "run")

    def test_values_of_another_size_end_the_run(self) -> None:
        self.ok("--workload", "c", "--db", self.db("db"), "--records", 100, "--phase", "load")
        self.fails(["1000 bytes and not 500"], "--workload", "c", "--db", self.db("db"), "--records", 100,
                   "--value-size", 500, "--phase", "run")


class Progress(DriverTest):
    def test_progress_is_shown_where_it_is_asked_for(self) -> None:
        result = self.run_program("--workload", "c", "--db", self.db("db"), "--records", 100, "--operations", 400000,
                                  "--progress")
        self.assertEqual(0, result.returncode)
        seconds = json.loads(result.stdout)["phase"][1]["seconds"]
        if seconds > 1.5:
            self.assertRegex(result.stderr, r"run: \d+ of 400000 operations, \d+/s\n")


if __name__ == "__main__":
    unittest.main()
