#!/usr/bin/env python3
"""Mounted directories and name spaces of mounts, as docs/mount.md describes them.

    propagation_test.py ISOZONE [--io-uring]

Root runs it, in a name space of its own, so that nothing of the machine changes.
"""

import ctypes
import errno
import os
import signal
import subprocess

import mounted

BUSY = 4
CLONE_NEWNS = 0x20000
LIBC = ctypes.CDLL(None, use_errno=True)


class Propagation(mounted.MountTest):
    def setUp(self) -> None:
        """The folder of the directory is shared with copies that want that, as / is on most machines."""
        super().setUp()
        self.folder = os.path.realpath(self.scratch)
        subprocess.run(["mount", "--bind", self.folder, self.folder], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", self.folder])
        subprocess.run(["mount", "--make-shared", self.folder], check=True)

    def copy(self, propagation: str) -> subprocess.Popen[str]:
        """A process with a copy of all mounts, as in a container: a shell that runs what it reads."""
        shell = subprocess.Popen(["unshare", "--mount", "--propagation", propagation, "sh"], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(self.end_copy, shell)
        self.assertEqual("ready", self.in_copy(shell, "echo ready"))
        return shell

    def end_copy(self, shell: subprocess.Popen[str]) -> None:
        shell.kill()
        shell.communicate()

    def in_copy(self, shell: subprocess.Popen[str], command: str) -> str:
        """The last line that it prints."""
        assert shell.stdin is not None and shell.stdout is not None
        shell.stdin.write(f"{command} 2>&1; echo end of $?\n")
        shell.stdin.flush()
        lines = []
        while not (line := shell.stdout.readline()).startswith("end of "):
            self.assertNotEqual("", line, "the copy has ended")
            lines.append(line.rstrip("\n"))
        return lines[-1] if lines else ""

    def read_in_copy(self, shell: subprocess.Popen[str]) -> str:
        return self.in_copy(shell, f"cat {self.path('file')}")

    def mount_with_file(self) -> mounted.Daemon:
        daemon = self.mount()
        with open(self.path("file"), "w", encoding="ascii") as file:
            file.write("text\n")
        return daemon

    def test_a_slave_sees_mounts_and_unmounts_and_a_private_copy_does_not(self) -> None:
        slave, private = self.copy("slave"), self.copy("private")
        daemon = self.mount_with_file()
        self.assertEqual("text", self.read_in_copy(slave))
        self.assertIn(os.strerror(errno.ENOENT), self.read_in_copy(private))
        mounted.unmount(self.directory)
        self.assertEqual(0, daemon.wait(), daemon.said())
        self.assertIn(os.strerror(errno.ENOENT), self.read_in_copy(slave))
        self.check()

    def test_after_a_daemon_was_killed_a_private_copy_keeps_the_dead_mount(self) -> None:
        daemon = self.mount_with_file()
        descriptor = os.open(self.path("file"), os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
        slave, private = self.copy("slave"), self.copy("private")
        daemon.end(signal.SIGKILL)
        daemon = self.mount()
        self.assertEqual("text", self.read_in_copy(slave))
        self.assertIn(os.strerror(errno.ENOTCONN), self.read_in_copy(private))
        self.assertEqual(0, daemon.end(), daemon.said())
        self.check()

    def test_a_copy_keeps_the_daemon_which_a_signal_ends_in_good_order(self) -> None:
        daemon = self.mount_with_file()
        copy = self.copy("private")
        mounted.unmount(self.directory)
        self.assertEqual("text", self.read_in_copy(copy))
        self.in_copy(copy, f"echo more >{self.path('new')}")
        refused = subprocess.run([mounted.PROGRAM, "mount", self.device, self.directory], capture_output=True,
                                 text=True, timeout=mounted.WAIT_S)
        self.assertEqual(BUSY, refused.returncode, refused.stderr)
        self.assertIn(f"in use by process {daemon.process.pid};", refused.stderr)
        self.assertEqual(0, daemon.end(), daemon.said())
        self.assertIn(os.strerror(errno.ENOTCONN), self.read_in_copy(copy))
        daemon = self.mount()
        with open(self.path("new"), encoding="ascii") as file:
            self.assertEqual("more\n", file.read())
        self.assertEqual(0, daemon.end(), daemon.said())
        self.check()

    def test_the_last_copy_ends_the_daemon(self) -> None:
        daemon = self.mount_with_file()
        copy = self.copy("private")
        mounted.unmount(self.directory)
        self.assertEqual("text", self.read_in_copy(copy))
        self.end_copy(copy)
        self.assertEqual(0, daemon.wait(), daemon.said())
        self.check()


def main() -> None:
    if os.geteuid() != 0:
        print("SKIP: only root can make name spaces of mounts")
    elif LIBC.unshare(CLONE_NEWNS) != 0:
        print(f"SKIP: no name space of mounts: {os.strerror(ctypes.get_errno())}")
    else:
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        mounted.main()


if __name__ == "__main__":
    main()
