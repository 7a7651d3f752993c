#!/usr/bin/env python3
"""Runs fsx on a file of a mounted directory: reads, writes, memory maps, truncations, allocations and syncs at random,
each of which is compared with what the file should have. Skipped with a line where the crate cannot be had.

    fsx_test.py ISOZONE [--seed N|new] [--operations N] [--io-uring]

fsx never unmaps what it has read by a map. So it becomes slower and slower, and at 65,530 maps (vm.max_map_count) it
would fail. The operations are therefore made by many runs on one mount, each with a seed of its own.
"""

import math
import os
import subprocess
import sys

import mounted
import suite

VERSION = "0.3.2"
TIMEOUT_S = 600  # of a run
SEED = mounted.seed()  # of the first run
OPERATIONS = mounted.option("--operations", 1_000_000)  # of each test
OPERATIONS_OF_RUN = 10_000
# Holes cannot be punched (EOPNOTSUPP); truncations make holes.
CONFIGURATION = """
flen = 600000
opsize = { max = 100000 }
[weights]
close_open = 1
copy_file_range = 2
fdatasync = 1
fsync = 1
invalidate = 1
mapread = 10
mapwrite = 10
posix_fadvise = 1
posix_fallocate = 1
read = 10
sendfile = 1
truncate = 4
write = 10
"""


class Fsx(mounted.MountTest):
    device_options = "timing=off&zones=128&zone_size=1M"  # a file lies in many zones, and GC is needed
    program = ""

    def run_on(self, options: str, name: str) -> None:
        daemon = self.mount(options)
        for run in range(math.ceil(OPERATIONS / OPERATIONS_OF_RUN)):
            self.run_fsx(name, SEED + run)
        with open(self.path(name), "rb") as file:
            content = file.read()
        daemon = self.mount_again(daemon)
        with open(self.path(name), "rb") as file:
            self.assertTrue(content == file.read(), "a mount changes the file")
        self.assertEqual(0, daemon.end(), daemon.said())
        self.check()

    def run_fsx(self, name: str, seed: int) -> None:
        configuration = os.path.join(self.scratch, "fsx.toml")
        with open(configuration, "w") as file:
            file.write(CONFIGURATION)
        operations = min(OPERATIONS, OPERATIONS_OF_RUN)
        result = subprocess.run([self.program, "-f", configuration, "-N", str(operations), "-S", str(seed), "-P",
                                 self.scratch, self.path(name)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT_S)
        self.assertEqual(0, result.returncode, f"seed {seed}: {result.stdout[-4000:]}")

    def test_a_file(self) -> None:
        self.run_on("", "file")

    def test_a_file_with_writeback(self) -> None:
        self.run_on("writeback=on", "file")

    def test_a_log(self) -> None:
        self.run_on("", "000001.log")


def main() -> None:
    try:
        Fsx.program = suite.program_of_crate("fsx", VERSION)
    except suite.CannotHave as error:
        print(f"SKIP: {error}")
        return
    print(f"seed {SEED}", file=sys.stderr)
    mounted.main()


if __name__ == "__main__":
    main()
