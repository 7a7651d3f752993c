"""Reading what db_bench prints."""
import unittest

import harness  # noqa: F401 - finds the lab
from isozone_lab import db_bench
from isozone_lab.processes import RunFailed

FILL = """fillrandom   :      12.719 micros/op 78624 ops/sec 5.087 seconds 400000 operations;   61.5 MB/s
Microseconds per write:
Count: 400000 Average: 12.7186  StdDev: 211.21
Min: 2  Median: 5.7047  Max: 10795
Percentiles: P50: 5.70 P75: 8.02 P99: 14.97 P99.9: 109.18 P99.99: 9542.68
------------------------------------------------------
(       1,       2 ]      771   0.193%   0.193%
(       2,       3 ]    17776   4.444%   4.637% #
(       3,       4 ]    51516  12.879%  17.516% ###
(       4,       6 ]   152448  38.112%  55.628% ########
(       6,      10 ]   153433  38.358%  93.986% ########
(      10,      15 ]    20169   5.042%  99.028% #
(      15,      22 ]     1650   0.413%  99.441%
(      22,      34 ]      440   0.110%  99.551%
(      34,      51 ]      762   0.191%  99.741%
(      51,      76 ]      474   0.119%  99.860%
(      76,     110 ]      165   0.041%  99.901%
(     110,     170 ]       28   0.007%  99.908%
(     170,     250 ]       20   0.005%  99.913%
(     250,     380 ]       18   0.005%  99.918%
(     380,     580 ]        3   0.001%  99.918%
(     870,    1300 ]        2   0.001%  99.919%
(    1900,    2900 ]        2   0.001%  99.919%
(    2900,    4400 ]        3   0.001%  99.920%
(    6600,    9900 ]      314   0.079%  99.999%
(    9900,   14000 ]        6   0.002% 100.000%

"""
READ = """DB path: [/db]
readrandom   :     740.729 micros/op 1350 ops/sec 1.481 seconds 2000 operations;    0.7 MB/s (1255 of 2000 found)

Microseconds per read:
Count: 20 Average: 5.0  StdDev: 1.0
Min: 4  Median: 5.0000  Max: 7
Percentiles: P50: 5.00 P75: 5.50 P99: 7.00 P99.9: 7.00 P99.99: 7.00
------------------------------------------------------
[       4,       6 ]       18  90.000%  90.000% ##
(       6,      10 ]        2  10.000% 100.000%
"""


class Parsing(unittest.TestCase):
    def test_rates_by_benchmark(self) -> None:
        rates = {name: result.rate for name, result in db_bench.parse(FILL + READ).items()}
        self.assertEqual({"fillrandom": 78624, "readrandom": 1350}, rates)

    def test_each_benchmark_has_its_own_histograms(self) -> None:
        results = db_bench.parse(FILL + READ)
        self.assertEqual(["write"], list(results["fillrandom"].histograms))
        self.assertEqual(["read"], list(results["readrandom"].histograms))

    def test_percentiles_are_those_that_rocksdb_prints(self) -> None:
        histogram = db_bench.parse(FILL + READ)["fillrandom"].histograms["write"]
        for percent, printed in ((50, 5.70), (75, 8.02), (99, 14.97), (99.9, 109.18), (99.99, 9542.68)):
            self.assertAlmostEqual(printed, histogram.percentile(percent), delta=0.01, msg=percent)

    def test_the_last_percentile_is_interpolated_from_the_buckets(self) -> None:
        histogram = db_bench.parse(FILL)["fillrandom"].histograms["write"]
        self.assertEqual(10795, histogram.percentile(99.999))  # bounded by the greatest value
        unbounded = db_bench.Histogram(histogram.buckets, 0, 14000)
        # 4 of 400,000 are above it: 2 of the 6 in the last bucket are below.
        self.assertAlmostEqual(9900 + 4100 * 2 / 6, unbounded.percentile(99.999))

    def test_percentiles_stay_between_least_and_greatest(self) -> None:
        histogram = db_bench.parse(READ)["readrandom"].histograms["read"]
        self.assertEqual(7, histogram.percentile(100))
        self.assertEqual(4, histogram.percentile(0))

    def test_no_buckets_are_an_error(self) -> None:
        with self.assertRaises(RunFailed):
            db_bench.Histogram.parse("Min: 0  Median: 0  Max: 0\n")

    def test_report_file(self) -> None:
        self.assertEqual([1382, 90], db_bench.report_rates("secs_elapsed,interval_qps\n1,1382\n2,90\n3"))


if __name__ == "__main__":
    unittest.main()
