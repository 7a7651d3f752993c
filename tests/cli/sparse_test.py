#!/usr/bin/env python3
"""Copies keep holes, and say before their first byte that they do not fit.

    sparse_test.py ISOZONE
"""

import os
import unittest

import harness

MIB = 1 << 20
SIZE = 512 * MIB  # of a file with holes, four times the device
DEVICE = "timing=off&zones=32&zone_size=4M"
# Bytes with data, by offset; some begin and end within a block.
DATA = {0: 4096, 64 * MIB: 3 * MIB, 100 * MIB + 123: 10_000, 300 * MIB: 1, SIZE - 20 * MIB: 8192}


class Sparse(harness.CliTest):
    def setUp(self) -> None:
        super().setUp()
        self.format(DEVICE)
        self.sparse = self.path("sparse")
        with open(self.sparse, "wb") as file:
            for offset, length in DATA.items():
                file.seek(offset)
                file.write(os.urandom(length))
            file.truncate(SIZE)

    def second(self, options: str = DEVICE) -> str:
        self.ok("mkfs", f"emu:{self.path('second.img')}?{options}")
        return f"emu:{self.path('second.img')}?timing=off"

    def check_on_device(self, device: str, path: str) -> None:
        stat = self.json("stat", "--json", "--all", device, path)
        self.assertEqual(stat["size"], SIZE)
        self.assertLess(stat["allocated"], 5 * MIB)
        copy = self.path("copy")
        self.ok("cp", device, f":{path}", copy)
        self.check_local(copy)

    def check_local(self, path: str) -> None:
        self.assertLess(os.stat(path).st_blocks * 512, 5 * MIB)
        with open(path, "rb") as file, open(self.sparse, "rb") as source:
            while chunk := file.read(MIB):
                self.assertTrue(chunk == source.read(MIB))
            self.assertEqual(source.read(1), b"")

    def test_cp_into_out_of_and_within_a_device(self) -> None:
        self.ok("cp", self.device, self.sparse, ":/sparse")
        self.check_on_device(self.device, "/sparse")
        self.ok("cp", self.device, ":/sparse", ":/again")
        self.check_on_device(self.device, "/again")

    def test_cp_that_is_resumed(self) -> None:
        self.ok("cp", "--resume", self.device, self.sparse, ":/sparse")
        self.check_on_device(self.device, "/sparse")
        copy = self.path("resumed")
        with open(f"{copy}.isozone-cp", "wb") as begun, open(self.sparse, "rb") as source:
            begun.write(source.read(65 * MIB))
            begun.truncate(90 * MIB)
        self.ok("cp", "--resume", self.device, ":/sparse", copy)
        with open(copy, "rb") as file, open(self.sparse, "rb") as source:
            self.assertTrue(all(file.read(MIB) == source.read(MIB) for _ in range(SIZE // MIB + 1)))

    def test_a_backup_in_a_folder(self) -> None:
        self.ok("cp", self.device, self.sparse, ":/sparse")
        folder = self.path("backup")
        self.ok("backup", self.device, folder)
        self.check_local(os.path.join(folder, "backup-000001", "files", "sparse"))
        second = self.second()
        self.ok("restore", folder, second)
        self.check_on_device(second, "/sparse")

    def test_a_backup_as_an_archive(self) -> None:
        self.ok("cp", self.device, self.sparse, ":/sparse")
        archive = self.write("archive", self.ok("backup", self.device, "-"))
        self.assertLess(os.path.getsize(archive), 5 * MIB)
        self.ok("backup", "--verify", archive)
        second = self.second()
        self.ok("restore", archive, second)
        self.check_on_device(second, "/sparse")

    def test_what_does_not_fit_is_told_before_the_first_byte(self) -> None:
        large = self.write("large", os.urandom(140 * MIB))
        before = self.json("df", self.device, "--json")
        self.fails(harness.NO_SPACE, ["/large has room for", "nothing was"], "cp", self.device, large,
                   ":/large")
        self.assertEqual(self.json("ls", self.device, "--json"), [])
        self.assertEqual(self.json("df", self.device, "--json")["live"], before["live"])

    def test_a_restore_that_does_not_fit(self) -> None:
        self.ok("cp", self.device, self.write("half", os.urandom(60 * MIB)), ":/half")
        self.ok("backup", self.device, self.path("backup"))
        second = self.second("timing=off&zones=32&zone_size=2M")
        self.fails(harness.NO_SPACE, ["has room for", "nothing was"], "restore", self.path("backup"), second)
        self.assertEqual(self.json("df", second, "--json")["live"], 0)


if __name__ == "__main__":
    unittest.main()
