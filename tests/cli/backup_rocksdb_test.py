#!/usr/bin/env python3
"""Backups of a database while db_bench writes it: each can be restored and opened, and all of it can be read.

    backup_rocksdb_test.py ISOZONE LIBISOZONE
"""

import os
import subprocess
import sys
import unittest

import harness

LIBRARY = os.path.abspath(sys.argv.pop(1))
BACKUPS = 3


class BesideRocksDb(harness.CliTest):
    def preloaded(self, *command: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(command, capture_output=True, timeout=120, check=False,
                              env=dict(os.environ, LD_PRELOAD=LIBRARY))

    def check_database(self, device: str) -> int:
        """Opens the database and reads all of it; returns the number of its keys."""
        place = [f"--fs_uri=isozone://{device}", "--db=/db"]
        result = self.preloaded("ldb", *place, "checkconsistency")
        self.assertEqual((0, b"OK\n"), (result.returncode, result.stdout), result.stderr)
        result = self.preloaded("ldb", *place, "dump", "--count_only")
        self.assertEqual(0, result.returncode, result.stderr)
        return int(result.stdout.decode().split("Keys in range: ")[1].split()[0])

    def test_each_backup_is_a_database(self) -> None:
        self.ok("mkfs", f"emu:{self.image}?timing=off&zones=128&zone_size=16M")
        folder = self.path("backups")
        environment = dict(os.environ, LD_PRELOAD=LIBRARY)
        writer = subprocess.Popen(
            ["db_bench", f"--fs_uri=isozone://{self.device}", "--db=/db", "--benchmarks=fillrandom", "--num=200000",
             "--writes=1000000000", "--seed=1", "--write_buffer_size=1000000", "--target_file_size_base=1000000"],
            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            while b".sst" not in self.run_cli("ls", self.device, "/db").stdout:
                self.assertIsNone(writer.poll(), "db_bench has ended")
            for _ in range(BACKUPS):
                self.ok("backup", "--keep", str(BACKUPS), self.device, folder)
            archive = self.write("archive.tar", self.ok("backup", self.device, "-"))
            self.assertIsNone(writer.poll(), "db_bench has ended before the last backup")
        finally:
            writer.kill()
            writer.wait()
        target = self.path("target.img")
        self.ok("mkfs", f"emu:{target}?timing=off&zones=128&zone_size=16M")
        keys = 0
        for backup in [*sorted(os.path.join(folder, name) for name in os.listdir(folder)), archive]:
            self.ok("restore", "--force", backup, f"emu:{target}?timing=off")
            before, keys = keys, self.check_database(f"emu:{target}?timing=off")
            self.assertGreaterEqual(keys, before)  # nothing is deleted, so a later backup has no fewer keys
        self.assertGreater(keys, 0)


if __name__ == "__main__":
    unittest.main()
