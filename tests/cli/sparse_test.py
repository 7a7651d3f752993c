#!/usr/bin/env python3
"""Copies keep holes and read only what is in none, and say before their first byte that they do not fit.

    sparse_test.py ISOZONE
"""

import os
import subprocess
import time
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

    def test_the_checksum_of_a_hole_is_that_of_its_zeros(self) -> None:
        content = b"begin" + bytes(8 * MIB + 1) + b"end"
        with open(self.path("file"), "wb") as file:
            file.write(b"begin")
            file.seek(len(content) - len(b"end"))
            file.write(b"end")
        self.ok("cp", self.device, self.path("file"), ":/file")
        self.ok("backup", self.device, self.path("backup"))
        self.write("backup/backup-000001/files/file", content)
        self.ok("backup", "--verify", self.path("backup"))
        self.write("backup/backup-000001/files/file", content + b"more")
        self.fails(harness.CORRUPTION, ["/file"], "backup", "--verify", self.path("backup"))

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
        archive = self.write("archive", self.ok("backup", self.device, "-"))
        second = self.second("timing=off&zones=32&zone_size=2M")
        for backup in (self.path("backup"), archive):
            self.fails(harness.NO_SPACE, ["has room for", "60.0 MiB are", "nothing was"], "restore", backup, second)
            self.assertEqual(self.json("df", second, "--json")["dead"], 0)
        with open(archive, "rb") as file:
            self.fails(harness.NO_SPACE, ["has room for", "nothing was"], "restore", "-", second, stdin=file)
        # Of a stream nobody knows it. Nothing of it stays.
        with subprocess.Popen(["cat", archive], stdout=subprocess.PIPE) as stream:
            self.fails(harness.NO_SPACE, ["full"], "restore", "-", second, stdin=stream.stdout)
        self.assertEqual(self.json("ls", second, "--json"), [])

    def test_a_restore_of_holes_that_are_larger_than_the_device(self) -> None:
        self.ok("cp", self.device, self.sparse, ":/sparse")
        archive = self.write("archive", self.ok("backup", self.device, "-"))
        small = self.second("timing=off&zones=16&zone_size=1M")
        self.ok("restore", archive, small)
        self.assertEqual(self.json("stat", "--json", small, "/sparse")["size"], SIZE)

    def test_small_files_take_a_block_each(self) -> None:
        os.mkdir(self.path("small"))
        for number in range(2000):
            self.write(f"small/{number}", b"small")
        small = self.second("timing=off&zones=16&zone_size=1M")
        self.ok("cp", "-r", small, self.path("small"), ":/")
        self.fails(harness.NO_SPACE, ["7.8 MiB are", "nothing was"], "cp", "-r", small, self.path("small"), ":/again")
        self.assertEqual([entry["path"] for entry in self.json("ls", small, "--json")], ["/small"])

    def test_a_copy_that_is_resumed_needs_what_is_missing(self) -> None:
        begun, rest = os.urandom(15 * MIB), os.urandom(10 * MIB)
        large = self.write("large", os.urandom(80 * MIB))
        self.ok("cp", self.device, large, ":/there")
        self.ok("cp", self.device, self.write("begun", begun), ":/next.isozone-cp")
        larger = self.write("larger", os.urandom(30 * MIB))
        self.fails(harness.NO_SPACE, ["30.0 MiB are", "nothing was"], "cp", "--resume", self.device, larger, ":/more")
        self.assertEqual({entry["path"] for entry in self.json("ls", self.device, "--json")},
                         {"/there", "/next.isozone-cp"})
        self.ok("cp", "--resume", self.device, large, ":/there")
        self.ok("cp", "--resume", self.device, self.write("next", begun + rest), ":/next")
        self.assertEqual(self.ok("cat", self.device, "/next"), begun + rest)


class Vast(harness.CliTest):
    """A file that is larger than any test could read."""

    SIZE = 3 << 40
    DATA = {0: b"first", 5 * MIB: b"near", (1 << 40) + 123: os.urandom(MIB), SIZE - 3 * MIB: b"last"}
    READ_MAX = 48 * MIB  # bytes of any command: a chunk around each part of the data, twice; libraries; metadata

    def setUp(self) -> None:
        super().setUp()
        self.format(DEVICE)
        self.vast = self.path("vast")
        with open(self.vast, "wb") as file:
            for offset, data in self.DATA.items():
                file.seek(offset)
                file.write(data)
            file.truncate(self.SIZE)
        with open(self.path("empty"), "wb") as file:
            file.truncate(self.SIZE)

    def frugal(self, *arguments: str, stdout: str | None = None) -> None:
        """Runs a command that must succeed, and counts what it reads."""
        with open(stdout or os.devnull, "wb") as output:
            process = subprocess.Popen([harness.PROGRAM, *arguments], stdout=output, stderr=subprocess.PIPE)
        read, ended = 0, False
        while not ended and read < self.READ_MAX:
            ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None
            with open(f"/proc/{process.pid}/io", encoding="ascii") as counters:
                read = int(counters.readline().split()[1])  # rchar
            time.sleep(0.01)
        if not ended:
            process.kill()
        error = process.communicate()[1]
        self.assertLess(read, self.READ_MAX, arguments)
        self.assertEqual((error, process.returncode), (b"", harness.OK), arguments)

    def check_local(self, path: str) -> None:
        stat = os.stat(path)
        self.assertEqual(stat.st_size, self.SIZE)
        self.assertLess(stat.st_blocks * 512, 2 * MIB)
        with open(path, "rb") as file:
            for offset, data in self.DATA.items():
                file.seek(offset)
                self.assertEqual(file.read(len(data)), data)

    def check_on_device(self, device: str, path: str) -> None:
        stat = self.json("stat", "--json", "--all", device, path)
        self.assertEqual(stat["size"], self.SIZE)
        self.assertLess(stat["allocated"], 2 * MIB)
        copy = self.path("copy")
        self.frugal("cp", device, f":{path}", copy)
        self.check_local(copy)
        os.unlink(copy)

    def second(self) -> str:
        image = self.path("second.img")
        if os.path.exists(image):
            os.unlink(image)
        self.ok("mkfs", f"emu:{image}?{DEVICE}")
        return f"emu:{image}?timing=off"

    def test_cp_into_out_of_and_within_a_device(self) -> None:
        self.frugal("cp", self.device, self.vast, ":/vast")
        self.check_on_device(self.device, "/vast")
        self.frugal("cp", self.device, ":/vast", ":/again")
        self.check_on_device(self.device, "/again")

    def test_cp_that_is_resumed(self) -> None:
        begun = self.path("resumed.isozone-cp")
        self.frugal("cp", self.device, self.vast, ":/vast")
        for device, source, target in ((self.device, ":/vast", self.path("resumed")),
                                       (self.second(), self.vast, ":/resumed")):
            with open(begun, "wb") as file:
                file.write(self.DATA[0])
                file.truncate(self.SIZE // 2)
            if target.startswith(":"):
                self.frugal("cp", device, begun, ":/resumed.isozone-cp")
            for _ in range(2):  # continued, and then all of it compared
                self.frugal("cp", "--resume", device, source, target)
            if target.startswith(":"):
                self.check_on_device(device, "/resumed")
            else:
                self.check_local(target)

    def test_backups_in_a_folder_and_as_an_archive(self) -> None:
        self.frugal("cp", self.device, self.vast, self.path("empty"), ":/")
        folder, archive = self.path("backup"), self.path("archive")
        self.frugal("backup", self.device, folder)
        self.check_local(os.path.join(folder, "backup-000001", "files", "vast"))
        self.frugal("backup", self.device, "-", stdout=archive)
        self.assertLess(os.path.getsize(archive), 2 * MIB)
        for backup in (folder, archive):
            self.frugal("backup", "--verify", backup)
            second = self.second()
            self.frugal("restore", backup, second)
            self.check_on_device(second, "/vast")
            empty = self.json("stat", "--json", second, "/empty")
            self.assertEqual((empty["size"], empty["allocated"]), (self.SIZE, 0))


if __name__ == "__main__":
    unittest.main()
