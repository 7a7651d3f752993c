"""Reading what the YCSB driver writes, and calling it."""
import json
import unittest
from collections.abc import Sequence

import harness
from isozone_lab import device, runner, versions, ycsb
from isozone_lab.processes import Environment, RunFailed

PHASE = {"operations": 1, "seconds": 1.0, "latency_us": {}, "intervals": []}
REPORT = {**harness.example("ycsb"),
          "phase": [{**PHASE, "phase": "load", "throughput": 7.0}, {**PHASE, "phase": "run", "throughput": 9.0}]}


class Recorder(runner.Context):
    """Keeps what it is asked to execute, and pretends to be the driver."""

    def __init__(self) -> None:
        build = versions.Build("build")
        super().__init__(build, device.Shelf(build, "scratch"), {}, 3)
        self.executed: list[tuple[list[object], Environment | None]] = []

    def execute(self, command: Sequence[object], environment: Environment | None = None) -> str:
        self.executed.append((list(command), environment))
        return json.dumps(REPORT)


class Place(device.Store):
    uri = "isozone://emu:x"
    environment = {"LD_PRELOAD": "lib"}
    database = "/db"

    def remove(self) -> None:
        pass


class Ycsb(unittest.TestCase):
    def test_the_phase_that_was_asked_for(self) -> None:
        self.assertEqual(9.0, ycsb.parse(json.dumps(REPORT), "run")["throughput"])

    def test_no_report(self) -> None:
        for text in ("", "[]", "{}", json.dumps({**REPORT, "phase": []})):
            with self.subTest(text=text), self.assertRaises(RunFailed):
                ycsb.parse(text, "run")

    def test_the_command(self) -> None:
        context = Recorder()
        ycsb.run(context, Place(), "a", "load", records=5)
        self.assertEqual([([context.build.ycsb, "--workload=a", "--phase=load", "--db=/db", "--seed=3", "--records=5",
                            "--fs-uri=isozone://emu:x"], {"LD_PRELOAD": "lib"})], context.executed)


if __name__ == "__main__":
    unittest.main()
