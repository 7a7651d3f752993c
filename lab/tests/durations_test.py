"""How long runs will take."""
import os
import tempfile
import unittest
from collections.abc import Sequence
from unittest import mock

import harness
from isozone_lab import cli, durations, experiments, progress, runner
from isozone_lab.results import Outcome, Results, Variant

CPU = "2 x a processor"


def recorded(experiment: str, expected_s: float, seconds: Sequence[float], cpu: str = CPU) -> Results:
    made = Results(harness.header(experiment=experiment, parameters={"expected_s": expected_s, "data_bytes": 0},
                                  versions={"cpu": cpu}))
    for repeat, one in enumerate(seconds, 1):
        made.succeeded(Variant("isozone"), repeat, Outcome([]), **{**harness.FACTS, "seconds": one})
    return made


class OfExperiments(unittest.TestCase):
    def test_nothing_is_recorded(self) -> None:
        pace = durations.Pace([], CPU)
        self.assertEqual(1, pace.of("soak"))
        self.assertIn("none is recorded", pace.basis())

    def test_its_own_runs_count_and_else_those_of_the_others(self) -> None:
        pace = durations.Pace([recorded("soak", 10, [30, 20, 40]), recorded("limit", 10, [10]),
                               recorded("limit", 100, [200, 200]), recorded("zgc-skew", 1, [])], CPU)
        self.assertEqual([3, 2, 2.5], [pace.of(name) for name in ("soak", "limit", "zgc-skew")])
        self.assertIn("runs of limit, soak", pace.basis())

    def test_what_failed_or_ran_elsewhere_does_not_count(self) -> None:
        failed = recorded("soak", 10, [])
        failed.failed(Variant("isozone"), 1, "no space", **harness.FACTS)
        self.assertEqual({}, durations.Pace([failed, recorded("soak", 10, [90], cpu="another")], CPU).known)


class Forecasts(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory(prefix="isozone-lab-test-")
        self.addCleanup(scratch.cleanup)
        self.directory = scratch.name
        places = {mode: os.path.join(self.directory, mode) for mode in cli.DEFAULT_OUT}
        self.enterContext(mock.patch.dict(cli.DEFAULT_OUT, places))

    def forecast(self, *words: str) -> tuple[str, float]:
        """What is said before the runs, and how many seconds they are expected to take."""
        arguments = cli.run_parser().parse_args(words)
        found = {"cpu": CPU}
        pace = cli.pace_of(arguments, found)
        runs = cli.prepare(arguments, cli.choose(arguments.experiments), found, pace)
        said = cli.forecast(runs, pace, cli.LIMIT_S[cli.mode_of(arguments)])
        return said, sum(map(runner.expected_seconds, runs))

    def test_all_modes(self) -> None:
        with open(os.path.join(harness.LAB, "../docs/lab.md"), encoding="utf-8") as file:
            guide = " ".join(file.read().split())
        for words in ((), ("--night",)):
            said, seconds = self.forecast(*words)
            self.assertIn(f" runs will take about {progress.duration(seconds)}, going by what", said)
            self.assertIn(f"about {seconds / 3600:.0f} hours", guide)

    def test_a_night_is_long_enough_for_a_slower_machine(self) -> None:
        _, seconds = self.forecast("--night")
        self.assertLess(1.25 * seconds, cli.LIMIT_S["night"])

    def test_runs_of_another_mode_tell_how_fast_the_machine_is(self) -> None:
        _, before = self.forecast("soak", "zgc-skew", "--night")
        os.mkdir(cli.DEFAULT_OUT["quick"])
        recorded("zgc-skew", 4, [8, 8]).save(os.path.join(cli.DEFAULT_OUT["quick"], "zgc-skew.json"))
        said, after = self.forecast("soak", "zgc-skew", "--night")
        self.assertEqual(2 * before, after)
        self.assertRegex(said, "^3 runs will take about .* going by the recorded runs of zgc-skew$")

    def test_what_does_not_fit_is_said(self) -> None:
        said, _ = self.forecast("--night", "--repeats", "9")
        self.assertIn("; what does not fit into 8 h 00 min is left out", said)

    def test_a_mode_is_quick_or_a_night(self) -> None:
        with self.assertRaises(SystemExit), mock.patch("sys.stderr"):
            cli.run_parser().parse_args(["--quick", "--night"])

    def test_sizes_of_a_night_are_between_the_others(self) -> None:
        for one in experiments.ALL:
            quick, night, full = (one.parameters(mode)["data_bytes"] for mode in ("quick", "night", "full"))
            self.assertLessEqual(quick, night, one.name)
            self.assertLessEqual(night, full, one.name)


if __name__ == "__main__":
    unittest.main()
