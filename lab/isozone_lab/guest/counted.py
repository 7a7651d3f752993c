"""A guest that counts instructions: each one of its only processor takes 1 ns of its time (QEMU's -icount), so times in
it count instructions, those of the kernel included."""
import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence

from ..processes import RunFailed
from . import machine

TIMEOUT_S = 900
END = "path: end"  # what a guest prints once it has done everything


def boot(kernel: str, initramfs: str, scratch: str, memory: str, devices: Sequence[str]) -> str:
    """Returns what the guest has printed. `memory` and `devices` are for QEMU."""
    # Without ERMS the kernel copies eight bytes an instruction; with it, a byte would count as one.
    command = [machine.program("qemu-system-x86_64"), "-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off",
               "-cpu", "max,erms=off", "-smp", "1", "-m", memory, "-no-reboot", *devices,
               *machine.boot_arguments(kernel, initramfs, scratch, [])]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace", timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise RunFailed(f"the guest takes longer than {TIMEOUT_S} s") from error
    if END not in done.stdout:
        raise RunFailed(f"the guest did not come to its end:\n{done.stdout}")
    return done.stdout


def run(description: str | None, init: str, programs: Sequence[str], memory: str, modules: Sequence[str],
        devices: Sequence[str] = (), tools: Mapping[str, str] | None = None) -> str:
    """Parses the command line of a script, and returns what its guest has printed. `init` is what that boots, a file;
    `programs` are those of the build, and `tools` as machine.add_tools has them. Ends the script where this fails."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release", help=f"build directory with {' and '.join(programs)}")
    parser.add_argument("--kernel", default="build/guest-kernel-newest", help="what fetch-guest-kernel has unpacked")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="isozone-path-") as scratch:
        initramfs = os.path.join(scratch, "initramfs")
        try:
            archive = machine.base_archive()
            archive.add_file("init", init)
            machine.add_programs(archive, {name: f"{arguments.build}/bench/{name}" for name in programs})
            machine.add_tools(archive, arguments.kernel, tools or {})
            machine.add_modules(archive, arguments.kernel, modules)
            archive.write(initramfs)
            return boot(arguments.kernel, initramfs, scratch, memory, devices)
        except RunFailed as error:
            sys.exit(str(error))
