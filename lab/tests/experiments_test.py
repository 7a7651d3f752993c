"""The experiments themselves: that they are whole, and what they make of what programs print."""
import collections
import unittest

import event_log_test
import harness  # noqa: F401: finds the lab
from isozone_lab import experiments
from isozone_lab.experiments import fig3, fig9, fig10, fig14, parallel


def by_metric(outcome):
    return {(one.metric, one.x): one.value for one in outcome.measurements}


class All(unittest.TestCase):
    def test_names_are_unique(self):
        names = collections.Counter(one.name for one in experiments.ALL)
        self.assertEqual(1, max(names.values()))

    def test_both_modes_are_complete(self):
        for one in experiments.ALL:
            for mode in ("quick", "full"):
                with self.subTest(experiment=one.name, mode=mode):
                    parameters = one.parameters(mode)
                    self.assertNotIn("{", one.setup.format(**parameters))
                    self.assertGreater(parameters["expected_s"], 0)
                    self.assertGreaterEqual(parameters["data_bytes"], 0)
                    variants = one.variants(parameters)
                    self.assertEqual(len(variants), len(set(variants)))

    def test_quick_takes_at_most_a_quarter_of_an_hour(self):
        seconds = sum(one.quick["expected_s"] * len(one.variants(one.quick)) for one in experiments.ALL)
        self.assertLess(seconds, 900)

    def test_full_runs_fit_a_machine_of_24_gib(self):
        for one in experiments.ALL:
            self.assertLess(3 * one.full["data_bytes"], 18e9, one.name)

    def test_checks_are_about_series_that_are_run(self):
        for one in experiments.ALL:
            series = {variant.series for variant in one.variants(one.quick)}
            points = [point for check in one.checks for point in
                      (getattr(check, "value", None), getattr(check, "against", None)) if point]
            self.assertLessEqual({point.series for point in points}, series, one.name)


class Outcomes(unittest.TestCase):
    def test_interference_and_groups(self):
        bands = {"nothing shared": 490.0, "same die": 850.0}
        side = {"bands_us": bands, "points": [{"distance": 1, "median_us": 490.0}]}
        groups = [fig3.UNKNOWN, *range(1, 32), *range(32)]
        groups[40] = 9  # its die has group 8
        groups += range(32)
        found = by_metric(fig3.outcome({"reads": side, "writes": side}, {"groups": 32, "group_of_zone": groups}))
        self.assertEqual(850, found["read, die shared", None])
        self.assertEqual(490, found["write, nothing shared", None])
        self.assertNotIn(("read, channel shared", None), found)
        self.assertEqual((32, 1), (found["groups", None], found["zones in a wrong group", None]))

    def test_bandwidth(self):
        rates = [1e5] * 3 + [5e4, 1.5e5] * 5
        found = by_metric(fig9.outcome(1e5, rates, event_log_test.LOG))
        self.assertAlmostEqual(82, found["put", None])
        self.assertAlmostEqual(20, found["flush", None])
        self.assertAlmostEqual(22.5, found["compaction", None])
        self.assertAlmostEqual(50, found["variation of put", None])

    def test_latency_over_time(self):
        latencies = {f"p{percent:g}": percent for percent in (99, 99.9, 99.99, 99.999)}
        intervals = [{"t_s": index / 10, "p99": index, "max": 2 * index} for index in range(100)]
        outcome = fig10.outcome({"latency_us": {"insert": latencies}, "intervals": intervals})
        found = by_metric(outcome)
        self.assertEqual(99.999, found["put latency", 99.999])
        self.assertEqual(94, found["P99 of 100 ms", "95 % of buckets"])
        self.assertEqual(198, outcome.details["max"][-1])

    def test_total_time_and_peak(self):
        found = by_metric(parallel.outcome(event_log_test.LOG))
        self.assertAlmostEqual(3.5, found["total time", None])
        self.assertAlmostEqual(31.25, found["peak throughput", None])

    def test_gains(self):
        records = harness.records({("zenfs", "A"): [100.0], ("isozone", "A"): [205.0]}, metric="throughput")
        self.assertAlmostEqual(105, fig14.gain(records, "isozone", "A"))
        self.assertIsNone(fig14.gain(records, "isozone", "B"))
        self.assertTrue(fig14.EXPERIMENT.checks[0].verdict(records).met)


if __name__ == "__main__":
    unittest.main()
