#!/usr/bin/env python3
"""What programs expect of a directory, call by call.

    posix_test.py ISOZONE
"""

import ctypes
import errno
import fcntl
import mmap
import os
import shutil
import stat
import subprocess
import threading
import time

import mounted

FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE = 1, 2
RENAME_NOREPLACE, RENAME_EXCHANGE = 1, 2
LIBC = ctypes.CDLL(None, use_errno=True)


def fallocate(fd: int, mode: int, offset: int, length: int) -> None:
    if LIBC.fallocate(fd, mode, ctypes.c_long(offset), ctypes.c_long(length)) != 0:
        raise OSError(ctypes.get_errno(), "fallocate")


def rename(source: str, target: str, flags: int) -> None:
    AT_FDCWD = -100
    if LIBC.renameat2(AT_FDCWD, source.encode(), AT_FDCWD, target.encode(), flags) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")


class Posix(mounted.MountTest):
    def setUp(self) -> None:
        super().setUp()
        self.daemon = self.mount()

    def end(self) -> None:
        self.assertEqual(0, self.daemon.end(), self.daemon.said())
        self.check()

    def remount(self) -> None:
        self.daemon = self.mount_again(self.daemon)

    def write(self, name: str, content: bytes) -> str:
        with open(self.path(name), "wb") as file:
            file.write(content)
        return self.path(name)

    def read(self, name: str) -> bytes:
        with open(self.path(name), "rb") as file:
            return file.read()

    def fails(self, error: int, call: object, *arguments: object, **named: object) -> None:
        assert callable(call)
        with self.assertRaises(OSError) as caught:
            call(*arguments, **named)
        self.assertEqual(errno.errorcode[error], errno.errorcode[caught.exception.errno or 0])

    def test_files_hold_what_was_written_also_after_a_mount(self) -> None:
        contents = {f"file{size}": os.urandom(size) for size in (0, 1, 4095, 4096, 4097, 300_000, 5_000_000)}
        for name, content in contents.items():
            self.write(name, content)
            self.assertEqual(content, self.read(name))
        self.remount()
        for name, content in contents.items():
            self.assertEqual(content, self.read(name))
            self.assertEqual(len(content), os.stat(self.path(name)).st_size)
        self.end()

    def test_directories_are_made_listed_and_removed(self) -> None:
        os.makedirs(self.path("a", "b"))
        self.assertEqual(stat.S_IFDIR, stat.S_IFMT(os.stat(self.path("a")).st_mode))
        names = {f"{number:04}" for number in range(500)}
        for name in names:
            self.write(f"a/b/{name}", b"x")
        self.assertEqual(names, set(os.listdir(self.path("a", "b"))))
        self.assertEqual(names, {entry.name for entry in os.scandir(self.path("a", "b")) if entry.is_file()})
        self.fails(errno.ENOTEMPTY, os.rmdir, self.path("a"))
        self.fails(errno.EEXIST, os.mkdir, self.path("a"))
        self.fails(errno.ENOTDIR, os.rmdir, self.path("a", "b", "0001"))
        self.fails(errno.EISDIR, os.unlink, self.path("a", "b"))
        self.fails(errno.ENOTDIR, os.stat, self.path("a", "b", "0001", "c"))
        for name in names:
            os.unlink(self.path("a", "b", name))
        self.assertEqual([], os.listdir(self.path("a", "b")))
        os.removedirs(self.path("a", "b"))
        self.end()

    def test_attributes_are_kept(self) -> None:
        path = self.write("file", b"text")
        os.chmod(path, 0o640)
        os.utime(path, ns=(1_700_000_000_123_456_789, 1_700_000_001_987_654_321))
        if os.geteuid() == 0:
            os.chown(path, 12, 34)
        os.mkdir(self.path("directory"), 0o750)
        self.remount()
        shown = os.stat(path)
        self.assertEqual(0o640, stat.S_IMODE(shown.st_mode))
        self.assertEqual(1_700_000_001_987_654_321, shown.st_mtime_ns)
        if os.geteuid() == 0:
            self.assertEqual((12, 34), (shown.st_uid, shown.st_gid))
        self.assertEqual(0o750, stat.S_IMODE(os.stat(self.path("directory")).st_mode))
        self.end()

    def test_a_time_that_is_set_outlives_what_was_written_before(self) -> None:
        time_ns = 1_700_000_001_987_654_321
        paths = [self.path(f"file{number}") for number in range(40)]
        for number, path in enumerate(paths):
            with open(path, "wb", buffering=0) as file:
                file.write(bytes(20_000))
                if number % 2 == 0:
                    os.utime(file.fileno(), ns=(time_ns, time_ns))
            if number % 2 == 1:
                os.utime(path, ns=(time_ns, time_ns))
        self.assertEqual({time_ns}, {os.stat(path).st_mtime_ns for path in paths})
        self.remount()
        self.assertEqual({time_ns}, {os.stat(path).st_mtime_ns for path in paths})
        self.end()

    def test_the_time_after_a_close_is_that_of_the_last_write(self) -> None:
        for number in range(40):
            path = self.write(f"file{number}", b"x")
            os.utime(path, ns=(10**18, 10**18))
            with open(path, "wb") as file:
                file.write(bytes(20_000))
            self.assertGreater(os.stat(path).st_mtime_ns, 10**18)
        self.end()

    def test_truncation_of_an_empty_file_changes_its_time(self) -> None:
        path = self.write("file", b"")
        os.utime(path, ns=(10**18, 10**18))
        os.close(os.open(path, os.O_WRONLY | os.O_TRUNC))
        self.assertGreater(os.stat(path).st_mtime_ns, 10**18)
        self.remount()
        self.assertGreater(os.stat(path).st_mtime_ns, 10**18)
        self.end()

    def test_names_that_change_while_a_directory_is_read_leave_no_ghosts(self) -> None:
        count = 2000
        for number in range(count):
            self.write(f"{number:04}", b"")
        os.utime(self.directory)
        self.remount()  # so that the kernel knows no name
        with os.scandir(self.directory) as entries:
            next(entries)
            for number in range(count):
                name = self.path(f"{number:04}")
                if number % 2 == 0:
                    os.unlink(name)
                else:
                    os.rename(name, self.path(f"new{number:04}"))
            for _ in entries:
                pass
        for number in range(count):
            self.assertFalse(os.path.lexists(self.path(f"{number:04}")), number)
        self.assertEqual({f"new{number:04}" for number in range(1, count, 2)}, set(os.listdir(self.directory)))
        self.end()

    def test_entries_made_and_removed_while_a_directory_is_read_hide_no_others(self) -> None:
        kept = {f"{number:04}" for number in range(1000, 2000)}
        for name in kept:
            self.write(name, b"")
        for turn in range(3):
            self.write("0000", b"")
            with os.scandir(self.directory) as entries:
                next(entries)
                os.unlink(self.path("0000"))
                self.assertLessEqual(set(os.listdir(self.directory)), kept)
                for _ in entries:
                    pass
            self.assertEqual(kept, set(os.listdir(self.directory)), turn)
        self.end()

    def test_an_unlinked_file_keeps_its_attributes_and_takes_new_ones(self) -> None:
        for replaced in (False, True):
            with open(self.path("file"), "w+b", buffering=0) as file:
                fd = file.fileno()
                os.chmod(fd, 0o6751)
                os.setxattr(fd, "user.a", b"one")
                if replaced:
                    os.rename(self.write("other", b""), self.path("file"))
                else:
                    os.unlink(self.path("file"))
                self.assertEqual(0o6751, stat.S_IMODE(os.fstat(fd).st_mode))
                self.assertEqual(b"one", os.getxattr(fd, "user.a"))
                os.fchmod(fd, 0o640)
                os.setxattr(fd, "user.b", b"two")
                os.utime(fd, ns=(10**18, 10**18))
                file.write(b"x")
                self.assertEqual((0o640, 0), (stat.S_IMODE(os.fstat(fd).st_mode), os.fstat(fd).st_nlink))
                self.assertEqual(["user.a", "user.b"], sorted(os.listxattr(fd)))
                self.assertGreater(os.fstat(fd).st_mtime_ns, 10**18)
        self.end()

    def test_hard_links_are_one_file(self) -> None:
        path = self.write("one", b"first")
        os.link(path, self.path("two"))
        with open(self.path("two"), "ab") as file:
            file.write(b" second")
        self.assertEqual(b"first second", self.read("one"))
        self.assertEqual(2, os.stat(path).st_nlink)
        self.assertEqual(os.stat(path).st_ino, os.stat(self.path("two")).st_ino)
        os.unlink(path)
        self.assertEqual(1, os.stat(self.path("two")).st_nlink)
        self.assertEqual(b"first second", self.read("two"))
        self.end()

    def test_symbolic_links_are_followed_and_read(self) -> None:
        self.write("file", b"text")
        os.symlink("file", self.path("link"))
        os.symlink("nowhere", self.path("dangling"))
        self.assertEqual(b"text", self.read("link"))
        self.fails(errno.ENOENT, self.read, "dangling")
        self.remount()
        self.assertEqual(("file", "nowhere"), (os.readlink(self.path("link")), os.readlink(self.path("dangling"))))
        self.assertTrue(stat.S_ISLNK(os.lstat(self.path("link")).st_mode))
        self.end()

    def test_rename_replaces_refuses_and_exchanges(self) -> None:
        self.write("a", b"a")
        self.write("b", b"b")
        self.fails(errno.EEXIST, rename, self.path("a"), self.path("b"), RENAME_NOREPLACE)
        rename(self.path("a"), self.path("b"), RENAME_EXCHANGE)
        self.assertEqual((b"b", b"a"), (self.read("a"), self.read("b")))
        os.rename(self.path("a"), self.path("b"))
        self.assertEqual(b"b", self.read("b"))
        self.assertEqual(["b"], os.listdir(self.directory))
        os.mkdir(self.path("d"))
        self.fails(errno.EISDIR, os.rename, self.path("b"), self.path("d"))
        self.fails(errno.EINVAL, os.rename, self.path("d"), self.path("d", "e"))
        os.link(self.path("b"), self.path("b2"))
        self.write("c", b"c")
        changed_ns = os.stat(self.path("b2")).st_ctime_ns
        time.sleep(0.02)  # with a writeback cache it is the kernel's time, which goes on in steps of 10 ms at most
        os.rename(self.path("c"), self.path("b"))
        self.assertGreater(os.stat(self.path("b2")).st_ctime_ns, changed_ns)
        self.end()

    def test_an_unlinked_file_lives_as_long_as_it_is_open(self) -> None:
        with open(self.path("file"), "w+b") as file:
            file.write(b"before")
            file.flush()
            os.unlink(self.path("file"))
            self.write("file", b"another")
            file.write(b" after")
            file.flush()
            file.seek(0)
            self.assertEqual(b"before after", file.read())
            self.assertEqual(0, os.fstat(file.fileno()).st_nlink)
        self.assertEqual(b"another", self.read("file"))
        self.end()

    def test_a_renamed_file_is_still_written(self) -> None:
        with open(self.path("old"), "wb", buffering=0) as file:
            file.write(b"one ")
            os.rename(self.path("old"), self.path("new"))
            file.write(b"two")
        self.assertEqual(b"one two", self.read("new"))
        self.end()

    def test_files_are_written_anywhere(self) -> None:
        path = self.write("file", bytes(100_000))
        fd = os.open(path, os.O_RDWR)
        os.pwrite(fd, b"middle", 50_000)
        os.pwrite(fd, b"far", 1_000_000)
        os.ftruncate(fd, 1_000_003)
        os.fsync(fd)
        os.close(fd)
        self.remount()
        expected = bytearray(1_000_003)
        expected[50_000:50_006] = b"middle"
        expected[1_000_000:] = b"far"
        self.assertEqual(bytes(expected), self.read("file"))
        self.assertLess(os.stat(path).st_blocks * 512, 300_000)
        self.end()

    def test_a_file_grows_by_truncation_without_taking_space(self) -> None:
        path = self.write("file", b"x")
        free = os.statvfs(self.directory).f_bfree
        os.truncate(path, 1 << 40)
        self.assertEqual(1 << 40, os.stat(path).st_size)
        self.assertGreater(os.statvfs(self.directory).f_bfree, free - 5000)  # some zones are begun meanwhile
        os.truncate(path, 1)
        self.assertEqual(b"x", self.read("file"))
        self.end()

    def test_appends_of_two_programs_do_not_overwrite(self) -> None:
        fds = [os.open(self.path("log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND) for _ in range(2)]
        for number in range(200):
            os.write(fds[number % 2], f"{number:04}\n".encode())
        for fd in fds:
            os.close(fd)
        self.assertEqual("".join(f"{number:04}\n" for number in range(200)).encode(), self.read("log"))
        self.end()

    def test_open_truncates_and_excludes(self) -> None:
        path = self.write("file", b"long content")
        os.close(os.open(path, os.O_WRONLY | os.O_TRUNC))
        self.assertEqual(b"", self.read("file"))
        self.fails(errno.EEXIST, os.open, path, os.O_CREAT | os.O_EXCL)
        self.fails(errno.ENOENT, os.open, self.path("missing"), os.O_RDONLY)
        self.end()

    def test_a_program_that_runs_is_not_written(self) -> None:
        path = self.path("program")
        shutil.copy(shutil.which("sleep") or "", path)
        content = self.read("program")
        running = subprocess.Popen([path, "600"])
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        for flags in (os.O_WRONLY, os.O_RDWR, os.O_RDONLY | os.O_TRUNC, os.O_WRONLY | os.O_TRUNC):
            self.fails(errno.ETXTBSY, os.open, path, flags)
        self.assertEqual(content, self.read("program"))
        self.assertIsNone(running.poll())
        running.kill()
        running.wait()
        self.end()

    def test_space_is_allocated(self) -> None:
        fd = os.open(self.path("file"), os.O_RDWR | os.O_CREAT)
        fallocate(fd, 0, 0, 1 << 20)
        self.assertEqual(1 << 20, os.fstat(fd).st_size)
        self.assertEqual(bytes(100), os.pread(fd, 100, 5000))
        fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 2 << 20)
        self.assertEqual(1 << 20, os.fstat(fd).st_size)
        self.fails(errno.EOPNOTSUPP, fallocate, fd, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, 0, 4096)
        os.close(fd)
        self.end()

    def test_no_hole_is_found_where_the_kernel_holds_data(self) -> None:
        fd = os.open(self.path("file"), os.O_RDWR | os.O_CREAT)
        os.ftruncate(fd, 2 << 20)
        with mmap.mmap(fd, 2 << 20) as pages:
            pages[1 << 20:(1 << 20) + 4] = b"mmap"
            self.assertLessEqual(os.lseek(fd, 0, os.SEEK_DATA), 1 << 20)
            self.assertGreaterEqual(os.lseek(fd, 1 << 20, os.SEEK_HOLE), (1 << 20) + 4)
            subprocess.run(["cp", self.path("file"), self.path("copy")], check=True)
            self.assertEqual(b"mmap", self.read("copy")[1 << 20:(1 << 20) + 4])
        self.fails(errno.ENXIO, os.lseek, fd, 2 << 20, os.SEEK_DATA)
        os.close(fd)
        self.end()

    def test_shared_memory_maps_are_written(self) -> None:
        fd = os.open(self.path("file"), os.O_RDWR | os.O_CREAT)
        os.ftruncate(fd, 1 << 20)
        with mmap.mmap(fd, 1 << 20) as first, mmap.mmap(fd, 1 << 20) as second:
            first[5000:5004] = b"mmap"
            self.assertEqual(b"mmap", second[5000:5004])
            first.flush()
            self.assertEqual(b"mmap", os.pread(fd, 4, 5000))
            first[1_000_000:1_000_003] = b"end"
        os.close(fd)
        self.remount()
        content = self.read("file")
        self.assertEqual((b"mmap", b"end", 1 << 20), (content[5000:5004], content[1_000_000:1_000_003], len(content)))
        self.end()

    def can_lock(self, path: str, call: str) -> bool:
        """Whether another program gets the lock of the file by fcntl.flock or fcntl.lockf."""
        script = f"import fcntl, sys; fcntl.{call}(open(sys.argv[1], 'r+b'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
        return subprocess.run(["python3", "-c", script, path], stderr=subprocess.DEVNULL).returncode == 0

    def test_locks_are_held_among_programs(self) -> None:
        path = self.write("lock", b"")
        for call, lock in (("flock", fcntl.flock), ("lockf", fcntl.lockf)):
            with open(path, "r+b") as holder:
                self.assertTrue(self.can_lock(path, call))
                lock(holder, fcntl.LOCK_EX)
                self.assertFalse(self.can_lock(path, call))
        self.end()

    def test_extended_attributes_are_kept(self) -> None:
        path = self.write("file", b"")
        os.setxattr(path, "user.a", b"one")
        os.setxattr(path, "user.b", bytes(1000))
        self.fails(errno.EEXIST, os.setxattr, path, "user.a", b"x", os.XATTR_CREATE)
        self.fails(errno.ENODATA, os.setxattr, path, "user.c", b"x", os.XATTR_REPLACE)
        self.fails(errno.ENODATA, os.getxattr, path, "user.c")
        self.remount()
        self.assertEqual(["user.a", "user.b"], sorted(os.listxattr(path)))
        self.assertEqual((b"one", bytes(1000)), (os.getxattr(path, "user.a"), os.getxattr(path, "user.b")))
        os.removexattr(path, "user.a")
        self.fails(errno.ENODATA, os.removexattr, path, "user.a")
        self.assertEqual(["user.b"], os.listxattr(path))
        self.end()

    def test_names_too_long_and_kinds_of_files_that_are_not_kept_are_refused(self) -> None:
        self.write("n" * 255, b"")
        self.fails(errno.ENAMETOOLONG, self.write, "n" * 256, b"")
        self.fails(errno.ENAMETOOLONG, os.stat, self.path("n" * 256))
        self.fails(errno.EPERM, os.mkfifo, self.path("fifo"))
        self.end()

    def test_a_write_takes_the_set_user_id_bit_off(self) -> None:
        if os.geteuid() != 0:
            self.skipTest("only root can write as another user")
        os.chmod(self.scratch, 0o755)
        self.daemon = self.mount_again(self.daemon, "allow_other")
        path = self.write("program", b"x")
        os.chown(path, 1000, 1000)
        os.chmod(path, 0o6755)
        script = "import sys; open(sys.argv[1], 'ab').write(b'y')"
        subprocess.run(["python3", "-c", script, path], user=1000, group=1000, extra_groups=[], check=True)
        self.assertEqual(0o755, stat.S_IMODE(os.stat(path).st_mode))
        self.end()

    def test_permissions_are_those_of_the_files(self) -> None:
        if os.geteuid() != 0:
            self.skipTest("only root can be another user")
        os.chmod(self.scratch, 0o755)
        self.daemon = self.mount_again(self.daemon, "allow_other")
        os.chmod(self.directory, 0o755)
        path = self.write("secret", b"x")
        os.chmod(path, 0o600)
        for command in (["cat", path], ["touch", self.path("new")], ["rm", "-f", path]):
            self.assertNotEqual(0, subprocess.run(command, user=1000, group=1000, extra_groups=[],
                                                  stderr=subprocess.DEVNULL).returncode, command)
        self.assertEqual(b"x", self.read("secret"))
        self.end()

    def test_many_threads_write_one_file_and_files_of_their_own(self) -> None:
        shared = os.open(self.path("shared"), os.O_RDWR | os.O_CREAT)
        failures: list[BaseException] = []

        def work(number: int) -> None:
            try:
                with open(self.path(f"own{number}"), "wb", buffering=0) as own:
                    for turn in range(50):
                        os.pwrite(shared, bytes([number]) * 1000, (turn * 8 + number) * 1000)
                        own.write(bytes([number]) * 1000)
                    os.fsync(own.fileno())
            except BaseException as error:  # told to the test
                failures.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        os.close(shared)
        self.assertEqual([], failures)
        self.remount()
        expected = b"".join(bytes([number]) * 1000 for number in range(8)) * 50
        self.assertEqual(expected, self.read("shared"))
        for number in range(8):
            self.assertEqual(bytes([number]) * 50_000, self.read(f"own{number}"))
        self.end()


class PosixWithWriteback(Posix):
    options = "writeback=on"


if __name__ == "__main__":
    mounted.main()
