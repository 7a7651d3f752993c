"""What the tests of mounted directories share: a device, its daemon and its directory, in a scratch directory of their
own."""

import atexit
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Callable, Sequence

PROGRAM = os.path.abspath(sys.argv.pop(1))
ENABLE_URING = "/sys/module/fuse/parameters/enable_uring"
SMALL_DEVICE = "timing=off&zones=64&zone_size=4M"
WAIT_S = 60


def option(name: str, value: int) -> int:
    """What the command line gives as `name`, or `value`; taken off the command line, which unittest reads."""
    return int(word_option(name, str(value)))


def word_option(name: str, value: str) -> str:
    if name not in sys.argv:
        return value
    at = sys.argv.index(name)
    value = sys.argv[at + 1]
    del sys.argv[at:at + 2]
    return value


def flag(name: str) -> bool:
    """Whether the command line has `name`; taken off."""
    if name not in sys.argv:
        return False
    sys.argv.remove(name)
    return True


IO_URING = flag("--io-uring")  # the kernel is made to offer it


def seed() -> int:
    """Of what is random: the same each time, unless `--seed` names another one or asks for a new one."""
    word = word_option("--seed", "1")
    return random.SystemRandom().randrange(1 << 32) if word == "new" else int(word)


def is_mounted(directory: str) -> bool:
    """Also of a dead mount, and of one that nobody serves."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        return any(line.split()[4] == directory for line in file)


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} within {WAIT_S} s")
        time.sleep(0.01)


class CannotMount(AssertionError):
    pass


class Daemon:
    """`isozone mount` in the foreground, started by the command `starter`, if one is given."""

    def __init__(self, device: str, directory: str, options: str = "", starter: Sequence[str] = ()) -> None:
        self.directory = directory
        more = ("-o", options) if options else ()
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen([*starter, PROGRAM, "mount", "-f", *more, device, directory],
                                        stdout=subprocess.PIPE, stderr=self.log, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if "is mounted on" not in line:
            self.process.wait(timeout=WAIT_S)
            self.process.stdout.close()
            said = self.said()
            self.log.close()
            raise CannotMount(f"cannot mount: {said}")

    def said(self) -> str:
        """What it wrote to its standard error so far. A seek would move the place where the daemon goes on."""
        log = self.log.fileno()
        return os.pread(log, os.fstat(log).st_size, 0).decode(errors="replace")

    def end(self, number: int = signal.SIGTERM) -> int:
        """Ends it by a signal, and gives its exit code."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        code = self.process.wait(timeout=WAIT_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    def clean_up(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.wait()
        self.log.close()


def set_io_uring(word: str) -> str:
    """Says whether the kernel offers FUSE by io_uring, Y or N, and gives what it was. OSError: it cannot be said."""
    with open(ENABLE_URING, "r+", encoding="ascii") as file:
        before = file.read().strip()
        file.seek(0)
        file.write(word)
    return before


def why_not() -> str | None:
    """Why nothing can be mounted here; None where it can."""
    if not os.path.exists("/dev/fuse"):
        return "there is no /dev/fuse"
    if IO_URING:
        try:
            atexit.register(set_io_uring, set_io_uring("Y"))
        except OSError as error:
            return f"FUSE by io_uring cannot be switched on here: {error.strerror}"
    with tempfile.TemporaryDirectory(prefix="isozone-mount-") as scratch:
        device = f"emu:{scratch}/ssd.img?timing=off"
        subprocess.run([PROGRAM, "mkfs", f"{device}&zones=32&zone_size=4M"], check=True, stdout=subprocess.DEVNULL)
        directory = os.path.join(scratch, "directory")
        os.mkdir(directory)
        tried = subprocess.run([PROGRAM, "mount", device, directory], capture_output=True, text=True)
        if tried.returncode == 0:
            unmount(directory)
            # The daemon still makes durable what it has, in the image that is removed here.
            wait_until(lambda: subprocess.run([PROGRAM, "df", device], capture_output=True).returncode == 0 and
                       not is_mounted(directory), "the trial ends")
            return None
        if tried.returncode in (3, 8):  # unusable, permission denied
            return tried.stderr.strip()
        raise AssertionError(f"exit code {tried.returncode}: {tried.stderr}")


def unmount(directory: str) -> None:
    command = ["umount", directory] if os.geteuid() == 0 else ["fusermount3", "-u", directory]
    subprocess.run(command, check=True)


class MountTest(unittest.TestCase):
    """Each test has a new device, mounted or not."""

    options = ""  # of the mount
    device_options = SMALL_DEVICE

    def setUp(self) -> None:
        self.scratch = tempfile.mkdtemp(prefix="isozone-mount-")
        self.addCleanup(shutil.rmtree, self.scratch)
        self.image = os.path.join(self.scratch, "ssd.img")
        self.device = f"emu:{self.image}?timing=off"
        self.directory = os.path.join(os.path.realpath(self.scratch), "directory")
        os.mkdir(self.directory)
        self.addCleanup(self.take_off)
        self.run_tool("mkfs", f"emu:{self.image}?{self.device_options}")

    def take_off(self) -> None:
        while is_mounted(self.directory):
            subprocess.run(["fusermount3", "-uz", self.directory], check=True)

    def run_tool(self, *arguments: str) -> str:
        result = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=WAIT_S)
        self.assertEqual((0, ""), (result.returncode, result.stderr), arguments)
        return result.stdout

    def mount(self, options: str = "", device: str | None = None, starter: Sequence[str] = ()) -> Daemon:
        daemon = Daemon(device or self.device, self.directory, options or self.options, starter)
        self.addCleanup(daemon.clean_up)
        return daemon

    def mount_again(self, daemon: Daemon, options: str = "") -> Daemon:
        self.assertEqual(0, daemon.end(), daemon.said())
        return self.mount(options)

    def check(self) -> None:
        self.run_tool("fsck", "--read-data", self.device)

    def path(self, *names: str) -> str:
        return os.path.join(self.directory, *names)


def main() -> None:
    reason = why_not()
    if reason is not None:
        print(f"SKIP: {reason}")
        return
    unittest.main()
