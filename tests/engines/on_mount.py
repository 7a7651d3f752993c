"""What the tests of programs on a mounted directory share: a device, its daemon, its directory, and programs in the
background that are killed at the end whatever happens."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence

import engine

sys.argv.insert(1, engine.ISOZONE)
sys.path.insert(0, os.path.join(engine.ROOT, "tests", "mount"))
import mounted  # noqa: E402 - found by the line above

__all__ = ["MountedTest", "Program", "free_ports", "mounted"]


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens at."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in sockets]


class Program:
    """A program in the background, whose output is in a file."""

    def __init__(self, test: engine.EngineTest, name: str, *command: str) -> None:
        self.name = name
        self.output = os.path.join(test.scratch, f"{name}.output")
        with open(self.output, "ab") as output:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                            cwd=test.scratch, env=test.environment)
        test.addCleanup(self.end, signal.SIGKILL)

    def said(self) -> str:
        with open(self.output, encoding="utf-8", errors="replace") as file:
            return file.read()[-4000:]

    def count(self, pattern: str) -> int:
        """How often it has said that."""
        with open(self.output, encoding="utf-8", errors="replace") as file:
            return len(re.findall(pattern, file.read()))

    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def end(self, number: int = signal.SIGTERM) -> int:
        """Ends it by a signal, if it runs, and gives its exit code."""
        if not self.has_ended():
            self.process.send_signal(number)
        return self.process.wait(timeout=mounted.WAIT_S)


class MountedTest(engine.EngineTest):
    """Each test has a device of 1 GiB, and `directory` for its daemon."""

    commands: Sequence[str] = ()  # that the tests need

    def setUp(self) -> None:
        self.need(*self.commands)
        if (reason := mounted.why_not()) is not None:
            self.skipTest(reason)
        super().setUp()
        self.scratch = os.path.realpath(self.scratch)
        self.device = f"emu:{self.scratch}/ssd.img?timing=off"
        self.directory = os.path.join(self.scratch, "fast")
        # Runs after the programs of the test were ended, and before the scratch directory is removed.
        self.addCleanup(self.take_off)
        self.format(self.device)

    def format(self, device: str) -> None:
        self.run_command("isozone", "mkfs", f"{device}&profile=small-zone&zones=256")

    def mount(self, device: str | None = None) -> mounted.Daemon:
        if not mounted.is_mounted(self.directory):
            os.makedirs(self.directory, exist_ok=True)
        daemon = mounted.Daemon(device or self.device, self.directory)
        self.addCleanup(daemon.clean_up)
        return daemon

    def take_off(self) -> None:
        while mounted.is_mounted(self.directory):
            subprocess.run(["fusermount3", "-uz", self.directory], check=True)

    def check_device(self) -> None:
        self.run_command("isozone", "fsck", "--read-data", self.device)

    def leave_to_page(self) -> None:
        """Removes what the page of an engine makes by itself."""
        shutil.rmtree(self.directory, ignore_errors=True)
        os.remove(os.path.join(self.scratch, "ssd.img"))
