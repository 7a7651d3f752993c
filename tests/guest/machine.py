#!/usr/bin/env python3
"""Boots a real kernel in QEMU, with zoned block devices, and tests Isozone on them.

    guest.py BUILD_DIRECTORY KERNEL_DIRECTORY [STEP...]

KERNEL_DIRECTORY is what scripts/fetch-guest-kernel has unpacked. Without STEPs, all of them run (tests/guest/init lists
them). The guest has no disk but those that are tested and no network. It is emulated wholly (TCG), so that neither KVM
nor root is needed, and times in it mean nothing. Everything that it prints is shown. Exits non-zero if a step fails, if
the guest does not come to its end, or if it takes longer than TIMEOUT_S.
"""

import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from typing import NoReturn

from initramfs import Initramfs, Modules

HERE = os.path.dirname(os.path.abspath(__file__))
TIMEOUT_S = 900
MODULES = ("crct10dif_generic", "crc64_rocksoft_generic", "nvme", "null_blk", "sd_mod", "scsi_debug")
# The NVMe namespaces. The zones of the first hold less than they are long, and few may be open or active. The second has
# no limits, and blocks of 512 bytes.
NAMESPACES = ("size=256M,zone_size=4M,zone_capacity=3M,max_open=10,max_active=14,block=4096",
              "size=128M,zone_size=2M,zone_capacity=2M,max_open=0,max_active=0,block=512")
VERDICT = re.compile(r"^guest: (\d+) passed, (\d+) failed", re.MULTILINE)


def fail(message: str) -> NoReturn:
    sys.exit(f"guest: {message}")


def make_initramfs(path: str, build: str, kernel: str) -> None:
    archive = Initramfs()
    for name in ("dev", "proc", "sys", "tmp", "etc", "root"):
        archive.add(name, b"", 0o040755)
    archive.add_program("bin/busybox", shutil.which("busybox") or fail("busybox is missing"))
    archive.add("bin/sh", b"busybox", 0o120777)
    archive.add_file("init", os.path.join(HERE, "init"))
    programs = {"isozone": f"{build}/tools/isozone/isozone", "libisozone.so": f"{build}/src/adapter/libisozone.so",
                "device_conformance_test": f"{build}/tests/device/device_conformance_test"}
    for tool in ("db_bench", "ldb"):
        programs[tool] = shutil.which(tool) or fail(f"{tool} is missing: run scripts/install-dependencies guest")
    for name, source in programs.items():
        if not os.path.exists(source):
            fail(f"{source} has not been built")
        archive.add_program(f"bin/{name}", source)
    # libgcc is loaded by name when a thread ends.
    archive.add_file("lib/x86_64-linux-gnu/libgcc_s.so.1", "/lib/x86_64-linux-gnu/libgcc_s.so.1")
    modules = Modules(f"{kernel}/lib/modules").with_dependencies(MODULES)
    names = [os.path.basename(module) for module in modules]
    for module, name in zip(modules, names, strict=True):
        archive.add_file(f"modules/{name}", module, 0o644)
    archive.add("modules/order", "".join(f"{name}\n" for name in names).encode(), 0o100644)
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


def qemu_command(scratch: str, kernel: str, steps: list[str]) -> list[str]:
    images = glob.glob(f"{kernel}/boot/vmlinuz-*")
    if not images:
        fail(f"there is no kernel in {kernel}: run scripts/fetch-guest-kernel {kernel}")
    command_line = "console=ttyS0 quiet panic=-1 mitigations=off " + ("steps=" + ",".join(steps) if steps else "")
    return ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "3G", "-nographic",
            "-no-reboot", "-nodefaults", "-serial", "stdio", "-kernel", images[0],
            "-initrd", os.path.join(scratch, "initramfs"), "-append", command_line, *namespace_arguments(scratch)]


def run(command: list[str]) -> str:
    """Runs QEMU, shows what the guest prints, and returns that."""
    begin = time.monotonic()
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace") as qemu:
        timer = threading.Timer(TIMEOUT_S, qemu.kill)
        timer.start()
        lines = []
        try:
            for line in qemu.stdout or ():
                line = line.replace("\r", "")
                lines.append(line)
                print(f"[{time.monotonic() - begin:4.0f}] {line}", end="", flush=True)
        finally:
            timer.cancel()
            qemu.kill()
    return "".join(lines)


def main() -> None:
    if len(sys.argv) < 3:
        fail("usage: guest.py BUILD_DIRECTORY KERNEL_DIRECTORY [STEP...]")
    build, kernel, steps = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3:]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="isozone-guest-") as scratch:
        make_initramfs(os.path.join(scratch, "initramfs"), build, kernel)
        output = run(qemu_command(scratch, kernel, steps))
    verdict = VERDICT.search(output)
    if verdict is None:
        fail("it did not come to its end")
    if int(verdict[2]) > 0 or int(verdict[1]) == 0:
        fail(f"{verdict[2]} of its steps failed")


if __name__ == "__main__":
    main()
