#!/usr/bin/env python3
"""The program of docs/engines/python.md runs as the page says, again on a device that has a database, and says in one
line what is wrong.

    python_test.py BUILD_DIRECTORY
"""

import unittest

import engine


class Python(engine.EngineTest):
    def test_the_page(self) -> None:
        self.assertRegex(self.follow_page("python"), r"\nfrom a zone\n$")
        self.assertEqual("from a zone\n", self.run_command("python3", "app.py"))
        self.assertIn("CURRENT", self.run_command("isozone", "ls", "emu:ssd.img", "/db"))

    def test_a_device_that_is_not_there(self) -> None:
        self.follow_page("python")
        self.run_command("rm", "ssd.img")
        *_, last = self.run_command("python3", "app.py", fails=True).splitlines()
        self.assertRegex(last, r"^OSError: .*ssd\.img")


if __name__ == "__main__":
    unittest.main()
