"""RocksDB's crash test: db_stress, killed over and over, and checked by itself after each kill."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import TypedDict

from isozone_lab import processes

from . import programs
from .build import Build

KINDS = ("blackbox", "whitebox")
GRACE_S = 1800  # beyond its time: db_crashtest.py ends what it has begun, and verifies
RUN = b"Running db_stress with pid="

# db_stress opens restored backups, and lists MANIFESTs to see whether they were reused, in the default file system. Its
# injection of faults puts a file system in between that keeps a WAL's flush to itself, so that writes which were not
# synced would be lost with the process; a kill must not lose them.
FAULTS = ("sync_fault_injection", "read_fault_one_in", "write_fault_one_in", "metadata_read_fault_one_in",
          "metadata_write_fault_one_in", "open_read_fault_one_in", "open_write_fault_one_in",
          "open_metadata_read_fault_one_in", "open_metadata_write_fault_one_in", "secondary_cache_fault_one_in")
LEFT_OUT = ("backup_one_in", "optimize_manifest_for_recovery", "reuse_manifest_on_open", *FAULTS)
# As many keys as db_crashtest.py takes every other time; else 25 millions, which two cores verify for longer than the
# whole test is to take.
KEYS = 100_000
# RocksDB is built without compression libraries; some compression managers of db_stress then crash.
COMPRESSION = ("compression_type", "bottommost_compression_type", "blob_compression_type", "wal_compression",
               "compression_manager")


class Result(TypedDict):
    """Of one test: how many times db_stress ran, why the test failed, if it did, and what fsck found afterwards."""
    kind: str
    minutes: float
    runs: int
    failure: str | None
    fsck: str | None
    log: str


class DatedResult(Result):
    date: str


def options(kind: str, minutes: float, image: str, wrapper: str) -> list[str]:
    """The arguments of db_crashtest.py."""
    return [kind, f"--stress_cmd={wrapper}", f"--fs_uri=isozone://emu:{image}?timing=off",
            "--db=/rocksdb_crashtest", f"--duration={int(minutes * 60)}", f"--max_key={KEYS}",
            *(["--interval=60"] if kind == "blackbox" else []),
            *(f"--{name}=0" for name in LEFT_OUT), *(f"--{name}=none" for name in COMPRESSION)]


def write_wrapper(path: str, build: Build) -> None:
    """db_stress with Isozone; it ends with db_crashtest.py, which is not to be run with the library itself."""
    with open(path, "w", encoding="utf-8") as script:
        script.write(f"#!/bin/sh\nexec setpriv --pdeathsig KILL env LD_PRELOAD='{build.isozone_so}' "
                     f"'{build.program('db_stress')}' \"$@\"\n")
    os.chmod(path, 0o755)


def run(build: Build, kind: str, minutes: float, scratch: str) -> Result:
    """Runs it; returns the result for the page. Its output stays in a log, which the result names."""
    directory = tempfile.mkdtemp(prefix=f"{kind}-", dir=scratch)
    try:
        image, wrapper = os.path.join(directory, "ssd.img"), os.path.join(directory, "db_stress")
        build.make_device(image, programs.DEVICE)
        write_wrapper(wrapper, build)
        log = os.path.join(build.logs, f"db_crashtest.{kind}")
        command = [sys.executable, os.path.join(build.source, "tools/db_crashtest.py"),
                   *options(kind, minutes, image, wrapper)]
        environment = {**os.environ, "TMPDIR": directory, "TEST_TMPDIR_EXPECTED": directory, "ROCKSDB_NO_STACK": "1"}
        environment.pop("TEST_TMPDIR", None)
        failure = run_command(command, environment, directory, log, minutes * 60 + GRACE_S)
        with open(log, "rb") as output:
            runs = output.read().count(RUN)
        complaint = build.check_device(image)
        return {"kind": kind, "minutes": minutes, "runs": runs, "failure": failure, "fsck": complaint, "log": log}
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def run_command(command: Sequence[str], environment: dict[str, str], directory: str, log: str,
                limit_s: float) -> str | None:
    """Why it failed, or None."""
    with open(log, "wb") as output:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                 env=environment, cwd=directory, start_new_session=True,
                                 preexec_fn=programs.prepare_child(os.getpid()))
        try:
            code = child.wait(timeout=limit_s)
        except subprocess.TimeoutExpired:
            return f"did not end within {limit_s / 60:.0f} minutes"
        finally:
            processes.end_group(child)
    return None if code == 0 else f"ended with {code}"
