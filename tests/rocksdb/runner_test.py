#!/usr/bin/env python3
"""Tests what scripts/rocksdb-tests is made of, without RocksDB: a script stands for its test programs."""

import os
import signal
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Sequence

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "lab")]

from rocksdb_suite import crashtest, differences, outcomes, page, programs  # noqa: E402 - found by the line above

PASSED, SKIPPED, FAILED = outcomes.PASSED, outcomes.SKIPPED, outcomes.FAILED
CRASHED, HUNG, ABSENT = outcomes.CRASHED, outcomes.HUNG, outcomes.ABSENT

# Stands for a test program: Suite.Name for each of the outcomes. Fails where there is no TEST_FS_URI or a preload.
PROGRAM = r"""#!/usr/bin/env python3
import os, signal, sys
CASES = ["Pass", "Fail", "Skip", "Crash", "OnlyHere", "Hang", "Last"]
if "--gtest_list_tests" in sys.argv:
    print("Suite.")
    for case in CASES:
        print("  " + case)
    sys.exit(0)
wanted = next(word for word in sys.argv if word.startswith("--gtest_filter=")).split("=", 1)[1].split(":")
for case in CASES:
    name = "Suite." + case
    if name not in wanted:
        continue
    print("[ RUN      ] " + name, flush=True)
    if case == "Crash":
        os.kill(os.getpid(), signal.SIGKILL)
    if case == "Hang":
        signal.pause()
    if case == "Skip":
        print("SKIPPED: not here", file=sys.stderr, flush=True)
    failed = case == "Fail" or (case == "OnlyHere" and "TEST_FS_URI" not in os.environ)
    print("[  FAILED  ] " + name + " (1 ms)" if failed else "[       OK ] " + name + " (1 ms)", flush=True)
"""


def read(*pieces: str, end: str | None = None) -> dict[str, str]:
    reader = outcomes.OutputReader()
    for piece in pieces:
        reader.feed(piece)
    reader.end(end)
    return reader.outcomes


class Output(unittest.TestCase):
    def test_outcomes_are_read(self) -> None:
        text = ("[==========] Running 3 tests from 1 test case.\n"
                "[ RUN      ] A.Passes\n[       OK ] A.Passes (3 ms)\n"
                "[ RUN      ] A.Fails\nfile.cc:1: Failure\n[  FAILED  ] A.Fails (7 ms)\n"
                "[ RUN      ] A.Skips\nSKIPPED: no such thing here\n[       OK ] A.Skips (0 ms)\n"
                "[ RUN      ] A.Bypasses\nBYPASSED: not with this\n[       OK ] A.Bypasses (0 ms)\n"
                "[  FAILED  ] 1 test, listed below:\n[  FAILED  ] A.Fails\n")
        self.assertEqual({"A.Passes": PASSED, "A.Fails": FAILED, "A.Skips": SKIPPED, "A.Bypasses": SKIPPED}, read(text))

    def test_parameters_are_no_part_of_the_name(self) -> None:
        text = "[ RUN      ] I/A.B/2\n[  FAILED  ] I/A.B/2, where GetParam() = (1, true) (40 ms)\n"
        self.assertEqual({"I/A.B/2": FAILED}, read(text))

    def test_a_line_may_begin_with_what_the_case_printed(self) -> None:
        self.assertEqual({"A.B": PASSED}, read("[ RUN      ] A.B\nprogress 99%[       OK ] A.B (1 ms)\n"))

    def test_the_output_may_come_in_any_pieces(self) -> None:
        text = "[ RUN      ] A.B\n[       OK ] A.B (1 ms)\n[ RUN      ] A.C\n[  FAILED  ] A.C (1 ms)\n"
        self.assertEqual({"A.B": PASSED, "A.C": FAILED}, read(*text))

    def test_a_case_that_does_not_end(self) -> None:
        text = "[ RUN      ] A.B\n[       OK ] A.B (1 ms)\n[ RUN      ] A.C\nsome"
        self.assertEqual({"A.B": PASSED, "A.C": HUNG}, read(text, end=HUNG))
        self.assertEqual({"A.B": PASSED, "A.C": CRASHED}, read(text))

    def test_what_a_program_does_after_its_last_case_counts(self) -> None:
        self.assertEqual({"A.B": CRASHED}, read("[ RUN      ] A.B\n[       OK ] A.B (1 ms)\n", end=CRASHED))

    def test_a_skipped_case_says_nothing_of_the_next(self) -> None:
        text = "[ RUN      ] A.B\nSKIPPED: x\n[       OK ] A.B (1 ms)\n[ RUN      ] A.C\n[       OK ] A.C (1 ms)\n"
        self.assertEqual({"A.B": SKIPPED, "A.C": PASSED}, read(text))

    def test_cases_are_listed_without_disabled_ones(self) -> None:
        text = ("some warning of a library\nA.\n  One\n  DISABLED_Two\nI/B.  # TypeParam = int\n"
                "  C/0  # GetParam() = 3\n  C/1  # GetParam() = \"x y\"\nDISABLED_D.\n  E\n")
        self.assertEqual(["A.One", "I/B.C/0", "I/B.C/1"], outcomes.Cases.parse(text))


class Verdicts(unittest.TestCase):
    def verdict(self, posix: str, isozone: str, **more: str) -> str:
        return outcomes.verdict({"posix": posix, "isozone": isozone, **more})

    def test_the_same(self) -> None:
        for outcome in (PASSED, SKIPPED, FAILED, CRASHED, HUNG):
            self.assertEqual(outcomes.SAME, self.verdict(outcome, outcome))

    def test_a_case_that_only_isozone_has_must_pass(self) -> None:
        self.assertEqual(outcomes.SAME, self.verdict(ABSENT, PASSED))
        self.assertEqual(outcomes.DIFFERENT, self.verdict(ABSENT, FAILED))
        self.assertEqual(outcomes.DIFFERENT, self.verdict(PASSED, ABSENT))

    def test_repeating_tells_what_is_unsteady(self) -> None:
        self.assertEqual(outcomes.UNSTEADY, self.verdict(PASSED, FAILED, isozone_again=PASSED))
        self.assertEqual(outcomes.UNSTEADY, self.verdict(PASSED, FAILED, isozone_again=FAILED, posix_again=FAILED))
        self.assertEqual(outcomes.DIFFERENT, self.verdict(PASSED, FAILED, isozone_again=FAILED, posix_again=PASSED))

    def test_the_default_file_system(self) -> None:
        more = {"isozone_again": FAILED, "posix_again": PASSED}
        self.assertEqual(outcomes.DEFAULT_ONLY, self.verdict(PASSED, FAILED, with_default=PASSED, **more))
        self.assertEqual(outcomes.DIFFERENT, self.verdict(PASSED, FAILED, with_default=FAILED, **more))


class List(unittest.TestCase):
    def entries(self, text: str) -> list[differences.Entry]:
        return differences.parse(text, ("a_test", "b_test"))

    def test_entries(self) -> None:
        entries = self.entries("# why\n\na_test Suite.Case*  counts calls of open(2)\n")
        self.assertEqual([("a_test", "Suite.Case*", "counts calls of open(2)")],
                         [(entry.program, entry.pattern, entry.reason) for entry in entries])
        self.assertTrue(entries[0].covers("a_test", "Suite.Case/1"))
        self.assertFalse(entries[0].covers("b_test", "Suite.Case/1"))

    def test_a_line_without_a_reason_or_of_no_program_is_named(self) -> None:
        with self.assertRaisesRegex(differences.ListError, "differences.txt:2: .*reason.*: a_test Suite.Case"):
            self.entries("\na_test Suite.Case\n")
        with self.assertRaisesRegex(differences.ListError, "c_test is no program .*; use one of a_test, b_test"):
            self.entries("c_test Suite.Case why\n")

    def test_what_is_not_listed_and_what_never_applies(self) -> None:
        entries = self.entries("a_test S.A* why\na_test S.B why\nb_test S.A why\n")
        judgement = differences.Judgement(entries, [("a_test", "S.A1"), ("a_test", "S.C")], [], {"a_test"})
        self.assertEqual([("a_test", "S.C")], judgement.unlisted)
        self.assertEqual(["a_test S.B"], [str(entry) for entry in judgement.unused])
        self.assertFalse(judgement.good)

    def test_an_entry_may_cover_what_is_unsteady(self) -> None:
        entries = self.entries("a_test S.A why\n")
        self.assertTrue(differences.Judgement(entries, [], [("a_test", "S.A")], {"a_test"}).good)
        self.assertFalse(differences.Judgement(entries, [], [], {"a_test"}).good)

    def test_the_list_of_the_repository_is_well_formed(self) -> None:
        with open(os.path.join(HERE, "differences.txt"), encoding="utf-8") as file:
            differences.parse(file.read(), programs.PROGRAMS)


class FakeBuild:
    """Where the script is, instead of RocksDB; no device is made."""
    isozone_so = default_file_system = ""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        with open(self.program("fake"), "w", encoding="utf-8") as script:
            script.write(PROGRAM)
        os.chmod(self.program("fake"), 0o755)

    def program(self, name: str) -> str:
        return os.path.join(self.directory, name)

    def make_device(self, image: str, options: str) -> None:
        pass


class Running(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory(prefix="isozone-runner-")
        self.addCleanup(scratch.cleanup)
        self.scratch = scratch.name
        self.logs = os.path.join(self.scratch, "logs")
        os.mkdir(self.logs)

    def runner(self, time_limit_s: float = 600) -> programs.Runner:
        return programs.Runner(FakeBuild(self.scratch), self.scratch, time_limit_s, self.logs)

    def test_goes_on_after_a_crash(self) -> None:
        cases = [case for case in self.runner().cases("fake", programs.ISOZONE) if case != "Suite.Hang"]
        counted: list[int] = []
        self.assertEqual({"Suite.Pass": PASSED, "Suite.Fail": FAILED, "Suite.Skip": SKIPPED, "Suite.Crash": CRASHED,
                          "Suite.OnlyHere": PASSED, "Suite.Last": PASSED},
                         self.runner().run("fake", programs.ISOZONE, cases, counted.append))
        self.assertEqual(len(cases), sum(counted))

    def test_a_side_has_its_environment(self) -> None:
        self.assertEqual({"Suite.OnlyHere": FAILED}, self.runner().run("fake", programs.POSIX, ["Suite.OnlyHere"]))

    def test_ends_what_hangs(self) -> None:
        self.assertEqual({"Suite.Hang": HUNG}, self.runner(0.2).run("fake", programs.POSIX, ["Suite.Hang"]))

    def test_a_stop_ends_what_runs(self) -> None:
        runner = self.runner()
        runner.stop()
        with self.assertRaises(programs.Stopped):
            runner.run("fake", programs.POSIX, ["Suite.Hang"])
        with self.assertRaises(programs.Stopped):
            runner.run_process("fake", programs.POSIX, ["Suite.Hang"])
        self.assertEqual({"fake", "logs"}, set(os.listdir(self.scratch)))

    def test_keeps_what_went_wrong_and_nothing_else(self) -> None:
        self.runner().run("fake", programs.POSIX, ["Suite.Fail", "Suite.Pass"])
        self.assertEqual(["fake.Suite.Fail.posix"], os.listdir(self.logs))
        self.assertEqual({"fake", "logs"}, set(os.listdir(self.scratch)))

    def test_a_program_that_does_not_run_is_named(self) -> None:
        with self.assertRaisesRegex(programs.ProgramError, "missing does not list its cases on posix"):
            self.runner().cases("missing", programs.POSIX)


class Page(unittest.TestCase):
    RESULTS: page.Results = {"a_test": {"date": "2030-01-02", "records": {
        "S.A": {"posix": PASSED, "isozone": PASSED}, "S.B": {"posix": PASSED, "isozone": FAILED},
        "S.C": {"posix": PASSED, "isozone": HUNG}, "S.D": {"posix": SKIPPED, "isozone": SKIPPED},
        "S.E": {"posix": FAILED, "isozone": FAILED}}}}

    def render(self, crashtests: Sequence[crashtest.DatedResult] = ()) -> str:
        entries = differences.parse("a_test S.B* counts calls\n", ("a_test", "b_test"))
        judgement = differences.Judgement(entries, [("a_test", "S.B"), ("a_test", "S.C")], [], {"a_test"})
        return page.render(self.RESULTS, ("a_test", "b_test"), judgement, crashtests, ["RocksDB 1"])

    def test_counts_and_reasons(self) -> None:
        text = self.render()
        self.assertIn("| `a_test` | 5 | 1 | 1 | 1 | 0 | 0 | 2 | 2030-01-02 |", text)
        self.assertIn("| `a_test` | `S.B*` | 1 | counts calls |", text)
        self.assertIn("* `a_test`: `S.C`, hung on Isozone, passed on POSIX", text)

    def test_names_what_needs_the_default_replaced(self) -> None:
        record = {"posix": PASSED, "isozone": FAILED, "isozone_again": FAILED, "posix_again": PASSED,
                  "with_default": PASSED}
        results: page.Results = {"a_test": {"date": "2030-01-02", "records": {"S.A": record, "S.B": record}}}
        judgement = differences.Judgement([], [], [], {"a_test"})
        text = page.render(results, ("a_test",), judgement, [], ["RocksDB 1"])
        self.assertIn("| `a_test` | 2 | 0 | 0 | 0 | 2 | 0 | 0 | 2030-01-02 |", text)
        self.assertIn("`a_test`: `S.A`, `S.B`", text)

    def test_says_what_was_not_run(self) -> None:
        self.assertIn("| `b_test` | not run |", self.render())
        self.assertIn("## The crash test", self.render())
        self.assertIn("* blackbox: not run\n* whitebox: not run\n* unsynced: not run\n", self.render())

    def test_the_crash_test(self) -> None:
        result: crashtest.DatedResult = {"kind": "blackbox", "minutes": 30, "runs": 14, "failure": None, "fsck": None,
                                         "log": "", "date": "2030-01-02"}
        self.assertIn("blackbox, 30 minutes, 2030-01-02: 14 runs of `db_stress`, no error; fsck afterwards: clean",
                      self.render([result]))
        self.assertIn("* whitebox: not run\n", self.render([result]))
        self.assertNotIn("* blackbox: not run", self.render([result]))


class Script(unittest.TestCase):
    def run_script(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-B", os.path.join(ROOT, "scripts", "rocksdb-tests"), *arguments],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def test_help(self) -> None:
        result = self.run_script("--help")
        self.assertEqual(0, result.returncode, result.stdout)
        for option in ("--only", "--jobs", "--crashtest", "--time-limit", "--page"):
            self.assertIn(option, result.stdout)

    def test_says_what_to_do_where_there_is_no_source(self) -> None:
        with tempfile.TemporaryDirectory() as empty:
            result = self.run_script("--source", empty)
        self.assertNotEqual(0, result.returncode)
        self.assertIn(f"run scripts/fetch-newest-rocksdb --source {empty}", result.stdout)

    def test_an_unknown_program_is_refused(self) -> None:
        result = self.run_script("--only", "no_test")
        self.assertIn("no_test is no program that is run; use some of env_basic_test,", result.stdout)


class CrashTest(unittest.TestCase):
    def arguments(self, kind: str) -> list[str]:
        return crashtest.options(kind, 2.5, "/d/x.img", "db_stress")

    def test_what_db_stress_cannot_do_on_another_file_system_is_left_out(self) -> None:
        arguments = self.arguments("whitebox")
        self.assertEqual("whitebox", arguments[0])
        self.assertIn("--fs_uri=isozone://emu:/d/x.img?timing=off&kept_memory_directory=/d", arguments)
        self.assertIn("--duration=150", arguments)
        self.assertIn("--backup_one_in=0", arguments)

    def test_faults_are_injected_where_they_excuse_nothing(self) -> None:
        for kind in ("blackbox", "whitebox"):
            self.assertFalse([argument for argument in self.arguments(kind) if "_fault_" in argument])
        self.assertIn("--write_fault_one_in=0", self.arguments("unsynced"))

    def test_what_isozone_notes_is_no_error(self) -> None:
        with tempfile.TemporaryDirectory(prefix="isozone-runner-") as scratch:
            build = FakeBuild(scratch)
            with open(build.program("db_stress"), "w", encoding="utf-8") as script:
                script.write("#!/bin/sh\necho \"$1\"\nfor level in info error; do echo "
                             "\"[2030-01-02 03:04:05.678] [isozone] [$level] x\" >&2; done\nkill $$\n")
            os.chmod(build.program("db_stress"), 0o755)
            wrapper = os.path.join(scratch, "wrapper")
            crashtest.write_wrapper(wrapper, build)
            result = subprocess.run([wrapper, "a&b c"], capture_output=True, text=True)
        self.assertEqual(-signal.SIGTERM, result.returncode)
        self.assertEqual({"a&b c", "[2030-01-02 03:04:05.678] [isozone] [info] x"}, set(result.stdout.splitlines()))
        self.assertEqual("[2030-01-02 03:04:05.678] [isozone] [error] x\n", result.stderr)

    def test_without_a_sync_nothing_excuses_a_loss(self) -> None:
        arguments = self.arguments("unsynced")
        self.assertEqual("blackbox", arguments[0])
        for argument in ("--interval=60", "--sync=0", "--disable_wal=0", "--manual_wal_flush_one_in=0",
                         "--sync_fault_injection=0", "--test_batches_snapshots=0"):
            self.assertIn(argument, arguments)

    def test_without_a_sync_it_is_proved_that_something_was_compared(self) -> None:
        command = " ".join(["Running db_stress with pid=7: db_stress", *self.arguments("unsynced")[5:]])
        verified = "Crash-recovery verification passed :)"
        self.assertIsNone(crashtest.unproved("\n".join([command, verified, command, verified]).encode()))
        self.assertEqual("db_stress has verified nothing after a kill",
                         crashtest.unproved("\n".join([command, verified, command]).encode()))
        self.assertEqual("db_stress was run without --disable_wal=0",
                         crashtest.unproved(command.replace("disable_wal=0", "disable_wal=1").encode()))


if __name__ == "__main__":
    unittest.main()
