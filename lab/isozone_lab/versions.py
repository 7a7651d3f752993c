"""What was measured with: programs, libraries and the machine."""
import hashlib
import os
import platform

from . import device, processes


class Build:
    """What a build directory holds."""

    def __init__(self, directory: str) -> None:
        self.tool = os.path.join(directory, "tools/isozone/isozone")
        self.shared_object = os.path.abspath(os.path.join(directory, "src/adapter/libisozone.so"))
        self.ycsb = os.path.join(directory, "lab/ycsb/isozone_ycsb")
        self.sim_truth = os.path.join(directory, "bench/isozone_sim_truth")

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


def collect(build: Build) -> dict[str, str]:
    return {"isozone": processes.run([build.tool, "--version"]).strip().removeprefix("isozone "),
            "library": digest(build.shared_object), "tool": digest(build.tool), "ycsb": digest(build.ycsb),
            "sim_truth": digest(build.sim_truth),
            "profile": digest(device.PROFILE),  # which devices with fewer dies are made from
            "db_bench": processes.run(["db_bench", "--version"]).strip().removeprefix("db_bench version "),
            "cpu": cpu(), "kernel": platform.release(), "python": platform.python_version()}
