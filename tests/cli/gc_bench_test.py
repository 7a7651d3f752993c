#!/usr/bin/env python3
"""isozone_gc_bench as users meet it: what it measures, and what it refuses.

    gc_bench_test.py ISOZONE ISOZONE_GC_BENCH
"""

import json
import os
import sys
import unittest
from collections.abc import Iterable
from typing import Any

BENCH = os.path.abspath(sys.argv.pop(2))

import harness  # noqa: E402 - takes its argument


class GcBench(harness.CliTest):
    """On a device with a file system, which stays whole."""
    # Zones of 4 MiB: 1024 blocks, two segments.
    SMALL = ("--zones", "12", "--seed", "7")

    def setUp(self) -> None:
        super().setUp()
        self.format()

    def bench(self, *arguments: str) -> bytes:
        return self.ok(*arguments, executable=BENCH)

    def refuses(self, code: int, words: Iterable[str], *arguments: str) -> None:
        self.fails(code, words, *arguments, executable=BENCH)

    def collect(self, *arguments: str) -> Any:
        return json.loads(self.bench("collect", *self.SMALL, "--verify", *arguments, self.device, "--json"))

    def test_collect_reclaims_with_both_schemes_and_leaves_the_file_system_whole(self) -> None:
        self.ok("cp", self.device, self.write("file", b"kept"), ":/file")
        before = self.json("zones", self.device, "--json")
        result = self.collect()
        self.assertEqual((result["seed"], result["reclaim_blocks"], result["verified"]), (7, 1024, True))
        basic, lsm = result["schemes"]
        self.assertEqual([basic["scheme"], lsm["scheme"]], ["basic", "lsm-zgc"])
        for scheme in (basic, lsm):
            total = scheme["total"]
            self.assertGreaterEqual(total["blocks_reclaimed"], 1024)
            self.assertEqual(total["blocks_copied"] + total["blocks_reclaimed"], 1024 * total["zones_reset"])
            self.assertEqual(sum(total["zones_by_utilisation_before"]), 12)
        self.assertEqual(basic["total"]["blocks_copied"], lsm["total"]["blocks_copied"])
        self.assertEqual(basic["total"]["bytes_read"], 4096 * basic["total"]["blocks_copied"])
        self.assertGreater(lsm["total"]["bytes_read"], basic["total"]["bytes_read"])
        self.assertLess(lsm["total"]["reads"], basic["total"]["reads"])
        self.assertEqual(self.json("zones", self.device, "--json"), before)
        self.assertEqual(self.ok("cat", self.device, "/file"), b"kept")
        self.assertTrue(self.json("fsck", self.device, "--json")["clean"])

    def test_collect_is_the_same_with_the_same_seed(self) -> None:
        arguments = ("--skewed", "--rounds", "4", "--utilisation", "0.6", "--scheme", "lsm-zgc")
        schemes = [self.collect(*arguments, "--depth", depth)["schemes"][0] for depth in ("1", "16")]
        counts = [[round["blocks_copied"] for round in scheme["rounds"]] for scheme in schemes]
        self.assertEqual(len(counts[0]), 4)
        self.assertEqual(counts[0], counts[1])

    def test_collect_reports_to_people(self) -> None:
        output = self.bench("collect", *self.SMALL, "--verify", self.device).decode()
        for words in ("Seed         7", "COPIED", "90-100%", "times as fast", "read back", "timing=off"):
            self.assertIn(words, output)

    def test_collect_follows_a_trace(self) -> None:
        trace = self.write("trace", b"# the first zone over and over\n0-1023\n")
        result = self.collect("--trace", trace, "--scheme", "basic")["schemes"][0]["total"]
        self.assertEqual(result["blocks_copied"], 0)
        self.assertEqual(result["zones_reset"], 1)

    def test_collect_runs_in_the_time_of_a_device(self) -> None:
        device = f"emu:{self.path('timed.img')}?speed=50"
        self.ok("mkfs", f"{device}&profile=zgc-paper&zones=24&zone_size=4M")
        output = self.bench("collect", "--zones", "10", "--verify", "--destroy", device).decode()
        self.assertNotIn("timing=off", output)

    def test_worker_runs_alone_and_beside_each_scheme(self) -> None:
        result = json.loads(self.bench("worker", *self.SMALL, "--worker-bytes", "5M", "--threads", "1,3",
                           self.device, "--json"))
        self.assertEqual([(case["beside"], case["threads"]) for case in result["cases"]],
                         [(beside, threads) for threads in (1, 3) for beside in (None, "basic", "lsm-zgc")])
        for case in result["cases"]:
            self.assertGreater(case["bytes_per_second"], 0)
            self.assertEqual(case["collection"] is None, case["beside"] is None)
        output = self.bench("worker", *self.SMALL, self.device, "--worker-bytes", "1M")
        self.assertIn(b"beside lsm-zgc", output)

    def test_reclaim_measures_every_utilisation(self) -> None:
        result = json.loads(self.bench("reclaim", self.device, "--json"))
        self.assertEqual([point["utilisation"] for point in result["points"]], [n / 10 for n in range(1, 11)])
        self.assertEqual(result["points"][-1]["valid_blocks"], 1024)
        self.assertIn(b"SECONDS A GIB", self.bench("reclaim", self.device))

    def test_groups_measures_every_size(self) -> None:
        result = json.loads(self.bench("groups", self.device, "--json"))
        self.assertEqual([point["request"] >> 10 for point in result["points"]], [4, 8, 16, 32, 64, 128])
        self.assertIn(b"128.0 KiB", self.bench("groups", self.device))

    def test_options_out_of_range(self) -> None:
        for words, arguments in (
            (["--utilisation", "0.95"], ("--utilisation", "1")),
            (["--utilisation"], ("--utilisation", "much")),
            (["--scheme", "lsm-zgc"], ("--scheme", "lsm")),
            (["--cold"], ("--cold", "1.5")),
            (["--zones"], ("--zones", "0")),
            (["--reclaim"], ("--reclaim", "0")),
            (["--hot-data", "--skewed"], ("--hot-data", "0.2")),
            (["--trace", "--skewed"], ("--skewed", "--trace", "file")),
            (["--trace", "--run"], ("--run", "4", "--trace", "file")),
        ):
            self.refuses(harness.USAGE, words, "collect", *arguments, self.device)
        self.refuses(harness.USAGE, ["--threads"], "worker", "--threads", "1,9", self.device)

    def test_without_enough_empty_zones(self) -> None:
        before = self.json("zones", self.device, "--json")
        self.refuses(harness.NO_SPACE, ["39", "32", "fewer"], "collect", self.device)
        self.refuses(harness.NO_SPACE, ["--destroy", "32"], "collect", "--zones", "25", self.device)
        self.refuses(harness.NO_SPACE, ["--destroy"], "worker", "--zones", "12", "--worker-bytes", "44M",
                     self.device)
        self.assertEqual(self.json("zones", self.device, "--json"), before)

    def test_without_enough_to_reclaim(self) -> None:
        self.refuses(harness.USAGE, ["--reclaim", "utilisation 0.9"], "collect", "--zones", "8",
                     "--utilisation", "0.9", self.device)

    def test_without_enough_open_zones(self) -> None:
        small = self.path("few.img")
        self.ok("mkfs", f"emu:{small}?timing=off&zones=48&zone_size=4M&max_active=11&max_open=11")
        self.refuses(harness.NO_SPACE, ["12", "open", "threads"], "worker", "--zones", "12",
                     "--threads", "8", "--worker-bytes", "8M", f"emu:{small}?timing=off")

    def test_what_is_refused_destroys_nothing(self) -> None:
        before = self.json("zones", self.device, "--json")
        command = ("collect", "--destroy", self.device)
        self.refuses(harness.USAGE, ["--reclaim"], *command, "--zones", "8", "--reclaim", "5000")
        self.refuses(harness.NOT_FOUND, ["absent"], *command, "--zones", "8", "--trace", self.path("absent"))
        self.refuses(harness.NO_SPACE, ["39", "32"], *command)
        self.assertEqual(self.json("zones", self.device, "--json"), before)
        self.assertTrue(self.json("fsck", self.device, "--json")["clean"])

    def test_with_a_bad_trace(self) -> None:
        trace = self.write("trace.txt", b"1\n# two\nthree\n")
        arguments = ("collect", "--zones", "8", "--trace")
        self.refuses(harness.USAGE, ["trace.txt:3:", "'three'"], *arguments, trace, self.device)
        self.write("trace.txt", b"1\n4096\n")
        self.refuses(harness.USAGE, ["trace.txt:2:", "4096", "4095"], *arguments, trace, self.device)
        self.write("trace.txt", b"")
        self.refuses(harness.USAGE, ["trace.txt", "no block"], *arguments, trace, self.device)
        self.refuses(harness.NOT_FOUND, ["absent.txt"], *arguments, self.path("absent.txt"), self.device)


if __name__ == "__main__":
    unittest.main()
