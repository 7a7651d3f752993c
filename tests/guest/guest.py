#!/usr/bin/env python3
"""Boots a real kernel in QEMU, with zoned block devices, and tests Isozone on them.

    guest.py BUILD_DIRECTORY KERNEL_DIRECTORY [STEP...]

KERNEL_DIRECTORY is what scripts/fetch-guest-kernel has unpacked. Without STEPs, all of them run (tests/guest/init lists
them). Everything that the guest prints is shown, and what a failed step has printed is shown again at the end. Exits
non-zero if a step fails, if the guest does not come to its end, or if it takes longer than TIMEOUT_S.

The kernel's own work in the background (reclaim in file systems, removal of devices) goes by a clock that runs on where
a busy host leaves the emulated processors no time. So up to MOST_ACCIDENTS steps that fail may run again, in a guest
that has nothing else to do. They must pass there; that they failed before is said.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable

from machine import fail, qemu_command

TIMEOUT_S = 1800
MOST_ACCIDENTS = 2
VERDICT = re.compile(r"^guest: (\d+) passed, (\d+) failed(.*)$", re.MULTILINE)


def run(command: list[str], name: str) -> str:
    """Runs QEMU, shows what the guest of this name prints, and returns that."""
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
                print(f"[{name} {time.monotonic() - begin:4.0f}] {line}", end="", flush=True)
        finally:
            timer.cancel()
            qemu.kill()
    return "".join(lines)


def failed_steps(output: str) -> list[str]:
    verdict = VERDICT.search(output)
    return verdict[3].split() if verdict else []


def printed_by(step: str, output: str) -> str:
    """What a step that failed has printed."""
    name = re.escape(step)
    printed = re.search(rf"^=== {name}\n(.*?)^--- {name} FAILED$", output, re.MULTILINE | re.DOTALL)
    return printed[1] if printed else ""


def problem(output: str) -> str | None:
    """What is wrong with a guest that has printed this; None if all of its steps passed."""
    verdict = VERDICT.search(output)
    if verdict is None:
        return "it did not come to its end"
    if int(verdict[2]) > 0:
        return f"{verdict[2]} of its steps failed:{verdict[3]}"
    return None if int(verdict[1]) > 0 else "it has no such step"


def test(steps: list[str], boot_with: Callable[[list[str]], str]) -> str | None:
    """Boots a guest for the steps, and one more for those that may have failed by accident: what is wrong, or None."""
    output = boot_with(steps)
    show_failed(output)
    failed = failed_steps(output)
    if not 0 < len(failed) <= MOST_ACCIDENTS:
        return problem(output)
    print(f"guest: {' '.join(failed)}: once more, in a guest that does nothing else", flush=True)
    output = boot_with(failed)
    show_failed(output)
    if problem(output) is None:
        print(f"guest: {' '.join(failed)} failed at first, and passed alone", flush=True)
    return problem(output)


def boot(build: str, kernel: str, steps: list[str]) -> str:
    with tempfile.TemporaryDirectory(prefix="isozone-guest-") as scratch:
        words = ["steps=" + ",".join(steps)] if steps else []
        return run([*qemu_command(scratch, build, kernel, words), "-no-reboot"], os.path.basename(kernel))


def show_failed(output: str) -> None:
    for step in failed_steps(output):
        print(f"--- {step} has printed:\n{printed_by(step, output)}", end="", flush=True)


def main() -> None:
    if len(sys.argv) < 3:
        fail("usage: guest.py BUILD_DIRECTORY KERNEL_DIRECTORY [STEP...]")
    build, kernel, steps = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3:]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    wrong = test(steps, lambda names: boot(build, kernel, names))
    if wrong is not None:
        fail(wrong)


if __name__ == "__main__":
    main()
