"""Drawing, where matplotlib is installed."""
import importlib.util
import os
import tempfile
import unittest

import harness
from isozone_lab import plots
from isozone_lab.results import Outcome, Results, Variant


class Words(unittest.TestCase):
    def test_numbers_above_bars(self) -> None:
        for number, words in ((107_320, "107k"), (1_320_000, "1.32M"), (22.09, "22.1"), (3245, "3.25k"), (0, "0"),
                              (999.9, "1k")):
            self.assertEqual(words, plots.short(number))

    def test_decades(self) -> None:
        self.assertEqual((10, 1000), plots.whole_decades(11, 999))
        self.assertEqual((10, 100), plots.whole_decades(10, 100))

    def test_error_bars(self) -> None:
        made = harness.records({("zenfs", 8): [3.0, 1.0, 2.0], ("isozone", 8): [4.0]})
        self.assertEqual([[1.0], [1.0]], plots.error_bars(made, [("zenfs", "rate", 8)]))
        self.assertIsNone(plots.error_bars(made, [("isozone", "rate", 8)]))


@unittest.skipUnless(importlib.util.find_spec("matplotlib"), "matplotlib is not installed")
class Drawing(unittest.TestCase):
    def draw(self, records: Results) -> list[str]:
        """A figure with a line and bars of `records`; its files."""
        drawn, axes = plots.figure(columns=3)
        plots.lines_over_x(axes[0], records, "rate", [1, 8])
        plots.grouped_bars(axes[1], records, "rate", [1, 8])
        plots.lines_over_time(axes[2], records, "put")
        plots.label(axes[0], "x", "y", "title")
        plots.legend_below(drawn, axes)
        with tempfile.TemporaryDirectory(prefix="isozone-lab-test-") as scratch:
            plots.save(drawn, scratch, "small")
            return sorted(os.listdir(scratch))

    def test_files(self) -> None:
        made = harness.records({("zenfs", 1): [1.0, 2.0], ("zenfs", 8): [3.0, 3.0], ("isozone", 8): [4.0]})
        self.assertEqual(["small.png", "small.svg"], self.draw(made))

    def test_values_stand_where_they_were_measured(self) -> None:
        made = Results(harness.header())
        made.succeeded(Variant("zenfs"), 1, Outcome([], {"p99": [5, 6], "t_s": [0.1, 0.45], "put": [7, 8]}),
                       **harness.FACTS)
        _, axes = plots.figure(columns=2)
        plots.lines_over_time(axes[0], made, "p99", "t_s")
        plots.lines_over_time(axes[1], made, "put", first=1)
        self.assertEqual([[0.1, 0.45], [1, 2]], [list(one.lines[0].get_xdata()) for one in axes])

    def test_nothing_was_measured(self) -> None:
        self.assertEqual(["small.png", "small.svg"], self.draw(Results(harness.header())))


if __name__ == "__main__":
    unittest.main()
