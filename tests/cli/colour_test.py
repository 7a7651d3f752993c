#!/usr/bin/env python3
"""When the output of commands is coloured.

    colour_test.py ISOZONE
"""

import os
import pty
import subprocess
import unittest

import harness

ESCAPE = b"\x1b["


class Colour(harness.CliTest):
    def setUp(self) -> None:
        super().setUp()
        self.format()

    def on_terminal(self, **environment: str) -> bytes:
        """What `zones` writes to a terminal."""
        master, slave = pty.openpty()
        variables = {"TERM": "xterm-256color", "PATH": os.environ["PATH"], **environment}
        process = subprocess.Popen([harness.PROGRAM, "zones", self.device], stdout=slave, env=variables)
        os.close(slave)
        output = b""
        while True:
            try:
                piece = os.read(master, 65536)
            except OSError:  # the terminal's other end is closed
                break
            if not piece:
                break
            output += piece
        os.close(master)
        self.assertEqual(process.wait(), harness.OK)
        return output

    def test_none_when_piped(self) -> None:
        self.assertNotIn(ESCAPE, self.ok("zones", self.device))

    def test_on_a_terminal(self) -> None:
        self.assertIn(ESCAPE, self.on_terminal())

    def test_none_with_no_color(self) -> None:
        self.assertNotIn(ESCAPE, self.on_terminal(NO_COLOR="1"))

    def test_none_on_a_dumb_terminal(self) -> None:
        self.assertNotIn(ESCAPE, self.on_terminal(TERM="dumb"))

    def test_always_and_never(self) -> None:
        self.assertIn(ESCAPE, self.ok("zones", "--color=always", self.device))
        self.assertNotIn(ESCAPE, self.ok("--color=never", "zones", self.device))


if __name__ == "__main__":
    unittest.main()
