#!/usr/bin/env python3
"""Boots a real kernel in QEMU, with zoned block devices, and tests Isozone on them.

    guest.py BUILD_DIRECTORY KERNEL_DIRECTORY [STEP...]

KERNEL_DIRECTORY is what scripts/fetch-guest-kernel has unpacked. Without STEPs, all of them run (tests/guest/init lists
them). Everything that the guest prints is shown. Exits non-zero if a step fails, if the guest does not come to its end,
or if it takes longer than TIMEOUT_S.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

from machine import fail, qemu_command

TIMEOUT_S = 900
VERDICT = re.compile(r"^guest: (\d+) passed, (\d+) failed(.*)$", re.MULTILINE)


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


def problem(output: str) -> str | None:
    """What is wrong with a guest that has printed this; None if all of its steps passed."""
    verdict = VERDICT.search(output)
    if verdict is None:
        return "it did not come to its end"
    if int(verdict[2]) > 0:
        return f"{verdict[2]} of its steps failed:{verdict[3]}"
    return None if int(verdict[1]) > 0 else "it has no such step"


def main() -> None:
    if len(sys.argv) < 3:
        fail("usage: guest.py BUILD_DIRECTORY KERNEL_DIRECTORY [STEP...]")
    build, kernel, steps = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3:]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="isozone-guest-") as scratch:
        words = ["steps=" + ",".join(steps)] if steps else []
        output = run([*qemu_command(scratch, build, kernel, words), "-no-reboot"])
    wrong = problem(output)
    if wrong is not None:
        fail(wrong)


if __name__ == "__main__":
    main()
