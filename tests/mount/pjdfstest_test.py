#!/usr/bin/env python3
"""Runs pjdfstest, a test of POSIX system calls, on a mounted directory. pjdfstest.toml lists what is not supported,
with the reasons. Skipped with a line where the crate cannot be had.

    pjdfstest_test.py ISOZONE
"""

import os
import re
import subprocess

import mounted
import suite

CONFIGURATION = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pjdfstest.toml")
VERSION = "0.2.2"
TIMEOUT_S = 900


class Pjdfstest(mounted.MountTest):
    device_options = "timing=off&zones=64&zone_size=8M"
    program = ""

    def run_on(self, options: str) -> None:
        os.chmod(self.scratch, 0o755)
        daemon = self.mount(options)
        os.chmod(self.directory, 0o755)
        # Names on another file system are needed for some tests.
        result = subprocess.run([self.program, "-c", CONFIGURATION, "-p", self.directory, "-s", "/dev/shm"],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                timeout=TIMEOUT_S)
        wrong = [block for block in re.split(r"\n(?=\S)", result.stdout) if "FAILED" in block]
        self.assertEqual(0, result.returncode, "\n".join(wrong) or result.stdout[-4000:])
        self.assertRegex(result.stdout, r"\d{3} passed")
        self.assertEqual([], os.listdir(self.directory))
        self.assertEqual(0, daemon.end(), daemon.said())
        self.check()

    def test_every_system_call(self) -> None:
        self.run_on("allow_other")

    def test_every_system_call_with_writeback(self) -> None:
        self.run_on("allow_other,writeback=on")


def main() -> None:
    if os.geteuid() != 0:
        print("SKIP: only root can be another user")
        return
    try:
        Pjdfstest.program = suite.program_of_crate("pjdfstest", VERSION)
    except suite.CannotHave as error:
        print(f"SKIP: {error}")
        return
    mounted.main()


if __name__ == "__main__":
    main()
