"""The device in tests/cli/zenfs, which ZenFS itself has written."""

import json
import os
import tarfile
from typing import TypedDict

import harness

DIRECTORY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "zenfs")
OPTIONS = "timing=off&zones=40&zone_size=1M"


class File(TypedDict):
    path: str
    size: int
    lifetime: str
    modified: int
    links: int
    sha256: str


class Database(TypedDict):
    path: str
    keys: int
    sha256: str


class Content(TypedDict):
    database: Database
    files: list[File]


def content() -> Content:
    with open(os.path.join(DIRECTORY, "content.json"), encoding="utf-8") as file:
        read: Content = json.load(file)
        return read


def write(layout: harness.ImageLayout, zone_count: int) -> None:
    """Makes an image, which was formatted with OPTIONS, this device."""
    zones = dict.fromkeys(range(zone_count), b"")
    with tarfile.open(os.path.join(DIRECTORY, "device.tar.xz")) as archive:
        for member in archive:
            file = archive.extractfile(member)
            assert file is not None
            zones[int(member.name.removeprefix("zone-"))] = file.read()
    for zone, written in zones.items():
        layout.replace_zone(zone, written)


def imported(test: harness.CliTest) -> str:
    """Makes the device that ZenFS has written, and imports it: the device that has the files now."""
    test.format(OPTIONS)
    geometry = test.json("info", test.device, "--json")["device"]["geometry"]
    write(harness.ImageLayout(test.image, geometry), geometry["zone_count"])
    target = f"emu:{test.path('target.img')}?timing=off"
    test.ok("mkfs", f"emu:{test.path('target.img')}?{harness.SMALL_DEVICE}")
    test.ok("import", test.device, target)
    return target
