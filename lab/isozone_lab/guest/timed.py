"""Runs a job in a guest whose time is virtual: each instruction of its one processor takes 1 ns, timers run in the same
time, and time in which it is idle is skipped (QEMU's -icount). So what is measured in it depends neither on this
machine's speed nor on what else it does.

A job is a list of shell commands: those of devices.sh, and the programs that the guest has. init says how the guest
does it, and what it prints of it.
"""
from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from .. import processes
from ..processes import RunFailed
from . import machine
from .initramfs import Initramfs

if TYPE_CHECKING:
    from ..versions import Build

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPTS = ("init", "devices.sh", "mariadb.sh")
MODULES = ("null_blk", "ublk_drv", "xfs", "f2fs")
# Of the kernel's file systems, in the folder `tools` of the kernel.
TOOLS = {"mkfs.xfs": "usr/sbin/mkfs.xfs", "mkfs.f2fs": "usr/sbin/mkfs.f2fs"}
# `rep movsb` takes an instruction a byte here, and is what copies where the processor has ERMS. So this one has not.
PROCESSOR = "max,erms=off"
STARTED = re.compile(r"^run: (\S+) at (\S+) s$")
OUTPUT = re.compile(r"^begin: (\S+)\n(.*?)^end: \1$", re.M | re.S)
Note = Callable[[str], None]
Add = Callable[[Initramfs], None]  # programs that some jobs need only


def make_initramfs(path: str, build: Build, job: Sequence[str], add: Add | None = None) -> None:
    archive = machine.base_archive()
    for name in SCRIPTS:
        archive.add_file(name, os.path.join(HERE, name))
    machine.add_programs(archive, {"isozone": build.tool, "libisozone.so": build.shared_object,
                                   "db_bench": machine.program("db_bench")})
    machine.add_tools(archive, build.guest_kernel, TOOLS)
    machine.add_modules(archive, build.guest_kernel, MODULES)
    if add is not None:
        add(archive)
    archive.add("job", machine.lines(job), 0o100644)
    archive.write(path)


def qemu_command(kernel: str, initramfs: str, scratch: str, memory_bytes: int, seed: int) -> list[str]:
    """One guest is like any other of the same seed: its clock begins at the same time, and its processor has the same
    random numbers."""
    return [machine.program("qemu-system-x86_64"), "-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off",
            "-cpu", PROCESSOR, "-smp", "1", "-m", f"{memory_bytes >> 20}M", "-rtc", "base=2026-01-01,clock=vm",
            "-seed", str(seed), "-no-reboot", *machine.boot_arguments(kernel, initramfs, scratch, [])]


def run(build: Build, job: Sequence[str], scratch: str, memory_bytes: int, seed: int, time_limit_s: float,
        note: Note, add: Add | None = None) -> dict[str, str]:
    """Boots a guest that does `job`; gives the output of each `run` in it, by name. `note` is told what it begins with.
    `time_limit_s` is in real time. `add` adds to the archive of programs."""
    if not os.path.isdir(f"{build.guest_kernel}/tools"):
        raise RunFailed(f"there is no kernel with its tools in {build.guest_kernel}: run scripts/fetch-guest-kernel "
                        f"--newest {build.guest_kernel}")
    directory = tempfile.mkdtemp(prefix="guest-", dir=scratch)
    try:
        initramfs = os.path.join(directory, "initramfs")
        make_initramfs(initramfs, build, job, add)
        command = qemu_command(build.guest_kernel, initramfs, directory, memory_bytes, seed)
        return outputs_of(watch(command, time_limit_s, note))
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def watch(command: Sequence[str], time_limit_s: float, note: Note) -> str:
    """Runs QEMU until it ends; gives what the guest has printed."""
    begin = time.monotonic()
    try:
        qemu = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, errors="replace", start_new_session=True,
                                preexec_fn=processes.dies_with(os.getpid()))
    except OSError as error:
        raise RunFailed(f"{command[0]}: {error.strerror}") from error
    expired = threading.Event()

    def expire() -> None:
        expired.set()
        processes.end_group(qemu)

    timer = threading.Timer(time_limit_s, expire)
    timer.start()
    lines = []
    try:
        for line in qemu.stdout or ():  # a carriage return ends one as well
            lines.append(line)
            if started := STARTED.match(line):
                name, virtual_s = started.groups()
                note(f"{name} begins, at {virtual_s} s of the guest, after {time.monotonic() - begin:.0f} s")
    finally:
        timer.cancel()
        processes.kill(qemu)
    text = "".join(lines)
    if expired.is_set():
        raise RunFailed(f"the guest was stopped after {time_limit_s:g} s:\n{processes.last_lines(text)}")
    return text


def outputs_of(text: str) -> dict[str, str]:
    """From what a guest has printed: the output of each `run`, by name. Its job must have come to its end."""
    if re.search(r"^job: failed$", text, re.M):
        raise RunFailed(f"the guest's job has failed:\n{processes.last_lines(text)}")
    if not re.search(r"^job: done$", text, re.M):
        raise RunFailed(f"the guest did not come to its end:\n{processes.last_lines(text)}")
    return dict(OUTPUT.findall(text))
