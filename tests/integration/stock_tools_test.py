#!/usr/bin/env python3
"""Runs RocksDB's own db_bench, ldb and sst_dump, as the system installed them, on an emulated SSD.

    stock_tools_test.py LIBISOZONE INTEGRATION_CHILD ISOZONE
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

LIBRARY, CHILD, ISOZONE = sys.argv.pop(1), sys.argv.pop(1), sys.argv.pop(1)
KEYS = 20000


def run(*command: str, preload: bool = True, fails: bool = False) -> str:
    environment = dict(os.environ, LD_PRELOAD=LIBRARY) if preload else None
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, text=True,
                            errors="replace", stdin=subprocess.DEVNULL)
    if (result.returncode != 0) != fails:
        raise AssertionError(f"{' '.join(command)}: exit status {result.returncode}\n{result.stdout[-4000:]}")
    return result.stdout


def found_keys(output: str) -> tuple[int, int]:
    """How many keys readrandom has found, and of how many."""
    found = re.search(r"\((\d+) of (\d+) found\)", output)
    if found is None:
        raise AssertionError(f"db_bench has not said what it found:\n{output[-4000:]}")
    return int(found[1]), int(found[2])


class StockTools(unittest.TestCase):
    scratch: str
    stats_file: str
    uri: str
    fill: str  # what db_bench has printed

    @classmethod
    def setUpClass(cls) -> None:
        cls.scratch = tempfile.mkdtemp(prefix="isozone-stock-tools-")
        image = f"isozone://emu:{cls.scratch}/ssd.img?timing=off"
        run(CHILD, "mkfs", image + "&zones=64&zone_size=16MiB&zone_capacity=12MiB", preload=False)
        cls.stats_file = os.path.join(cls.scratch, "stats.json")
        cls.uri = image + "&stats_file=" + cls.stats_file
        cls.fill = cls.db_bench("fillrandom,readrandom,overwrite", "--use_existing_db=0")

    @classmethod
    def tearDownClass(cls) -> None:
        shutil.rmtree(cls.scratch)

    @classmethod
    def db_bench(cls, benchmarks: str, *options: str) -> str:
        return run("db_bench", f"--fs_uri={cls.uri}", "--db=/bench", f"--benchmarks={benchmarks}", f"--num={KEYS}",
                   "--value_size=800", "--key_size=20", "--compression_type=none", "--write_buffer_size=2097152",
                   "--target_file_size_base=2097152", "--seed=1", *options)

    def ldb(self, *command: str, database: str = "/bench", fails: bool = False) -> str:
        return run("ldb", f"--fs_uri={self.uri}", f"--db={database}", *command, fails=fails)

    def files(self, extension: str) -> list[str]:
        listing = self.ldb("list_live_files_metadata", "--sort_by_filename")
        return sorted(set(re.findall(r"/bench/\d+\." + extension, listing)))

    def test_db_bench_measures_and_finds_what_it_wrote(self) -> None:
        for benchmark in ("fillrandom", "readrandom", "overwrite"):
            self.assertRegex(self.fill, benchmark + r" +: +[\d.]+ micros/op")
        found, keys = found_keys(self.fill)
        self.assertEqual(KEYS, keys)
        self.assertGreater(found, KEYS * 0.55)  # fillrandom writes a key again instead of another one

    def test_db_bench_reads_with_direct_io_and_async_io(self) -> None:
        output = self.db_bench("readrandom,seekrandom,multireadrandom", "--use_existing_db=1", "--use_direct_reads",
                               "--async_io", "--seek_nexts=50", "--reads=2000", "--multiread_batched")
        self.assertRegex(output, r"seekrandom +: .*\(\d+ of 2000 found\)")

    def test_env_uri_takes_what_the_document_says(self) -> None:
        """docs/rocksdb.md: with options in the URI, the text is a list of options for RocksDB, and needs a name."""
        image = f"isozone://emu:{self.scratch}/env.img"
        run(CHILD, "mkfs", image + "?timing=off&zones=64&zone_size=16MiB&zone_capacity=12MiB", preload=False)
        with open(os.path.join(os.path.dirname(__file__), "../../docs/rocksdb.md"), encoding="utf-8") as document:
            self.assertIn("`--env_uri='id=isozone://", document.read())
        bench = ("db_bench", "--db=/bench", "--num=2000", "--benchmarks=fillseq,readseq", "--use_existing_db=0")
        for uri in (image, f"id={image}?timing=off", f"id={image}?timing=off&policy=lifetime"):
            self.assertRegex(run(*bench, f"--env_uri={uri}"), r"readseq +: +[\d.]+ micros/op")
            found = run("ldb", f"--env_uri={uri}", "--db=/bench", "scan", "--max_keys=3", "--key_hex", "--value_hex")
            self.assertEqual(3, sum(1 for line in found.splitlines() if re.search(" : |==>", line)))
        self.assertIn("CURRENT", run(ISOZONE, "ls", f"emu:{self.scratch}/env.img", "/bench", preload=False))

    def test_a_local_table_is_not_found_on_the_device(self) -> None:
        local = os.path.join(self.scratch, "local.sst")
        with open(local, "wb") as file:
            file.write(b"table")
        refused = self.ldb("ingest_extern_sst", local, fails=True)
        self.assertIn(f"no such file or directory on the device: '{local}'", refused)

    def test_statistics_are_written_at_the_end(self) -> None:
        self.db_bench("overwrite", "--use_existing_db=1")
        with open(self.stats_file) as file:
            stats = json.load(file)
        self.assertGreater(stats["user_bytes_appended"], KEYS * 800)
        self.assertGreater(stats["classes"]["wal"]["bytes_written"], KEYS * 800)
        self.assertGreaterEqual(stats["write_amplification"], 1.0)

    def test_ldb_gets_puts_and_scans(self) -> None:
        self.ldb("put", "name", "Isozone")
        self.assertEqual("Isozone", self.ldb("get", "name").strip())
        lines = self.ldb("scan", "--max_keys=100", "--key_hex", "--value_hex").splitlines()
        self.assertEqual(100, sum(1 for line in lines if " : " in line or "==>" in line))
        self.assertIn("Isozone", self.ldb("scan", "--from=name", "--to=namf"))
        self.ldb("delete", "name")
        self.assertIn("NotFound", self.ldb("get", "name", fails=True))

    def test_ldb_checks_consistency_and_dumps_the_manifest(self) -> None:
        self.assertIn("OK", self.ldb("checkconsistency"))
        dump = self.ldb("manifest_dump")
        self.assertIn("Column family \"default\"", dump)
        self.assertIn("next_file_number", dump)

    def test_ldb_dumps_a_log(self) -> None:
        self.ldb("put", "logged", "value")
        logs = sorted(re.findall(r"/bench/+\d+\.log", self.ldb("dump_live_files")))
        self.assertTrue(logs)
        self.assertIn("PUT(0)", self.ldb("dump_wal", f"--walfile={logs[-1]}", "--print_value"))

    def test_ldb_backs_up_to_the_local_file_system_and_restores(self) -> None:
        backup = os.path.join(self.scratch, "backup")
        self.ldb("backup", "--backup_fs_uri=posix", f"--backup_dir={backup}")
        self.assertTrue(os.listdir(os.path.join(backup, "shared_checksum")))
        self.ldb("restore", "--backup_fs_uri=posix", f"--backup_dir={backup}", database="/restored")
        scan = ("scan", "--max_keys=20", "--key_hex", "--value_hex")
        self.assertEqual(self.ldb(*scan), self.ldb(*scan, database="/restored"))

    def test_sst_dump_checks_every_table(self) -> None:
        tables = self.files("sst")
        self.assertGreater(len(tables), 3)
        for table in tables:
            output = run("sst_dump", f"--fs_uri={self.uri}", f"--file={table}", "--command=verify")
            self.assertIn("The file is ok", output)
        output = run("sst_dump", f"--fs_uri={self.uri}", "--file=/bench", "--command=check", "--show_properties")
        self.assertIn("# entries", output)

    def test_ldb_reads_beside_a_writer_of_another_process(self) -> None:
        image = f"isozone://emu:{self.scratch}/live.img?timing=off"
        run(CHILD, "mkfs", image + "&zones=64&zone_size=16MiB&zone_capacity=12MiB", preload=False)
        with subprocess.Popen([CHILD, "hold-database", image, "1000"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as writer:
            assert writer.stdout is not None
            self.assertEqual("ready\n", writer.stdout.readline())
            scan = run("ldb", f"--fs_uri={image}&read_only=on", "--db=/db", "scan", "--key_hex", "--value_hex")
            self.assertEqual(1000, sum(1 for line in scan.splitlines() if re.search(" : |==>", line)))
            refused = run("ldb", f"--fs_uri={image}", "--db=/db", "scan", fails=True)
            self.assertRegex(refused, "in use|another process")
            writer.communicate("")
            self.assertEqual(0, writer.returncode)

    def options_file(self, listener: str) -> str:
        """On the device, where db_bench looks for it."""
        path = os.path.join(self.scratch, "options.ini")
        with open(path, "w") as file:
            file.write("[Version]\n  rocksdb_version=7.8.3\n  options_file_version=1.1\n"
                       f"[DBOptions]\n  create_if_missing=true\n  listeners={{{listener}}}\n"
                       '[CFOptions "default"]\n  compaction_style=kCompactionStyleNone\n'
                       "  sst_partitioner_factory=isozone\n  compression=kNoCompression\n"
                       "  write_buffer_size=1048576\n  target_file_size_base=1048576\n"
                       "  max_bytes_for_level_base=2097152\n"
                       '[TableOptions/BlockBasedTable "default"]\n')
        run(ISOZONE, "cp", f"emu:{self.scratch}/ssd.img", path, ":/options.ini", preload=False)
        return "--options_file=/options.ini"

    def test_an_options_file_steers_compaction(self) -> None:
        uri = f"{self.uri}&log_dir={self.scratch}/logs"
        bench = ("db_bench", f"--fs_uri={uri}", "--db=/steered", f"--num={KEYS}", "--value_size=800", "--seed=1")
        run(*bench, "--benchmarks=fillrandom,overwrite", "--use_existing_db=0",
            self.options_file("id=isozone;compaction=ll"))
        with open(f"{self.scratch}/logs/emu{self.scratch}/ssd.img/steered/LOG") as file:
            log = file.read()
        self.assertIn("isozone: compacts column family 'default' as the picker 'll' says", log)
        done = re.search(r"isozone: (\d+) compactions, \d+ refused, 0 failed", log)
        assert done is not None
        self.assertGreater(int(done[1]), 0)
        ldb = ("ldb", f"--fs_uri={uri}", "--db=/steered")
        self.assertIn("OK", run(*ldb, "checkconsistency"))
        # RocksDB has kept a list of two listeners, one of them db_bench's, and reads back none.
        self.assertIn("nothing compacts a column family", run(*ldb, "--try_load_options", "put", "name", "Isozone"))
        self.assertIn("Isozone", run(*ldb, "--try_load_options", "get", "name"))
        refused = run(*bench, "--benchmarks=overwrite", "--use_existing_db=1",
                      self.options_file("id=isozone;compaction=best"), fails=True)
        self.assertIn('unknown compaction picker "best"; known: gear', refused)

    def test_the_library_does_nothing_to_other_programs(self) -> None:
        self.assertEqual("hello\n", run("echo", "hello"))


if __name__ == "__main__":
    unittest.main()
