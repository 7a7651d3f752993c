"""Where the database of a run lies: a fresh device in tmpfs, or a directory there.

A device of each shape and speed is formatted and measured (isozone izg identify) once; every run gets a copy of it, so
that all start from the same state. Images are sparse, and so are the copies.
"""
from __future__ import annotations

import abc
import dataclasses
import os
import re
import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from . import outputs, processes
from .processes import Environment

if TYPE_CHECKING:
    from .versions import Build

# What each series adds to the URI of the device. tmpfs has no device: RocksDB runs on POSIX files. The collector is the
# policy's own where none is named: zenfs has none, lifetime and isozone have one of their name.
POLICIES = {"zenfs": "policy=zenfs", "striping": "policy=isozone&isolation=off", "isozone": "policy=isozone",
            "isozone picker": "policy=isozone",
            "zenfs+gc": "policy=zenfs+gc", "zenfs+full-gc": "policy=zenfs&gc=full",
            "lifetime": "policy=lifetime&gc=none", "lifetime+gc": "policy=lifetime",
            "one victim": "policy=lifetime&gc=lifetime-one-victim",
            **{f"gc={scheme}": f"policy=isozone&gc={scheme}"
               for scheme in ("zenfs", "full", "zenfs+", "lifetime", "lsm-zgc", "isozone")}}
PROFILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../profiles/small-zone.profile")


class Execute(Protocol):
    """Runs a program of a run and gives its standard output."""

    def __call__(self, command: Sequence[object], environment: Environment | None = None) -> str: ...


@dataclasses.dataclass(frozen=True)
class Shape:
    """The small-zone device with so many zones, and with fewer dies if asked for; or another profile, with zones of
    another size, which can be as many times smaller as the zones of the published device are larger.
    """
    zones: int = 1024
    dies: int = 32
    profile: str = "small-zone"
    zone_kib: int | None = None  # None: as the profile says

    @property
    def channels(self) -> int:
        return min(self.dies, 8)

    @property
    def has_groups(self) -> bool:
        """Whether there are groups that measuring would find."""
        return self.profile == Shape.profile

    @property
    def zone_options(self) -> str:
        """How many zones, and of which size, as a URI has it."""
        size = "" if self.zone_kib is None else f"&zone_size={self.zone_kib}K&zone_capacity={self.zone_kib}K"
        return f"zones={self.zones}{size}"


def pace(speed: float) -> str:
    """What a URI has for a device of so many times the speed of its profile."""
    return "" if speed == 1 else f"&speed={speed}"


def with_dies(profile: str, shape: Shape) -> str:
    """The text of a profile with the channels and dies of `shape`."""
    for key, value in (("channels", shape.channels), ("dies", shape.dies), ("name", f"small-zone-{shape.dies}")):
        profile, count = re.subn(rf"^{key}\s*=.*$", f"{key} = {value}", profile, flags=re.M)
        if count != 1:
            raise processes.RunFailed(f"the profile has {count} lines for {key}")
    return profile


class Shelf:
    """Makes devices in a scratch directory."""

    def __init__(self, build: Build, scratch: str) -> None:
        self.build = build
        self.scratch = scratch

    def profile(self, shape: Shape) -> str:
        """What the URI calls the profile of `shape`."""
        if shape.dies == Shape.dies:
            return shape.profile
        path = f"{self.scratch}/dies-{shape.dies}.profile"
        with open(PROFILE, encoding="utf-8") as source, open(path, "w", encoding="utf-8") as target:
            target.write(with_dies(source.read(), shape))
        return path

    def format(self, image: str, shape: Shape, execute: Execute) -> None:
        execute([self.build.tool, "mkfs", f"emu:{image}?profile={self.profile(shape)}&{shape.zone_options}"])

    def template(self, shape: Shape, speed: float, execute: Execute) -> str:
        """A formatted and measured image that nobody writes to."""
        image = f"{self.scratch}/template-{shape.profile}-{shape.zones}-{shape.dies}-{shape.zone_kib}-{speed}.img"
        if not os.path.exists(image):
            try:
                self.format(image, shape, execute)
                if shape.has_groups:
                    execute([self.build.tool, "izg", "identify", f"emu:{image}?{pace(speed)[1:]}"])
            except BaseException:
                remove(image)
                raise
        return image

    def store(self, series: str, shape: Shape, execute: Execute, options: str = "",
              speed: float = 1) -> PosixStore | DeviceStore:
        """A new, empty place for a database; `options`: more of them for the URI, as &KEY=VALUE."""
        return PosixStore(self.scratch) if series == "tmpfs" else self.zoned(series, shape, execute, options, speed)

    def zoned(self, series: str, shape: Shape, execute: Execute, options: str = "", speed: float = 1) -> DeviceStore:
        """The same for series that have a device."""
        image = f"{self.scratch}/ssd.img"
        execute(["cp", "--sparse=always", self.template(shape, speed, execute), image])
        return DeviceStore(self.build, self.scratch, image, POLICIES[series] + options + pace(speed))

    def conventional(self, size_mib: int, age: float, seed: int, speed: float = 1) -> ConventionalStore:
        """A conventional SSD of so many MiB, overwritten `age` times before use."""
        return ConventionalStore(self.build, self.scratch, size_mib, age, seed, speed)


class Store(abc.ABC):
    """A place for one database; gone when its `with` block ends."""
    uri = ""                           # of the file system; empty for POSIX
    environment: Environment = {}      # that a program needs to use it
    database = ""
    log_directory: str                 # of RocksDB's info log

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def info_log(self) -> str:
        """The text of RocksDB's info log."""
        for folder, _, names in os.walk(self.log_directory):
            logs = [name for name in names if name == "LOG" or name.endswith("_LOG")]
            if logs:
                with open(os.path.join(folder, logs[0]), encoding="utf-8", errors="replace") as file:
                    return file.read()
        raise processes.RunFailed("RocksDB has left no info log")

    @abc.abstractmethod
    def remove(self) -> None:
        """Takes away the database and what was written beside it."""


class PosixStore(Store):
    """A directory of tmpfs."""

    def __init__(self, scratch: str) -> None:
        self.database = self.log_directory = f"{scratch}/posix"
        self.report = f"{scratch}/report.csv"

    def read_report(self, _: object) -> str:
        with open(self.report, encoding="utf-8") as file:
            return file.read()

    def remove(self) -> None:
        remove(self.database)
        remove(self.report)


class MountedStore(Store):
    """A database on a file system of a library that is preloaded, which counts what it does."""

    counts: ClassVar[str] = "stats"  # the schema of what it counts

    def __init__(self, library: str, scratch: str, location: str) -> None:
        self.log_directory = f"{scratch}/log"
        self.statistics_file = f"{scratch}/statistics.json"
        os.makedirs(self.log_directory, exist_ok=True)
        self.uri = f"{location}&log_dir={self.log_directory}&stats_file={self.statistics_file}"
        self.environment = {"LD_PRELOAD": library}

    def statistics(self) -> Any:
        """What the file system has counted from the last mount to its end."""
        try:
            return outputs.read_file(self.statistics_file, self.counts)
        except FileNotFoundError:
            raise processes.RunFailed("the file system has left no statistics") from None

    def remove(self) -> None:
        remove(self.log_directory)
        remove(self.statistics_file)


class ConventionalStore(MountedStore):
    """A database on a conventional SSD. It is new, or newly aged, at every mount."""

    counts = "stats-conventional"

    def __init__(self, build: Build, scratch: str, size_mib: int, age: float, seed: int, speed: float) -> None:
        self.directory = f"{scratch}/conventional"
        super().__init__(build.conventional, scratch, f"isozone-conventional://{self.directory}?size={size_mib}M"
                                                      f"&age={age}&age_seed={seed}&speed={speed}")
        self.database = "/db"

    def remove(self) -> None:
        super().remove()
        remove(self.directory)


class DeviceStore(MountedStore):
    """A database on Isozone. db_bench writes its report through RocksDB's file system: onto the device."""

    def __init__(self, build: Build, scratch: str, image: str, options: str) -> None:
        super().__init__(build.shared_object, scratch, f"isozone://emu:{image}?{options}")
        self.tool = build.tool
        self.image = image
        self.database = "/db"
        self.report = "/report.csv"

    def read_report(self, execute: Execute) -> str:
        return execute([self.tool, "cat", f"emu:{self.image}", self.report])

    def remove(self) -> None:
        super().remove()
        remove(self.image)


def remove(path: str) -> None:
    """A file or a directory, if it is there."""
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
    elif os.path.exists(path):
        os.remove(path)
