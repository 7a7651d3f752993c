#!/usr/bin/env python3
"""Crashes the host under RocksDB, again and again, and looks for every key that was acknowledged.

    crash.py BUILD_DIRECTORY KERNEL_DIRECTORY [--rounds N] [--seed N]

A round: the guest checks the file system (fsck), finds all writes that a Sync has covered, and overwrites, of which it
tells each Sync. The device is so small that it is collected all the while. After a random number of writes, and at a
random moment behind the last, the machine is reset, without a word to its kernel. The NVMe namespace keeps what it has
completed: what a power cut takes from the cache of a device is the emulated device's to show. Exits non-zero with the
first round that loses something. The seed, which is printed, chooses the moments.
"""

import argparse
import itertools
import json
import os
import random
import re
import socket
import subprocess
import tempfile
import threading
import time

from machine import fail, qemu_command

ROUND_S = 300  # the longest that a guest may take to boot, check and verify
MOST_WRITES = 2000  # of a round
LONGEST_DELAY_S = 0.05  # of a reset behind the last of these writes: some more are under way
# What the guest tells while it writes: how many writes it has acknowledged, and how many bytes it has collected. The
# reset may cut a line short, and what the kernel prints next then ends it.
ACKNOWLEDGED = re.compile(r"\d+")
COLLECTED = re.compile(r"collected (\d+)")


class Machine:
    """QEMU, the lines that its guest prints, and its monitor."""

    def __init__(self, command: list[str], scratch: str) -> None:
        monitor = os.path.join(scratch, "monitor")
        self._process = subprocess.Popen([*command, "-qmp", f"unix:{monitor},server=on,wait=off"],
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                         text=True, errors="replace", bufsize=1)
        self._monitor = self._connect(monitor)
        self._ask("qmp_capabilities")

    def _connect(self, path: str) -> socket.socket:
        deadline = time.monotonic() + 30
        connection = socket.socket(socket.AF_UNIX)
        while True:
            try:
                connection.connect(path)
                break
            except OSError:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    self.stop()
                    fail("QEMU did not start")
                time.sleep(0.05)
        return connection

    def _ask(self, command: str) -> None:
        self._monitor.sendall(json.dumps({"execute": command}).encode() + b"\n")

    def reset(self) -> None:
        self._ask("system_reset")

    def tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")

    def lines(self, seconds: float) -> "Lines":
        return Lines(self._process, seconds)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


class Lines:
    """The lines that the guest prints within a time; the guest is stopped if it takes longer."""

    def __init__(self, process: subprocess.Popen[str], seconds: float) -> None:
        self._process = process
        self._timer = threading.Timer(seconds, process.kill)

    def __enter__(self) -> "Lines":
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def next(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            fail("the guest ended, or took too long")
        return line.replace("\r", "").strip()

    def until(self, word: str) -> str:
        """The first line that begins with `word`; what comes before it is shown."""
        while True:
            line = self.next()
            if line.startswith(word):
                return line
            print(f"  {line}", flush=True)
            if line.startswith("crash: failed"):
                fail("this round lost something")


def acknowledged_until(machine: Machine, writes: int, delay_s: float, known: int) -> tuple[int, int]:
    """Reads what the guest tells until so many more writes are acknowledged, and resets it after the delay. Returns how
    many writes it has acknowledged, and how many bytes it has collected."""
    collected = 0
    target = known + writes
    timer = threading.Timer(delay_s, machine.reset)
    with machine.lines(ROUND_S) as lines:
        while True:
            if known >= target and timer.ident is None:
                timer.start()
            line = lines.next()
            if ACKNOWLEDGED.fullmatch(line):
                known = max(known, int(line))
            elif line == "crash: booted":
                return known, collected
            elif told := COLLECTED.fullmatch(line):
                collected = max(collected, int(told[1]))
            elif line:
                print(f"  {line}", flush=True)


def run(machine: Machine, rounds: int, chance: random.Random) -> None:
    known = 0
    collected = 0
    begin = time.monotonic()
    for number in itertools.count():
        with machine.lines(ROUND_S) as lines:
            lines.until("crash: ready")
            machine.tell(str(known))
            lines.until("crash: verified")
            print(f"round {number} at {time.monotonic() - begin:.0f} s: all of {known} writes are there, "
                  f"{collected >> 10} KiB were collected", flush=True)
            if number >= rounds:
                break
            lines.until("crash: writing")
        known, copied = acknowledged_until(machine, chance.randrange(MOST_WRITES), chance.uniform(0, LONGEST_DELAY_S),
                                           known)
        collected += copied
    if collected == 0:
        fail("nothing was collected, so that no crash came while it was")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("kernel")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    arguments = parser.parse_args()
    print(f"crash.py --rounds {arguments.rounds} --seed {arguments.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="isozone-guest-") as scratch:
        command = qemu_command(scratch, os.path.abspath(arguments.build), os.path.abspath(arguments.kernel),
                               ["crash=/dev/nvme0n3"])
        machine = Machine(command, scratch)
        try:
            run(machine, arguments.rounds, random.Random(arguments.seed))
        finally:
            machine.stop()


if __name__ == "__main__":
    main()
