"""A guest that counts instructions: each one of its only processor takes 1 ns of its time (QEMU's -icount), so times in
it count instructions, those of the kernel included."""
import subprocess
from collections.abc import Sequence

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
