#!/usr/bin/env python3
"""Programs that know nothing of Isozone, as they come, on a mounted directory: RocksDB's db_bench and ldb, SQLite, git.

    programs_test.py ISOZONE
"""

import os
import re
import shutil
import signal
import sqlite3
import subprocess

import mounted

KEYS = 20000


class Programs(mounted.MountTest):
    device_options = "timing=off&zones=64&zone_size=16M"

    def run_program(self, *command: str) -> str:
        if shutil.which(command[0]) is None:
            self.skipTest(f"there is no {command[0]}")
        environment = dict(os.environ, HOME=self.scratch, GIT_CONFIG_NOSYSTEM="1")
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                                stdin=subprocess.DEVNULL, env=environment)
        self.assertEqual(0, result.returncode, f"{' '.join(command)}\n{result.stdout[-4000:]}")
        return result.stdout

    def db_bench(self, benchmarks: str, *options: str) -> str:
        return self.run_program("db_bench", f"--db={self.path('db')}", f"--benchmarks={benchmarks}", f"--num={KEYS}",
                                "--value_size=800", "--key_size=20", "--compression_type=none", "--seed=1",
                                "--write_buffer_size=2097152", "--target_file_size_base=2097152", *options)

    def test_rocksdb_writes_reads_and_is_consistent(self) -> None:
        for options, flags in (("", ()), ("writeback=on", ()), ("", ("--use_direct_reads=1",
                                                                   "--use_direct_io_for_flush_and_compaction=1")),
                               ("inplace=refuse", ()), ("", ("--mmap_read=1",))):
            with self.subTest(options=options, flags=flags):
                daemon = self.mount(options)
                output = self.db_bench("fillrandom,readrandom,overwrite", *flags)
                found = re.search(r"\((\d+) of (\d+) found\)", output)
                assert found is not None
                self.assertGreater(int(found[1]), KEYS * 0.55)  # fillrandom writes a key again instead of another one
                daemon = self.mount_again(daemon, options)
                self.assertIn("OK", self.run_program("ldb", f"--db={self.path('db')}", "checkconsistency"))
                shutil.rmtree(self.path("db"))
                self.assertEqual(0, daemon.end(), daemon.said())
                self.check()

    def test_files_of_rocksdb_lie_where_their_lifetime_says(self) -> None:
        daemon = self.mount()
        self.db_bench("fillrandom", "--disable_auto_compactions=1")
        listing = self.run_tool("ls", "-l", self.device, "/db")
        self.assertRegex(listing, r"(?m)^.*\blog\b.*\bshort\b.*\d+\.log$")
        self.assertRegex(listing, r"(?m)^.*\blog\b.*\blong\b.*MANIFEST-\d+$")
        self.assertRegex(listing, r"(?m)^.*\bdata\b.*\bmedium\b.*\d+\.sst$")
        self.assertEqual(0, daemon.end(), daemon.said())

    def test_rocksdb_opens_with_its_tables_and_its_log_after_the_daemon_was_killed(self) -> None:
        for turn, benchmark in enumerate(("fillseq", "overwrite")):
            daemon = self.mount()
            command = ["db_bench", f"--db={self.path('db')}", f"--benchmarks={benchmark}", "--num=200000",
                       "--value_size=100", "--sync=1", f"--use_existing_db={turn}", "--write_buffer_size=262144",
                       "--disable_auto_compactions=1"]
            if shutil.which("db_bench") is None:
                self.skipTest("there is no db_bench")
            with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as bench:
                self.wait_for_tables(self.tables() + 3)
                daemon.end(signal.SIGKILL)
                bench.kill()
            daemon = self.mount()
            scan = self.run_program("ldb", f"--db={self.path('db')}", "scan", "--key_hex", "--max_keys=1000000")
            keys = sum(1 for line in scan.splitlines() if line.startswith("0x"))
            self.assertGreater(keys, 1500)  # those of the tables that were there, at least
            self.assertIn("OK", self.run_program("ldb", f"--db={self.path('db')}", "checkconsistency"))
            self.assertEqual(0, daemon.end(), daemon.said())
            self.check()

    def wait_for_tables(self, count: int) -> None:
        mounted.wait_until(lambda: self.tables() >= count, "db_bench does not get on")

    def tables(self) -> int:
        return sum(name.endswith(".sst") for name in self.names())

    def names(self) -> list[str]:
        try:
            return os.listdir(self.path("db"))
        except FileNotFoundError:
            return []

    def test_sqlite_commits_rolls_back_and_is_whole(self) -> None:
        for mode in ("wal", "delete", "truncate", "persist"):
            with self.subTest(mode=mode):
                daemon = self.mount()
                database = sqlite3.connect(self.path(f"{mode}.db"))
                self.assertEqual((mode,), database.execute(f"pragma journal_mode={mode}").fetchone())
                database.execute("create table t (id integer primary key, text text)")
                for number in range(30):
                    with database:
                        database.executemany("insert into t (text) values (?)", [(f"row {number}",)] * 100)
                with database:
                    database.execute("update t set text = text || ' again' where id % 7 = 0")
                database.execute("delete from t")
                database.rollback()
                database.close()
                daemon = self.mount_again(daemon)
                database = sqlite3.connect(self.path(f"{mode}.db"))
                self.assertEqual(("ok",), database.execute("pragma integrity_check").fetchone())
                self.assertEqual((3000,), database.execute("select count(*) from t").fetchone())
                database.execute("vacuum")
                database.close()
                self.assertEqual(0, daemon.end(), daemon.said())
                self.check()

    def test_git_commits_packs_and_is_whole(self) -> None:
        daemon = self.mount()
        work = self.path("work")
        self.run_program("git", "init", "-q", work)
        git = ("git", "-C", work, "-c", "user.name=a", "-c", "user.email=a@example.org")
        for turn in range(3):
            for number in range(100):
                with open(os.path.join(work, f"file{number}"), "w") as file:
                    file.write(f"turn {turn} file {number}\n" * 50)
            self.run_program(*git, "add", ".")
            self.run_program(*git, "commit", "-q", "-m", f"turn {turn}")
        self.run_program(*git, "gc", "-q")
        daemon = self.mount_again(daemon)
        self.run_program(*git, "fsck", "--full", "--strict")
        self.assertEqual("", self.run_program(*git, "status", "--porcelain"))
        self.run_program("git", "clone", "-q", work, self.path("clone"))
        self.assertEqual(0, daemon.end(), daemon.said())
        self.check()


if __name__ == "__main__":
    mounted.main()
