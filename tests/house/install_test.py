#!/usr/bin/env python3
"""Installs a build under a scratch prefix, then does what a user does: makes a device with the installed tool, builds
the examples on the installed package, and runs them on the device. The example that is part of the build runs as well.

    install_test.py BUILD_DIRECTORY CXX_COMPILER EMULATED_DEVICE_EXAMPLE
"""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import house

BUILD, COMPILER, EMULATED_DEVICE = (os.path.abspath(path) for path in sys.argv[1:4])
del sys.argv[1:4]
EXAMPLES = os.path.join(house.ROOT, "examples")
INSTALLED = ("share/man/man1/isozone.1", "share/bash-completion/completions/isozone", "share/doc/isozone/LICENSE",
             "include/isozone/isozone.h", "include/isozone/c.h")


class Install(unittest.TestCase):
    scratch: str
    prefix: str
    tool: str

    @classmethod
    def setUpClass(cls) -> None:
        cls.scratch = tempfile.mkdtemp(prefix="isozone-install-")
        cls.addClassCleanup(shutil.rmtree, cls.scratch)
        cls.prefix = os.path.join(cls.scratch, "prefix")
        cls.tool = os.path.join(cls.prefix, "bin", "isozone")
        subprocess.run(["cmake", "--install", BUILD, "--prefix", cls.prefix], check=True, stdout=subprocess.DEVNULL)

    def setUp(self) -> None:
        self.directory = tempfile.mkdtemp(dir=self.scratch)

    def run_command(self, *command: str) -> str:
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                stdin=subprocess.DEVNULL, cwd=self.directory)
        self.assertEqual(0, result.returncode, f"{' '.join(command)}\n{result.stdout}")
        return result.stdout

    def build_example(self, name: str) -> str:
        build = os.path.join(self.directory, "build")
        self.run_command("cmake", "-S", os.path.join(EXAMPLES, name), "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}",
                         f"-DCMAKE_CXX_COMPILER={COMPILER}")
        self.run_command("cmake", "--build", build)
        return os.path.join(build, name)

    def test_everything_is_installed(self) -> None:
        for pattern in INSTALLED:
            with self.subTest(pattern=pattern):
                self.assertTrue(glob.glob(os.path.join(self.prefix, pattern)), "is not installed")

    def test_a_program_that_links_the_library(self) -> None:
        self.run_command(self.tool, "mkfs", "emu:ssd.img?profile=small-zone&zones=64&timing=off")
        self.assertRegex(self.run_command(self.build_example("database"), "isozone://emu:ssd.img?timing=off"),
                         rf"^Isozone {re.escape(house.version())} \(RocksDB \d+\.\d+\.\d+\): from a zone$")
        self.assertIn("db/", self.run_command(self.tool, "ls", "emu:ssd.img"))

    def test_a_program_that_reads_an_options_file(self) -> None:
        self.run_command(self.tool, "mkfs", "emu:ssd.img?profile=small-zone&zones=64&timing=off")
        options = os.path.join(EXAMPLES, "options_file", "options.ini")
        self.assertEqual("on isozone: from an options file\n",
                         self.run_command(self.build_example("options_file"), options))
        self.assertIn("db/", self.run_command(self.tool, "ls", "emu:ssd.img"))

    def test_a_program_that_uses_the_emulated_device(self) -> None:
        for _ in range(2):  # with a new image, and with one that exists
            output = self.run_command(EMULATED_DEVICE, os.path.join(self.directory, "ssd.img"))
            self.assertEqual(2, output.count("Zone Invalid Write (1BCh)"), output)
            self.assertIn("zone 0 is full", output)

    def test_a_program_that_knows_nothing_of_it(self) -> None:
        self.run_command(self.tool, "mkfs", "emu:ssd.img?profile=small-zone&zones=64&timing=off")
        self.run_command(self.tool, "run", "--map", "app=emu:ssd.img?timing=off", "--", "ldb", "--db=app/db",
                         "--create_if_missing", "put", "name", "Isozone")
        self.assertIn("CURRENT", self.run_command(self.tool, "ls", "emu:ssd.img", "/db"))

    def test_every_example_is_tested(self) -> None:
        self.assertEqual({"database", "options_file", "emulated_device"},
                         {os.path.basename(os.path.dirname(path))
                          for path in glob.glob(os.path.join(EXAMPLES, "*", "CMakeLists.txt"))})


if __name__ == "__main__":
    unittest.main()
