#!/usr/bin/env python3
"""Backups of a directory that is mounted while they are made: what only programs on a mount do to files.

    saved_test.py ISOZONE
"""

import json
import os
import stat
import threading
import time
from typing import Any

import mounted


class Backup(mounted.MountTest):
    def setUp(self) -> None:
        super().setUp()
        self.folder = os.path.join(self.scratch, "backups")
        self.daemon = self.mount()

    def sync(self) -> None:
        """Makes the changes of names and attributes known to other processes."""
        directory = os.open(self.directory, os.O_RDONLY)
        os.fsync(directory)
        os.close(directory)

    def write(self, name: str, content: bytes, offset: int = 0) -> None:
        file = os.open(self.path(name), os.O_RDWR | os.O_CREAT, 0o600)
        os.pwrite(file, content, offset)
        os.fsync(file)
        os.close(file)

    def backup(self) -> tuple[str, dict[str, Any], str]:
        """The folder with the files, the manifest's entries by path, and what the command says."""
        self.sync()
        said = self.run_tool("backup", self.device, self.folder)
        backup = os.path.join(self.folder, max(os.listdir(self.folder)))
        with open(os.path.join(backup, "isozone-backup.json"), "rb") as file:
            manifest = json.load(file)
        return os.path.join(backup, "files"), {entry["paths"][0]: entry for entry in manifest["files"]}, said

    def test_attributes_that_change_alone_are_in_the_next_backup(self) -> None:
        self.write("file", b"content")
        os.mkdir(self.path("directory"))
        time.sleep(3)  # until the file is settled
        first, _, _ = self.backup()
        inode = os.stat(os.path.join(first, "file")).st_ino
        os.chmod(self.path("file"), 0o4711)
        os.chmod(self.path("directory"), 0o1770)
        os.setxattr(self.path("file"), "user.note", b"value")
        os.symlink("file", self.path("link"))
        files, entries, said = self.backup()
        self.assertIn("copied 0 files", said)
        self.assertEqual(inode, os.stat(os.path.join(files, "file")).st_ino)
        self.assertEqual(("4711", {"user.note": "value"}), (entries["/file"]["mode"], entries["/file"]["xattrs"]))
        self.assertEqual("1770", entries["/directory"]["mode"])
        self.assertEqual(os.geteuid(), entries["/directory"]["user"])
        self.assertEqual("file", entries["/link"]["target"])

    def test_a_write_in_place_that_keeps_size_and_time_is_copied(self) -> None:
        self.write("file", b"old content")
        time.sleep(3)
        self.backup()
        before = os.stat(self.path("file"))
        self.write("file", b"new")
        os.utime(self.path("file"), ns=(before.st_mtime_ns, before.st_mtime_ns))
        files, _, said = self.backup()
        self.assertIn("copied 1 files", said)
        with open(os.path.join(files, "file"), "rb") as file:
            self.assertEqual(b"new content", file.read())

    def test_files_that_grow_are_saved_as_of_one_moment(self) -> None:
        """The writer appends a record to each file in turn, so of two files one has at most one record more."""
        record, stop = 5000, threading.Event()

        def append() -> None:
            files = [os.open(self.path(f"log{number}"), os.O_WRONLY | os.O_CREAT | os.O_APPEND) for number in range(4)]
            for step in range(2000):
                for file in files:
                    os.write(file, bytes([step % 251]) * record)
                    os.fsync(file)
                if stop.is_set():
                    break
            for file in files:
                os.close(file)

        writer = threading.Thread(target=append)
        writer.start()
        try:
            for _ in range(2):
                files, _, _ = self.backup()
                counts = []
                for name in sorted(os.listdir(files)):
                    with open(os.path.join(files, name), "rb") as file:
                        content = file.read()
                    steps = range(len(content) // record)
                    self.assertEqual(b"".join(bytes([step % 251]) * record for step in steps), content)
                    counts.append(len(steps))
                self.assertEqual(sorted(counts, reverse=True), counts)
                self.assertLessEqual(max(counts, default=0) - min(counts, default=0), 1)
                self.run_tool("backup", "--verify", self.folder)
        finally:
            stop.set()
            writer.join()

    def test_holes_are_zeros_and_attributes_come_back(self) -> None:
        self.write("sparse", b"end", 1 << 20)
        os.truncate(self.path("sparse"), 2 << 20)
        os.symlink("sparse", self.path("link"))
        os.chmod(self.path("sparse"), 0o604)
        os.utime(self.path("sparse"), ns=(0, 1_234_567_890_123_456_789))
        os.chmod(self.directory, 0o711)
        os.setxattr(self.path("sparse"), "user.note", b"\0value")
        self.backup()
        self.assertEqual(0, self.daemon.end(), self.daemon.said())
        self.run_tool("restore", "--force", self.folder, self.device)
        self.mount()
        found = os.stat(self.path("sparse"))
        self.assertEqual((0o604, 1_234_567_890_123_456_789), (stat.S_IMODE(found.st_mode), found.st_mtime_ns))
        self.assertEqual(0o711, stat.S_IMODE(os.stat(self.directory).st_mode))
        self.assertEqual(b"\0value", os.getxattr(self.path("sparse"), "user.note"))
        self.assertEqual("sparse", os.readlink(self.path("link")))
        with open(self.path("link"), "rb") as file:
            self.assertEqual(bytes(1 << 20) + b"end" + bytes((1 << 20) - 3), file.read())


if __name__ == "__main__":
    mounted.main()
