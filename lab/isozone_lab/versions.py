"""What was measured with: programs, libraries and the machine."""
import glob
import hashlib
import os
import platform
import shutil

from . import device, processes
from .guest import mariadb, timed

GUEST_KERNEL = "build/guest-kernel-newest"


class Build:
    """What a build directory holds, and the kernel of guests, which scripts/fetch-guest-kernel --newest unpacks."""

    def __init__(self, directory: str, guest_kernel: str = GUEST_KERNEL) -> None:
        self.tool = os.path.join(directory, "tools/isozone/isozone")
        self.shared_object = os.path.abspath(os.path.join(directory, "src/rocksdb/library/libisozone.so"))
        self.conventional = os.path.abspath(
            os.path.join(directory, "lab/conventional/libisozone_conventional.so"))
        self.ycsb = os.path.join(directory, "lab/ycsb/isozone_ycsb")
        self.sim_truth = os.path.join(directory, "lab/sim_truth/isozone_sim_truth")
        self.gc_bench = os.path.join(directory, "lab/gc_bench/isozone_gc_bench")
        self.guest_kernel = guest_kernel

    def missing(self) -> list[str]:
        """The files that every experiment needs and that are not there."""
        return [path for path in (self.tool, self.shared_object) if not os.path.exists(path)]


def digest(path: str) -> str:
    """Tells two builds of the same version apart; "none" if there is no such file."""
    if not os.path.exists(path):
        return "none"
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:12]


def cpu() -> str:
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        models = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return f"{os.cpu_count()} x {models[0] if models else platform.machine()}"


def guest(build: Build) -> str:
    """Of all that a guest in virtual time consists of but Isozone; "none" if there is no kernel or no QEMU."""
    kernels = [os.path.basename(path) for path in glob.glob(f"{build.guest_kernel}/boot/vmlinuz-*")]
    if not kernels or not shutil.which("qemu-system-x86_64"):
        return "none"
    qemu = processes.run(["qemu-system-x86_64", "--version"]).splitlines()[0].removeprefix("QEMU emulator version ")
    scripts = ", ".join(digest(os.path.join(timed.HERE, name)) for name in timed.SCRIPTS)
    return f"{kernels[0].removeprefix('vmlinuz-')} in QEMU {qemu}, {db_bench()}, scripts {scripts}"


def db_bench() -> str:
    return processes.run(["db_bench", "--version"]).strip().removeprefix("db_bench version ")


def collect(build: Build) -> dict[str, str]:
    return {"isozone": processes.run([build.tool, "--version"]).strip().removeprefix("isozone "),
            "library": digest(build.shared_object), "tool": digest(build.tool), "ycsb": digest(build.ycsb),
            "sim_truth": digest(build.sim_truth), "conventional": digest(build.conventional),
            "gc_bench": digest(build.gc_bench),
            "profile": digest(device.PROFILE),  # which devices with fewer dies are made from
            "db_bench": db_bench(), "guest": (in_guest := guest(build)),
            "mariadb": f"{mariadb.version()}, {in_guest}",
            "cpu": cpu(), "kernel": platform.release(), "python": platform.python_version()}
