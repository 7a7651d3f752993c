#!/usr/bin/env python3
"""Holds what runs the guest to its task, without running one: it fails where the guest fails, and every step
exists."""

import os
import re
import unittest

from guest import problem
from machine import EXPORT_PAGE, HERE, ROOT, SCRIPTS, documented_commands, shown_commands


def read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


class Runner(unittest.TestCase):
    def test_a_guest_that_fails_fails_the_test(self) -> None:
        self.assertIsNone(problem("=== a\nguest: 1 passed, 0 failed\n"))
        self.assertIn("1 of its steps failed: full-sda", problem("guest: 3 passed, 1 failed full-sda\n") or "")
        self.assertIn("did not come to its end", problem("=== a\nkernel panic\n") or "")
        self.assertIn("no such step", problem("guest: 0 passed, 0 failed\n") or "")

    def test_every_step_is_a_function(self) -> None:
        text = "".join(read(os.path.join(HERE, name)) for name in SCRIPTS)
        steps = re.findall(r"^ *step (?:[\w-]+|\"[^\"]+\") (\w+)", text, re.MULTILINE)
        steps += re.findall(r"^ *step [\w-]+ mounted \S+ \S+ (\w+)", text, re.MULTILINE)
        self.assertGreater(len(steps), 20)
        functions = re.findall(r"^(\w+)\(\) \{", text, re.MULTILINE)
        script = read(os.path.join(ROOT, "scripts", "device-test"))
        steps += (re.search(r"steps=\((\w+(?: \w+)+)\)", script) or [""])[1].split()
        self.assertEqual(set(), set(steps) - set(functions))

    def test_documented_commands_are_found(self) -> None:
        self.assertIn("isozone info dev:/dev/nvme0n2", documented_commands())
        self.assertIn("isozone export emu:ssd.img --id 0", shown_commands(EXPORT_PAGE))
        self.assertNotIn("ublkb", "".join(documented_commands()))


if __name__ == "__main__":
    unittest.main()
