"""Reading what the YCSB driver writes, and calling it."""
import json
import types
import unittest

import harness
from isozone_lab import ycsb
from isozone_lab.processes import RunFailed

PHASE = {"operations": 1, "seconds": 1.0, "latency_us": {}, "intervals": []}
REPORT = {**harness.example("ycsb"),
          "phase": [{**PHASE, "phase": "load", "throughput": 7.0}, {**PHASE, "phase": "run", "throughput": 9.0}]}


class Ycsb(unittest.TestCase):
    def test_the_phase_that_was_asked_for(self):
        self.assertEqual(9.0, ycsb.parse(json.dumps(REPORT), "run")["throughput"])

    def test_no_report(self):
        for text in ("", "[]", "{}", json.dumps({**REPORT, "phase": []})):
            with self.subTest(text=text), self.assertRaises(RunFailed):
                ycsb.parse(text, "run")

    def test_the_command(self):
        commands = []

        def execute(command, environment):
            commands.append((command, environment))
            return json.dumps(REPORT)

        context = types.SimpleNamespace(build=types.SimpleNamespace(ycsb="driver"), seed=3, execute=execute)
        store = types.SimpleNamespace(database="/db", uri="isozone://emu:x", environment={"LD_PRELOAD": "lib"})
        ycsb.run(context, store, "a", "load", records=5)
        self.assertEqual([(["driver", "--workload=a", "--phase=load", "--db=/db", "--seed=3", "--records=5",
                            "--fs-uri=isozone://emu:x"], {"LD_PRELOAD": "lib"})], commands)


if __name__ == "__main__":
    unittest.main()
