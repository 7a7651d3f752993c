#!/usr/bin/env python3
"""Holds what runs the guest to its task, without running one: it fails where the guest fails, and every step
exists."""

import contextlib
import io
import os
import re
import unittest

from crash import Lines, Machine, acknowledged_until
from guest import printed_by, problem, test
from machine import EXPORT_PAGE, HERE, ROOT, SCRIPTS, documented_commands, shown_commands


def read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


class PrintedLines(Lines):
    def __init__(self, lines: list[str]) -> None:
        self._left = lines

    def __enter__(self) -> "PrintedLines":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def next(self) -> str:
        return self._left.pop(0)


class Printed(Machine):
    """A machine whose guest has printed these lines before it was reset."""

    def __init__(self, lines: list[str]) -> None:
        self._printed = lines

    def reset(self) -> None:
        """It was reset already."""

    def lines(self, _seconds: float) -> Lines:
        return PrintedLines(self._printed)


class Runner(unittest.TestCase):
    def test_a_line_that_a_reset_has_cut_does_no_harm(self) -> None:
        for cut, known, collected in (("7", 20, 4096), ("collected 90026.1.0-56-amd64", 20, 4096),
                                      ("collected", 20, 4096), ("306.1.0-56-amd64", 20, 4096), ("30", 30, 4096)):
            with self.subTest(cut=cut), contextlib.redirect_stdout(io.StringIO()):
                machine = Printed(["20", "collected 4096", cut, "crash: booted"])
                self.assertEqual((known, collected), acknowledged_until(machine, 5, 0.0, 10))

    def test_a_guest_that_fails_fails_the_test(self) -> None:
        self.assertIsNone(problem("=== a\nguest: 1 passed, 0 failed\n"))
        self.assertIn("1 of its steps failed: full-sda", problem("guest: 3 passed, 1 failed full-sda\n") or "")
        self.assertIn("did not come to its end", problem("=== a\nkernel panic\n") or "")
        self.assertIn("no such step", problem("guest: 0 passed, 0 failed\n") or "")

    def test_what_a_failed_step_has_printed_is_found(self) -> None:
        output = ("=== a\nnoise\n=== a-b\nno space\n[   1.0] kernel\n--- a-b FAILED\n=== c\nnoise\n"
                  "guest: 2 passed, 1 failed a-b\n")
        self.assertEqual("no space\n[   1.0] kernel\n", printed_by("a-b", output))
        self.assertEqual("", printed_by("a", output))

    def test_few_steps_that_fail_run_once_more_alone(self) -> None:
        good, one = "guest: 3 passed, 0 failed\n", "guest: 2 passed, 1 failed a\n"
        many = "guest: 0 passed, 3 failed a b c\n"
        for outputs, booted, wrong in (
            ([good], [[]], None),
            ([one, good], [[], ["a"]], None),
            ([one, one], [[], ["a"]], "1 of its steps failed: a"),
            ([one, "panic"], [[], ["a"]], "it did not come to its end"),
            ([many], [[]], "3 of its steps failed: a b c"),
            (["panic"], [[]], "it did not come to its end"),
        ):
            with self.subTest(outputs=outputs), contextlib.redirect_stdout(io.StringIO()):
                found: list[list[str]] = []
                left = list(outputs)

                def boot(steps: list[str], found: list[list[str]] = found, left: list[str] = left) -> str:
                    found.append(steps)
                    return left.pop(0)

                self.assertEqual((wrong, booted), (test([], boot), found))

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
