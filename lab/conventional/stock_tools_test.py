#!/usr/bin/env python3
"""Runs RocksDB's own db_bench and ldb, as the system installed them, on an emulated conventional SSD.

    stock_tools_test.py LIBISOZONE_CONVENTIONAL
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

LIBRARY = sys.argv.pop(1)
KEYS = 20000


def run(*command: str) -> str:
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                            env={**os.environ, "LD_PRELOAD": LIBRARY}, stdin=subprocess.DEVNULL)
    if result.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: exit status {result.returncode}\n{result.stdout[-4000:]}")
    return result.stdout


class StockTools(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory(prefix="isozone-conventional-")
        self.addCleanup(scratch.cleanup)
        self.scratch = scratch.name

    def test_an_aged_device_writes_more_than_it_is_given(self) -> None:
        stats_file = os.path.join(self.scratch, "stats.json")
        uri = f"isozone-conventional://{self.scratch}/disk?size=512M&timing=off&stats_file={stats_file}"
        amplification = {}
        for age in (0, 2):
            output = run("db_bench", f"--fs_uri={uri}&age={age}", "--db=/bench", "--benchmarks=fillrandom,readrandom",
                         f"--num={KEYS}", "--value_size=800", "--compression_type=none", "--write_buffer_size=2097152",
                         "--target_file_size_base=2097152", "--seed=1")
            found = re.search(rf"\((\d+) of {KEYS} found\)", output)
            assert found is not None, output
            self.assertGreater(int(found[1]), KEYS * 0.55)
            with open(stats_file, encoding="utf-8") as file:
                stats = json.load(file)
            self.assertGreater(stats["host_bytes_written"], KEYS * 800 * 2)  # the log and the tables
            self.assertGreater(stats["host_bytes_read"], 0)
            amplification[age] = stats["write_amplification"]
            self.assertIn("OK", run("ldb", f"--fs_uri={uri}", "--db=/bench", "checkconsistency"))
        self.assertEqual(1.0, amplification[0])
        self.assertGreater(amplification[2], 1.5)


if __name__ == "__main__":
    unittest.main()
