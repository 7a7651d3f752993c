"""What was published against what was measured."""
import unittest
from typing import TypedDict, Unpack

import harness
from isozone_lab import targets
from isozone_lab.results import Measurement, Outcome, Results, Variant
from isozone_lab.targets import Check, GreatestOf, LeastOf, Point

RECORDS = harness.records({("isozone", None): [30.0, 40.0, 60.0], ("zenfs", None): [10.0, 10.0, 20.0]})
ISOZONE, ZENFS = Point("isozone", "rate"), Point("zenfs", "rate")


class Bound(TypedDict, total=False):
    at_least: float
    at_most: float


def ratio(**bound: Unpack[Bound]) -> Check:
    return Check("rate", "3x", ISOZONE, ZENFS, **bound)


class Targets(unittest.TestCase):
    def test_ratio_of_medians_and_range_of_repeats(self) -> None:
        verdict = ratio(at_least=3).verdict(RECORDS)
        self.assertEqual("4.00x (3.00x to 4.00x): 40 against 10 ops/s", verdict.measured)
        self.assertTrue(verdict.met)

    def test_bounds(self) -> None:
        cases: list[tuple[Bound, bool | None]] = [
            ({"at_least": 4.0}, True), ({"at_least": 4.1}, False), ({"at_most": 4.0}, True),
            ({"at_most": 3.9}, False), ({"at_least": 3.0, "at_most": 5.0}, True), ({}, None)]
        for bound, met in cases:
            with self.subTest(bound=bound):
                self.assertIs(met, ratio(**bound).verdict(RECORDS).met)

    def test_a_value_that_may_be_more_meets_no_bound_above_it(self) -> None:
        made = Results(harness.header())
        made.succeeded(Variant("isozone"), 1, Outcome([Measurement("rate", 8, "M", or_more=True)]), **harness.FACTS)
        cases: list[tuple[Bound, bool]] = [({"at_least": 8}, True), ({"at_most": 8}, False),
                                           ({"at_least": 8, "at_most": 9}, False)]
        for bound, met in cases:
            self.assertEqual(("8 M or more", met, True), Check("rate", "", ISOZONE, **bound).verdict(made))

    def test_the_greatest_at_any_x(self) -> None:
        made = harness.records({("isozone", "a"): [3.0], ("isozone", "b"): [9.0], ("zenfs", "b"): [20.0]}, unit="%")
        for bound, met in ((9, True), (8, False)):
            verdict = GreatestOf("rate", "-", ISOZONE, at_most=bound).verdict(made)
            self.assertEqual(("9 %, the greatest of 2: b", met), (verdict.measured, verdict.met))
        missing = GreatestOf("rate", "-", Point("isozone", "other"), at_most=9).verdict(made)
        self.assertEqual((targets.NOT_MEASURED, False), (missing.measured, missing.met))

    def test_targets_in_words(self) -> None:
        cases: list[tuple[Bound, str]] = [({"at_least": 2.05}, "at least 2.05x"), ({"at_most": 1 / 51}, "at most 1/51"),
                                          ({"at_most": 0.43}, "at most 0.43x"), ({}, "none")]
        for bound, words in cases:
            self.assertEqual(words, ratio(**bound).target(RECORDS))
        band = Check("rate", "40", ISOZONE, at_least=36, at_most=44)
        self.assertEqual("36 ops/s to 44 ops/s", band.target(RECORDS))
        self.assertEqual("40 ops/s", Check("rate", "40", ISOZONE, at_least=40, at_most=40).target(RECORDS))

    def test_a_value_without_ratio(self) -> None:
        verdict = Check("rate", "40", ISOZONE, at_most=39).verdict(RECORDS)
        self.assertEqual("40 ops/s (30 to 60)", verdict.measured)
        self.assertFalse(verdict.met)

    def test_what_was_not_measured_is_not_met(self) -> None:
        for check in (Check("", "", Point("tmpfs", "rate"), ZENFS, at_least=1.0),
                      Check("", "", ISOZONE, Point("tmpfs", "rate"), at_least=1.0),
                      LeastOf("", "", (Check("", "", Point("tmpfs", "rate"), ZENFS),), 1.0)):
            self.assertEqual(("not measured", False, False), check.verdict(RECORDS))
        self.assertEqual(("not measured", None, False), Check("", "", Point("tmpfs", "rate")).verdict(RECORDS))

    def test_least_of_several(self) -> None:
        checks = (ratio(), Check("the other way", "", ZENFS, ISOZONE))
        verdict = LeastOf("", "", checks, 1.0).verdict(RECORDS)
        self.assertEqual(("1/4, the least of 2: the other way", False, True), verdict)

    def test_mean_of_several(self) -> None:
        checks = (ratio(), Check("the other way", "", ZENFS, ISOZONE))
        verdict = targets.MeanOf("", "", checks, 2.0).verdict(RECORDS)
        self.assertEqual(("2.12x, the mean of 2 from 1/4 to 4.00x", True, True), verdict)
        self.assertEqual("at least 2.50x", targets.MeanOf("", "", checks, 2.5).target(RECORDS))

    def test_a_ratio_of_other_metrics_or_places(self) -> None:
        check, = targets.ratios("{x}", "", "after", "device", "device", xs=[128], against_metric="before", against_x=4)
        self.assertEqual((Point("device", "after", 128), Point("device", "before", 4)), (check.value, check.against))

    def test_numbers(self) -> None:
        cases = ((75732.4, "75,732"), (22.1, "22.1"), (32, "32"), (0.152, "0.15"), (0, "0"), (99.7, "100"))
        for number, words in cases:
            self.assertEqual(words, targets.format_number(number))


if __name__ == "__main__":
    unittest.main()
