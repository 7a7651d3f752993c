#!/usr/bin/env python3
"""Handles of files, as name_to_handle_at(2) gives them to NFS servers and to programs that watch a file system: they
lead to the file whatever the kernel has forgotten, and after the next mount, too.

    handles_test.py ISOZONE [--io-uring]
"""

import ctypes
import errno
import os
import struct
import unittest

import mounted

AT_FDCWD = -100
MAX_HANDLE = 128  # bytes
HEAD = struct.Struct("Ii")  # how many bytes follow, and their type
LIBC = ctypes.CDLL(None, use_errno=True)


def failure(call: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{call}: {os.strerror(number)}")


def handle_of(path: str) -> bytes:
    handle = ctypes.create_string_buffer(HEAD.pack(MAX_HANDLE, 0) + bytes(MAX_HANDLE))
    mount_id = ctypes.c_int()
    if LIBC.name_to_handle_at(AT_FDCWD, path.encode(), handle, ctypes.byref(mount_id), 0) != 0:
        raise failure("name_to_handle_at")
    return handle.raw


def forget_all() -> None:
    """Has the kernel forget the names and inodes that nobody uses."""
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
        file.write("3")


@unittest.skipUnless(os.geteuid() == 0, "only root may open files by their handles")
class Handles(mounted.MountTest):
    def setUp(self) -> None:
        super().setUp()
        self.opened: list[int] = []
        self.addCleanup(self.close_all)
        self.daemon = self.mount()
        os.makedirs(self.path("a", "b"))
        for name in ("a/b/file", "a/other", "removed"):
            with open(self.path(name), "w", encoding="ascii") as file:
                file.write(name)
        self.handles = {name: handle_of(self.path(name)) for name in ("a/b/file", "a/b", "a", "", "removed")}

    def open(self, name: str) -> int:
        """By its handle."""
        directory = os.open(self.directory, os.O_RDONLY)
        try:
            descriptor: int = LIBC.open_by_handle_at(directory, self.handles[name], os.O_RDONLY)
        finally:
            os.close(directory)
        if descriptor < 0:
            raise failure("open_by_handle_at")
        self.opened.append(descriptor)
        return descriptor

    def close_all(self) -> None:
        while self.opened:
            os.close(self.opened.pop())

    def check_handles(self) -> None:
        self.assertEqual(b"a/b/file", os.read(self.open("a/b/file"), 100))
        self.assertEqual(["file"], os.listdir(self.open("a/b")))
        self.assertEqual(["b", "other"], sorted(os.listdir(self.open("a"))))
        self.assertIn("a", os.listdir(self.open("")))
        self.close_all()

    def test_they_lead_to_what_the_kernel_has_forgotten(self) -> None:
        forget_all()
        self.check_handles()
        forget_all()  # so that the kernel asks for the parents of this one, too
        self.assertEqual(self.path("a", "b"), os.readlink(f"/proc/self/fd/{self.open('a/b')}"))

    def test_they_hold_beyond_a_mount(self) -> None:
        self.daemon = self.mount_again(self.daemon)
        self.check_handles()

    def test_those_of_another_file_system_on_the_device_are_stale(self) -> None:
        self.assertEqual(0, self.daemon.end(), self.daemon.said())
        self.run_tool("mkfs", "--force", self.device)
        self.daemon = self.mount()
        for name in ("one", "two", "three", "four", "five"):
            with open(self.path(name), "w", encoding="ascii") as file:
                file.write(name)
        for name in ("a/b/file", "removed"):
            with self.assertRaises(OSError) as caught:
                self.open(name)
            self.assertEqual(errno.ESTALE, caught.exception.errno)

    def test_one_of_a_file_that_was_removed_is_stale(self) -> None:
        os.unlink(self.path("removed"))
        forget_all()
        with self.assertRaises(OSError) as caught:
            self.open("removed")
        self.assertEqual(errno.ESTALE, caught.exception.errno)


if __name__ == "__main__":
    mounted.main()
