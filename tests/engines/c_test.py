#!/usr/bin/env python3
"""The program of docs/engines/c.md is compiled and run as the page says.

    c_test.py BUILD_DIRECTORY
"""

import unittest

import engine


class C(engine.EngineTest):
    def test_the_page(self) -> None:
        self.need("cc")
        output = self.follow_page("c")
        self.assertIn('"write_amplification"', output)
        self.assertIn("CURRENT", output)


if __name__ == "__main__":
    unittest.main()
