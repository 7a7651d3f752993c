#!/usr/bin/env python3
"""`isozone run`: programs that know nothing of Isozone keep a directory on a device; and what it refuses, in one line.

    run_test.py BUILD_DIRECTORY
"""

import os
import re
import shutil
import signal
import subprocess
import unittest

import engine

# Writes keys for as long as it lives; each is synced before its number is printed. Or counts them, with any argument.
WRITER = """
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  char* error = NULL;
  char key[16];
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_t* db = rocksdb_open(options, argv[1], &error);
  if (error != NULL) return fprintf(stderr, "%s\\n", error), 1;
  if (argc > 2) {
    int count = 0;
    rocksdb_iterator_t* all = rocksdb_create_iterator(db, rocksdb_readoptions_create());
    for (rocksdb_iter_seek_to_first(all); rocksdb_iter_valid(all); rocksdb_iter_next(all)) ++count;
    printf("%d\\n", count);
    rocksdb_iter_destroy(all);
    rocksdb_close(db);
    return 0;
  }
  rocksdb_writeoptions_t* synced = rocksdb_writeoptions_create();
  rocksdb_writeoptions_set_sync(synced, 1);
  for (int i = 1;; ++i) {
    rocksdb_put(db, synced, key, sprintf(key, "%08d", i), "value", 5, &error);
    if (error != NULL) return fprintf(stderr, "%s\\n", error), 1;
    printf("%d\\n", i);
    fflush(stdout);
  }
}
"""

# Asks for the column families of a database, forks, and says what the child and then the parent can write.
FORKING = """
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static int Put(rocksdb_options_t* options, const char* who, const char* path) {
  char* error = NULL;
  rocksdb_t* db = rocksdb_open(options, path, &error);
  if (error == NULL) rocksdb_put(db, rocksdb_writeoptions_create(), who, 5, "value", 5, &error);
  if (error == NULL) rocksdb_close(db);
  printf("%s: %s\\n", who, error != NULL ? error : "written");
  fflush(stdout);
  return 0;
}
int main(int argc, char** argv) {
  char* error = NULL;
  size_t count = 0;
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_list_column_families(options, argv[1], &count, &error);
  if (fork() == 0) return Put(options, "child", argv[1]);
  wait(NULL);
  return Put(options, "parent", argv[1]);
}
"""


class Run(engine.EngineTest):
    def setUp(self) -> None:
        super().setUp()
        self.app = os.path.join(self.scratch, "app")
        self.run_command("isozone", "mkfs", "emu:ssd.img?zones=64&zone_size=4M&timing=off")

    def mapped(self, *command: str, fails: bool = False) -> str:
        return self.run_command("isozone", "run", "--map", "app=emu:ssd.img?timing=off", "--", *command, fails=fails)

    def refuses(self, words: str, *arguments: str, code: int | None = None) -> None:
        """`isozone run` with `arguments` fails with one line that matches `words`."""
        result = subprocess.run(["isozone", "run", *arguments], capture_output=True, text=True, cwd=self.scratch,
                                env=self.environment, timeout=60)
        self.assertRegex(result.stderr, rf"\Aisozone run: .*{words}.*\n\Z")
        self.assertNotEqual(0, result.returncode)
        if code is not None:
            self.assertEqual(code, result.returncode)

    def on_device(self, directory: str) -> list[str]:
        return self.run_command("isozone", "ls", "emu:ssd.img", directory).split()

    def compile(self, source: str, *options: str) -> str:
        self.need("cc")
        self.write("program.c", source)
        self.run_command("cc", "program.c", "-o", "program", *options)
        return "./program"

    def test_the_page(self) -> None:
        os.remove(os.path.join(self.scratch, "ssd.img"))
        self.assertIn("CURRENT", self.follow_page("run"))

    def test_a_stock_tool_without_a_setting(self) -> None:
        self.mapped("ldb", f"--db={self.app}/db", "--create_if_missing", "put", "name", "Isozone")
        self.assertEqual("Isozone", self.mapped("ldb", "--db=app/db", "get", "name").strip())
        self.assertIn("CURRENT", self.on_device("/db"))
        self.assertEqual([], os.listdir(os.path.join(self.app, "db")))
        self.assertIn("OK", self.mapped("ldb", "--db=app/db", "checkconsistency"))

    def test_what_is_not_mapped_stays_where_it_was(self) -> None:
        self.mapped("ldb", f"--db={self.scratch}/other", "--create_if_missing", "put", "name", "local")
        self.assertIn("CURRENT", os.listdir(os.path.join(self.scratch, "other")))
        self.assertEqual([], self.on_device("/"))

    def test_two_devices(self) -> None:
        self.run_command("isozone", "mkfs", "emu:two.img?zones=64&zone_size=4M&timing=off")
        maps = ("--map", "app=emu:ssd.img?timing=off", "--map", "log=isozone://emu:two.img?timing=off")
        self.run_command("isozone", "run", *maps, "--", "db_bench", "--db=app/db", "--wal_dir=log/wal",
                         "--benchmarks=fillrandom", "--num=1000")
        self.assertIn("CURRENT", self.on_device("/db"))
        self.assertRegex(self.run_command("isozone", "ls", "emu:two.img", "/wal"), r"\d+\.log")

    def test_programs_of_a_script(self) -> None:
        script = self.write("script", "#!/bin/sh\nldb --db=app/db --create_if_missing put a 1\nldb --db=app/db get a\n")
        os.chmod(script, 0o755)
        self.assertRegex(self.mapped("./script"), r"1\n$")
        self.assertIn("CURRENT", self.on_device("/db"))

    def test_an_interpreter_that_loads_rocksdb_later(self) -> None:
        code = ("from ctypes import *; r = CDLL('librocksdb.so.7.8'); e = c_char_p(); "
                "r.rocksdb_options_create.restype = r.rocksdb_open.restype = c_void_p; "
                "o = c_void_p(r.rocksdb_options_create()); r.rocksdb_options_set_create_if_missing(o, 1); "
                "r.rocksdb_close(c_void_p(r.rocksdb_open(o, b'app/db', byref(e)))); print(e.value)")
        self.assertEqual("None\n", self.mapped("python3", "-c", code))
        self.assertIn("CURRENT", self.on_device("/db"))

    def test_arguments_and_exit_code_are_those_of_the_program(self) -> None:
        self.assertEqual("--map -x\n", self.mapped("echo", "--map", "-x"))
        result = subprocess.run(["isozone", "run", "--map", "app=emu:ssd.img", "--", "sh", "-c", "exit 42"],
                                cwd=self.scratch, env=self.environment)
        self.assertEqual(42, result.returncode)

    def test_nothing_synced_is_lost_when_the_program_is_killed(self) -> None:
        program = self.compile(WRITER, "-lrocksdb")
        command = ["isozone", "run", "--map", "app=emu:ssd.img?timing=off", "--", program, "app/db"]
        acknowledged = 0
        for round_ in range(1, 4):
            with subprocess.Popen(command, cwd=self.scratch, env=self.environment, stdout=subprocess.PIPE,
                                  text=True) as writer:
                assert writer.stdout is not None
                for line in writer.stdout:
                    if int(line) == 200 * round_:
                        writer.send_signal(signal.SIGKILL)
                    acknowledged = max(acknowledged, int(line))
            self.assertEqual(-signal.SIGKILL, writer.returncode)
            # The mount says first what it takes over of the one that was killed.
            self.assertGreaterEqual(int(self.mapped(program, "app/db", "count").splitlines()[-1]), acknowledged)
        self.assertGreaterEqual(acknowledged, 600)

    def test_one_device_serves_one_process(self) -> None:
        program = self.compile(WRITER, "-lrocksdb")
        command = ["isozone", "run", "--map", "app=emu:ssd.img?timing=off", "--", program, "app/db"]
        with subprocess.Popen(command, cwd=self.scratch, env=self.environment, stdout=subprocess.PIPE,
                              text=True) as writer:
            assert writer.stdout is not None
            self.assertEqual("1\n", writer.stdout.readline())
            self.assertRegex(self.mapped(program, "app/db", fails=True), "in use|another process")
            writer.kill()
            writer.stdout.read()

    def test_a_child_that_goes_on_without_exec_leaves_the_device_to_its_parent(self) -> None:
        program = self.compile(FORKING, "-lrocksdb")
        for timing in "off", "on":
            with self.subTest(timing=timing):
                said = self.run_command("isozone", "run", "--map", f"app=emu:ssd.img?timing={timing}", "--", program,
                                        f"app/{timing}", timeout_s=60)
                self.assertRegex(said, r"(?m)^child: IO error.*forked from uses the device; start a program \(exec\)")
                self.assertRegex(said, r"(?m)^parent: written$")
                self.assertIn("CURRENT", self.on_device(f"/{timing}"))

    def test_a_directory_is_known_by_each_of_its_names(self) -> None:
        os.mkdir(os.path.join(self.scratch, "real"))
        os.symlink("real", os.path.join(self.scratch, "link"))
        linked, real = (os.path.join(self.scratch, name, "app") for name in ("link", "real"))
        for mapped, used in (linked, real), (real, linked):
            with self.subTest(mapped=mapped):
                self.run_command("isozone", "run", "--map", f"{mapped}=emu:ssd.img?timing=off", "--", "ldb",
                                 f"--db={used}/db", "--create_if_missing", "put", "name", "Isozone")
                self.assertEqual([], os.listdir(os.path.join(real, "db")))
        self.assertIn("CURRENT", self.on_device("/db"))

    def test_a_script_without_an_interpreter_is_run_by_the_shell(self) -> None:
        os.chmod(self.write("plain", 'echo "$0 $1"\n'), 0o755)
        self.assertEqual("./plain word\n", self.mapped("./plain", "word"))

    def test_isozone_below_a_path_that_cannot_be_preloaded(self) -> None:
        place = os.path.join(self.scratch, "a b", "tools", "isozone")
        os.makedirs(place)
        tool = os.path.join(place, "isozone")
        source = shutil.which("isozone", path=self.environment["PATH"])
        assert source is not None
        shutil.copy(source, tool)
        self.write("a b/src/rocksdb/library/libisozone_run.so", "")
        result = subprocess.run([tool, "run", "--map", "app=emu:ssd.img", "--", "true"], capture_output=True, text=True,
                                cwd=self.scratch, env=self.environment, timeout=60)
        self.assertRegex(result.stderr, r"\Aisozone run: nothing can be preloaded from '.*a b/.*' *; install .*\n\Z")

    def test_a_static_program_is_refused(self) -> None:
        program = self.compile("int main(void) { return 0; }", "-static")
        self.refuses("linked statically.*isozone mount", "--map", "app=emu:ssd.img", "--", program)

    def test_a_program_with_rocksdb_inside_is_refused(self) -> None:
        source = 'const char* counter = "rocksdb.block.cache.data.bytes.insert"; int main(void) { return 0; }'
        program = self.compile(source)
        self.refuses("RocksDB is linked into .*isozone mount", "--map", "app=emu:ssd.img", "--", program)

    def test_another_release_of_rocksdb_is_refused(self) -> None:
        self.compile("int rocksdb(void) { return 0; }", "-shared", "-fPIC", "-Wl,-soname,librocksdb.so.9.9")
        os.rename(os.path.join(self.scratch, "program"), os.path.join(self.scratch, "librocksdb.so.9.9"))
        program = self.compile("int rocksdb(void); int main(void) { return rocksdb(); }", "./librocksdb.so.9.9",
                               "-Wl,-rpath,$ORIGIN")
        self.refuses(r"uses librocksdb\.so\.9\.9, but .* librocksdb\.so\.7\.8.*isozone mount", "--map",
                     "app=emu:ssd.img", "--", program)

    def test_rocksdb_in_a_library_that_is_loaded_later_ends_the_program(self) -> None:
        self.compile("extern void* Ask(void) __asm__(\"_ZN7rocksdb10FileSystem7DefaultEv\");\n"
                     "void* Ask(void) { return 0; } void Open(void) { Ask(); }", "-shared", "-fPIC")
        os.rename(os.path.join(self.scratch, "program"), os.path.join(self.scratch, "own.so"))
        result = self.mapped("python3", "-c", "import ctypes; ctypes.CDLL('./own.so').Open()", fails=True)
        self.assertRegex(result, r"\Aisozone run: RocksDB is part of .*own\.so.*isozone mount.*\n\Z")

    def test_bad_input(self) -> None:
        good = ("--map", "app=emu:ssd.img")
        self.refuses("no such program: 'no-such-program'", *good, "--", "no-such-program", code=2)
        self.write("file", "")
        self.refuses("cannot be executed", *good, "--", "./file", code=8)
        self.refuses("DIRECTORY=DEVICE", "--map", "app", "--", "true", code=1)
        self.refuses("none.img", "--map", "app=emu:none.img", "--", "true", code=2)
        self.refuses("timinng.*timing", "--map", "app=emu:ssd.img?timinng=off", "--", "true", code=1)
        self.refuses("file is no directory", "--map", "file=emu:ssd.img", "--", "true")
        self.refuses("cannot create .*/no/app", "--map", "no/app=emu:ssd.img", "--", "true", code=2)
        self.refuses("mapped to one device", *good, "--map", "other=emu:./ssd.img", "--", "true", code=1)
        self.refuses("--map", "--", "true", code=1)
        self.refuses("PROGRAM", *good, code=1)
        self.write("old/db/CURRENT", "MANIFEST-000001\n")
        self.refuses("old/db holds a database.*isozone cp", "--map", "old=emu:ssd.img", "--", "true")
        self.write("deep/a/b/CURRENT", "MANIFEST-000001\n")
        self.refuses("deep/a/b holds a database", "--map", "deep=emu:ssd.img", "--", "true")
        self.write("deep/a/b/wal/000012.log", "")
        self.refuses("deep/a/b/wal holds a database", "--map", "deep/a/b/wal=emu:ssd.img", "--", "true")
        os.mkdir(os.path.join(self.scratch, "linking"))
        os.symlink("../old/db", os.path.join(self.scratch, "linking", "db"))
        self.refuses("linking/db holds a database", "--map", "linking=emu:ssd.img", "--", "true")
        self.refuses("the root directory cannot be mapped", "--map", "/=emu:ssd.img", "--", "true", code=1)
        self.refuses("'app=emu:' names no device", "--map", "app=emu:", "--", "true", code=1)
        self.refuses("none.img", "--map", "app=emu:none.img", "--", "true", code=2)
        self.assertFalse(os.path.exists(self.app))
        os.symlink("ssd.img", os.path.join(self.scratch, "linked.img"))
        self.refuses("mapped to one device", *good, "--map", "other=emu:linked.img", "--", "true", code=1)

    def test_directories_in_each_other(self) -> None:
        self.run_command("isozone", "mkfs", "emu:two.img?zones=64&zone_size=4M&timing=off")
        os.makedirs(self.app)
        os.symlink("app", os.path.join(self.scratch, "link"))
        for inner in "app/in", "link/in", "app":
            self.refuses("lie in each other", "--map", "app=emu:ssd.img", "--map", f"{inner}=emu:two.img", "--", "true",
                         code=1)

    def test_a_bioinformatics_tool_of_debian(self) -> None:
        self.need("sortmerna")
        sequence = "ACGTACGTACGTTAGCATCGATCGATCAGCTAGCATCGACTAGCATCAGCATCAGCATCAGCTACGACTACG"
        self.write("work/reference.fa", f">one\n{sequence}\n")
        self.mapped("sortmerna", "--ref", "work/reference.fa", "--reads", "work/reference.fa", "--fastx", "--workdir",
                    "work", "--kvdb", f"{self.app}/kvdb", "--threads", "1")
        self.assertIn("CURRENT", self.on_device("/kvdb"))
        with open(os.path.join(self.scratch, "work", "out", "aligned.fa"), encoding="utf-8") as file:
            self.assertRegex(file.read(), re.escape(sequence))


if __name__ == "__main__":
    unittest.main()
