"""A secondary instance and read-only instances, each in a process of its own, beside a database that overwrites,
compacts and is opened anew, on a device so full that its collector runs: whatever they have open can be read, and every
value is what its key says (beside_writer.cc).

usage: beside_writer_test.py BESIDE_WRITER ISOZONE SECONDS, and on a local file system for comparison:
       beside_writer_test.py BESIDE_WRITER posix:DIRECTORY SECONDS
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any

# Of RocksDB up to 11.8, where it was built with assertions, as Debian's is: one MANIFEST has followed another, and the
# secondary has made nothing of what came between.
ASSERTION = "Assertion `version_ != cfd->current()' failed"
# A fifth of it is live while compaction is behind, and as much is held for each reader, in zones of which it reads a
# part. The collector begins early, so that it always runs.
GEOMETRY = "zones=160&zone_size=1M&zone_capacity=1M&max_active=14&max_open=14"
OPTIONS = "timing=off&gc_start=70&reader_hold=100"


def start(program: str, role: str, uri: str, seconds: float, *local: str) -> subprocess.Popen[str]:
    return subprocess.Popen([program, role, uri, str(seconds), *local], stdout=subprocess.PIPE, text=True)


def report(name: str, code: int, out: str) -> dict[str, Any]:
    counts: dict[str, Any] = {"errors": 1, "first error": "it died"}
    if out.strip():
        counts = json.loads(out.splitlines()[-1])
    print(f"{name}: exit {code}, {counts}", flush=True)
    return counts


def follow(program: str, uri: str, seconds: float, local: str) -> dict[str, Any]:
    """Runs the secondary, and another one where RocksDB's own assertion ends it."""
    end, assertions = time.monotonic() + seconds, 0
    while True:
        command = [program, "secondary", uri, str(max(end - time.monotonic(), 1.0)), local]
        result = subprocess.run(command, capture_output=True, text=True)
        sys.stderr.write(result.stderr)
        if result.returncode != -signal.SIGABRT or ASSERTION not in result.stderr:
            break
        assertions += 1
    counts = report("secondary", result.returncode, result.stdout)
    print(f"secondary: ended by RocksDB's own assertion {assertions} times", flush=True)
    return counts


def main() -> int:
    program, where, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    with tempfile.TemporaryDirectory() as scratch:
        uri, reader_uri = where, where
        if not where.startswith("posix:"):
            image = f"emu:{scratch}/ssd.img"
            subprocess.run([where, "mkfs", f"{image}?{GEOMETRY}"], check=True, stdout=subprocess.DEVNULL)
            reader_uri = f"isozone://{image}?{OPTIONS}&read_only=on"
            uri = f"isozone://{image}?{OPTIONS}&log_dir={scratch}/log"  # which would fill the device in time
        writer = start(program, "writer", uri, seconds)
        assert writer.stdout is not None
        if writer.stdout.readline() != "ready\n":
            report("writer", writer.wait(), "")
            return 1
        # The path of a secondary is of the machine, and names nothing on the device.
        reader = start(program, "read-only", reader_uri, seconds)
        counts = {"secondary": follow(program, reader_uri, seconds, f"{scratch}/secondary")}
        for name, process in (("read-only", reader), ("writer", writer)):
            out, _ = process.communicate()
            counts[name] = report(name, process.returncode, out)
        with open(f"{scratch}/secondary/LOG", encoding="utf-8") as log:
            assert "RocksDB version" in log.read()
    assert all(of["errors"] == 0 for of in counts.values()), "see above"
    assert counts["secondary"]["values"] > 0 and counts["read-only"]["values"] > 0
    assert where.startswith("posix:") or counts["writer"]["collected"] > 0, "the device was not full"
    return 0


if __name__ == "__main__":
    sys.exit(main())
