"""RocksDB's crash test: db_stress, killed over and over, and checked by itself after each kill."""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import TypedDict

from isozone_lab import processes

from . import programs
from .build import Build

KINDS = ("blackbox", "whitebox", "unsynced")
GRACE_S = 1800  # beyond its time: db_crashtest.py ends what it has begun, and verifies
RUN = b"Running db_stress with pid="
VERIFIED = b"Crash-recovery verification passed"

# db_stress opens restored backups, and lists MANIFESTs to see whether they were reused, in the default file system.
LEFT_OUT = ("backup_one_in", "optimize_manifest_for_recovery", "reuse_manifest_on_open")
# What db_stress injects, by a file system that it puts in between. That one keeps a WAL's flush to itself, but passes
# each append on: so a kill loses nothing, as long as there is kept memory. Only with sync_fault_injection it keeps the
# appends as well, until a sync, and db_stress takes any prefix for right.
FAULTS = ("sync_fault_injection", "read_fault_one_in", "write_fault_one_in", "metadata_read_fault_one_in",
          "metadata_write_fault_one_in", "open_read_fault_one_in", "open_write_fault_one_in",
          "open_metadata_read_fault_one_in", "open_metadata_write_fault_one_in", "secondary_cache_fault_one_in")
# The kind `unsynced` is blackbox where nothing is synced and nothing excuses a loss: every write that had returned must
# be there. Without a WAL, with a WAL that is flushed by hand, and with sync_fault_injection, RocksDB may lose the end
# of what was written, and db_stress asks for a prefix only; with batches of snapshots it does not compare after a kill;
# and a write that fails may be there or not. Logs reach the device piece by piece, which left holes once.
UNSYNCED = {"sync": 0, "disable_wal": 0, "manual_wal_flush_one_in": 0, "test_batches_snapshots": 0,
            "wal_bytes_per_sync": 256 << 10, **dict.fromkeys(FAULTS, 0)}
# Where db_stress writes down which faults it has injected, if its database is not in the default file system.
FAULT_LOGS = "/tmp/fault_injection_logs"
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
    base = "whitebox" if kind == "whitebox" else "blackbox"
    return [base, f"--stress_cmd={wrapper}", f"--fs_uri={programs.uri(image)}",
            "--db=/rocksdb_crashtest", f"--duration={int(minutes * 60)}", f"--max_key={KEYS}",
            *(["--interval=60"] if base == "blackbox" else []),
            *(f"--{name}=0" for name in LEFT_OUT), *(f"--{name}=none" for name in COMPRESSION),
            *(f"--{name}={value}" for name, value in UNSYNCED.items() if kind == "unsynced")]


def unproved(output: bytes) -> str | None:
    """Why a test of the kind `unsynced` that found no error has proved nothing, or None: db_crashtest.py changes
    options that do not go together, and a process may be killed before it has compared anything."""
    runs = [line.split() for line in output.splitlines() if line.startswith(RUN)]
    for name, value in UNSYNCED.items():
        if any(f"--{name}={value}".encode() not in run for run in runs):
            return f"db_stress was run without --{name}={value}"
    after_a_kill = output.split(RUN)[2:]
    return None if any(VERIFIED in run for run in after_a_kill) else "db_stress has verified nothing after a kill"


def write_wrapper(path: str, build: programs.Built) -> None:
    """db_stress with Isozone; it ends with db_crashtest.py, which is not to be run with the library itself. It writes
    whole lines, so that a kill takes none of what it says. What Isozone notes in passing, as what it took over after a
    kill, goes to the output: db_crashtest.py takes every line elsewhere for an error."""
    notes = '/\\] \\[isozone\\] \\[info\\] / { print; next } { print > "/dev/stderr" }'
    with open(path, "w", encoding="utf-8") as script:
        script.write(f"""#!/bin/bash
preload='exec env LD_PRELOAD="$LD_PRELOAD:$0" "$@"'
exec setpriv --pdeathsig KILL stdbuf -oL sh -c "$preload" '{build.isozone_so}' \\
  '{build.program('db_stress')}' "$@" 2> >(exec awk '{notes}')
""")
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
        with open(log, "rb") as file:
            output = file.read()
        if kind == "unsynced":
            failure = failure or unproved(output)
        if failure is None:
            remove_fault_logs(output)
        runs = output.count(RUN)
        complaint = build.check_device(image)
        return {"kind": kind, "minutes": minutes, "runs": runs, "failure": failure, "fsck": complaint, "log": log}
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def remove_fault_logs(output: bytes) -> None:
    """Those of the processes that `output` names."""
    for pid in re.findall(RUN + rb"([0-9]+)", output):
        for path in glob.glob(f"{FAULT_LOGS}/fault_injection_{pid.decode()}_*"):
            os.remove(path)


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
