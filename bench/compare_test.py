"""What measuring scripts share: their options, whose turn it is, tables, what is left behind. Nothing is measured."""
import argparse
import contextlib
import io
import os
import signal
import stat
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import compare
from compare import Figures, Option
from isozone_lab import processes, versions

HERE = os.path.dirname(os.path.abspath(__file__))
RATE = "{}   :      12.719 micros/op {} ops/sec 5.087 seconds 400000 operations;   61.5 MB/s\n"


class Options(unittest.TestCase):
    OPTIONS = {"num": Option(1000, "keys", quick=10), "full_percent": Option(60.0, "of the device"),
               "threads": Option([1, 4], "clients"), "browser": Option(False, "with one"),
               "before": Option(None, "other"), "timing": Option("off", "of the flash", choices=("on", "off"))}

    def parsed(self, *words: str) -> argparse.Namespace:
        return compare.parse("Measures.", self.OPTIONS, words)

    def test_each_has_its_default(self) -> None:
        found = self.parsed()
        self.assertEqual((1000, 60.0, [1, 4], False, None, "off"),
                         (found.num, found.full_percent, found.threads, found.browser, found.before, found.timing))
        self.assertEqual(("build/release", "/dev/shm", 3, 1),
                         (found.build, found.directory, found.repeats, found.seed))

    def test_what_is_given_has_the_type_of_the_default(self) -> None:
        found = self.parsed("--num", "5", "--full-percent", "72", "--threads", "2", "8", "--browser", "--before", "old",
                            "--timing", "on")
        self.assertEqual((5, 72.0, [2, 8], True, "old", "on"),
                         (found.num, found.full_percent, found.threads, found.browser, found.before, found.timing))

    def test_quick_is_smaller_except_for_what_is_given(self) -> None:
        found = self.parsed("--quick", "--repeats", "2")
        self.assertEqual((10, 60.0, 2), (found.num, found.full_percent, found.repeats))

    def test_a_script_can_have_another_default_of_what_all_have(self) -> None:
        self.assertEqual(".", compare.parse("", {"directory": Option(".", "on a disk")}, []).directory)

    def test_others_are_refused(self) -> None:
        for words in (["--timing", "maybe"], ["--num", "many"], ["--tmp"]):
            with self.subTest(words=words), contextlib.redirect_stderr(io.StringIO()), \
                    self.assertRaises(SystemExit) as refused:
                self.parsed(*words)
            self.assertEqual(2, refused.exception.code)


class Tables(unittest.TestCase):
    def test_medians_with_their_ratios_to_the_first_and_the_widest_spread(self) -> None:
        puts = {"tmpfs": [1000.0, 1100.0, 2000.0], "isozone": [1200.0, 1430.0, 1500.0]}
        p99 = {"tmpfs": [2.0, 2.0, 2.0], "isozone": [3.0, 5.0, 4.0]}
        runs = {name: [{"puts/s": rate, "P99": wait} for rate, wait in zip(puts[name], p99[name], strict=True)]
                for name in puts}
        self.assertEqual(["median of 3                 tmpfs             isozone   spread",
                          "puts/s               1,100 (1.00)        1,430 (1.30)      91%",
                          "P99                   2.00 (1.00)         4.00 (2.00)      50%"],
                         list(compare.table("median of 3", runs)))

    def test_of_some_figures_the_greatest(self) -> None:
        runs = {"tmpfs": [{"longest": 5.0}, {"longest": 9.0}, {"longest": 6.0}]}
        self.assertEqual({"tmpfs": {"longest": 9.0}}, compare.medians(runs, ["longest"]))

    def test_ratios_of_pairs(self) -> None:
        # The machine was half as fast in the second of three runs.
        runs = {"tmpfs": [{"puts/s": 800.0}, {"puts/s": 400.0}, {"puts/s": 1000.0}],
                "mount": [{"puts/s": 400.0}, {"puts/s": 200.0}, {"puts/s": 300.0}]}
        self.assertIn(" 300 (0.38)", list(compare.table("", runs))[1])
        self.assertIn(" 300 (0.50)", list(compare.table("", runs, paired=True))[1])

    def test_one_that_failed_once_has_no_figures(self) -> None:
        runs: dict[str, list[Figures]] = {"rocksdb": 2 * [{"puts/s": 500.0}], "ll": [{"puts/s": 1.0}, {}]}
        self.assertEqual("puts/s            500 (1.00)                   -       0%",
                         list(compare.table("median", runs))[1])

    def test_none_where_all_have_failed(self) -> None:
        self.assertEqual(1, len(list(compare.table("median", {"rocksdb": [{}], "ll": [{}]}))))

    def test_no_ratio_to_nothing(self) -> None:
        without: list[Figures] = [{}, {"copies": 0.0}]
        for base in without:
            row = list(compare.table("", {"a": [base], "b": [{"copies": 3.0}]}))[1]
            self.assertIn(" 3.00 ", row)
            self.assertNotIn("(", row)

    def test_no_ratio_of_one_alone(self) -> None:
        self.assertNotIn("(", list(compare.table("", {"alone": [{"copies": 3.0}]}))[1])


class Measuring(unittest.TestCase):
    def setUp(self) -> None:
        kept = tempfile.TemporaryDirectory(prefix="isozone-compare-test-")
        self.addCleanup(kept.cleanup)
        self.calls: list[str] = []
        self.bench = compare.Bench(argparse.Namespace(repeats=2, seed=7, build="build"), kept.name)

    def write(self, path: str, text: str) -> None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def measure(self, bench: compare.Bench, contestant: str) -> Figures:
        self.assertEqual([], os.listdir(bench.scratch))
        self.write(f"{bench.scratch}/ssd.img", "")
        self.calls.append(contestant)
        if contestant == "FULL" and self.calls.count("FULL") == 2:
            raise compare.NoFigures("the device is full")
        if contestant == "BROKEN":
            raise processes.RunFailed("db_bench failed")
        return {"puts/s": 100.0 * len(self.calls)}

    def compare(self, *contestants: str) -> tuple[dict[str, Figures], str, str]:
        """The medians, the table, and what is said of the progress."""
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as said:
            found = self.bench.compare({one.lower(): one for one in contestants}, self.measure, "small")
        return found, out.getvalue(), said.getvalue()

    def test_turns_are_reversed_every_other_time(self) -> None:
        found, out, said = self.compare("A", "B", "C")
        self.assertEqual(["A", "B", "C", "C", "B", "A"], self.calls)
        self.assertEqual({"a": {"puts/s": 350.0}, "b": {"puts/s": 350.0}, "c": {"puts/s": 350.0}}, found)
        self.assertTrue(out.startswith("small, median of 2 "), out)
        self.assertIn("2/2 small, c: puts/s 400\n", said)
        self.assertEqual([], os.listdir(self.bench.kept))

    def test_the_others_go_on_without_one_that_cannot(self) -> None:
        found, out, _ = self.compare("A", "FULL")
        self.assertEqual({"a": {"puts/s": 250.0}, "full": {}}, found)
        self.assertTrue(out.endswith("\nfull: the device is full\n"), out)

    def test_a_failed_run_ends_all(self) -> None:
        with self.assertRaises(processes.RunFailed):
            self.compare("BROKEN", "A")
        self.assertEqual(["BROKEN"], self.calls)
        self.assertEqual([], os.listdir(self.bench.kept))

    def test_shared_memory_of_a_device_goes_with_it(self) -> None:
        os.mkdir(self.bench.scratch)
        with tempfile.TemporaryDirectory(prefix="isozone-compare-test-") as memory:
            image = f"{self.bench.scratch}/ssd.img"
            self.write(image, "")
            page = f"isozone-{os.stat(image).st_dev:x}-{os.stat(image).st_ino:x}"
            for name in (page, f"{page}-kept", f"{page}.1", f"{page}0", f"{page}0-kept"):
                self.write(f"{memory}/{name}", "")
            with mock.patch.object(compare, "SHARED_MEMORY", memory):
                compare.remove(self.bench.scratch)
            self.assertEqual([f"{page}0", f"{page}0-kept"], sorted(os.listdir(memory)))
        self.assertEqual([], os.listdir(self.bench.kept))

    def test_an_image_is_made_once_and_copied(self) -> None:
        make = mock.Mock(side_effect=lambda image: self.write(image, "formatted"))
        os.mkdir(self.bench.scratch)
        for _ in range(2):
            self.assertEqual(f"emu:{self.bench.scratch}/ssd.img", self.bench.copy("a.img", make))
            with open(f"{self.bench.scratch}/ssd.img", "r+", encoding="utf-8") as file:
                self.assertEqual("formatted", file.read())
                file.write(", and written")
        make.assert_called_once_with(f"{self.bench.kept}/a.img")

    def test_db_bench_runs_on_a_device_with_the_library_and_on_files_without(self) -> None:
        with mock.patch.object(processes, "run", return_value=RATE.format("fillrandom", 78624)) as run:
            found = self.bench.db_bench(["fillrandom"], "emu:ssd.img?timing=off", num=5)
            self.assertEqual({"fillrandom/s": 78624.0}, compare.rates(found))
            command, environment, _ = run.call_args.args
            self.assertLessEqual({"--db=/db", "--fs_uri=isozone://emu:ssd.img?timing=off", "--num=5", "--seed=7"},
                                 set(command))
            self.assertEqual({"LD_PRELOAD": versions.Build("build").shared_object}, environment)
            self.bench.db_bench(["fillrandom"])
            command, environment, _ = run.call_args.args
            self.assertIn(f"--db={self.bench.scratch}/posix", command)
            self.assertFalse([word for word in command if word.startswith("--fs_uri")])
            self.assertEqual({}, environment)
            with self.assertRaises(processes.RunFailed):
                self.bench.db_bench(["overwrite"])

    def test_what_is_mounted_is_served_until_the_block_ends(self) -> None:
        self.bench.build.tool = f"{self.bench.kept}/isozone"
        self.write(self.bench.build.tool, '#!/bin/sh\necho "$4 is mounted on $5"\nexec sleep 100\n')
        os.chmod(self.bench.build.tool, stat.S_IRWXU)
        with self.bench.mounted("emu:ssd.img", f"{self.bench.kept}/directory", "-o") as daemon:
            self.assertGreaterEqual(compare.processor_seconds(daemon), 0)
        self.assertFalse(os.path.exists(f"/proc/{daemon}"))
        self.write(self.bench.build.tool, "#!/bin/sh\nexit 3\n")
        with self.assertRaisesRegex(processes.RunFailed, "exit code 3"), \
                self.bench.mounted("emu:ssd.img", f"{self.bench.kept}/other"):
            pass


class Scripts(unittest.TestCase):
    """A script as users run it."""
    SCRIPT = """
import sys
import compare
from isozone_lab import processes

def measure(bench, command):
    processes.run(["sh", "-c", command])
    return {"puts/s": 1000.0}

command = sys.argv.pop()
with compare.bench("Measures.") as bench:
    bench.compare({"sh": command}, measure)
"""

    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory(prefix="isozone-compare-test-")
        self.addCleanup(scratch.cleanup)
        self.place = os.path.join(scratch.name, "place")
        os.mkdir(self.place)
        self.ready = os.path.join(scratch.name, "ready")
        os.mkfifo(self.ready)
        self.script = os.path.join(scratch.name, "small_ratio")
        with open(self.script, "w", encoding="utf-8") as file:
            file.write(self.SCRIPT)

    def start(self, command: str, place: str = "") -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-B", self.script, "--quick", "--directory", self.place + place, command], text=True,
            env={**os.environ, "PYTHONPATH": HERE}, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def tearDown(self) -> None:
        self.assertEqual([], os.listdir(self.place))

    def test_all_is_measured(self) -> None:
        output, _ = (child := self.start("true")).communicate()
        self.assertEqual(0, child.returncode)
        self.assertEqual([["median", "of", "1", "sh", "spread"], ["puts/s", "1,000", "-"]],
                         [line.split() for line in output.splitlines()])

    def test_a_failure_is_told(self) -> None:
        _, errors = (child := self.start("echo no device >&2; exit 9")).communicate()
        self.assertEqual(1, child.returncode)
        self.assertTrue(errors.startswith("small_ratio: exit code 9: sh -c "), errors)
        self.assertTrue(errors.endswith("\nno device\n"), errors)

    def test_a_directory_that_is_missing_is_told(self) -> None:
        _, errors = (child := self.start("true", "/missing")).communicate()
        self.assertEqual(1, child.returncode)
        self.assertRegex(errors, r"\Asmall_ratio: .*No such file or directory: '.*/missing/.*\n\Z")

    def test_a_signal_leaves_nothing_behind(self) -> None:
        for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(ending=ending):
                child = self.start(f"exec 3>{self.ready}; echo runs >&3; exec sleep 1000")
                with open(self.ready, encoding="utf-8") as file:
                    self.assertEqual("runs\n", file.readline())
                    self.assertEqual(1, len(os.listdir(self.place)))
                    child.send_signal(ending)
                    child.communicate()
                    self.assertEqual(128 + ending, child.returncode)
                    self.assertEqual([], os.listdir(self.place))
                    self.assertEqual("", file.read())  # what is run has ended, too


if __name__ == "__main__":
    unittest.main()
