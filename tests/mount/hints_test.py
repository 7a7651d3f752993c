#!/usr/bin/env python3
"""How long programs say that their files will live (fcntl, F_SET_RW_HINT), and what becomes of that.

    hints_test.py ISOZONE
"""

import contextlib
import ctypes
import errno
import fcntl
import functools
import json
import os
import resource
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable

import mounted

F_SET_RW_HINT = 1036
NONE, SHORT, MEDIUM, LONG, EXTREME = range(1, 6)
NAMES = {SHORT: "short", MEDIUM: "medium", LONG: "long", EXTREME: "extreme"}
NOT_SET = "not-set"
PR_SET_NAME = 15
LIBC = ctypes.CDLL(None, use_errno=True)

# Makes tables in a directory, with names from a number on, until it is ended.
MAKER = f"""
import fcntl, os, struct, sys
number = int(sys.argv[2])
while True:
    number += 1
    path = os.path.join(sys.argv[1], f"{{number:06}}.sst")
    file = os.open(path, os.O_WRONLY | os.O_CREAT)
    fcntl.fcntl(file, {F_SET_RW_HINT}, struct.pack("=Q", {EXTREME}))
    os.write(file, bytes(5000))
    os.close(file)
    if number % 16 == 0:
        print(number, flush=True)
    os.unlink(path)
"""


def set_hint(file: int, hint: int) -> None:
    fcntl.fcntl(file, F_SET_RW_HINT, struct.pack("=Q", hint))


class Hints(mounted.MountTest):
    def setUp(self) -> None:
        super().setUp()
        self.made = 0

    def new_name(self, extension: str = "sst") -> str:
        """As RocksDB numbers its files."""
        self.made += 1
        return f"{self.made:06}.{extension}"

    def open_new(self, name: str, hint: int | None) -> int:
        file = os.open(self.path(name), os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        if hint is not None:
            set_hint(file, hint)
        return file

    def write_synced(self, file: int, size: int = 5000) -> None:
        os.write(file, bytes(size))
        os.fsync(file)

    def make(self, name: str, hint: int | None, size: int = 5000) -> None:
        file = self.open_new(name, hint)
        self.write_synced(file, size)
        os.close(file)

    def lifetime(self, name: str) -> str:
        """As the device has it."""
        listed, = json.loads(self.run_tool("ls", "-l", "--json", self.device, f"/{name}"))
        return str(listed["lifetime"])

    def wait_for_lifetime(self, lifetime: str, make: Callable[[], str]) -> None:
        """The daemon goes on without a hint that it does not learn at once, as on a busy machine. So `make` makes files
        and gives their names until one has this lifetime."""
        mounted.wait_until(lambda: self.lifetime(make()) == lifetime, f"a file of lifetime '{lifetime}'")

    def make_table(self, hint: int | None, extension: str = "sst", size: int = 5000, directory: str = "") -> str:
        name = os.path.join(directory, self.new_name(extension))
        self.make(name, hint, size)
        return name

    def in_thread_named(self, name: str, hint: int | None) -> str:
        """Makes a table as RocksDB does, whose threads have names."""
        made = []

        def run() -> None:
            LIBC.prctl(PR_SET_NAME, name.encode(), 0, 0, 0)
            made.append(self.make_table(hint))

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        return made[0]

    def end(self, daemon: mounted.Daemon) -> None:
        self.assertEqual(0, daemon.end(), daemon.said())
        self.check()

    def test_a_table_has_the_lifetime_that_its_program_says(self) -> None:
        daemon = self.mount()
        for hint, lifetime in NAMES.items():
            self.wait_for_lifetime(lifetime, functools.partial(self.make_table, hint))
        self.wait_for_lifetime("extreme", lambda: self.make_table(EXTREME, "blob"))
        os.mkdir(self.path("db"))
        self.wait_for_lifetime("extreme", lambda: self.make_table(EXTREME, directory="db"))
        before = {name: self.lifetime(name) for name in os.listdir(self.directory) if name != "db"}
        daemon = self.mount_again(daemon)
        self.assertEqual(before, {name: self.lifetime(name) for name in before})
        self.end(daemon)

    def test_the_name_comes_before_the_hint_and_the_hint_before_the_thread(self) -> None:
        daemon = self.mount()
        for name, lifetime in (("000901.log", "short"), ("MANIFEST-000902", "long"), ("CURRENT", "none"),
                               ("pages.db", NOT_SET)):
            self.make(name, EXTREME)
            self.assertEqual(lifetime, self.lifetime(name), name)
        self.assertEqual("medium", self.lifetime(self.in_thread_named("rocksdb:high0", None)))
        self.assertEqual("long", self.lifetime(self.in_thread_named("rocksdb:low0", None)))
        self.assertEqual("long", self.lifetime(self.in_thread_named("rocksdb:low0", NONE)))
        self.wait_for_lifetime("extreme", lambda: self.in_thread_named("rocksdb:low0", EXTREME))
        self.wait_for_lifetime("medium", lambda: self.in_thread_named("rocksdb:low0", MEDIUM))
        self.end(daemon)

    def test_all_bytes_of_a_table_lie_where_its_lifetime_says(self) -> None:
        daemon = self.mount()
        made: list[str] = []

        def make(hint: int) -> str:
            made.append(self.make_table(hint, size=1_500_000))
            return made[-1]

        for hint in (MEDIUM, EXTREME):
            self.wait_for_lifetime(NAMES[hint], functools.partial(make, hint))
            zones = json.loads(self.run_tool("zones", "--json", self.device))
            places = json.loads(self.run_tool("stat", "--json", self.device, f"/{made[-1]}"))["zones"]
            self.assertEqual({NAMES[hint]}, {zones[place["zone"]]["lifetime"] for place in places})
        self.end(daemon)

    def test_a_hint_after_the_first_write_changes_nothing(self) -> None:
        daemon = self.mount()
        for first in (None, MEDIUM):
            name = self.new_name()
            file = self.open_new(name, first)
            self.write_synced(file)
            before = self.lifetime(name)
            set_hint(file, EXTREME)
            self.write_synced(file, 100_000)
            os.close(file)
            with open(self.path(name), "ab") as again:
                again.write(bytes(5000))
            self.assertEqual(before, self.lifetime(name))
            self.assertIn(before, (NOT_SET, NAMES.get(first or 0)))
        self.end(daemon)

    def test_files_that_change_their_names_before_they_are_written(self) -> None:
        daemon = self.mount()
        os.mkdir(self.path("elsewhere"))

        def renamed(*target: str) -> str:
            name = self.new_name()
            file = self.open_new(name, EXTREME)
            os.rename(self.path(name), self.path(*target))
            self.write_synced(file)
            os.close(file)
            return os.path.join(*target)

        self.wait_for_lifetime("extreme", lambda: renamed(self.new_name()))
        self.wait_for_lifetime("extreme", lambda: renamed("elsewhere", "table"))
        # One that has the name of another now has a hint of its own, and none of the other.
        moved, name = self.new_name(), self.new_name()
        file = self.open_new(name, None)
        os.rename(self.path(name), self.path(moved))
        self.make(name, EXTREME)
        self.write_synced(file)
        os.close(file)
        self.assertEqual(NOT_SET, self.lifetime(moved))
        self.end(daemon)

    def test_files_that_lose_their_names_before_they_are_written(self) -> None:
        daemon = self.mount()
        for _ in range(20):
            name = self.new_name()
            file = os.open(self.path(name), os.O_RDWR | os.O_CREAT | os.O_EXCL)
            set_hint(file, EXTREME)
            os.unlink(self.path(name))
            os.write(file, b"text")
            self.assertEqual(b"text", os.pread(file, 10, 0))
            os.close(file)
        self.end(daemon)

    def test_first_writes_of_all_threads_at_once(self) -> None:
        for options in ("threads=2", "threads=2,io_uring=off", "threads=16"):
            with self.subTest(options=options):
                daemon = self.mount(options)
                # As many directories: otherwise programs would wait for each other to make a file.
                count = 24
                names = [[os.path.join(f"{options}.{i}", self.new_name()) for _ in range(10)] for i in range(count)]
                barrier = threading.Barrier(count)

                def run(mine: list[str], barrier: threading.Barrier = barrier) -> None:
                    os.mkdir(self.path(os.path.dirname(mine[0])))
                    for name in mine:
                        file = self.open_new(name, EXTREME)
                        barrier.wait(mounted.WAIT_S)
                        os.write(file, name.encode())
                        os.close(file)

                threads = [threading.Thread(target=run, args=(mine,)) for mine in names]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join(mounted.WAIT_S)
                    self.assertFalse(thread.is_alive(), "a write hangs")
                for name in (name for mine in names for name in mine):
                    with open(self.path(name), encoding="ascii") as file:
                        self.assertEqual(name, file.read())
                self.end(daemon)

    def test_an_unmount_follows_the_first_write_at_once(self) -> None:
        for _ in range(20):
            daemon = self.mount()
            name = self.new_name()
            file = self.open_new(name, EXTREME)
            os.write(file, b"text")
            os.close(file)
            tried = subprocess.run(["umount", self.directory], capture_output=True, text=True)
            busy = tried.returncode != 0
            if busy:  # only where the answer did not come in time
                mounted.wait_until(lambda: subprocess.run(["umount", self.directory]).returncode == 0, "an unmount")
            self.assertEqual(0, daemon.wait(), daemon.said())
            self.assertIn(self.lifetime(name), (NOT_SET,) if busy else (NOT_SET, "extreme"), tried.stderr)
        self.check()

    def makers(self) -> list[subprocess.Popen[str]]:
        """Programs that make tables."""
        makers = []
        for i in range(4):
            directory = self.path(f"maker{i}")
            os.makedirs(directory, exist_ok=True)
            makers.append(subprocess.Popen([sys.executable, "-c", MAKER, directory, "0"], stdout=subprocess.PIPE,
                                           stderr=subprocess.DEVNULL, text=True))
        for maker in makers:
            assert maker.stdout is not None
            maker.stdout.readline()
        return makers

    def end_makers(self, makers: list[subprocess.Popen[str]]) -> None:
        for maker in makers:
            maker.kill()
            maker.communicate(timeout=mounted.WAIT_S)

    def test_a_daemon_that_is_killed_or_ended_meanwhile_leaves_nothing(self) -> None:
        for turn in range(16):
            daemon = self.mount()
            hints = self.child_of(daemon)
            makers = self.makers()
            code = daemon.end(signal.SIGKILL if turn % 2 else signal.SIGABRT if turn % 4 else signal.SIGTERM)
            self.end_makers(makers)
            self.assertIn(code, (0, -signal.SIGKILL, -signal.SIGABRT), daemon.said())
            mounted.wait_until(functools.partial(self.has_ended, hints), "the process that reads hints ends")
            if code != 0:
                with self.assertRaises(OSError) as caught:
                    mounted.wait_until(lambda: os.statvfs(self.directory).f_bsize == 0, "a dead mount")
                self.assertIn(caught.exception.errno, (errno.ENOTCONN, errno.ECONNABORTED, errno.ECANCELED))
        self.assertEqual(0, self.mount().end())
        self.check()

    def has_ended(self, process: int) -> bool:
        try:
            with open(f"/proc/{process}/stat", encoding="ascii") as file:
                return file.read().rpartition(")")[2].split()[0] == "Z"
        except (FileNotFoundError, ProcessLookupError):
            return True

    def child_of(self, daemon: mounted.Daemon) -> int:
        with open(f"/proc/{daemon.process.pid}/task/{daemon.process.pid}/children", encoding="ascii") as file:
            child, = file.read().split()
        return int(child)

    def test_a_daemon_goes_on_without_the_process_that_reads_hints(self) -> None:
        daemon = self.mount()
        hints = self.child_of(daemon)
        os.kill(hints, signal.SIGSTOP)  # what is asked now is not answered
        self.assertEqual(NOT_SET, self.lifetime(self.make_table(EXTREME)))
        self.assertEqual(NOT_SET, self.lifetime(self.make_table(EXTREME)))
        os.kill(hints, signal.SIGCONT)
        self.wait_for_lifetime("extreme", lambda: self.make_table(EXTREME))
        os.kill(hints, signal.SIGKILL)
        mounted.wait_until(lambda: "has ended" in (self.make_table(EXTREME) and daemon.said()), "a word of its end")
        self.assertEqual(NOT_SET, self.lifetime(self.make_table(EXTREME)))
        self.assertEqual(0, daemon.end(), daemon.said())
        self.assertEqual(1, daemon.said().count("has ended"))
        self.check()

    def test_what_covers_the_directory_is_left_alone(self) -> None:
        if os.geteuid() != 0:
            self.skipTest("only root may mount(8)")
        daemon = self.mount()
        name = self.new_name()
        file = self.open_new(name, EXTREME)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", self.directory], check=True)
        with contextlib.ExitStack() as stack:
            stack.callback(subprocess.run, ["umount", self.directory], check=True)
            self.make(name, MEDIUM)
            self.write_synced(file)
            os.close(file)
            self.assertEqual(NOT_SET, self.lifetime(name))
        self.end(daemon)

    def test_with_writeback_no_hint_is_read(self) -> None:
        daemon = self.mount("writeback=on")
        self.assertEqual(NOT_SET, self.lifetime(self.make_table(EXTREME)))
        self.end(daemon)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    mounted.main()
