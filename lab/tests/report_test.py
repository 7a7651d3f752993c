"""The page."""
import os
import tempfile
import unittest

import harness
from isozone_lab import experiments, report
from isozone_lab.experiments.base import Experiment
from isozone_lab.results import Outcome, Results, Variant
from isozone_lab.targets import Check, MeanOf, Point

CHECKS = [Check("puts & more", "2.6x", Point("isozone", "rate"), Point("zenfs", "rate"), at_least=2.6)]
EXPERIMENT = Experiment(name="small", title="Small <one>", source="a paper", what="It shows.", setup="{num:,} puts.",
                        quick={}, full={}, variants=lambda _: [], run=lambda *_: Outcome([]), checks=CHECKS,
                        plot=lambda _: None)


def records(isozone: list[float], zenfs: list[float]) -> Results:
    made = harness.records({("isozone", None): isozone, ("zenfs", None): zenfs},
                           parameters={"num": 4000, "expected_s": 1})
    return made


class Page(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory(prefix="isozone-lab-test-")
        self.addCleanup(scratch.cleanup)
        self.directory = scratch.name

    def page(self, made: Results) -> str:
        return report.page([(EXPERIMENT, made)], self.directory)

    def test_what_the_paper_says_and_what_was_measured(self) -> None:
        text = self.page(records([30.0], [10.0]))
        for words in ("Small &lt;one&gt;", "4,000 puts.", "puts &amp; more", "2.6x", "at least 2.60x",
                      "3.00x: 30 against 10 ops/s", ">met<", "1 of 1", "db_bench --num=1", "isozone 0", "seed 1",
                      "quick run, 1 repeat, 2 runs"):
            self.assertIn(words, text)

    def test_a_target_that_was_missed(self) -> None:
        text = self.page(records([20.0], [10.0]))
        self.assertIn(">not met<", text)
        self.assertIn("0 of 1", text)

    def test_a_target_without_a_measurement_is_not_met(self) -> None:
        checks = [*CHECKS, Check("of tmpfs", "-", Point("isozone", "rate"), Point("tmpfs", "rate"), at_least=0.85),
                  Check("tmpfs", "for the reader", Point("tmpfs", "rate"))]
        made = records([30.0], [10.0])
        self.assertEqual('<span class="missed">1 of 2, 1 not measured</span>', report.targets_met(checks, made))
        self.assertIn("not measured</td><td><span class=\"missed\">not met<", report.check_table(checks[1:2], made))
        self.assertNotIn("not met", report.check_table(checks[2:], made))
        self.assertEqual('<span class="met">1 of 1</span>', report.targets_met(CHECKS, made))
        self.assertEqual("-", report.targets_met(checks[2:], made))

    def test_experiments_without_the_baseline_are_not_met(self) -> None:
        for name in ("zenfsplus-groups", "zenfsplus-workloads"):
            with self.subTest(experiment=name):
                one = next(one for one in experiments.ALL if one.name == name)
                made = harness.records({("isozone", None): [30.0]})
                targets = sum(check.verdict(made).met is not None for check in one.checks)
                self.assertIn(f'"missed">0 of {targets}, ', report.targets_met(one.checks, made))

    def test_a_failed_run_is_shown_as_failed(self) -> None:
        made = records([30.0], [10.0])
        made.failed(Variant("striping", 8), 2, "exit code 1: db_bench\n<no space>", **harness.FACTS)
        text = self.page(made)
        self.assertIn("<b>Failed:</b> striping at 8, repeat 2", text)
        self.assertIn("exit code 1: db_bench\n&lt;no space&gt;", text)
        self.assertIn("1 failed", text)

    def test_nothing_but_failures(self) -> None:
        made = records([], [])
        made.failed(Variant("zenfs"), 1, "no space", **harness.FACTS)
        text = self.page(made)
        self.assertIn("not measured", text)
        self.assertNotIn("<img", text)

    def test_brackets_hold_repeats_alone(self) -> None:
        mean = MeanOf("on average", "2x", (CHECKS[0], CHECKS[0]), 2.0)
        made = records([30.0, 40.0, 60.0], [10.0, 10.0, 10.0])
        self.assertIn("<td>4.00x (3.00x to 6.00x): 40 against 10 ops/s</td>", report.check_table(CHECKS, made))
        self.assertIn("<td>4.00x, the mean of 2 from 4.00x to 4.00x</td>", report.check_table([mean], made))
        self.assertIn("the least and the greatest are in brackets", self.page(made))

    def test_the_plot_is_inside(self) -> None:
        with open(os.path.join(self.directory, "small.svg"), "w", encoding="utf-8") as file:
            file.write("<svg/>")
        text = self.page(records([30.0], [10.0]))
        self.assertIn('src="data:image/svg+xml;base64,PHN2Zy8+"', text)
        self.assertNotIn('src="small', text)

    def test_an_old_plot_of_what_failed_now_is_removed(self) -> None:
        path = os.path.join(self.directory, "small.svg")
        with open(path, "w", encoding="utf-8") as file:
            file.write("<svg/>")
        report.draw(EXPERIMENT, records([], []), self.directory)
        self.assertFalse(os.path.exists(path))

    def test_nothing_was_run(self) -> None:
        self.assertIsNone(report.write(self.directory))


if __name__ == "__main__":
    unittest.main()
