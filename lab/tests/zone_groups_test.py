"""Measuring zone groups on a host that may be too busy."""
import json
import os
import stat
import tempfile
import unittest
from typing import Any

import harness
from isozone_lab import processes, zone_groups

FOUND = {**harness.example("izg-identify"), "problem": None, "groups": 32}
DOUBTFUL = {**FOUND, "problem": "it is"}


class ZoneGroups(unittest.TestCase):
    def setUp(self) -> None:
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.notes: list[str] = []

    def identify(self, script: str, speed: float = 1) -> dict[str, Any] | None:
        tool = os.path.join(self.scratch.name, "isozone")
        with open(tool, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\ncase $3 in\n{script}\nesac\n")
        os.chmod(tool, stat.S_IRWXU)
        return zone_groups.identify(tool, "ssd.img", speed, self.notes.append)

    def test_an_idle_host_measures_at_once(self) -> None:
        found = self.identify(f"emu:ssd.img'?speed=1') echo '{json.dumps(FOUND)}';;\n*) exit 9;;")
        self.assertEqual(32, found and found["groups"])
        self.assertEqual([], self.notes)

    def test_a_busy_host_measures_a_slower_device(self) -> None:
        found = self.identify(f"*speed=0.5) exit 4;;\n*speed=0.25) echo '{json.dumps(DOUBTFUL)}';;\n"
                              f"*speed=0.125) echo '{json.dumps(FOUND)}';;", speed=0.5)
        self.assertEqual(32, found and found["groups"])
        self.assertEqual(2, len(self.notes))
        self.assertIn("0.5 x the published speed", self.notes[0])

    def test_one_that_is_too_busy_for_that_finds_nothing(self) -> None:
        self.assertIsNone(self.identify("*) exit 4;;"))
        self.assertEqual(3, len(self.notes))

    def test_any_other_failure_is_told(self) -> None:
        with self.assertRaisesRegex(processes.RunFailed, "ssd.img failed: no such device"):
            self.identify("*) echo no such device >&2; exit 2;;")


if __name__ == "__main__":
    unittest.main()
