#!/usr/bin/env python3
"""A read-only mount beside the mount that writes: names that are replaced, and how much space is left.

    read_only_test.py ISOZONE [--io-uring]
"""

import ctypes
import errno
import os
import shutil
import subprocess
from collections.abc import Callable

import mounted

AT_FDCWD, RENAME_EXCHANGE = -100, 2
MIB = 1 << 20
LIBC = ctypes.CDLL(None, use_errno=True)


def exchange(one: str, other: str) -> None:
    if LIBC.renameat2(AT_FDCWD, one.encode(), AT_FDCWD, other.encode(), RENAME_EXCHANGE) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")


def sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def text_of(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.read()


def write(path: str, content: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(content)
    sync(path)


class ReadOnly(mounted.MountTest):
    def setUp(self) -> None:
        super().setUp()
        self.writer = self.mount()
        self.shown = os.path.join(os.path.realpath(self.scratch), "shown")
        os.mkdir(self.shown)
        self.reader = mounted.Daemon(self.device, self.shown, "ro")
        self.addCleanup(subprocess.run, ["fusermount3", "-uzq", self.shown])
        self.addCleanup(self.reader.clean_up)

    def end(self) -> None:
        self.assertEqual(0, self.reader.end(), self.reader.said())
        self.assertEqual(0, self.writer.end(), self.writer.said())
        self.check()

    def replace(self, turn: int) -> None:
        """Puts other inodes in the places of a file, a link and a directory with a file."""
        new = self.path("new")
        write(new, f"file {turn}")
        os.setxattr(new, "user.turn", b"%d" % turn)
        os.rename(new, self.path("file"))
        os.symlink(f"target {turn}", new)
        os.rename(new, self.path("link"))
        os.mkdir(new)
        write(os.path.join(new, "file"), f"inner file {turn}")
        if os.path.exists(self.path("directory")):
            exchange(new, self.path("directory"))
            shutil.rmtree(new)
        else:
            os.rename(new, self.path("directory"))
        sync(self.directory)

    def test_a_name_that_is_replaced_leads_to_what_has_it_now(self) -> None:
        def shown(*names: str) -> str:
            return os.path.join(self.shown, *names)

        # Each asks for something by an inode that the kernel remembers, and that has gone.
        calls: list[tuple[str, Callable[[], object]]] = [
            ("file {}", lambda: text_of(shown("file"))),
            ("['user.turn']", lambda: os.listxattr(shown("file"))),
            ("b'{}'", lambda: os.getxattr(shown("file"), "user.turn")),
            ("target", lambda: os.readlink(shown("link")).split()[0]),  # the kernel may still have the old one
            ("['file']", lambda: os.listdir(shown("directory"))),
            ("inner file {}", lambda: text_of(shown("directory", "file"))),
            ("True", lambda: os.access(shown("directory", "file"), os.R_OK)),
        ]
        self.replace(0)
        for turn in range(1, 3):
            for expected, call in calls:
                for names in (("file",), ("link",), ("directory", "file")):
                    os.lstat(shown(*names))
                self.replace(turn)
                with self.subTest(turn=turn, expected=expected):
                    self.assertEqual(expected.format(turn), str(call()))
        os.unlink(self.path("file"))
        sync(self.directory)
        with self.assertRaises(FileNotFoundError):
            text_of(shown("file"))
        with self.assertRaises(OSError) as caught:
            os.getxattr(shown("directory"), "user.none")
        self.assertEqual(errno.ENODATA, caught.exception.errno)
        self.end()

    def test_its_space_is_that_of_now(self) -> None:
        def left() -> int:
            space = os.statvfs(self.shown)
            return space.f_bavail * space.f_frsize

        before = left()
        with open(self.path("file"), "wb") as file:
            file.write(os.urandom(20 * MIB))
        sync(self.path("file"))
        mounted.wait_until(lambda: before - left() >= 20 * MIB, "the room for 20 MiB goes")
        os.unlink(self.path("file"))
        sync(self.directory)
        mounted.wait_until(lambda: before - left() < 4 * MIB, "the room for 20 MiB comes back")
        self.end()


if __name__ == "__main__":
    mounted.main()
