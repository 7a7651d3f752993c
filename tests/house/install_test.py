#!/usr/bin/env python3
"""Installs a build under a scratch prefix, then does what a user does: make a device with the installed tool, build a
program that finds the package, and run it on the device.

    install_test.py BUILD_DIRECTORY CXX_COMPILER
"""

import glob
import os
import subprocess
import sys
import tempfile
import unittest

BUILD, COMPILER = sys.argv.pop(1), sys.argv.pop(1)
CONSUMER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "consumer")


class Install(unittest.TestCase):
    def run_command(self, *command):
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                stdin=subprocess.DEVNULL)
        self.assertEqual(0, result.returncode, f"{' '.join(command)}\n{result.stdout}")
        return result.stdout

    def test_a_user_can_build_and_run_on_what_is_installed(self):
        with tempfile.TemporaryDirectory(prefix="isozone-install-") as scratch:
            prefix = os.path.join(scratch, "prefix")
            self.run_command("cmake", "--install", BUILD, "--prefix", prefix)
            for pattern in ("share/man/man1/isozone.1", "share/bash-completion/completions/isozone",
                            "share/doc/isozone/LICENSE"):
                self.assertTrue(glob.glob(os.path.join(prefix, pattern)), f"{pattern} is not installed")

            device = f"emu:{scratch}/ssd.img?profile=small-zone&zones=64&timing=off"
            tool = os.path.join(prefix, "bin", "isozone")
            self.run_command(tool, "mkfs", device)

            build = os.path.join(scratch, "build")
            self.run_command("cmake", "-S", CONSUMER, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}",
                             f"-DCMAKE_CXX_COMPILER={COMPILER}")
            self.run_command("cmake", "--build", build)
            program = os.path.join(build, "consumer")
            self.assertRegex(self.run_command(program, f"isozone://{device}"),
                             r"^Isozone 0\.1\.0 \(RocksDB \d+\.\d+\.\d+\): from a zone$")
            self.assertIn("db/", self.run_command(tool, "ls", device))


if __name__ == "__main__":
    unittest.main()
