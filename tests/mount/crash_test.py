#!/usr/bin/env python3
"""What is there after the daemon was killed under load, after the power of the device was cut, and on a full device.

    crash_test.py ISOZONE [--seed N|new] [--kills N] [--cuts N]

Writers sync what they write and note each acknowledgement. After the crash every acknowledged byte must be there.
"""

import contextlib
import errno
import os
import random
import signal
import struct
import sys
import threading
import time
import zlib

import mounted

SEED = mounted.seed()
KILLS = mounted.option("--kills", 4)
CUTS = mounted.option("--cuts", 8)
RECORD = struct.Struct("<III")  # number, size, CRC of what follows
PAGE = 4096
PAGES = 64


class Log(threading.Thread):
    """Appends records to a log and syncs each; knows how many were acknowledged."""

    def __init__(self, path: str, seed: int) -> None:
        super().__init__()
        self.path, self.chance = path, random.Random(seed)
        self.acknowledged = 0
        self.error: int | None = None

    def run(self) -> None:
        try:
            fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            try:
                for number in range(1_000_000):
                    content = self.chance.randbytes(self.chance.randrange(1, 6000))
                    os.write(fd, RECORD.pack(number, len(content), zlib.crc32(content)) + content)
                    os.fsync(fd)
                    self.acknowledged = number + 1
            finally:
                os.close(fd)
        except OSError as error:
            self.error = error.errno

    def found(self) -> int:
        """How many whole records there are from the beginning."""
        with open(self.path, "rb") as file:
            content = file.read()
        at = count = 0
        while at + RECORD.size <= len(content):
            number, size, crc = RECORD.unpack_from(content, at)
            body = content[at + RECORD.size:at + RECORD.size + size]
            if number != count or len(body) != size or zlib.crc32(body) != crc:
                break
            count, at = count + 1, at + RECORD.size + size
        return count


class Pages(threading.Thread):
    """Writes pages of a file in place, each with a rising number, and syncs each; knows the last acknowledged ones."""

    def __init__(self, path: str, seed: int) -> None:
        super().__init__()
        self.path, self.chance = path, random.Random(seed)
        self.acknowledged = [0] * PAGES
        self.begun = [0] * PAGES
        self.error: int | None = None

    def run(self) -> None:
        try:
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT)
            try:
                for number in range(1, 1_000_000):
                    page = self.chance.randrange(PAGES)
                    self.begun[page] = number
                    os.pwrite(fd, struct.pack("<Q", number) * (PAGE // 8), page * PAGE)
                    os.fsync(fd)
                    self.acknowledged[page] = number
            finally:
                os.close(fd)
        except OSError as error:
            self.error = error.errno

    def wrong(self) -> list[str]:
        with open(self.path, "rb") as file:
            content = file.read().ljust(PAGE * PAGES, b"\0")
        complaints = []
        for page in range(PAGES):
            numbers = set(struct.unpack_from(f"<{PAGE // 8}Q", content, page * PAGE))
            if not numbers <= {self.acknowledged[page], self.begun[page]}:
                complaints.append(f"page {page}: {sorted(numbers)[:4]}, acknowledged {self.acknowledged[page]}")
        return complaints


class Crash(mounted.MountTest):
    device_options = "timing=off&zones=64&zone_size=8M"

    def start(self, turn: int) -> tuple[list[Log], Pages]:
        logs = [Log(self.path(f"00000{number}.log"), SEED + 10 * turn + number) for number in range(2)]
        logs.append(Log(self.path("journal"), SEED + 10 * turn + 5))
        pages = Pages(self.path("pages"), SEED + 10 * turn + 6)
        for writer in (*logs, pages):
            writer.start()
        return logs, pages

    def check_writers(self, logs: list[Log], pages: Pages, shown: str) -> None:
        for log in logs:
            if log.acknowledged > 0 or os.path.exists(log.path):
                self.assertGreaterEqual(log.found(), log.acknowledged, f"{shown}: {log.path}")
        if os.path.exists(pages.path) or any(pages.acknowledged):
            self.assertEqual([], pages.wrong(), shown)

    def wait_for_writers(self, logs: list[Log], pages: Pages, writes: int) -> None:
        mounted.wait_until(lambda: all(log.acknowledged > writes for log in logs) and max(pages.begun) > writes,
                           "the writers do not get on")

    def clear(self) -> None:
        for name in os.listdir(self.directory):
            os.unlink(self.path(name))

    def test_nothing_acknowledged_is_lost_when_the_daemon_is_killed(self) -> None:
        for turn in range(KILLS):
            daemon = self.mount()
            self.clear()
            logs, pages = self.start(turn)
            self.wait_for_writers(logs, pages, 20 * (turn + 1))
            daemon.end(signal.SIGKILL)
            for writer in (*logs, pages):
                writer.join()
            daemon = self.mount()
            self.check_writers(logs, pages, f"seed {SEED}, turn {turn}")
            self.assertEqual(0, daemon.end(), daemon.said())
            self.check()

    def test_what_was_not_synced_survives_the_daemon(self) -> None:
        """Every append to a log or a small file, every small one to another file, and every name."""
        daemon = self.mount()
        written = {name: "".join(f"{name} {number}\n" for number in range(300)).encode()
                   for name in ("000001.log", "MANIFEST-000002", "OPTIONS-000003", "LOG", "data")}
        fds = []
        for name, content in written.items():
            fds.append(os.open(self.path(name), os.O_WRONLY | os.O_CREAT | os.O_APPEND))
            for line in content.splitlines(keepends=True):
                os.write(fds[-1], line)
        os.mkdir(self.path("folder"))
        os.rename(self.path("LOG"), self.path("folder", "renamed"))
        written[os.path.join("folder", "renamed")] = written.pop("LOG")
        os.unlink(self.path("OPTIONS-000003"))
        del written["OPTIONS-000003"]
        daemon.end(signal.SIGKILL)
        for fd in fds:
            with contextlib.suppress(OSError):
                os.close(fd)
        daemon = self.mount()
        self.assertEqual({"000001.log", "MANIFEST-000002", "data", "folder"}, set(os.listdir(self.directory)))
        for name, content in written.items():
            with open(self.path(name), "rb") as file:
                found = file.read()
            self.assertTrue(found == content, f"{name}: {len(found)} of {len(content)} bytes")
        self.assertEqual(0, daemon.end(), daemon.said())
        self.check()

    def write_until_the_cut(self, device: str, turn: int) -> tuple[list[Log], Pages] | None:
        """None: the power went before anything was written."""
        try:
            daemon = self.mount(device=device)
        except mounted.CannotMount:
            return None
        try:
            try:
                self.clear()
            except OSError:
                return None
            logs, pages = self.start(turn)
            for writer in (*logs, pages):
                writer.join(mounted.WAIT_S)
                self.assertFalse(writer.is_alive(), "no error came after the power cut")
            return logs, pages
        finally:
            daemon.end(signal.SIGKILL)

    def test_nothing_acknowledged_is_lost_in_a_power_cut(self) -> None:
        chance = random.Random(SEED)
        for turn in range(CUTS):
            commands = chance.randrange(20, 1500)
            faults = f"fault_power_cut_after={commands}&fault_seed={SEED % 1000 + turn}"
            shown = f"seed {SEED}, turn {turn}, power cut after {commands} commands"
            writers = self.write_until_the_cut(f"{self.device}&{faults}", turn)
            daemon = self.mount()
            if writers is not None:
                self.check_writers(*writers, shown)
            self.assertEqual(0, daemon.end(), daemon.said())
            self.check()


class FullDevice(mounted.MountTest):
    device_options = "timing=off&zones=40&zone_size=4M"

    def fill(self, name: str, size: int) -> int:
        """Writes a file until the device is full; what was accepted."""
        accepted = 0
        fd = os.open(self.path(name), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            while True:
                accepted += os.write(fd, bytes([len(name)]) * size)
        except OSError as error:
            self.assertEqual(errno.ENOSPC, error.errno)
        finally:
            os.close(fd)
        return accepted

    def test_what_was_accepted_is_there_and_removing_makes_room(self) -> None:
        daemon = self.mount()
        promised = os.statvfs(self.directory)
        accepted = {name: self.fill(name, size) for name, size in (("a", 1 << 20), ("bb", 5000), ("ccc", 1))}
        # What statfs promises can be written, to some zones that are begun or kept.
        self.assertGreater(sum(accepted.values()), 0.8 * promised.f_bavail * promised.f_frsize)
        self.assertLess(sum(accepted.values()), 1.1 * promised.f_bavail * promised.f_frsize)
        self.assertLess(os.statvfs(self.directory).f_bavail, 0.1 * promised.f_bavail)
        with self.assertRaises(OSError) as caught, open(self.path("bb"), "ab") as file:
            file.write(bytes(1 << 20))
        self.assertEqual(errno.ENOSPC, caught.exception.errno)
        daemon = self.mount_again(daemon)
        for name, size in accepted.items():
            with open(self.path(name), "rb") as file:
                content = file.read()
            self.assertEqual(bytes([len(name)]) * size, content[:size], name)
        os.unlink(self.path("a"))
        deadline = time.monotonic() + mounted.WAIT_S
        while True:
            try:
                with open(self.path("new"), "wb") as file:
                    file.write(bytes(8 << 20))
                    os.fsync(file.fileno())
                break
            except OSError as error:
                self.assertEqual(errno.ENOSPC, error.errno)
                self.assertLess(time.monotonic(), deadline, "the room does not come back")
        self.assertEqual(0, daemon.end(), daemon.said())
        self.check()

    def test_with_writeback_fsync_and_close_tell_of_it(self) -> None:
        """The kernel takes every write, and holds at most 1 % of what may be dirty."""
        daemon = self.mount("writeback=on")
        device = os.stat(self.directory).st_dev
        ratio = f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}/max_ratio"
        if os.path.exists(ratio):
            with open(ratio, encoding="ascii") as file:
                self.assertEqual("1\n", file.read())
        twice = 2 * os.statvfs(self.directory).f_bavail * os.statvfs(self.directory).f_frsize
        for end in (os.fsync, os.close):
            fd = os.open(self.path("file"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            for _ in range(twice >> 20):
                os.write(fd, bytes(1 << 20))
            with self.assertRaises(OSError) as caught:
                end(fd)
            self.assertEqual(errno.ENOSPC, caught.exception.errno)
            if end is os.fsync:
                os.close(fd)
        self.assertEqual(0, daemon.end(), daemon.said())
        self.check()


class ManyFiles(mounted.MountTest):
    def test_twenty_thousand_files_are_made_listed_and_found_again(self) -> None:
        daemon = self.mount()
        names = {f"{number:05}" for number in range(20_000)}
        os.mkdir(self.path("many"))
        for name in names:
            os.close(os.open(self.path("many", name), os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        self.assertEqual(names, set(os.listdir(self.path("many"))))
        daemon = self.mount_again(daemon)
        with os.scandir(self.path("many")) as entries:
            self.assertEqual(names, {entry.name for entry in entries if entry.stat().st_size == 0})
        for name in names:
            os.unlink(self.path("many", name))
        os.rmdir(self.path("many"))
        self.assertEqual(0, daemon.end(), daemon.said())
        self.check()


if __name__ == "__main__":
    print(f"seed {SEED}", file=sys.stderr)
    mounted.main()
