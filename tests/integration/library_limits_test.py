#!/usr/bin/env python3
"""The library in RocksDB's own db_bench with too few threads, descriptors and memory: it does its work, or says in one
line why not. It takes nothing of what RocksDB needs but what is written here, and loses nothing in silence.

    library_limits_test.py LIBISOZONE ISOZONE
"""

import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

LIBRARY, ISOZONE = sys.argv.pop(1), sys.argv.pop(1)
SECONDS = 60  # after which a program hangs
# A user who has no other process, so that the limit counts those of the program.
USER = 64_233
AS_USER = ("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups") if os.geteuid() == 0 else ()
# Those of a mount: the journal, resets, GC, writers of logs, statistics.
OWN_THREADS = 5
ENDING_THREADS = 3  # those of db_bench that have ended, and that the kernel still counts
TINY_SHARED_MEMORY = ("unshare", "-m", "sh", "-c",
                      "mount -t tmpfs -o size=64k none /dev/shm && exec \"$0\" \"$@\"")
SLOW = (r"\[[^\n]*\] \[isozone\] \[warning\] each flush of a log writes to the device, which is slow: there is no "
        r"memory that outlives the process \(cannot make {}: {}\); set kept_memory or kept_memory_directory\n")
MIB = 1 << 20


class Limits(unittest.TestCase):
    def setUp(self) -> None:
        self.scratch = tempfile.mkdtemp(prefix="isozone-limits-")
        self.addCleanup(shutil.rmtree, self.scratch)
        os.chmod(self.scratch, 0o777)
        self.preloaded = shutil.copy(LIBRARY, self.scratch)
        self.image = os.path.join(self.scratch, "ssd.img")
        self.device = f"emu:{self.image}?timing=off"
        self.addCleanup(self.remove_memory)

    def remove_memory(self) -> None:
        """What a program that RocksDB has ended leaves for the next mount."""
        status = os.stat(self.image)
        for path in glob.glob(f"/dev/shm/isozone-{status.st_dev:x}-{status.st_ino:x}*"):
            os.remove(path)

    def command(self, benchmarks: str, *options: str, uri: str = "") -> list[str]:
        """On the local file system, or on a new device."""
        where = [f"--db={self.scratch}/local"]
        if uri:
            where = [f"--fs_uri={uri}", "--db=/bench"]
            subprocess.run([ISOZONE, "mkfs", "--force", f"{self.device}&zones=64&zone_size=1M"], check=True,
                           stdout=subprocess.DEVNULL)
            os.chmod(self.image, 0o666)
        # Tables are opened by the thread that opens the database.
        return ["env", "MALLOC_ARENA_MAX=1", *([f"LD_PRELOAD={self.preloaded}"] if uri else []), "db_bench", *where,
                f"--benchmarks={benchmarks}", "--num=2000", "--value_size=800", "--compression_type=none",
                "--write_buffer_size=262144", "--file_opening_threads=1", *options]

    def bench(self, *before: str, uri: str = "") -> tuple[int, str]:
        shutil.rmtree(f"{self.scratch}/local", ignore_errors=True)
        result = subprocess.run([*before, *self.command("fillrandom,readrandom", uri=uri)], stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=SECONDS)
        return result.returncode, result.stdout.decode(errors="replace")

    def bench_of_isozone(self, *before: str, options: str = "") -> tuple[int, str]:
        return self.bench(*before, uri=f"isozone://{self.device}{options}")

    def refuses(self, words: str, *before: str) -> None:
        """That it says why in one line, and RocksDB passes it on."""
        with self.subTest(before=before):
            code, said = self.bench_of_isozone(*before)
            self.assertEqual(1, code, said)
            self.assertRegex(said, rf"(\A|\n)Failed creating env: [^\n]*{words}[^\n]*\n\Z")

    @unittest.skipIf(os.geteuid() != 0, "the limit counts all threads of a user, so it takes one who has no others")
    def test_few_threads(self) -> None:
        """RocksDB, which ends by an exception where it has too few, has as many as are left."""
        for count in (1, OWN_THREADS - 1):
            self.refuses(r"cannot start a thread for [^\n]*\(ulimit -u\)", *AS_USER, "prlimit", f"--nproc={count}")
        needed = next(count for count in range(1, 100)
                      if self.bench(*AS_USER, "prlimit", f"--nproc={count}")[0] == 0)
        code, said = self.bench_of_isozone(*AS_USER, "prlimit", f"--nproc={needed + OWN_THREADS + ENDING_THREADS}")
        self.assertEqual(0, code, said)

    def test_few_descriptors(self) -> None:
        self.refuses(r"Too many open files; [^\n]*\(ulimit -n\)", "prlimit", "--nofile=4")
        for count in (5, 6, 8, 12):
            code, said = self.bench_of_isozone("prlimit", f"--nofile={count}")
            if code != 0:
                self.assertRegex(said, r"(\A|\n)Failed creating env: [^\n]*Too many open files; [^\n]*\n\Z")
        self.assertEqual(0, code, said)

    def test_little_memory(self) -> None:
        codes = []
        for mib in (*range(90, 330, 20), 600):
            code, said = self.bench_of_isozone("prlimit", f"--as={mib * MIB}")
            if code == 1:
                self.assertRegex(said, r"(\A|\n)Failed creating env: [^\n]*\(ulimit -v\)[^\n]*\n\Z")
            elif code != 0:  # where RocksDB has too little, it ends so
                self.assertEqual(-signal.SIGABRT, code, said)
            codes.append(code)
        self.assertEqual((1, 0), (codes[0], codes[-1]), codes)

    def needs_tiny_shared_memory(self) -> None:
        if os.geteuid() != 0 or subprocess.run([*TINY_SHARED_MEMORY, "true"], capture_output=True).returncode != 0:
            self.skipTest("a small /dev/shm cannot be mounted")

    def test_a_tiny_shared_memory_is_told_of_in_one_line(self) -> None:
        self.needs_tiny_shared_memory()
        code, said = self.bench_of_isozone(*TINY_SHARED_MEMORY)
        self.assertEqual(0, code, said)
        self.assertEqual(1, len(re.findall(SLOW.format(r"/dev/shm/isozone-\S+-kept", "No space left on device"), said)))
        self.assertEqual(1, said.count("[isozone]"), said)

    @unittest.skipIf(os.geteuid() != 0, "only root can make a directory that the user may not use")
    def test_a_directory_without_rights_is_told_of_in_one_line(self) -> None:
        directory = os.path.join(self.scratch, "of-root")
        os.mkdir(directory, 0o755)
        code, said = self.bench_of_isozone(*AS_USER, options=f"&kept_memory_directory={directory}")
        self.assertEqual(0, code, said)
        self.assertEqual(1, len(re.findall(SLOW.format(rf"{directory}/isozone-\S+-kept", "Permission denied"), said)))
        self.assertEqual(1, said.count("[isozone]"), said)

    def test_puts_stay_though_the_shared_memory_is_tiny(self) -> None:
        """Each put is flushed to the device, so that it is there when the process is killed."""
        self.needs_tiny_shared_memory()
        uri = f"isozone://{self.device}"
        with subprocess.Popen([*TINY_SHARED_MEMORY, *self.command("fillseq", "--num=10000000", uri=uri)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as bench:
            assert bench.stderr is not None
            said = b""
            while not (done := re.findall(rb"finished (\d+) ops", said)) or int(done[-1]) < 3000:
                part = os.read(bench.stderr.fileno(), 4096)
                self.assertTrue(part, said)
                said += part
            bench.kill()
        scan = subprocess.run(["ldb", f"--fs_uri={uri}", "--db=/bench", "scan", "--key_hex", "--no_value"],
                              capture_output=True, env=dict(os.environ, LD_PRELOAD=self.preloaded), timeout=SECONDS)
        self.assertEqual(0, scan.returncode, scan.stderr)
        keys = len(re.findall(rb"^0x\w+", scan.stdout, re.MULTILINE))
        self.assertGreaterEqual(keys, int(done[-1]))


if __name__ == "__main__":
    unittest.main()
