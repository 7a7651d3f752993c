"""What the tests of the command line share: running it on small devices in a scratch directory of their own."""

import fcntl
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Iterable
from typing import IO, Any, Self, TypedDict, Unpack

PROGRAM = os.path.abspath(sys.argv.pop(1))

# Exit codes, as the manual page has them.
OK, USAGE, NOT_FOUND, UNUSABLE, BUSY, CORRUPTION, NO_SPACE, IO_ERROR, PERMISSION, REFUSED, READ_ONLY = range(11)

SMALL_DEVICE = "timing=off&zones=32&zone_size=4M"


class Options(TypedDict, total=False):
    """How a program is run: options of subprocess.run."""
    cwd: str
    executable: str
    user: int
    group: int
    stdin: IO[bytes] | None


class Geometry(TypedDict):
    """Of info.schema.json, what the layout of an image depends on."""
    zone_size: int
    zone_count: int


class CliTest(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory(prefix="isozone-cli-")
        self.addCleanup(scratch.cleanup)
        self.directory = scratch.name
        self.image = self.path("ssd.img")
        self.device = f"emu:{self.image}?timing=off"

    def path(self, name: str) -> str:
        return os.path.join(self.directory, name)

    def write(self, name: str, content: bytes) -> str:
        with open(self.path(name), "wb") as file:
            file.write(content)
        return self.path(name)

    def run_cli(self, *arguments: str, **options: Unpack[Options]) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([PROGRAM, *arguments], capture_output=True, timeout=120, **options)

    def ok(self, *arguments: str, **options: Unpack[Options]) -> bytes:
        """Runs what must succeed, and say nothing on standard error; gives its output."""
        result = self.run_cli(*arguments, **options)
        self.assertEqual((result.returncode, result.stderr), (OK, b""), arguments)
        return result.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self.ok(*arguments))

    def fails(self, code: int, words: Iterable[str], *arguments: str,
              **options: Unpack[Options]) -> subprocess.CompletedProcess[bytes]:
        """Runs what must fail: with this exit code, and one line on standard error that holds all of `words`."""
        result = self.run_cli(*arguments, **options)
        line = result.stderr.decode()
        self.assertEqual(result.returncode, code, f"{arguments}: {line}")
        self.assertRegex(line, r"\Aisozone[^\n]*: [^\n]+\n\Z", arguments)
        for word in words:
            self.assertIn(word, line)
        return result

    def format(self, options: str = SMALL_DEVICE) -> None:
        self.ok("mkfs", f"emu:{self.image}?{options}")


class ImageLayout:
    """Where things are in an image file: src/device/emulated/image_format.h."""

    LIVE_BLOCK = 64 << 10
    ZONE_TABLE = 128 << 10
    ZONE_ENTRY = 64
    ALIGNMENT = 2 << 20
    EMPTY, IMPLICITLY_OPEN, FULL = 0x1, 0x2, 0xE

    def __init__(self, path: str, geometry: Geometry) -> None:
        self.path = path
        self.zone_size = geometry["zone_size"]
        self.stride = self._align(geometry["zone_size"])
        self.data = self._align(self.ZONE_TABLE + self.ZONE_ENTRY * geometry["zone_count"])

    def _align(self, offset: int) -> int:
        return (offset + self.ALIGNMENT - 1) // self.ALIGNMENT * self.ALIGNMENT

    def patch(self, position: int, content: bytes) -> None:
        with open(self.path, "r+b") as file:
            file.seek(position)
            file.write(content)

    def patch_zone(self, zone: int, offset: int, content: bytes) -> None:
        self.patch(self.data + zone * self.stride + offset, content)

    def write_empty_zone(self, zone: int, content: bytes) -> None:
        """As if `content`, whole blocks, had been written to the empty zone and flushed."""
        self.patch_zone(zone, 0, content)
        word = len(content) << 8 | self.IMPLICITLY_OPEN
        self.patch(self.ZONE_TABLE + zone * self.ZONE_ENTRY, struct.pack("<QQQ", word, len(content), len(content)))

    def replace_zone(self, zone: int, content: bytes) -> None:
        """As if `content`, whole blocks, were all that was ever written to the zone, and had been flushed."""
        self.patch_zone(zone, 0, content.ljust(self.zone_size, b"\0"))
        state = self.EMPTY if not content else self.FULL if len(content) == self.zone_size else self.IMPLICITLY_OPEN
        self.patch(self.ZONE_TABLE + zone * self.ZONE_ENTRY,
                   struct.pack("<QQQ", len(content) << 8 | state, len(content), self.zone_size))


class Writer:
    """Holds the lock that another process with the device open for writing would hold."""

    def __init__(self, image: str) -> None:
        self._file = open(image, "r+b")
        F_OFD_SETLK = 37
        lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
        fcntl.fcntl(self._file, F_OFD_SETLK, lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
