#!/usr/bin/env python3
"""Random operations on a mounted directory and on one of tmpfs, memory maps included, which must look alike at any time
and after every mount.

    random_test.py ISOZONE [--seed N|new] [--operations N]
"""

import mmap
import os
import random
import shutil
import stat
import sys
import tempfile

import mounted

FILE_MAX = 400_000  # bytes
MOUNT_EVERY = 600  # operations
SEED = mounted.seed()
OPERATIONS = mounted.option("--operations", 2500)


class Tree:
    """One of the two directories, and what is open in it."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.open: list[int] = []

    def path(self, name: str) -> str:
        return os.path.join(self.root, name)

    def apply(self, operation: str, arguments: tuple[object, ...]) -> object:
        """The result, or the errno where it fails."""
        try:
            return getattr(self, operation)(*arguments)
        except OSError as error:
            return f"errno {error.errno}"

    def make(self, name: str, content: bytes) -> None:
        with open(self.path(name), "wb", buffering=0) as file:
            file.write(content)

    def mkdir(self, name: str) -> None:
        os.mkdir(self.path(name))

    def rmdir(self, name: str) -> None:
        os.rmdir(self.path(name))

    def unlink(self, name: str) -> None:
        os.unlink(self.path(name))

    def rename(self, source: str, target: str) -> None:
        os.rename(self.path(source), self.path(target))

    def link(self, source: str, target: str) -> None:
        os.link(self.path(source), self.path(target))

    def symlink(self, target: str, name: str) -> None:
        os.symlink(target, self.path(name))

    def chmod(self, name: str, mode: int) -> None:
        os.chmod(self.path(name), mode)

    def truncate(self, name: str, size: int) -> None:
        os.truncate(self.path(name), size)

    def open_file(self, name: str, flags: int) -> None:
        self.open.append(os.open(self.path(name), os.O_RDWR | flags))

    def close(self, which: int) -> None:
        os.close(self.open.pop(which))

    def close_all(self) -> None:
        while self.open:
            os.close(self.open.pop())

    def write(self, which: int, offset: int, content: bytes) -> int:
        return os.pwrite(self.open[which], content, offset)

    def read(self, which: int, offset: int, size: int) -> bytes:
        return os.pread(self.open[which], size, offset)

    def resize(self, which: int, size: int) -> int:
        os.ftruncate(self.open[which], size)
        return os.fstat(self.open[which]).st_size

    def sync(self, which: int) -> None:
        os.fsync(self.open[which])

    def allocate(self, which: int, offset: int, length: int) -> int:
        os.posix_fallocate(self.open[which], offset, length)
        return os.fstat(self.open[which]).st_size

    def write_map(self, which: int, offset: int, content: bytes) -> int:
        size = os.fstat(self.open[which]).st_size
        if size == 0:
            return 0
        offset %= size
        content = content[:size - offset]
        with mmap.mmap(self.open[which], size) as mapped:
            mapped[offset:offset + len(content)] = content
        return size

    def read_map(self, which: int) -> bytes:
        size = os.fstat(self.open[which]).st_size
        if size == 0:
            return b""
        with mmap.mmap(self.open[which], size, prot=mmap.PROT_READ) as mapped:
            return mapped[:]

    def everything(self) -> dict[str, tuple[object, ...]]:
        """Every name with what is behind it."""
        found: dict[str, tuple[object, ...]] = {}
        for folder, folders, files in os.walk(self.root):
            for name in folders + files:
                path = os.path.join(folder, name)
                shown = os.lstat(path)
                content: object = None
                if stat.S_ISREG(shown.st_mode):
                    with open(path, "rb") as file:
                        content = file.read()
                elif stat.S_ISLNK(shown.st_mode):
                    content = os.readlink(path)
                links = shown.st_nlink if stat.S_ISREG(shown.st_mode) else 0
                size = shown.st_size if stat.S_ISREG(shown.st_mode) else 0
                found[os.path.relpath(path, self.root)] = (shown.st_mode, links, size, content)
        return found


class Random(mounted.MountTest):
    device_options = "timing=off&zones=64&zone_size=8M"

    def draw(self, chance: random.Random, open_files: int) -> tuple[str, tuple[object, ...]]:
        folders = ("", "a/", "b/", "a/c/")
        names = [folder + f"f{number}" for folder in folders for number in range(5)]
        name, other = chance.choice(names), chance.choice(names)
        content = chance.randbytes(chance.choice((1, 100, 4096, 5000, 65536, 150_000)))
        which = chance.randrange(open_files) if open_files else 0
        offset = chance.choice((0, 4096, chance.randrange(FILE_MAX)))
        of_names: list[tuple[str, tuple[object, ...]]] = [
            ("make", (name, content)), ("mkdir", (chance.choice(("a", "b", "a/c", name)),)),
            ("rmdir", (chance.choice(("a", "b", "a/c", name)),)), ("unlink", (name,)), ("rename", (name, other)),
            ("rename", (chance.choice(("a", "b", "a/c")), chance.choice(("a", "b", "a/c")))), ("link", (name, other)),
            ("symlink", (other, name)), ("chmod", (name, chance.choice((0o600, 0o644, 0o755)))),
            ("truncate", (name, chance.randrange(FILE_MAX))),
            ("open_file", (name, chance.choice((0, os.O_CREAT, os.O_CREAT, os.O_TRUNC))))]
        of_files: list[tuple[str, tuple[object, ...]]] = [
            ("write", (which, offset, content)), ("write", (which, offset, content)),
            ("read", (which, offset, 100_000)),
            ("resize", (which, chance.randrange(FILE_MAX))), ("sync", (which,)), ("read_map", (which,)),
            ("write_map", (which, offset, content)), ("allocate", (which, offset, 50_000)), ("close", (which,))]
        if open_files == 0 or (open_files < 6 and chance.random() < 0.45):
            return chance.choice(of_names)
        return chance.choice(of_files)

    def run_randomly(self, options: str) -> None:
        chance = random.Random(SEED)
        plain = tempfile.mkdtemp(prefix="isozone-plain-", dir="/dev/shm")
        self.addCleanup(shutil.rmtree, plain)
        daemon = self.mount(options)
        ours, model = Tree(self.directory), Tree(plain)
        self.addCleanup(model.close_all)
        self.addCleanup(ours.close_all)
        for turn in range(OPERATIONS):
            operation, arguments = self.draw(chance, len(model.open))
            shown = f"seed {SEED}, operation {turn}: {operation}{arguments}"[:300]
            expected, got = model.apply(operation, arguments), ours.apply(operation, arguments)
            if expected != got:
                self.fail(f"{shown}: expected {str(expected)[:200]}, got {str(got)[:200]}")
            if turn % MOUNT_EVERY == MOUNT_EVERY - 1:
                self.assertTrue(model.everything() == ours.everything(), f"the trees differ; {shown}")
                model.close_all()
                ours.close_all()
                daemon = self.mount_again(daemon, options)
                self.assertTrue(model.everything() == ours.everything(), f"a mount changes something; {shown}")
        self.assertTrue(model.everything() == ours.everything(), f"the trees differ; seed {SEED}")
        ours.close_all()
        self.assertEqual(0, daemon.end(), daemon.said())
        self.check()

    def test_random_operations_do_what_they_do_on_tmpfs(self) -> None:
        self.run_randomly("")

    def test_random_operations_do_so_with_writeback(self) -> None:
        self.run_randomly("writeback=on")


if __name__ == "__main__":
    print(f"seed {SEED}", file=sys.stderr)
    mounted.main()
