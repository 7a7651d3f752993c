#!/usr/bin/env python3
"""Requests that come by io_uring: when they do, and from which CPUs.

    io_uring_test.py ISOZONE --io-uring
"""

import contextlib
import errno
import os
import subprocess
import sys

import mounted

WRITER = """
import os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
with open(sys.argv[2], "wb", buffering=0) as file:
    for i in range(200):
        file.write(bytes([i]) * 5000)
        os.fsync(file.fileno())
"""

# Becomes another program, for which the system call of this number fails with this errno, as a container may have it.
FORBID = """
import ctypes, os, struct, sys
number, errno = int(sys.argv[1]), int(sys.argv[2])
program = ctypes.create_string_buffer(
    struct.pack("HBBI", 0x20, 0, 0, 0)  # loads the number of a system call
    + struct.pack("HBBI", 0x15, 0, 1, number)  # skips the next instruction, if it is another one
    + struct.pack("HBBI", 0x06, 0, 0, 0x00050000 | errno)
    + struct.pack("HBBI", 0x06, 0, 0, 0x7fff0000))
filter = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 4, ctypes.addressof(program)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
assert libc.prctl(22, 2, filter, 0, 0) == 0, ctypes.get_errno()  # PR_SET_SECCOMP
os.execv(sys.argv[3], sys.argv[3:])
"""
IO_URING_CALLS = {"io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427}


class IoUringTest(mounted.MountTest):
    def ring_threads(self, daemon: mounted.Daemon) -> int:
        """How many threads of the daemon wait for requests by io_uring, after the first requests."""
        os.listdir(self.directory)
        tasks = f"/proc/{daemon.process.pid}/task"
        names = []
        for task in os.listdir(tasks):
            with open(f"{tasks}/{task}/comm", encoding="ascii") as file:
                names.append(file.read().strip())
        return names.count("isozone-ring")

    def wait_for_ring_threads(self, daemon: mounted.Daemon, count: int) -> None:
        """The first requests come as soon as every CPU has one."""
        mounted.wait_until(lambda: self.ring_threads(daemon) >= count, f"{count} threads serve requests by io_uring")

    def test_each_cpu_has_threads_of_its_own(self) -> None:
        self.wait_for_ring_threads(self.mount(), 2 * (os.cpu_count() or 1))

    def test_as_many_requests_as_asked_for_are_served_at_once(self) -> None:
        self.wait_for_ring_threads(self.mount("threads=16"), 16)

    def assert_dev_fuse(self, daemon: mounted.Daemon, reason: str) -> None:
        self.assertEqual(0, self.ring_threads(daemon))
        self.assertEqual(0, daemon.end(), daemon.said())
        self.assertRegex(daemon.said(), f"requests to {self.directory} come by /dev/fuse: .*{reason}")

    def test_the_log_says_so(self) -> None:
        daemon = self.mount()
        self.assertEqual(0, daemon.end(), daemon.said())
        self.assertIn(f"requests to {self.directory} come by io_uring", daemon.said())

    def test_dev_fuse_where_that_is_asked_for(self) -> None:
        self.assert_dev_fuse(self.mount("io_uring=off"), "the options of this mount")

    def test_dev_fuse_where_the_kernel_does_not_offer_it(self) -> None:
        mounted.set_io_uring("N")
        self.addCleanup(mounted.set_io_uring, "Y")
        self.assert_dev_fuse(self.mount(), f"echo Y > {mounted.ENABLE_URING}")

    def test_dev_fuse_where_the_daemon_may_not_use_io_uring(self) -> None:
        for name, number in IO_URING_CALLS.items():
            for error in (errno.EPERM, errno.ENOSYS):
                with self.subTest(call=name, error=error):
                    starter = (sys.executable, "-c", FORBID, str(number), str(error))
                    self.assert_dev_fuse(self.mount(starter=starter), os.strerror(error))

    def test_a_mount_keeps_it_when_the_kernel_offers_it_no_longer(self) -> None:
        daemon = self.mount()
        self.wait_for_ring_threads(daemon, 1)
        mounted.set_io_uring("N")
        self.addCleanup(mounted.set_io_uring, "Y")
        self.write_on_all_cpus()
        self.assertGreater(self.ring_threads(daemon), 0)

    def test_a_daemon_stays_on_the_cpus_that_it_was_given(self) -> None:
        cpus = os.sched_getaffinity(0)
        cpu = min(cpus)
        os.sched_setaffinity(0, {cpu})
        self.addCleanup(os.sched_setaffinity, 0, cpus)
        daemon = self.mount()
        os.sched_setaffinity(0, cpus)
        self.write_on_all_cpus()
        self.wait_for_ring_threads(daemon, 8)
        for task in os.listdir(f"/proc/{daemon.process.pid}/task"):
            with contextlib.suppress(ProcessLookupError):  # it has ended
                self.assertEqual({cpu}, os.sched_getaffinity(int(task)))

    def test_programs_on_every_cpu_write_at_once(self) -> None:
        daemon = self.mount()
        self.write_on_all_cpus()
        self.assertEqual(0, daemon.end(), daemon.said())
        self.check()

    def write_on_all_cpus(self) -> None:
        cpus = os.sched_getaffinity(0)
        writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(cpu), self.path(f"{cpu}.{i}")])
                   for cpu in cpus for i in range(3)]
        for writer in writers:
            self.assertEqual(0, writer.wait(timeout=mounted.WAIT_S))
        for cpu in cpus:
            for i in range(3):
                with open(self.path(f"{cpu}.{i}"), "rb") as file:
                    self.assertEqual(b"".join(bytes([i]) * 5000 for i in range(200)), file.read())

    def test_large_requests_and_answers(self) -> None:
        self.mount()
        data = os.urandom(5_000_003)
        with open(self.path("large"), "wb", buffering=0) as file:
            self.assertEqual(len(data), file.write(data))
        direct = os.open(self.path("large"), os.O_RDONLY | os.O_DIRECT)
        self.addCleanup(os.close, direct)
        got = bytearray()
        while piece := os.read(direct, 3 << 20):
            got += piece
        self.assertEqual(data, bytes(got))

    def test_a_killed_program_leaves_a_mount_that_serves_others(self) -> None:
        daemon = self.mount()
        cpu = str(min(os.sched_getaffinity(0)))
        for _ in range(20):
            with subprocess.Popen([sys.executable, "-c", WRITER, cpu, self.path("killed")]) as writer:
                mounted.wait_until(lambda: os.path.exists(self.path("killed")), "the writer writes")
                writer.kill()
            os.unlink(self.path("killed"))
        self.assertEqual(0, daemon.end(), daemon.said())
        self.check()


if __name__ == "__main__":
    mounted.main()
