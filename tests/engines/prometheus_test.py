#!/usr/bin/env python3
"""Prometheus whose database is on a mounted directory, and stores the metrics of that device: the page; every sample
that a query saw is there after a kill of Prometheus, and every one that was synced after a kill of the daemon.

    prometheus_test.py BUILD_DIRECTORY [--kills N]

Skipped where Prometheus is not there.
"""

import json
import os
import signal
import unittest
import urllib.error
import urllib.parse
import urllib.request

import on_mount
from on_mount import mounted

KILLS = mounted.option("--kills", 4)
SAMPLES = 20  # new ones in each turn
CONFIGURATION = """
global: {{scrape_interval: 50ms, scrape_timeout: 50ms}}
scrape_configs: [{{job_name: isozone, static_configs: [{{targets: ["127.0.0.1:{port}"]}}]}}]
"""


class Prometheus(on_mount.MountedTest):
    commands = ("prometheus", "promtool")

    def setUp(self) -> None:
        super().setUp()
        self.port, self.metrics_port = on_mount.free_ports(2)

    def get(self, path: str, **arguments: str) -> bytes | None:
        """None: there is no answer, or one that is no success."""
        url = f"http://127.0.0.1:{self.port}{path}?{urllib.parse.urlencode(arguments)}"
        try:
            with urllib.request.urlopen(url, timeout=mounted.WAIT_S) as answer:
                content: bytes = answer.read()
                return content
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return None

    def start(self) -> on_mount.Program:
        prometheus = on_mount.Program(
            self, "prometheus", "prometheus", "--config.file=prometheus.yml",
            f"--storage.tsdb.path={self.directory}/db", f"--web.listen-address=127.0.0.1:{self.port}")
        mounted.wait_until(lambda: prometheus.has_ended() or self.get("/-/ready") is not None, "it does not get ready")
        self.assertFalse(prometheus.has_ended(), prometheus.said())
        return prometheus

    def samples(self) -> set[float]:
        """The times of all samples of one metric."""
        answer = self.get("/api/v1/query", query="isozone_device_readable[1d]")
        if answer is None:
            return set()
        return {time for series in json.loads(answer)["data"]["result"] for time, _ in series["values"]}

    def wait_for_more(self, count: int) -> set[float]:
        mounted.wait_until(lambda: len(self.samples()) >= count, "there are no new samples")
        return self.samples()

    def sync_log(self) -> None:
        log = os.path.join(self.directory, "db", "wal")
        for path in (*(os.path.join(log, name) for name in os.listdir(log)), log, os.path.dirname(log)):
            fd = os.open(path, os.O_RDONLY)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)

    def check_that_it_goes_on(self, prometheus: on_mount.Program) -> None:
        mounted.wait_until(lambda: "not connected" in prometheus.said(), "it does not say what is wrong")
        self.assertFalse(prometheus.has_ended(), prometheus.said())

    def test_the_page(self) -> None:
        self.leave_to_page()
        output = self.follow_page("prometheus", changes={"9464": str(self.metrics_port), "9090": str(self.port)})
        self.assertRegex(output, r"isozone_device_readable\{.*\} => 1")
        self.assertRegex(output, r"(?m)^.*\b00000000$")

    def test_no_sample_is_lost_that_was_seen_or_synced(self) -> None:
        self.write("prometheus.yml", CONFIGURATION.format(port=self.metrics_port))
        on_mount.Program(self, "serve", "isozone", "serve", "--listen", f"127.0.0.1:{self.metrics_port}", self.device)
        daemon = self.mount()
        prometheus = self.start()
        for turn in range(KILLS):
            known = self.wait_for_more(len(self.samples()) + SAMPLES)
            if turn % 2 == 0:
                prometheus.end(signal.SIGKILL)
            else:
                self.sync_log()
                daemon.end(signal.SIGKILL)
                self.check_that_it_goes_on(prometheus)
                prometheus.end(signal.SIGKILL)
                daemon = self.mount()
            prometheus = self.start()
            self.assertEqual(set(), known - self.samples(), f"turn {turn}")
        self.assertEqual(0, prometheus.end(), prometheus.said())
        self.assertEqual(0, daemon.end(), daemon.said())
        self.check_device()


if __name__ == "__main__":
    unittest.main()
