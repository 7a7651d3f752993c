#!/usr/bin/env python3
"""The program of docs/engines/rust.md is built on the crate `rocksdb`, linked to the shared library, and run as the
page says. Skipped where the crates cannot be had.

    rust_test.py BUILD_DIRECTORY
"""

import os
import subprocess
import unittest

import engine

BUILD_TIMEOUT_S = 1500


class Rust(engine.EngineTest):
    def test_the_page(self) -> None:
        self.need("cargo")
        # The crates that are there already are used again.
        home = os.environ.get("CARGO_HOME") or os.path.join(os.path.expanduser("~"), ".cargo")
        self.environment["CARGO_HOME"] = home
        rustup = os.environ.get("RUSTUP_HOME") or os.path.join(os.path.dirname(home), ".rustup")
        self.environment["RUSTUP_HOME"] = rustup
        for path, text in self.files_of_page("rust").items():
            self.write(path, text)
        fetched = subprocess.run(["cargo", "fetch"], cwd=self.scratch, env=self.environment, capture_output=True,
                                 text=True, timeout=BUILD_TIMEOUT_S)
        if fetched.returncode != 0:
            self.skipTest(f"the crates cannot be had: {(fetched.stderr.strip().splitlines() or ['?'])[0]}")
        output = self.follow_page("rust", timeout_s=BUILD_TIMEOUT_S)
        self.assertIn("\nfrom a zone\n", output)
        self.assertIn("CURRENT", output)


if __name__ == "__main__":
    unittest.main()
