"""Builds RocksDB with its test programs, and Isozone against that same library."""

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

# As RocksDB tests itself: with assertions and sync points, which need a debug build.
ROCKSDB_OPTIONS = (
    "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g0", "-DCMAKE_C_FLAGS_DEBUG=-O1 -g0", "-DPORTABLE=1",
    "-DFAIL_ON_WARNINGS=OFF", "-DROCKSDB_BUILD_SHARED=ON", "-DWITH_TESTS=ON", "-DWITH_GFLAGS=ON", "-DWITH_LIBURING=OFF",
    "-DWITH_TOOLS=ON", "-DWITH_CORE_TOOLS=OFF", "-DWITH_BENCHMARK_TOOLS=OFF", "-DWITH_TRACE_TOOLS=OFF")
ISOZONE_OPTIONS = (
    "-DISOZONE_BATCHES=ON", "-DISOZONE_BUILD_TESTS=OFF", "-DCMAKE_BUILD_TYPE=Debug",
    "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g1 -D_GLIBCXX_ASSERTIONS")


class BuildError(Exception):
    """Something cannot be built; the message is for people."""


class Build:
    """What lies where: RocksDB's source in `source`, what is built of it in `directory`, and Isozone below that."""

    def __init__(self, source: str, directory: str) -> None:
        self.source, self.directory = os.path.abspath(source), os.path.abspath(directory)
        self.isozone = os.path.join(self.directory, "isozone")
        self.interface = os.path.join(self.directory, "interface")  # as -DISOZONE_ROCKSDB= takes it
        self.results = os.path.join(self.directory, "results")
        self.logs = os.path.join(self.directory, "logs")
        self.isozone_so = os.path.join(self.isozone, "src/rocksdb/library/libisozone.so")
        self.cli = os.path.join(self.isozone, "tools/isozone/isozone")
        self.default_file_system = os.path.join(self.isozone, "tests/rocksdb/libisozone_default_file_system.so")

    def program(self, name: str) -> str:
        folder = "db_stress_tool" if name == "db_stress" else ""
        return os.path.join(self.directory, folder, name)

    def make(self, programs: Iterable[str], jobs: int) -> None:
        """Builds all that `programs` need. The output goes to the terminal, since it takes an hour."""
        self.step("RocksDB is configured", ["cmake", "-G", "Ninja", "-S", self.source, "-B", self.directory,
                  f"-DCMAKE_PROJECT_INCLUDE={ROOT}/tests/rocksdb/unity.cmake", *ROCKSDB_OPTIONS])
        self.step("RocksDB is built", ["cmake", "--build", self.directory, "--parallel", str(jobs),
                                       "--target", "rocksdb-shared", *programs], shown=True)
        self.lay_out_interface()
        self.step("Isozone is configured", ["cmake", "-G", "Ninja", "-S", ROOT, "-B", self.isozone,
                  f"-DISOZONE_ROCKSDB={self.interface}", *ISOZONE_OPTIONS])
        self.step("Isozone is built", ["cmake", "--build", self.isozone, "--parallel", str(jobs), "--target",
                                       "isozone", "isozone_cli", "isozone_default_file_system"], shown=True)

    def check(self, programs: Iterable[str]) -> None:
        """BuildError where something of what `programs` need has not been built."""
        for path in (self.isozone_so, self.cli, self.default_file_system, *map(self.program, programs)):
            if not os.path.exists(path):
                raise BuildError(f"{path} has not been built; leave out --no-build")

    def step(self, title: str, command: Sequence[str], shown: bool = False) -> None:
        print(f"{title} ...", flush=True)
        result = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=None if shown else subprocess.PIPE,
                                stderr=None if shown else subprocess.STDOUT)
        if result.returncode != 0:
            if not shown:
                sys.stdout.buffer.write(result.stdout[-4000:])
            raise BuildError(f"`{' '.join(command)}` failed ({result.returncode}); what it printed is above")

    def lay_out_interface(self) -> None:
        """The headers and the one library that cmake/RocksDB.cmake expects, as links."""
        for name, target in (("include", os.path.join(self.source, "include")),
                             ("lib/librocksdb.so", os.path.join(self.directory, "librocksdb.so"))):
            link = os.path.join(self.interface, name)
            os.makedirs(os.path.dirname(link), exist_ok=True)
            if os.path.lexists(link):
                os.remove(link)
            os.symlink(target, link)

    def rocksdb_version(self) -> str:
        with open(os.path.join(self.source, "include/rocksdb/version.h"), encoding="utf-8") as header:
            return ".".join(re.findall(r"#define ROCKSDB_(?:MAJOR|MINOR|PATCH) (\d+)", header.read()))

    def make_device(self, image: str, options: str) -> None:
        """An empty file system on a new emulated SSD in the file `image`."""
        result = subprocess.run([self.cli, "mkfs", f"emu:{image}?{options}"], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if result.returncode != 0:
            raise BuildError(f"no device can be made in {image}: {result.stdout.strip()}")

    def check_device(self, image: str) -> str | None:
        """What fsck has to say about the device in `image`, or None where all is well."""
        result = subprocess.run([self.cli, "fsck", f"emu:{image}?timing=off"], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return None if result.returncode == 0 else result.stdout.strip()
