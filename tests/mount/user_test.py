#!/usr/bin/env python3
"""Mounts by a user other than root: what works, who may do what, and what is said where it does not work.

    user_test.py ISOZONE [--io-uring]

Root runs it and becomes others. /dev/fuse and /etc/fuse.conf are of this test alone, in a name space of mounts: the
machine's may refuse users, and tests change them.
"""

import ctypes
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import unittest
from collections.abc import Sequence

import mounted

USER, OTHER = 65534, 1000  # the one who mounts, and another
LONELY = 5  # `games`: a user, as fusermount3 wants one, who has no processes
BUSY, IO_ERROR, PERMISSION_DENIED = 4, 7, 8
CLONE_NEWNS = 0x20000
CONFIGURATION, FUSE = "/etc/fuse.conf", "/dev/fuse"
LIBC = ctypes.CDLL(None, use_errno=True)
AS_USER = ("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups")

# Makes a table with a hint.
MAKER = """
import fcntl, os, struct, sys
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_EXCL)
fcntl.fcntl(file, 1036, struct.pack("=Q", 5))  # F_SET_RW_HINT, RWH_WRITE_LIFE_EXTREME
os.write(file, bytes(5000))
os.fsync(file)
"""


class ByUser(mounted.MountTest):
    def setUp(self) -> None:
        super().setUp()
        self.configure("")
        for path in (self.scratch, self.directory, self.image):
            os.chown(path, USER, USER)
        os.chmod(self.scratch, 0o755)
        os.chmod(self.image, 0o600)
        os.chmod(FUSE, 0o666)

    def configure(self, text: str) -> None:
        with open(CONFIGURATION, "w", encoding="ascii") as file:
            file.write(text)

    def run_as(self, user: int, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, user=user, group=user, extra_groups=[], cwd="/", capture_output=True, text=True,
                              timeout=mounted.WAIT_S)

    def ok(self, user: int, *command: str) -> str:
        result = self.run_as(user, *command)
        self.assertEqual((0, ""), (result.returncode, result.stderr), command)
        return result.stdout

    def fails(self, user: int, error: str, *command: str) -> None:
        result = self.run_as(user, *command)
        self.assertNotEqual(0, result.returncode, command)
        self.assertIn(error, result.stderr)

    def write(self, user: int, name: str, text: str) -> None:
        self.ok(user, "sh", "-c", 'printf %s "$1" >"$2"', "sh", text, self.path(name))

    def refused(self, words: str, *arguments: str, starter: Sequence[str] = AS_USER) -> None:
        """One line says why, in the foreground and not."""
        for flags in ((), ("-f",)):
            result = subprocess.run([*starter, mounted.PROGRAM, "mount", *flags, *arguments, self.device,
                                     self.directory], capture_output=True, text=True, timeout=mounted.WAIT_S)
            self.is_one_line(PERMISSION_DENIED, words, result)
            self.assertFalse(mounted.is_mounted(self.directory))

    def is_one_line(self, code: int, words: str, result: subprocess.CompletedProcess[str]) -> None:
        self.assertEqual((code, ""), (result.returncode, result.stdout), result.stderr)
        self.assertRegex(result.stderr, r"\Aisozone mount: [^\n]+\n\Z")
        self.assertIn(words, result.stderr)

    def mount_as_user(self, options: str = "") -> mounted.Daemon:
        return self.mount(options, starter=AS_USER)

    def unmount(self, daemon: mounted.Daemon) -> None:
        """As the user does."""
        self.ok(USER, "fusermount3", "-u", self.directory)
        self.assertEqual(0, daemon.wait(), daemon.said())
        self.check()

    def test_a_user_mounts_writes_and_unmounts(self) -> None:
        for turn in range(2):
            daemon = self.mount_as_user()
            if turn == 1:
                self.assertEqual("text", self.ok(USER, "cat", self.path("file")))
            self.write(USER, "file", "text")
            pid = json.loads(self.ok(USER, mounted.PROGRAM, "stats", self.device, "--json"))["process"]["pid"]
            self.assertEqual(daemon.process.pid, pid)
            self.run_tool("stats", self.device)  # root sees it, too
            self.unmount(daemon)
        shown = os.stat(self.image)
        self.assertEqual((USER, USER, 0o600), (shown.st_uid, shown.st_gid, stat.S_IMODE(shown.st_mode)))

    def test_in_the_background(self) -> None:
        self.assertEqual("", self.ok(USER, mounted.PROGRAM, "mount", self.device, self.directory))
        self.write(USER, "file", "text")
        self.ok(USER, "fusermount3", "-u", self.directory)
        daemon = self.mount_as_user()  # waits for the end of the one before
        self.assertEqual("text", self.ok(USER, "cat", self.path("file")))
        self.unmount(daemon)

    def test_signals_unmount(self) -> None:
        daemon = self.mount_as_user()
        self.write(USER, "file", "text")
        # Also while a file is open.
        command = [*AS_USER, "sh", "-c", 'exec >>"$1"; echo >&2; exec cat', "sh", self.path("file")]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as holder:
            assert holder.stderr is not None
            holder.stderr.readline()
            self.assertEqual(0, daemon.end(), daemon.said())
        self.assertFalse(mounted.is_mounted(self.directory))
        self.check()

    def test_the_next_mount_takes_a_dead_one_off(self) -> None:
        daemon = self.mount_as_user()
        daemon.end(signal.SIGKILL)
        self.assertTrue(mounted.is_mounted(self.directory))
        daemon = self.mount_as_user()
        self.assertIn("was a dead mount", daemon.said())
        self.unmount(daemon)

    def test_root_and_others_learn_that_the_directory_of_a_user_is_taken(self) -> None:
        daemon = self.mount_as_user()
        other = f"emu:{self.scratch}/other.img?timing=off"
        self.run_tool("mkfs", f"{other}&zones=32&zone_size=4M")
        for turn in ("while it runs", "after its end"):
            for user in (0, OTHER):
                with self.subTest(turn, user=user):
                    result = self.run_as(user, mounted.PROGRAM, "mount", other, self.directory)
                    self.is_one_line(BUSY, f"{self.device} is mounted on {self.directory} already, by another user",
                                     result)
            daemon.end(signal.SIGKILL)

    def test_nobody_else_sees_or_unmounts_it(self) -> None:
        daemon = self.mount_as_user()
        self.write(USER, "file", "text")
        self.ok(USER, "chmod", "666", self.path("file"))
        for user in (0, OTHER):
            self.fails(user, "Permission denied", "cat", self.path("file"))
        self.fails(OTHER, "", "fusermount3", "-u", self.directory)
        self.assertTrue(mounted.is_mounted(self.directory))
        self.unmount(daemon)

    def test_allow_other_needs_the_consent_of_root(self) -> None:
        self.refused("user_allow_other", "-o", "allow_other")
        self.configure("user_allow_other\n")
        daemon = self.mount_as_user("allow_other")
        for mode, name in (("644", "open"), ("600", "secret")):
            self.write(USER, name, "text")
            self.ok(USER, "chmod", mode, self.path(name))
        self.ok(USER, "chmod", "755", self.directory)
        self.assertEqual("text", self.ok(OTHER, "cat", self.path("open")))
        self.fails(OTHER, "Permission denied", "cat", self.path("secret"))
        self.fails(OTHER, "Permission denied", "touch", self.path("new"))
        self.fails(OTHER, "Permission denied", "sh", "-c", f"echo >{self.path('open')}")
        self.assertEqual("text", self.ok(0, "cat", self.path("secret")))
        self.unmount(daemon)

    def owner(self, user: int, *name: str) -> str:
        return self.ok(user, "stat", "--format=%u:%g", self.path(*name)).strip()

    def test_files_of_root_are_shown_as_those_of_the_user(self) -> None:
        daemon = self.mount()
        for name, owner in (("of-root", 0), ("of-other", OTHER)):
            self.write(0, name, "text")
            os.chown(self.path(name), owner, owner)
            os.chmod(self.path(name), 0o644)
        self.assertEqual(0, daemon.end(), daemon.said())
        daemon = self.mount_as_user()
        self.assertEqual(f"{USER}:{USER}", self.owner(USER))
        self.assertEqual(f"{USER}:{USER}", self.owner(USER, "of-root"))
        self.assertEqual(f"{OTHER}:{OTHER}", self.owner(USER, "of-other"))
        self.write(USER, "of-root", "new")
        self.fails(USER, "Permission denied", "sh", "-c", f"echo >>{self.path('of-other')}")
        self.fails(USER, "Operation not permitted", "chown", str(OTHER), self.path("of-root"))
        self.write(USER, "of-user", "text")
        self.ok(USER, "mkdir", self.path("directory"))
        self.unmount(daemon)
        daemon = self.mount()
        owners = {name: self.owner(0, name) for name in os.listdir(self.directory)}
        self.assertEqual({"of-root": "0:0", "of-other": f"{OTHER}:{OTHER}", "of-user": f"{USER}:{USER}",
                          "directory": f"{USER}:{USER}"}, owners)
        self.assertEqual(0, daemon.end(), daemon.said())

    def test_hints_are_read(self) -> None:
        daemon = self.mount_as_user()
        made = 0

        def is_as_hinted() -> bool:
            nonlocal made
            made += 1
            name = f"{made:06}.sst"
            self.ok(USER, "python3", "-c", MAKER, self.path(name))
            listed, = json.loads(self.run_tool("ls", "-l", "--json", self.device, f"/{name}"))
            return bool(listed["lifetime"] == "extreme")

        mounted.wait_until(is_as_hinted, "a table of the lifetime of its hint")
        self.unmount(daemon)

    def test_requests_come_by_io_uring_where_the_kernel_offers_it(self) -> None:
        daemon = self.mount_as_user()
        self.write(USER, "file", "x" * 100_000)
        self.unmount(daemon)
        way = "io_uring" if mounted.IO_URING else "(io_uring|/dev/fuse: .+)"  # tests beside this may switch it on
        self.assertEqual(1, len(re.findall(rf"requests to {self.directory} come by {way}\n", daemon.said())),
                         daemon.said())

    @unittest.skipIf(not mounted.IO_URING, "that is for io_uring")
    def test_requests_come_by_dev_fuse_where_users_may_not_use_io_uring(self) -> None:
        before = self.forbid_io_uring("1")  # to all but root
        self.addCleanup(self.forbid_io_uring, before)
        daemon = self.mount_as_user()
        self.write(USER, "file", "text")
        self.unmount(daemon)
        self.assertRegex(daemon.said(), f"requests to {self.directory} come by /dev/fuse: .*Operation not permitted\n")

    def forbid_io_uring(self, word: str) -> str:
        with open("/proc/sys/kernel/io_uring_disabled", "r+", encoding="ascii") as file:
            before = file.read().strip()
            file.seek(0)
            file.write(word)
        return before

    def test_a_device_that_the_user_may_not_write(self) -> None:
        os.chown(self.image, 0, 0)
        self.refused(self.image)
        os.chmod(self.image, 0o644)
        self.refused(self.image)
        daemon = self.mount_as_user("ro")
        self.assertEqual("", self.ok(USER, "ls", self.directory))
        self.fails(USER, "Read-only file system", "touch", self.path("file"))
        self.unmount(daemon)

    def test_a_directory_that_is_not_the_users(self) -> None:
        os.chown(self.directory, 0, 0)
        self.refused("no write access")

    def test_a_machine_that_keeps_users_from_fuse(self) -> None:
        os.chmod(FUSE, 0o600)
        self.refused("/dev/fuse")

    def test_a_process_that_may_not_get_the_rights_of_fusermount3(self) -> None:
        self.refused("set-user-ID", starter=(*AS_USER, "--no-new-privs"))

    def test_a_machine_without_fusermount3(self) -> None:
        program = os.path.realpath(shutil.which("fusermount3") or "")
        subprocess.run(["mount", "--bind", "/dev/null", program], check=True)
        try:
            self.refused("package fuse3")
        finally:
            subprocess.run(["umount", program], check=True)

    def test_few_threads_are_told_of(self) -> None:
        """The limit counts all threads of a user, so it is one who has no others."""
        for path in (self.scratch, self.directory, self.image):
            os.chown(path, LONELY, LONELY)
        mounts = []
        for threads in (1, 2, 3, 4, 5, 6, 8, 12, 16, 40, 100):
            result = self.run_as(LONELY, "prlimit", f"--nproc={threads}", mounted.PROGRAM, "mount", "-o",
                                 "io_uring=off", self.device, self.directory)
            self.assertEqual(result.returncode == 0, mounted.is_mounted(self.directory), threads)
            if result.returncode == 0:
                mounts.append(threads)
                self.ok(LONELY, "fusermount3", "-u", self.directory)
            else:
                self.assertEqual((IO_ERROR, ""), (result.returncode, result.stdout), (threads, result.stderr))
                self.assertRegex(result.stderr, r"(\A|\n)isozone mount: cannot [^\n]*ulimit -u[^\n]*\n\Z", threads)
        self.assertEqual([100], mounts[-1:])


def take_a_name_space() -> str | None:
    """With a /dev/fuse and an /etc/fuse.conf of its own, for this process and its children. Why that is not to be
    had."""
    if LIBC.unshare(CLONE_NEWNS) != 0:
        return f"no name space of mounts: {os.strerror(ctypes.get_errno())}"
    try:
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        with tempfile.TemporaryDirectory(prefix="isozone-mount-") as scratch:
            device, configuration = os.path.join(scratch, "fuse"), os.path.join(scratch, "fuse.conf")
            os.mknod(device, stat.S_IFCHR | 0o666, os.stat(FUSE).st_rdev)
            with open(configuration, "w", encoding="ascii"):
                os.chmod(configuration, 0o644)
            subprocess.run(["mount", "--bind", device, FUSE], check=True)
            subprocess.run(["mount", "--bind", configuration, CONFIGURATION], check=True)
        with open(FUSE, "rb"):  # not on a file system without devices
            return None
    except (OSError, subprocess.CalledProcessError) as error:
        return f"no /dev/fuse for users: {error}"


def main() -> None:
    if os.geteuid() != 0:
        print("SKIP: only root can be another user")
        return
    reason = None
    if not os.path.exists(FUSE) or not os.path.exists(CONFIGURATION):
        reason = f"there is no {FUSE}, or no {CONFIGURATION} (package fuse3)"
    reason = reason or take_a_name_space()
    if reason is not None:
        print(f"SKIP: {reason}")
        return
    with tempfile.TemporaryDirectory(prefix="isozone-mount-") as scratch:
        os.chmod(scratch, 0o755)  # others need not have a way to the build directory
        mounted.PROGRAM = shutil.copy(mounted.PROGRAM, scratch)
        mounted.main()


if __name__ == "__main__":
    main()
