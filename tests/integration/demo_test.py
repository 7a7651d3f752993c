#!/usr/bin/env python3
"""Runs scripts/demo, what `make demo` runs, in small.

    demo_test.py BUILD_DIRECTORY
"""

import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest

BUILD = os.path.abspath(sys.argv.pop(1))
DEMO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "demo")


class Demo(unittest.TestCase):
    def test_the_demo_runs_to_its_end_and_shows_every_phase(self) -> None:
        with tempfile.TemporaryDirectory(prefix="isozone-demo-") as scratch:
            directory = os.path.join(scratch, "demo")
            result = subprocess.run([DEMO, BUILD, "--keys", "20000", "--directory", directory],
                                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                    text=True)
            self.assertEqual(0, result.returncode, result.stdout)
            for phase in ("fillrandom", "readrandom", "overwrite"):
                self.assertRegex(result.stdout, rf"(?m)^{phase} +Isozone +[\d,]+ +[\d.]+.*\n +baseline +[\d,]+ +[\d.]+")
                self.assertRegex(result.stdout, rf"(?m)^  {phase} +[\d.]+ x as many operations a second as")
            self.assertRegex(result.stdout, r"file system +clean: \d+ files, [\d,]+ MiB in them")
            self.assertTrue(os.path.isfile(os.path.join(directory, "zones.svg")))

    def test_a_busy_machine_is_told(self) -> None:
        loader = importlib.machinery.SourceFileLoader("demo", DEMO)
        spec = importlib.util.spec_from_loader("demo", loader)
        assert spec is not None
        demo = importlib.util.module_from_spec(spec)
        loader.exec_module(demo)
        self.assertRegex(demo.busy_note(41.4, 3.0), r"used 41 % of .* while Isozone was measured, and 3 % with the\n")


if __name__ == "__main__":
    unittest.main()
