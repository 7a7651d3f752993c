"""Runs RocksDB's test programs: many cases in a process, and the rest in another after a crash or a hang."""

import os
import resource
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, Self

from isozone_lab import processes

from . import outcomes

# What is run, and where RocksDB 11.8 keeps it.
PROGRAMS = ("env_basic_test", "env_test", "obsolete_files_test", "column_family_test", "db_basic_test",
            "checkpoint_test", "db_etc3_test", "db_secondary_test", "external_sst_file_basic_test",
            "fault_injection_test", "corruption_test", "error_handler_fs_test", "db_wal_test", "db_flush_test",
            "db_blob_basic_test", "external_sst_file_test", "backup_engine_test", "db_etc2_test",
            "db_compaction_test", "transaction_test")

POSIX, ISOZONE, WITH_DEFAULT = "posix", "isozone", "with_default"
BATCH = 40  # cases a process: few enough that a lost process costs little, enough that starting it does not
DEVICE = "profile=small-zone&zones=128&timing=off"
LIST_LIMIT_S = 120
POLL_S = 0.1


class ProgramError(Exception):
    """A program does not run at all; the message is for people."""


class Stopped(Exception):
    """Nothing more is to be run."""


def batches(cases: list[str]) -> list[list[str]]:
    return [cases[start:start + BATCH] for start in range(0, len(cases), BATCH)]


def prepare_child(parent: int) -> Callable[[], None]:
    """No core files: cases may crash on purpose."""
    dies = processes.dies_with(parent)

    def prepare() -> None:
        dies()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return prepare


def uri(image: str) -> str:
    """Of the file system in `image`. What a killed process leaves in memory lies beside it, and goes with it."""
    return f"isozone://emu:{image}?timing=off&kept_memory_directory={os.path.dirname(image)}"


class Built(Protocol):
    """What is to be known of a build (build.Build) to run its programs."""

    @property
    def isozone_so(self) -> str: ...

    @property
    def default_file_system(self) -> str: ...

    def program(self, name: str) -> str: ...

    def make_device(self, image: str, options: str) -> None: ...


class Place:
    """Where one process works: a directory of the host, and for Isozone a device of its own. Gone at the end."""

    def __init__(self, build: Built, scratch: str, side: str) -> None:
        self.build, self.side = build, side
        self.directory = tempfile.mkdtemp(prefix=f"{side}-", dir=scratch)

    def __enter__(self) -> Self:
        os.mkdir(os.path.join(self.directory, "tmp"))
        if self.side != POSIX:
            self.build.make_device(self.image, DEVICE)
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def image(self) -> str:
        return os.path.join(self.directory, "ssd.img")

    @property
    def log(self) -> str:
        return os.path.join(self.directory, "output")

    def environment(self) -> dict[str, str]:
        """Traces of the stack take longer than most cases."""
        result = {**os.environ, "TEST_TMPDIR": os.path.join(self.directory, "tmp"), "ROCKSDB_NO_STACK": "1"}
        for name in ("LD_PRELOAD", "TEST_FS_URI", "TEST_ENV_URI"):
            result.pop(name, None)
        if self.side != POSIX:
            preload = [self.build.isozone_so]
            if self.side == WITH_DEFAULT:
                preload.append(self.build.default_file_system)
            result.update(LD_PRELOAD=":".join(preload), TEST_FS_URI=uri(self.image))
        return result


class Runner:
    """Runs cases of the programs of `build`, in places below `scratch`; a case that takes longer than `time_limit_s`
    hangs. From any thread."""

    def __init__(self, build: Built, scratch: str, time_limit_s: float, logs: str) -> None:
        self.build, self.scratch, self.time_limit_s, self.logs = build, scratch, time_limit_s, logs
        self.stopping = threading.Event()

    def stop(self) -> None:
        """Ends what runs, soon, with Stopped."""
        self.stopping.set()

    def cases(self, program: str, side: str) -> list[str]:
        """The names of its cases. ProgramError where it does not even list them."""
        with Place(self.build, self.scratch, side) as place:
            try:
                result = subprocess.run([self.build.program(program), "--gtest_list_tests"], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIST_LIMIT_S,
                                        env=place.environment(), preexec_fn=prepare_child(os.getpid()))
            except (OSError, subprocess.TimeoutExpired) as error:
                raise ProgramError(f"{program} does not list its cases on {side}: {error}") from error
        text = result.stdout.decode(errors="replace")
        if result.returncode != 0:
            raise ProgramError(f"{program} does not list its cases on {side} ({result.returncode}):\n{text[-2000:]}")
        return outcomes.Cases.parse(text)

    def run(self, program: str, side: str, cases: Iterable[str],
            progress: Callable[[int], object] = lambda count: None) -> dict[str, str]:
        """The outcome of each of `cases`; `progress` is told how many more there are of them."""
        found: dict[str, str] = {}
        left = list(cases)
        while left:
            if self.stopping.is_set():
                raise Stopped
            now = self.run_process(program, side, left)
            found.update(now)
            progress(len(now))
            left = [case for case in left if case not in found]
        return found

    def run_process(self, program: str, side: str, cases: Sequence[str]) -> dict[str, str]:
        """The outcomes of those of `cases` to which one process comes, at least of one."""
        with Place(self.build, self.scratch, side) as place:
            command = [self.build.program(program), "--gtest_filter=" + ":".join(cases), "--gtest_color=no"]
            with open(place.log, "wb") as output:
                child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                         env=place.environment(), cwd=place.directory, start_new_session=True,
                                         preexec_fn=prepare_child(os.getpid()))
            reader, end = self.follow(child, place.log)
            found = {case: reader.outcomes[case] for case in cases if case in reader.outcomes}
            if not found:
                found = {cases[0]: end or outcomes.CRASHED}  # it ended before the first began
            self.keep_log(program, side, found, place.log)
            return found

    def follow(self, child: subprocess.Popen[bytes], log: str) -> tuple[outcomes.OutputReader, str | None]:
        """Reads the output of `child` to its end, or ends it when a case takes too long. Returns the reader, and
        CRASHED, HUNG, or None where the program ended by itself."""
        reader, ended_last, count = outcomes.OutputReader(), time.monotonic(), 0
        hung = None
        with open(log, encoding="utf-8", errors="replace") as output:
            while True:
                over = child.poll() is not None  # before reading, so that nothing that it wrote is missed
                reader.feed(output.read())
                if over:
                    break
                if len(reader.outcomes) != count:
                    count, ended_last = len(reader.outcomes), time.monotonic()
                elif time.monotonic() - ended_last > self.time_limit_s:
                    hung = outcomes.HUNG
                    processes.end_group(child)
                if self.stopping.wait(POLL_S):
                    processes.end_group(child)
        processes.end_group(child)  # what it has left behind
        if self.stopping.is_set():
            raise Stopped
        end = hung or (outcomes.CRASHED if child.returncode < 0 else None)
        reader.end(end)
        return reader, end

    def keep_log(self, program: str, side: str, found: Mapping[str, str], log: str) -> None:
        """Output in which something went wrong stays in `logs`, under the name of the first such case."""
        wrong = [case for case, outcome in found.items() if outcome not in (outcomes.PASSED, outcomes.SKIPPED)]
        if wrong:
            name = f"{program}.{wrong[0].replace('/', '_')}.{side}"
            shutil.move(log, os.path.join(self.logs, name))
