"""The order of runs, failures, interruption, and children."""
import dataclasses
import io
import os
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Callable, Sequence

import harness
from isozone_lab import processes, progress, runner, versions
from isozone_lab.results import Measurement, Outcome, Parameters, Results, Variant
from isozone_lab.runner import Context

PAIR = [Variant("zenfs"), Variant("isozone")]
BUILD = versions.Build("build")
RunOne = Callable[[Context, Variant], Outcome]


@dataclasses.dataclass
class Experiment:
    run: RunOne
    variants: Callable[[Parameters], list[Variant]]
    name: str = "small"


def experiment(run: RunOne, variants: Sequence[Variant] = tuple(PAIR)) -> Experiment:
    return Experiment(run, lambda _: list(variants))


def measure(_: Context, variant: Variant) -> Outcome:
    return Outcome([Measurement("rate", len(variant.series), "ops/s")])


class Order(unittest.TestCase):
    def test_series_take_turns_and_so_does_who_is_first(self) -> None:
        self.assertEqual([("zenfs", 1), ("isozone", 1), ("isozone", 2), ("zenfs", 2)],
                         [(variant.series, repeat) for variant, repeat in runner.in_turn(PAIR, 2)])

    def test_only_what_is_missing(self) -> None:
        done = harness.records({("zenfs", None): [1.0]})
        runs = runner.missing_runs(experiment(measure), done, "path", 1)
        self.assertEqual(["small: isozone, repeat 1"], list(map(str, runs)))

    def test_more_repeats_keep_what_there_is(self) -> None:
        done = harness.records({("zenfs", None): [1.0], ("isozone", None): [1.0]})
        self.assertEqual(4, len(runner.missing_runs(experiment(measure), done, "path", 3)))

    def test_expected_time(self) -> None:
        new = Results(harness.header())
        run = runner.Run(experiment(measure), new, "path", Variant("zenfs"), 1)
        self.assertEqual(7, runner.expected_seconds(run))
        run.pace = 2
        self.assertEqual(14, runner.expected_seconds(run))
        new.succeeded(Variant("isozone"), 1, Outcome([]), **{**harness.FACTS, "seconds": 20})
        self.assertEqual(20, runner.expected_seconds(run))
        new.succeeded(Variant("zenfs"), 2, Outcome([]), **{**harness.FACTS, "seconds": 30})
        self.assertEqual(30, runner.expected_seconds(run))


class Running(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory(prefix="isozone-lab-test-")
        self.addCleanup(scratch.cleanup)
        self.directory = scratch.name
        self.path = os.path.join(self.directory, "small.json")
        self.said = io.StringIO()

    def run_all(self, run: RunOne, **parameters: int) -> int:
        header = harness.header(parameters={"expected_s": 1, "data_bytes": 0, "time_limit_s": 10, **parameters})
        runs = runner.missing_runs(experiment(run), Results(header), self.path, 1)
        with runner.Runner(BUILD, self.directory, progress.Lines(len(runs), self.said)) as work:
            return work.run_all(runs)

    def tearDown(self) -> None:
        self.assertIn(os.listdir(self.directory), ([], ["small.json"]))  # the scratch directory is gone

    def test_success(self) -> None:
        self.assertEqual(0, self.run_all(measure))
        self.assertEqual(7, harness.load(self.path).median("isozone", "rate"))
        self.assertIn("[2/2] small: isozone, repeat 1", self.said.getvalue())
        self.assertIn("left", self.said.getvalue())

    def test_runs_that_would_not_end_in_time_are_left_out(self) -> None:
        header = harness.header(parameters={"expected_s": 1, "data_bytes": 0, "time_limit_s": 10})
        runs = [*runner.missing_runs(experiment(measure), Results(header), self.path, 1, pace=3600),
                *runner.missing_runs(experiment(measure), Results(header), self.path, 1)]
        with runner.Runner(BUILD, self.directory, progress.Lines(len(runs), self.said)) as work:
            self.assertEqual(0, work.run_all(runs, within_s=600))
        self.assertEqual(2, len(harness.load(self.path).runs))
        self.assertIn("left out, since they would not end within 10 min: 2 of 4 runs; the same command continues",
                      self.said.getvalue())

    def test_a_failed_run_is_recorded_and_the_next_one_made(self) -> None:
        def run(context: Context, variant: Variant) -> Outcome:
            if variant.series == "zenfs":
                context.execute(["sh", "-c", "echo some words >&2; exit 3"])
            return measure(context, variant)

        self.assertEqual(1, self.run_all(run))
        kept = harness.load(self.path)
        failure, = kept.failures()
        self.assertRegex(failure["error"], "exit code 3: .*\nsome words$")
        self.assertEqual(["sh -c 'echo some words >&2; exit 3'"], failure["commands"])
        self.assertTrue(kept.is_done(Variant("isozone"), 1))
        self.assertIn("FAILED", self.said.getvalue())

    def test_too_little_memory_fails_in_one_line(self) -> None:
        self.assertEqual(2, self.run_all(measure, data_bytes=1 << 60))
        for failure in harness.load(self.path).failures():
            self.assertRegex(failure["error"], r"^this run needs [\d.]+ GiB in .*, [\d.]+ GiB are free$")

    def test_an_interrupted_lab_keeps_what_it_has(self) -> None:
        def run(context: Context, variant: Variant) -> Outcome:
            if variant.series == "isozone":
                raise KeyboardInterrupt
            return measure(context, variant)

        with self.assertRaises(KeyboardInterrupt):
            self.run_all(run)
        kept = harness.load(self.path)
        self.assertTrue(kept.is_done(Variant("zenfs"), 1))
        self.assertEqual(1, len(kept.runs))

    def test_each_repeat_has_its_seed(self) -> None:
        seeds: list[int] = []

        def run(context: Context, _: Variant) -> Outcome:
            seeds.append(context.seed)
            return Outcome([])

        header = harness.header(parameters={"expected_s": 1, "data_bytes": 0, "time_limit_s": 10}, seed=5)
        runs = runner.missing_runs(experiment(run, PAIR[:1]), Results(header), self.path, 2)
        with runner.Runner(BUILD, self.directory, progress.Lines(2, self.said)) as work:
            work.run_all(runs)
        self.assertEqual([5, 6], seeds)


class Children(unittest.TestCase):
    def test_a_child_that_takes_too_long_ends_with_all_it_started(self) -> None:
        with tempfile.NamedTemporaryFile("r", prefix="isozone-lab-test-") as file:
            with self.assertRaisesRegex(processes.RunFailed, "stopped after 0.5 s: "):
                processes.run(["sh", "-c", f"sleep 60 & echo $! > {file.name}; wait"], time_limit_s=0.5)
            grandchild = int(file.read())
        for _ in range(100):
            if self.is_gone(grandchild):
                return
            time.sleep(0.05)
        self.fail("the grandchild still runs")

    def test_a_child_ends_with_a_lab_that_is_killed(self) -> None:
        with tempfile.TemporaryDirectory(prefix="isozone-lab-test-") as scratch:
            pipe = os.path.join(scratch, "pipe")
            os.mkfifo(pipe)
            lab = subprocess.Popen([sys.executable, "-c", "import sys; sys.path.insert(0, sys.argv[1]); "
                                    "from isozone_lab import processes; "
                                    "processes.run(['sh', '-c', f'exec >{sys.argv[2]}; echo ready; exec sleep 600'])",
                                    harness.LAB, pipe])
            with open(pipe, encoding="utf-8") as output:
                self.assertEqual("ready\n", output.readline())
                lab.kill()
                lab.wait()
                self.assertEqual("", output.readline())  # the end, once the child no longer holds the pipe

    @staticmethod
    def is_gone(process: int) -> bool:
        try:
            with open(f"/proc/{process}/stat", encoding="utf-8") as file:
                return file.read().rpartition(")")[2].split()[0] in "ZX"
        except FileNotFoundError:
            return True

    def test_no_such_program(self) -> None:
        with self.assertRaisesRegex(processes.RunFailed, "no-such-program: No such file"):
            processes.run(["no-such-program"])

    def test_a_command_as_one_would_type_it(self) -> None:
        self.assertEqual("LD_PRELOAD=a.so db '--fs_uri=x?a&b'",
                         processes.shown(["db", "--fs_uri=x?a&b"], {"LD_PRELOAD": "a.so"}))


class Words(unittest.TestCase):
    def test_a_summary(self) -> None:
        outcome = Outcome([Measurement("key range", 8, "M", or_more=True), Measurement("put", 1234.5, "MB/s", "a")])
        self.assertEqual("key range 8 M or more, put 1,234 MB/s (a)", runner.summary(outcome))


class Durations(unittest.TestCase):
    def test_words(self) -> None:
        for seconds, words in ((40, "40 s"), (720, "12 min"), (11100, "3 h 05 min")):
            self.assertEqual(words, progress.duration(seconds))


if __name__ == "__main__":
    unittest.main()
