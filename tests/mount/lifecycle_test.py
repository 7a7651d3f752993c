#!/usr/bin/env python3
"""How a mount begins and ends: in the foreground and not, with open files, by signals, after a crash; and what is said
when it cannot begin.

    lifecycle_test.py ISOZONE
"""

import ctypes
import errno
import functools
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import mounted

HELPER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../packaging/mount.isozone")
PAGE = os.path.join(os.path.dirname(HELPER), "../docs/mount.md")
UNIT = os.path.join(os.path.dirname(HELPER), "isozone-mount@.service")
OK, USAGE, NOT_FOUND, UNUSABLE, BUSY = range(5)
REFUSED = 9
PR_SET_NAME = 15
LIBC = ctypes.CDLL(None, use_errno=True)


class Lifecycle(mounted.MountTest):
    def tool(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([mounted.PROGRAM, *arguments], capture_output=True, text=True, timeout=mounted.WAIT_S)

    def refused(self, code: int, words: str, *arguments: str) -> None:
        result = self.tool("mount", *arguments)
        self.assertEqual((code, ""), (result.returncode, result.stdout), result.stderr)
        self.assertRegex(result.stderr, r"\Aisozone mount: [^\n]+\n\Z")
        self.assertIn(words, result.stderr)

    def write(self, name: str, content: str) -> None:
        with open(self.path(name), "w") as file:
            file.write(content)

    def read(self, name: str) -> str:
        with open(self.path(name)) as file:
            return file.read()

    def device_is_free(self) -> bool:
        """Whether no process has it open for writing."""
        return self.tool("fsck", self.device).returncode == 0

    def test_in_the_background_the_command_ends_when_the_directory_can_be_used(self) -> None:
        result = self.tool("mount", self.device, self.directory)
        self.assertEqual((OK, "", ""), (result.returncode, result.stdout, result.stderr))
        self.write("file", "text")
        mounted.unmount(self.directory)
        mounted.wait_until(self.device_is_free, "the daemon has not ended")
        daemon = self.mount()
        self.assertEqual("text", self.read("file"))
        self.assertEqual(0, daemon.end())

    def test_every_signal_unmounts_also_with_open_files(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            daemon = self.mount()
            fds = [os.open(self.path(name), os.O_RDWR | os.O_CREAT | os.O_TRUNC) for name in ("file", "unlinked")]
            os.write(fds[0], f"signal {number}".encode())
            os.unlink(self.path("unlinked"))
            self.assertEqual(0, daemon.end(number), daemon.said())
            self.assertFalse(mounted.is_mounted(self.directory))
            for fd in fds:
                self.wait_for_dead_mount(functools.partial(os.pwrite, fd, b"x", 0))
                with self.assertRaises(OSError):
                    os.close(fd)
            self.check()
            daemon = self.mount()
            self.assertEqual(f"signal {number}", self.read("file"))
            self.assertEqual(0, daemon.end())

    def test_a_killed_daemon_leaves_a_dead_mount_that_the_next_one_takes_off(self) -> None:
        daemon = self.mount()
        self.write("file", "text")
        os.sync()
        with open(self.path("file")) as file:
            os.fsync(file.fileno())
        daemon.end(signal.SIGKILL)
        self.wait_for_dead_mount(lambda: os.statvfs(self.directory))
        daemon = self.mount()
        self.assertIn("was a dead mount", daemon.said())
        self.assertEqual("text", self.read("file"))
        self.assertEqual(0, daemon.end())
        self.assertFalse(mounted.is_mounted(self.directory))

    def wait_for_dead_mount(self, access: Callable[[], object]) -> None:
        """What the kernel still ends for the daemon fails with other errors, and all that follows with ENOTCONN."""
        errors: list[int | None] = [errno.ECONNABORTED]
        while errors[-1] in (errno.ECONNABORTED, errno.ECANCELED) and len(errors) < 100:
            with self.assertRaises(OSError) as caught:
                access()
            errors.append(caught.exception.errno)
        self.assertEqual(errno.ENOTCONN, errors[-1])

    def test_a_mount_follows_at_once_where_a_daemon_was_killed(self) -> None:
        for _ in range(10):
            daemon = self.mount()
            daemon.process.kill()
            daemon.wait()
            self.assertEqual(0, self.mount().end())

    def test_there_is_one_daemon_for_a_device_and_one_device_for_a_directory(self) -> None:
        daemon = self.mount()
        other = os.path.join(self.scratch, "other")
        os.mkdir(other)
        self.refused(BUSY, "in use", self.device, other)
        self.refused(BUSY, "mounted on", self.device, self.directory)
        self.assertEqual(0, daemon.end())

    def test_what_cannot_be_mounted_is_said_in_one_line(self) -> None:
        missing = os.path.join(self.scratch, "missing")
        self.refused(NOT_FOUND, "mkdir -p", self.device, missing)
        self.refused(REFUSED, "not empty", self.device, self.scratch)
        self.refused(REFUSED, "not a directory", self.device, self.image)
        self.refused(NOT_FOUND, "missing.img", f"emu:{missing}.img", self.directory)
        self.refused(USAGE, "did you mean 'writeback'", "-o", "writebak=on", self.device, self.directory)
        self.refused(USAGE, "DIRECTORY", self.device)
        blank = os.path.join(self.scratch, "blank.img")
        with open(blank, "wb") as file:
            file.truncate(1 << 20)
        self.refused(UNUSABLE, "blank.img", f"emu:{blank}", self.directory)

    def test_statistics_and_df_show_the_mount_like_any_other(self) -> None:
        daemon = self.mount()
        with open(self.path("000012.log"), "wb", buffering=0) as file:
            for _ in range(10):
                file.write(bytes(5000))
                os.fsync(file.fileno())
        statistics = json.loads(self.run_tool("stats", self.device, "--json"))
        self.assertEqual(daemon.process.pid, statistics["process"]["pid"])
        # The page is brought up to date again and again.
        mounted.wait_until(lambda: json.loads(self.run_tool("stats", self.device, "--json"))["syncs"] >= 10,
                           "the statistics do not show ten syncs")
        self.run_tool("top", self.device, "--once")
        self.assertIn("000012.log", self.run_tool("ls", self.device, "/"))
        self.assertEqual(0, daemon.end())

    def test_a_read_of_a_table_is_counted_by_the_thread_that_asks(self) -> None:
        daemon = self.mount()
        for name in ("000012.sst", "000013.sst"):
            self.write(name, "x" * 100_000)
        daemon = self.mount_again(daemon)  # without the pages that the kernel kept

        def bytes_read(io_class: str) -> int:
            return int(json.loads(self.run_tool("stats", self.device, "--json"))["classes"][io_class]["bytes_read"])

        def read_by(thread: str, name: str) -> None:
            with ThreadPoolExecutor(1) as threads:
                threads.submit(LIBC.prctl, PR_SET_NAME, thread.encode(), 0, 0, 0).result()
                self.assertEqual("x" * 100_000, threads.submit(self.read, name).result())

        read_by("rocksdb:low0", "000012.sst")
        read_by("client", "000013.sst")
        for io_class in ("compaction-read", "user-read"):
            mounted.wait_until(functools.partial(lambda name: bytes_read(name) >= 100_000, io_class),
                               f"the statistics do not show that 100,000 bytes were read as {io_class}")
        self.assertLess(bytes_read("user-read"), 200_000)
        self.assertEqual(0, daemon.end())

    def test_a_read_only_mount_shows_what_is_there_and_refuses_changes(self) -> None:
        daemon = self.mount()
        self.write("file", "text")
        daemon = self.mount_again(daemon, "ro")
        self.assertEqual("text", self.read("file"))
        with self.assertRaises(OSError) as caught:
            self.write("new", "")
        self.assertEqual(errno.EROFS, caught.exception.errno)
        with self.assertRaises(OSError) as caught:
            os.unlink(self.path("file"))
        self.assertEqual(errno.EROFS, caught.exception.errno)
        self.assertEqual(0, daemon.end())

    def wait_for_size(self, path: str, size: int) -> None:
        """The kernel keeps the attributes of a read-only mount for a second."""
        mounted.wait_until(lambda: os.stat(path).st_size == size, f"{path} does not grow to {size} bytes")

    def test_a_read_only_mount_follows_a_writer_beside_it(self) -> None:
        writer = self.mount()
        self.write("000012.log", "")
        self.write("table", "old")
        for durable in (self.path("table"), self.directory):  # what is not durable is not to be seen by others
            descriptor = os.open(durable, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)
        shown = os.path.join(os.path.realpath(self.scratch), "shown")
        os.mkdir(shown)
        reader = mounted.Daemon(self.device, shown, "ro")
        self.addCleanup(subprocess.run, ["fusermount3", "-uzq", shown])
        self.addCleanup(reader.clean_up)

        def content(name: str) -> bytes:
            with open(os.path.join(shown, name), "rb") as file:
                return file.read()

        self.assertEqual((b"", b"old"), (content("000012.log"), content("table")))
        written = b""
        with open(self.path("000012.log"), "wb", buffering=0) as log:
            for turn in range(3):
                piece = bytes([ord("a") + turn]) * 5000
                log.write(piece)
                os.fsync(log.fileno())
                written += piece
                self.wait_for_size(os.path.join(shown, "000012.log"), len(written))
                self.assertEqual(written, content("000012.log"))
        with open(self.path("table"), "ab") as table:
            table.write(b" and new")
            table.flush()
            os.fsync(table.fileno())
        self.wait_for_size(os.path.join(shown, "table"), 11)
        self.assertEqual(b"old and new", content("table"))
        self.assertEqual(0, reader.end(), reader.said())
        self.assertEqual(0, writer.end(), writer.said())

    def test_what_others_mounted_over_a_directory_stays(self) -> None:
        if os.geteuid() != 0:
            self.skipTest("only root may mount(8)")
        daemon = self.mount()
        self.write("file", "text")
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", self.directory], check=True)
        self.addCleanup(subprocess.run, ["umount", "-q", self.directory])
        self.write("other", "text")
        self.assertEqual(0, daemon.end(), daemon.said())
        self.assertEqual("text", self.read("other"))
        subprocess.run(["umount", self.directory], check=True)
        mounted.unmount(self.directory)  # what is left of ours
        daemon = self.mount()
        self.assertEqual("text", self.read("file"))
        self.assertEqual(0, daemon.end())

    def test_a_mount_follows_an_unmount_at_once(self) -> None:
        for turn in range(5):
            self.run_tool("mount", self.device, self.directory)
            self.write("file", f"{turn}" * 100_000)
            mounted.unmount(self.directory)
        daemon = self.mount()
        self.assertEqual("4" * 100_000, self.read("file"))
        self.assertEqual(0, daemon.end())

    def test_a_link_to_a_dead_mount_leads_to_it(self) -> None:
        link = os.path.join(self.scratch, "link")
        os.symlink("directory", link)
        self.mount().end(signal.SIGKILL)
        self.run_tool_loudly("was a dead mount", "mount", self.device, link)
        mounted.unmount(self.directory)

    def run_tool_loudly(self, words: str, *arguments: str) -> None:
        result = self.tool(*arguments)
        self.assertEqual(0, result.returncode, result.stderr)
        self.assertIn(words, result.stderr)

    def test_owners_and_permissions_are_shown_as_the_options_say(self) -> None:
        daemon = self.mount()
        self.write("file", "text")
        os.chmod(self.path("file"), 0o666)
        daemon = self.mount_again(daemon, "uid=12,gid=34,umask=027")
        shown = os.stat(self.path("file"))
        self.assertEqual((12, 34, 0o640), (shown.st_uid, shown.st_gid, shown.st_mode & 0o7777))
        self.assertEqual(0, daemon.end())

    def test_writes_in_place_are_refused_where_that_is_asked_for(self) -> None:
        daemon = self.mount("inplace=refuse")
        self.write("file", "0123456789")
        with open(self.path("file"), "r+b", buffering=0) as file:
            file.write(b"0123456789abc")  # changes nothing of what is there
            with self.assertRaises(OSError) as caught:
                os.pwrite(file.fileno(), b"x", 5)
            self.assertEqual(errno.EOPNOTSUPP, caught.exception.errno)
        self.assertEqual("0123456789abc", self.read("file"))
        self.assertEqual(0, daemon.end())
        self.assertRegex(daemon.said(), "wrote in place at byte 5 of inode")
        self.assertIn("1 writes in place were refused", daemon.said())

    def test_mount_and_umount_of_the_system_know_the_type(self) -> None:
        if os.geteuid() != 0:
            self.skipTest("only root may mount(8)")
        environment = dict(os.environ, PATH=f"{os.path.dirname(mounted.PROGRAM)}:{os.environ['PATH']}")
        tried = subprocess.run(["sh", HELPER, self.device, self.directory, "-o", "rw,nofail,noatime"],
                               capture_output=True, text=True, env=environment)
        self.assertEqual((0, ""), (tried.returncode, tried.stderr))
        with open("/proc/self/mountinfo") as file:
            line, = (line for line in file if self.directory in line)
        self.assertRegex(line, rf"noatime.* - fuse\.isozone {re.escape(self.device)} ")
        subprocess.run(["umount", self.directory], check=True)
        mounted.wait_until(self.device_is_free, "the daemon has not ended")
        failed = subprocess.run(["sh", HELPER, f"emu:{self.scratch}/missing.img", self.directory, "-o", "rw"],
                                capture_output=True, text=True, env=environment)
        self.assertEqual(32, failed.returncode)
        self.assertIn("missing.img", failed.stderr)

    def test_the_line_of_fstab_that_is_documented_mounts(self) -> None:
        if os.geteuid() != 0:
            self.skipTest("only root may mount(8)")
        with open(PAGE, encoding="utf-8") as page:
            line, = re.findall(r"^dev:/dev/nvme0n2\s+/mnt/db\s.*$", page.read(), re.MULTILINE)
        fstab = os.path.join(self.scratch, "fstab")
        with open(fstab, "w") as file:
            file.write(line.replace("dev:/dev/nvme0n2", self.device).replace("/mnt/db", self.directory) + "\n")
        # For the processes of this script alone: the place where mount(8) looks for helpers has ours, and the path that
        # it gives to them has the program that is tested.
        helpers = os.path.join(self.scratch, "sbin")
        os.mkdir(helpers)
        shutil.copy(HELPER, os.path.join(helpers, "mount.fuse.isozone"))
        script = '''set -eux
            mount --bind "$1" /sbin/
            mount --bind "$(dirname "$4")" /usr/local/bin
            [ ! -e /usr/bin/isozone ] || mount --bind "$4" /usr/bin/isozone
            mount --fstab "$2" "$3"
            echo text >"$3/file"
            mount --fstab "$2" --all  # it is there, so nothing happens
            umount "$3"
            mount --fstab "$2" --all --types fuse.isozone
            cat "$3/file"
            grep "$3" /proc/self/mountinfo
            umount "$3"'''
        tried = subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", helpers, fstab, self.directory,
                                mounted.PROGRAM], capture_output=True, text=True, timeout=mounted.WAIT_S)
        self.assertEqual(0, tried.returncode, tried.stderr)
        self.assertRegex(tried.stdout, rf"\Atext\n.* - fuse\.isozone {re.escape(self.device)} [^\n]*allow_other")
        mounted.wait_until(self.device_is_free, "the daemon has not ended")

    def test_the_unit_of_systemd_is_well_formed(self) -> None:
        analyze = shutil.which("systemd-analyze")
        if analyze is None:
            self.skipTest("there is no systemd-analyze")
        unit = os.path.join(self.scratch, "isozone-mount@a.service")
        with open(UNIT) as source, open(unit, "w") as target:
            target.write(source.read().replace("=isozone mount", f"={mounted.PROGRAM} mount"))
        result = subprocess.run([analyze, "verify", "--man=no", unit], capture_output=True, text=True)
        self.assertNotRegex(result.stderr, r"isozone-mount@a\.service:\d+|Failed to")


if __name__ == "__main__":
    mounted.main()
