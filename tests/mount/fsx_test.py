#!/usr/bin/env python3
"""Runs fsx on a file of a mounted directory: reads, writes, memory maps, truncations, allocations and syncs at random,
each of which is compared with what the file should have. Skipped with a line where the crate cannot be had.

    fsx_test.py ISOZONE [--seed N|new] [--operations N]
"""

import os
import subprocess
import sys

import mounted
import suite

VERSION = "0.3.2"
TIMEOUT_S = 3000
SEED = mounted.seed()
OPERATIONS = mounted.option("--operations", 20_000)
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
    device_options = "timing=off&zones=128&zone_size=1M"  # a file lies in many zones, and collection is needed
    program = ""

    def run_on(self, options: str, name: str, seed: int) -> None:
        daemon = self.mount(options)
        configuration = os.path.join(self.scratch, "fsx.toml")
        with open(configuration, "w") as file:
            file.write(CONFIGURATION)
        result = subprocess.run([self.program, "-f", configuration, "-N", str(OPERATIONS), "-S", str(seed), "-P",
                                 self.scratch, self.path(name)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT_S)
        self.assertEqual(0, result.returncode, f"seed {seed}: {result.stdout[-4000:]}")
        with open(self.path(name), "rb") as file:
            content = file.read()
        daemon = self.mount_again(daemon)
        with open(self.path(name), "rb") as file:
            self.assertTrue(content == file.read(), "a mount changes the file")
        self.assertEqual(0, daemon.end(), daemon.said())
        self.check()

    def test_a_file(self) -> None:
        self.run_on("", "file", SEED)

    def test_a_file_with_writeback(self) -> None:
        self.run_on("writeback=on", "file", SEED + 1)

    def test_a_log(self) -> None:
        self.run_on("", "000001.log", SEED + 2)


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
