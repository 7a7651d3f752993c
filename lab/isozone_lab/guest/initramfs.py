"""The file system in memory that the guest boots with: busybox, kernel modules, and programs with what they load."""

import lzma
import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterable, Iterator


class Initramfs:
    """An archive of the kind that Linux unpacks into memory when it boots (cpio, format `newc`)."""

    def __init__(self) -> None:
        self._entries: dict[str, tuple[int, bytes]] = {}

    def add(self, path: str, content: bytes, mode: int) -> None:
        """Adds a file, link or folder of this mode, and the folders that lead to it."""
        folder = os.path.dirname(path)
        if folder and folder not in self._entries:
            self.add(folder, b"", stat.S_IFDIR | 0o755)
        self._entries[path] = (mode, content)

    def add_file(self, path: str, source: str, mode: int = 0o755) -> None:
        with open(source, "rb") as file:
            self.add(path, file.read(), stat.S_IFREG | mode)

    def add_program(self, path: str, source: str) -> None:
        """Adds a program or library, without what is for debuggers, and the libraries that it loads."""
        with tempfile.TemporaryDirectory() as scratch:
            stripped = os.path.join(scratch, "stripped")
            shutil.copyfile(source, stripped)
            subprocess.run(["strip", "--strip-debug", stripped], check=True, capture_output=True)
            self.add_file(path, stripped)
        for library in libraries_of(source):
            if library.startswith(("/lib", "/usr/")):
                if library.lstrip("/") not in self._entries:
                    self.add_file(library.lstrip("/"), library)
            elif f"lib/{os.path.basename(library)}" not in self._entries:
                # One of the build, whose folder may be another thing in the guest, such as /tmp.
                self.add_program(f"lib/{os.path.basename(library)}", library)

    def add_foreign_program(self, name: str, source: str, root: str) -> None:
        """Adds a program of another system, which lies in the folder `root`, with the libraries of that system. In the
        guest it is the command `name`."""
        root = os.path.abspath(root)  # so the loader lists absolute paths
        folders = [f"{root}/usr/lib/x86_64-linux-gnu", f"{root}/usr/lib/x86_64-linux-gnu/ceph"]
        loader = f"{folders[0]}/ld-linux-x86-64.so.2"
        listing = subprocess.run([loader, "--library-path", ":".join(folders), "--list", source], capture_output=True,
                                 text=True, check=True).stdout
        for library in [loader, *re.findall(r"=> (/\S+) \(0x", listing)]:
            if f"tools/lib/{os.path.basename(library)}" not in self._entries:
                self.add_file(f"tools/lib/{os.path.basename(library)}", library)
        self.add_file(f"tools/bin/{name}", source)
        starter = f'#!/bin/sh\nexec /tools/lib/ld-linux-x86-64.so.2 --library-path /tools/lib /tools/bin/{name} "$@"\n'
        self.add(f"bin/{name}", starter.encode(), stat.S_IFREG | 0o755)

    def write(self, path: str) -> None:
        with open(path, "wb") as archive:
            for number, (name, (mode, content)) in enumerate(self._entries.items(), 1):
                archive.write(entry(name, number, mode, content))
            archive.write(entry("TRAILER!!!", 0, 0, b""))


def entry(name: str, number: int, mode: int, content: bytes) -> bytes:
    """One file as it lies in the archive: a header of hexadecimal numbers, its name, its content, each padded."""
    encoded = name.encode() + b"\0"
    fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(encoded), 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + encoded
    return padded(head) + padded(content)


def padded(content: bytes) -> bytes:
    return content + b"\0" * (-len(content) % 4)


def libraries_of(program: str) -> list[str]:
    """The paths of the shared libraries that a program loads, and of the loader."""
    listing = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    missing = re.findall(r"(\S+) => not found", listing)
    if missing:
        raise FileNotFoundError(f"{program} needs {', '.join(missing)}")
    return re.findall(r"(?:=> )?(/\S+) \(0x", listing)


class Modules:
    """The modules of a kernel that was unpacked, and what they need of each other."""

    def __init__(self, folder: str) -> None:
        self._paths: dict[str, str] = {}
        for path in walk(folder):
            if path.endswith((".ko", ".ko.xz")):
                self._paths[os.path.basename(path).split(".")[0].replace("-", "_")] = path

    def with_dependencies(self, names: Iterable[str]) -> list[str]:
        """The paths of these modules, each behind those that it needs."""
        found: list[str] = []
        for name in names:
            self._collect(name, found)
        return found

    def _collect(self, name: str, found: list[str]) -> None:
        path = self._paths.get(name.replace("-", "_"))
        if path is None or path in found:
            return  # compiled into the kernel, or there already
        for needed in re.findall(rb"\0(?:depends|softdep)=([^\0]*)\0", read_module(path)):
            for other in re.split(r"[,\s]+", needed.decode().replace("pre:", "")):
                self._collect(other, found)
        found.append(path)


def read_module(path: str) -> bytes:
    """A module as the kernel takes it: newer packages have it compressed."""
    with lzma.open(path) if path.endswith(".xz") else open(path, "rb") as file:
        return file.read()


def walk(folder: str) -> Iterator[str]:
    for place, _, names in os.walk(folder):
        yield from (os.path.join(place, name) for name in names)
