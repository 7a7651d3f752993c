"""The virtual machine of the tests: a kernel of Debian in QEMU, emulated wholly (TCG), so that neither KVM nor root is
needed. It has the NVMe namespaces below, no other disk and no network. Times in it mean nothing."""

import glob
import os
import re
import struct
import sys
import zlib
from typing import NoReturn

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "lab"))

from isozone_lab.guest import machine as parts  # noqa: E402 - only found by the line above
from isozone_lab.processes import RunFailed  # noqa: E402 - as above

EXPORT_PAGE = f"{ROOT}/docs/export.md"  # its commands make a block device, and belong together
HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPTS = ("init", "steps.sh", "load.sh", "zonefs.sh", "export.sh", "mount.sh", "passthrough.sh")  # of the guest
MODULES = ("crct10dif_generic", "crc64_rocksoft_generic", "nvme", "null_blk", "sd_mod", "scsi_debug", "zonefs", "fuse")
# What the newest kernel has in addition: a device that a process serves, and file systems for such devices.
NEWEST_MODULES = ("ublk_drv", "xfs", "f2fs", "btrfs")
# Their tools, in the folder `tools` of that kernel.
NEWEST_TOOLS = {"mkfs.xfs": "usr/sbin/mkfs.xfs", "xfs_repair": "usr/sbin/xfs_repair", "mkfs.f2fs": "usr/sbin/mkfs.f2fs",
                "fsck.f2fs": "usr/sbin/fsck.f2fs", "mkfs.btrfs": "usr/sbin/mkfs.btrfs", "btrfs": "usr/bin/btrfs",
                "mkzonefs": "usr/sbin/mkzonefs", "fio": "usr/bin/fio"}
# The NVMe namespaces. Zones of the first hold less than they are long, and few may be open or active. The second has no
# limits, and blocks of 512 bytes. The third is so small that a database that is overwritten is collected all the time.
NAMESPACES = ("size=256M,zone_size=4M,zone_capacity=3M,max_open=10,max_active=14,block=4096",
              "size=128M,zone_size=2M,zone_capacity=2M,max_open=0,max_active=0,block=512",
              "size=32M,zone_size=1M,zone_capacity=1M,max_open=10,max_active=14,block=4096")
# What is tested, by its name in the guest, and where in the build it is.
PROGRAMS = {"isozone": "tools/isozone/isozone", "libisozone.so": "src/rocksdb/library/libisozone.so",
            "device_conformance_test": "tests/device/device_conformance_test",
            "integration_child": "tests/integration/integration_child",
            "integration_test": "tests/integration/integration_test",
            "isozone_model_test": "tests/model/isozone_model_test",
            "page_cache_test": "tests/mount/page_cache_test"}
# The parts of these that crash.py needs: what boots again and again is to be small.
CRASH_MODULES = ("crct10dif_generic", "crc64_rocksoft_generic", "nvme")
CRASH_PROGRAMS = ("isozone", "libisozone.so", "integration_child")
STOCK_TOOLS = ("db_bench", "ldb", "blkzone")


def fail(message: str) -> NoReturn:
    sys.exit(f"guest: {message}")


def shown_commands(page: str) -> list[str]:
    """The commands that a page shows in blocks of `console`."""
    with open(page, encoding="utf-8") as file:
        blocks = re.findall(r"^```console[ \t]*\n(.*?)^```", file.read(), re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]


def documented_commands() -> list[str]:
    """The commands on block devices that the documents show."""
    pages = [f"{ROOT}/README.md", *sorted(glob.glob(f"{ROOT}/docs/*.md"))]
    commands = [command for page in pages if page != EXPORT_PAGE for command in shown_commands(page)]
    return [command for command in commands if "dev:/dev/" in command]


def zonefs_superblock() -> bytes:
    """The first block of a device on which zonefs can be mounted, which mkzonefs would write: Debian 12 has no package
    of it. Magic, checksum, label, UUID, features (conventional zones are one file), user, group, mode, and zeros."""
    def block(checksum: int) -> bytes:
        fields = (b"SFOZ", checksum, b"guest", bytes(range(16)), 1, 0, 0, 0)
        return struct.pack("<4sI64s16sQIII", *fields).ljust(4096, b"\0")

    return block(zlib.crc32(block(0)) ^ 0xFFFFFFFF)


def make_initramfs(path: str, build: str, kernel: str, crash: bool) -> None:
    archive = parts.base_archive()
    for name in SCRIPTS:
        archive.add_file(name, os.path.join(HERE, name))
    programs = {name: f"{build}/{path}" for name, path in PROGRAMS.items() if not crash or name in CRASH_PROGRAMS}
    parts.add_programs(archive, {**programs, **({} if crash else {tool: parts.program(tool) for tool in STOCK_TOOLS})})
    newest = os.path.isdir(f"{kernel}/tools") and not crash
    parts.add_tools(archive, kernel, NEWEST_TOOLS if newest else {})
    parts.add_modules(archive, kernel, CRASH_MODULES if crash else MODULES + (NEWEST_MODULES if newest else ()))
    archive.add("zonefs-superblock", zonefs_superblock(), 0o100644)
    archive.add("documented", parts.lines(documented_commands()), 0o100644)
    archive.add("documented-export", parts.lines(shown_commands(EXPORT_PAGE)), 0o100644)
    archive.write(path)


def namespace_arguments(scratch: str) -> list[str]:
    arguments = ["-device", "nvme,id=nvme0,serial=isozone"]
    for number, text in enumerate(NAMESPACES, 1):
        shape = dict(pair.split("=") for pair in text.split(","))
        image = os.path.join(scratch, f"nvme{number}.img")
        with open(image, "wb") as file:
            file.truncate(int(shape["size"].removesuffix("M")) << 20)
        zoned = ",".join(f"zoned.{key}={shape[key]}"
                         for key in ("zone_size", "zone_capacity", "max_open", "max_active"))
        arguments += ["-drive", f"file={image},id=drive{number},if=none,format=raw,cache=unsafe",
                      "-device", f"nvme-ns,drive=drive{number},bus=nvme0,nsid={number},zoned=true,{zoned},"
                      f"logical_block_size={shape['block']},physical_block_size={shape['block']}"]
    return arguments


def qemu_command(scratch: str, build: str, kernel: str, words: list[str]) -> list[str]:
    """Makes what the machine boots and its disks, in `scratch`. `words` are for tests/guest/init."""
    initramfs = os.path.join(scratch, "initramfs")
    try:
        boot = parts.boot_arguments(kernel, initramfs, scratch, words)
        make_initramfs(initramfs, build, kernel, any(word.startswith("crash=") for word in words))
    except RunFailed as missing:
        fail(str(missing))
    return ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "3G", *boot,
            *namespace_arguments(scratch)]
