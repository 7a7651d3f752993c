"""Debian's db_bench, as the benchmarks run it, and what it reports."""
import os
import re
import subprocess
import sys
from collections.abc import Iterable

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lab"))

from isozone_lab import processes  # noqa: E402 - only found by the line above

LINE = re.compile(r"^(\w+)\s+:\s+([\d.]+) micros/op (\d+) ops/sec", re.M)
PERCENTILES = re.compile(r"^Percentiles: (.*)$", re.M)


class OutOfSpace(SystemExit):
    """db_bench has failed since the device was full."""


def run(database: str, benchmarks: str, options: Iterable[str],
        environment: processes.Environment) -> tuple[dict[str, float], str]:
    """Operations per second by benchmark, and what was printed. Ends the program where db_bench fails."""
    command = ["db_bench", f"--benchmarks={benchmarks}", f"--db={database}", "--key_size=20", "--value_size=800",
               "--compression_type=none", "--threads=1", "--max_background_jobs=2", *options]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False,
                          preexec_fn=processes.dies_with(os.getpid()))
    rates = {name: float(rate) for name, _, rate in LINE.findall(done.stdout)}
    if done.returncode != 0 or set(rates) != set(benchmarks.split(",")):
        said = done.stdout[-2000:] + done.stderr[-2000:]
        kind = OutOfSpace if "No space left on device" in done.stdout + done.stderr else SystemExit
        raise kind(f"db_bench failed ({done.returncode}): {' '.join(command)}\n{said}")
    return rates, done.stdout


def percentiles(text: str) -> dict[str, float]:
    """Of the first benchmark, in microseconds, by name; db_bench needs --histogram for them."""
    found = PERCENTILES.search(text)
    if found is None:
        sys.exit("db_bench reported no percentiles")
    words = found.group(1).split()
    return {name.rstrip(":"): float(value) for name, value in zip(words[::2], words[1::2], strict=False)}


def build_paths(build: str) -> tuple[str, str]:
    """The command line tool and the library of a build directory."""
    return (os.path.join(build, "tools/isozone/isozone"), os.path.join(build, "src/rocksdb/library/libisozone.so"))
