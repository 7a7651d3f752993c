#!/usr/bin/env python3
"""etcd on a mounted directory: the page; its own benchmark without an error; every key whose put was answered is there
after kills of etcd and of the daemon and after power cuts of the device.

    etcd_test.py BUILD_DIRECTORY [--kills N] [--cuts N]

Skipped where etcd or its client are not there.
"""

import base64
import http.client
import json
import random
import signal
import threading
import unittest
from typing import Any

import on_mount
from on_mount import mounted

KILLS = mounted.option("--kills", 4)
CUTS = mounted.option("--cuts", 2)
WRITERS = 2
PERF_TIMEOUT_S = 300  # of what takes a minute
KEYS = 50  # that each writer has acknowledged before something is killed


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def decoded(text: str) -> str:
    return base64.b64decode(text).decode()


class Client:
    """Speaks JSON with etcd."""

    def __init__(self, port: int) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=mounted.WAIT_S)

    def ask(self, path: str, **arguments: object) -> dict[str, Any] | None:
        """None: there is no answer, or one that is no success."""
        try:
            self.connection.request("POST", path, json.dumps(arguments))
            answer = self.connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException):
            self.connection.close()
            return None
        result: dict[str, Any] = json.loads(content) if answer.status == 200 else {}
        return result if answer.status == 200 else None


class Puts(threading.Thread):
    """Puts keys, one after the other; knows how many were acknowledged."""

    def __init__(self, port: int, prefix: str) -> None:
        super().__init__(daemon=True)
        self.client, self.prefix = Client(port), prefix
        self.acknowledged = 0

    def value(self, number: int) -> str:
        return f"{self.prefix}{number:08d} " * 30

    def run(self) -> None:
        for number in range(1_000_000):
            if self.client.ask("/v3/kv/put", key=encoded(f"{self.prefix}{number:08d}"),
                               value=encoded(self.value(number))) is None:
                break
            self.acknowledged = number + 1
        self.client.connection.close()


class Etcd(on_mount.MountedTest):
    commands = ("etcd", "etcdctl")

    def setUp(self) -> None:
        super().setUp()
        self.port, self.peer_port = on_mount.free_ports(2)
        self.environment["ETCDCTL_API"] = "3"
        self.environment["ETCDCTL_ENDPOINTS"] = f"http://127.0.0.1:{self.port}"

    def ask(self, path: str, **arguments: object) -> dict[str, Any] | None:
        client = Client(self.port)
        try:
            return client.ask(path, **arguments)
        finally:
            client.connection.close()

    def start(self, may_end: bool = False) -> on_mount.Program:
        clients, peers = (f"http://127.0.0.1:{port}" for port in (self.port, self.peer_port))
        etcd = on_mount.Program(
            self, "etcd", "etcd", f"--data-dir={self.directory}/etcd", f"--listen-client-urls={clients}",
            f"--advertise-client-urls={clients}", f"--listen-peer-urls={peers}", "--snapshot-count=1000")
        # A range that is linearizable is answered when there is a leader.
        mounted.wait_until(lambda: etcd.has_ended() or self.ask("/v3/kv/range", key=encoded("a")) is not None,
                           "it does not get ready")
        self.assertTrue(may_end or not etcd.has_ended(), etcd.said())
        return etcd

    def check_keys(self, writer: Puts) -> None:
        """Every key that was acknowledged is there with its value, and at most the next one."""
        answer = self.ask("/v3/kv/range", key=encoded(writer.prefix), range_end=encoded(writer.prefix + "\x7f"))
        assert answer is not None
        found = {decoded(pair["key"]): decoded(pair["value"]) for pair in answer.get("kvs", [])}
        self.assertIn(len(found), (writer.acknowledged, writer.acknowledged + 1), writer.prefix)
        for number in range(len(found)):
            self.assertEqual(writer.value(number), found.get(f"{writer.prefix}{number:08d}"))

    def test_the_page(self) -> None:
        self.leave_to_page()
        output = self.follow_page("etcd", changes={"2379": str(self.port), "2380": str(self.peer_port)})
        self.assertRegex(output, r"(?m)^name\nfrom a zone$")
        self.assertRegex(output, r"\.wal")

    def test_its_own_benchmark_has_no_error(self) -> None:
        daemon = self.mount()
        etcd = self.start()
        # Its exit code says whether this machine is fast, which is not what is tested here.
        done = on_mount.Program(self, "check", "etcdctl", "check", "perf", "--load=s")
        done.process.wait(timeout=PERF_TIMEOUT_S)
        self.assertRegex(done.said(), r"(PASS|FAIL)\n?\s*$")
        self.assertNotRegex(done.said(), "too many errors")
        self.assertEqual(-signal.SIGTERM, etcd.end(), etcd.said())
        self.assertEqual(0, daemon.end(), daemon.said())
        self.check_device()

    def test_no_acknowledged_key_is_lost_when_etcd_and_the_daemon_are_killed(self) -> None:
        daemon, etcd, writers = self.mount(), self.start(), []
        for turn in range(KILLS):
            new = [Puts(self.port, f"{turn:04d}/{number}/") for number in range(WRITERS)]
            for writer in new:
                writer.start()
            mounted.wait_until(lambda: all(writer.acknowledged > KEYS for writer in new),  # noqa: B023
                               "the writers do not get on")
            if turn % 2 == 0:
                etcd.end(signal.SIGKILL)
            else:
                daemon.end(signal.SIGKILL)
                self.wait_for_end(etcd)
                daemon = self.mount()
            for writer in new:
                writer.join(mounted.WAIT_S)
            writers += new
            etcd = self.start()
            for writer in writers:
                self.check_keys(writer)
        self.assertEqual(-signal.SIGTERM, etcd.end(), etcd.said())
        self.assertEqual(0, daemon.end(), daemon.said())
        self.check_device()

    def wait_for_end(self, etcd: on_mount.Program) -> None:
        """A request that it cannot note in its log ends it."""
        mounted.wait_until(etcd.has_ended, "it goes on without its directory")

    def test_no_acknowledged_key_is_lost_in_a_power_cut(self) -> None:
        daemon, etcd, acknowledged, chance = self.mount(), self.start(), 0, random.Random(1)
        self.assertEqual(-signal.SIGTERM, etcd.end(), etcd.said())
        self.assertEqual(0, daemon.end(), daemon.said())
        for turn in range(CUTS):
            commands = chance.randrange(500, 4000)
            daemon = self.mount(f"{self.device}&fault_power_cut_after={commands}&fault_seed={turn}")
            etcd = self.start(may_end=True)
            writers = [Puts(self.port, f"{turn:04d}/{number}/") for number in range(WRITERS)]
            for writer in writers:
                writer.start()
            self.wait_for_end(etcd)
            daemon.end(signal.SIGKILL)
            for writer in writers:
                writer.join(mounted.WAIT_S)
            daemon, etcd = self.mount(), self.start()
            for writer in writers:
                self.check_keys(writer)
            acknowledged += sum(writer.acknowledged for writer in writers)
            self.assertEqual(-signal.SIGTERM, etcd.end(), etcd.said())
            self.assertEqual(0, daemon.end(), daemon.said())
        self.check_device()
        self.assertGreater(acknowledged, KEYS)


if __name__ == "__main__":
    unittest.main()
