"""Flushes and compactions from an info log."""
import datetime
import json
import unittest

import harness  # noqa: F401 - finds the lab
from isozone_lab import event_log

OPENED = datetime.datetime(2026, 1, 2, 3, 4, 5, 250_000)
START_US = int(OPENED.timestamp() * 1e6)


def line(second: float, job: int, event: str, **fields: object) -> str:
    body = {"time_micros": START_US + int(second * 1e6), "job": job, "event": event, **fields}
    return f"2026/01/02-03:04:05.9 77 (Original Log Time) EVENT_LOG_v1 {json.dumps(body)}"


LOG = "\n".join([
    f"{OPENED:%Y/%m/%d-%H:%M:%S.%f} 77 RocksDB version: 7.8.3",
    line(1.0, 2, "flush_started", num_memtables=1),
    line(1.5, 3, "compaction_started", input_data_size=30_000_000),
    line(2.0, 2, "table_file_creation", file_size=20_000_000),
    line(2.0, 2, "flush_finished"),
    line(3.0, 3, "table_file_creation", file_size=10_000_000),
    line(3.4, 3, "table_file_creation", file_size=5_000_000),
    line(3.5, 3, "compaction_finished", total_output_size=15_000_000),
    line(3.6, 4, "flush_started"),
    line(3.7, 5, "trivial_move"),
    line(3.8, 6, "table_file_deletion"),
    line(4.0, 4, "flush_finished")[:-9],
])


class EventLog(unittest.TestCase):
    def setUp(self) -> None:
        self.jobs = event_log.jobs(LOG)

    def test_jobs_that_ended(self) -> None:
        self.assertEqual(["flush", "compaction"], [job.kind for job in self.jobs])
        self.assertEqual([1.0, 2.0], [job.seconds for job in self.jobs])

    def test_bytes_read_and_written(self) -> None:
        self.assertEqual([(0, 20_000_000), (30_000_000, 15_000_000)],
                         [(job.bytes_read, job.bytes_written) for job in self.jobs])

    def test_bandwidth_while_jobs_run(self) -> None:
        self.assertAlmostEqual(20, event_log.bandwidth(self.jobs, "flush"))
        self.assertAlmostEqual(22.5, event_log.bandwidth(self.jobs, "compaction"))
        self.assertEqual(0, event_log.bandwidth([], "flush"))

    def test_rates_of_each_second(self) -> None:
        rates = event_log.per_second(self.jobs, START_US)
        expected = [0, 20 + 11.25, 22.5, 11.25]
        self.assertEqual(len(expected), len(rates))
        for one, other in zip(expected, rates, strict=True):
            self.assertAlmostEqual(one, other)

    def test_rates_of_one_kind(self) -> None:
        self.assertAlmostEqual(45, sum(event_log.per_second(self.jobs, START_US, ("compaction",))))
        self.assertEqual([], event_log.per_second([], START_US))

    def test_start(self) -> None:
        self.assertEqual(START_US, event_log.start_us(LOG))
        with self.assertRaises(ValueError):
            event_log.start_us("no time\n")


if __name__ == "__main__":
    unittest.main()
