#!/usr/bin/env python3
"""Many files in one tree of directories: made, listed, found after a mount, and removed. Prints how long each took, and
what memory the daemon has.

    many_files_test.py ISOZONE [--files N]
"""

import os
import re
import shutil
import time

import mounted

FILES = mounted.option("--files", 100_000)
IN_DIRECTORY = 5000
WITH_CONTENT = 10  # one of so many
MEMORY_OF_A_FILE_MAX = 4096  # bytes of the daemon
MEMORY_OF_A_MOUNT_MAX = 256 << 20  # bytes, without files


class ManyFiles(mounted.MountTest):
    device_options = "timing=off&zones=128&zone_size=16M"

    def setUp(self) -> None:
        super().setUp()
        self.began = time.monotonic()

    def done(self, what: str, daemon: mounted.Daemon) -> None:
        """Says so, and holds the daemon to its memory."""
        with open(f"/proc/{daemon.process.pid}/status") as file:
            kib, = re.findall(r"^VmRSS:\s+(\d+) kB$", file.read(), re.MULTILINE)
        print(f"{what} {FILES} files: {time.monotonic() - self.began:.1f} s, {int(kib) // 1024} MiB", flush=True)
        self.assertLess(int(kib) * 1024, MEMORY_OF_A_MOUNT_MAX + FILES * MEMORY_OF_A_FILE_MAX)
        self.began = time.monotonic()

    def directory_of(self, number: int) -> str:
        return self.path(f"d{number // IN_DIRECTORY}")

    def path_of(self, number: int) -> str:
        return os.path.join(self.directory_of(number), f"file{number:06}")

    @staticmethod
    def content_of(number: int) -> bytes:
        return b"" if number % WITH_CONTENT else f"content {number}".encode()

    def expect_all(self) -> None:
        for first in range(0, FILES, IN_DIRECTORY):
            numbers = range(first, min(first + IN_DIRECTORY, FILES))
            names = [os.path.basename(self.path_of(number)) for number in numbers]
            self.assertEqual(names, sorted(os.listdir(self.directory_of(first))))

    def test_they_are_made_listed_mounted_and_removed(self) -> None:
        daemon = self.mount()
        before = os.statvfs(self.directory)
        for number in range(FILES):
            if number % IN_DIRECTORY == 0:
                os.mkdir(self.directory_of(number))
            with open(self.path_of(number), "wb", buffering=0) as file:
                file.write(self.content_of(number))
        self.done("made", daemon)
        self.expect_all()
        self.done("listed", daemon)
        daemon = self.mount_again(daemon)
        self.done("mounted again", daemon)
        self.expect_all()
        for number in range(FILES):
            self.assertEqual(len(self.content_of(number)), os.stat(self.path_of(number)).st_size)
        self.done("listed with attributes", daemon)
        for number in range(0, FILES, 7 * WITH_CONTENT):
            with open(self.path_of(number), "rb") as file:
                self.assertEqual(self.content_of(number), file.read())
        directories = -(-FILES // IN_DIRECTORY)
        shown = os.statvfs(self.directory)
        self.assertEqual(FILES + directories, shown.f_files - shown.f_ffree - (before.f_files - before.f_ffree))
        self.assertEqual(0, daemon.end(), daemon.said())
        self.check()
        daemon = self.mount()
        self.began = time.monotonic()
        shutil.rmtree(self.directory_of(0))
        for number in range(IN_DIRECTORY, FILES):
            os.unlink(self.path_of(number))
        self.done("removed", daemon)
        for number in range(IN_DIRECTORY, FILES, IN_DIRECTORY):
            os.rmdir(self.directory_of(number))
        self.assertEqual([], os.listdir(self.directory))
        daemon = self.mount_again(daemon)
        self.assertEqual([], os.listdir(self.directory))
        shown = os.statvfs(self.directory)
        self.assertEqual(before.f_files - before.f_ffree, shown.f_files - shown.f_ffree)
        self.assertEqual(0, daemon.end(), daemon.said())
        self.check()


if __name__ == "__main__":
    mounted.main()
