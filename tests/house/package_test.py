#!/usr/bin/env python3
"""Builds the Debian package of a build, looks at what is in it, uses the tool and the library from it, and removes it.

    package_test.py BUILD_DIRECTORY

The package is unpacked into a scratch directory and used there. Where this user is root, and Isozone is not installed,
it is also installed, used as users do, and removed.
"""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import house

BUILD = os.path.abspath(sys.argv.pop(1))
LOCK_WAIT_S = 60
GROUP = "isozone"  # that the udev rule names
CONTENT = (r"./usr/bin/isozone", r"./usr/lib/\S*libisozone_run\.so", r"./usr/lib/\S*libisozone\.so",
           r"./usr/lib/\S*libisozone\.so\.\d+\.\d+\.\d+",
           r"./usr/include/isozone/isozone\.h", r"./usr/include/isozone/c\.h",
           r"./usr/lib/\S*cmake/isozone/isozoneConfig\.cmake",
           r"./usr/lib/\S*cmake/isozone/isozoneTargets\.cmake", r"./usr/share/man/man1/isozone\.1(\.gz)?",
           r"./usr/share/bash-completion/completions/isozone", r"./usr/share/zsh/site-functions/_isozone",
           r"./usr/share/doc/isozone/LICENSE", r"./usr/share/doc/isozone/CHANGELOG\.md",
           r"./usr/sbin/mount\.isozone", r"./usr/sbin/mount\.fuse\.isozone",
           r"./usr/lib/systemd/system/isozone-mount@\.service",
           r"./usr/lib/udev/rules\.d/60-isozone\.rules", r"./usr/share/isozone/profiles/small-zone\.profile",
           r"./usr/share/isozone/grafana/isozone\.json", r"./usr/share/isozone/prometheus/isozone\.rules\.yml")


def has_group() -> bool:
    return subprocess.run(["getent", "group", GROUP], stdout=subprocess.DEVNULL).returncode == 0


def is_installed(package: str) -> bool:
    result = subprocess.run(["dpkg-query", "--show", "--showformat=${db:Status-Status}", package],
                            capture_output=True, text=True)
    return result.returncode == 0 and result.stdout != "not-installed"


def dpkg(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs dpkg, and again for a while as long as another process has its lock."""
    deadline = time.monotonic() + LOCK_WAIT_S
    while True:
        result = subprocess.run(["dpkg", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                stdin=subprocess.DEVNULL)
        if result.returncode == 0 or "lock" not in result.stdout or time.monotonic() > deadline:
            return result
        time.sleep(1)


class Package(unittest.TestCase):
    scratch: str
    package: str

    @classmethod
    def setUpClass(cls) -> None:
        cls.scratch = tempfile.mkdtemp(prefix="isozone-package-")
        cls.addClassCleanup(shutil.rmtree, cls.scratch)
        result = subprocess.run(["cpack", "--config", os.path.join(BUILD, "CPackConfig.cmake"), "-B", cls.scratch],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL)
        if result.returncode != 0:
            raise AssertionError(result.stdout)
        cls.package, = glob.glob(os.path.join(cls.scratch, "*.deb"))

    def output_of(self, *command: str, **environment: str) -> str:
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                stdin=subprocess.DEVNULL, cwd=self.scratch, env={**os.environ, **environment})
        self.assertEqual(0, result.returncode, f"{' '.join(command)}\n{result.stdout}")
        return result.stdout

    def field(self, name: str) -> str:
        return self.output_of("dpkg-deb", "--field", self.package, name).strip()

    def use(self, tool: str, name: str, **environment: str) -> None:
        """Makes a device with `tool`, and runs the stock db_bench with the library preloaded."""
        self.assertEqual(f"isozone {house.version()}\n", self.output_of(tool, "--version", **environment))
        self.output_of(tool, "mkfs", f"emu:{name}.img?zones=64&timing=off", **environment)
        self.output_of("db_bench", f"--fs_uri=isozone://emu:{name}.img?timing=off", "--db=/db",
                       "--benchmarks=fillrandom,readrandom", "--num=1000",
                       **{**environment, "LD_PRELOAD": "libisozone.so"})
        self.assertIn("CURRENT", self.output_of(tool, "ls", f"emu:{name}.img", "/db", **environment))

    def installed_files(self) -> list[str]:
        """The files of the package that this machine has."""
        lines = self.output_of("dpkg-deb", "--contents", self.package).splitlines()
        paths = [line.split()[5][1:] for line in lines if not line.startswith("d")]
        return [path for path in paths if os.path.lexists(path)]

    def test_everything_is_in_it(self) -> None:
        content = self.output_of("dpkg-deb", "--contents", self.package)
        paths = [line.split()[5] for line in content.splitlines()]
        for pattern in CONTENT:
            with self.subTest(pattern=pattern):
                self.assertTrue(any(re.fullmatch(pattern, path) for path in paths), content)
        self.assertEqual([], [path for path in paths if not path.startswith("./usr/") and path != "./"])
        owners = {line.split()[1] for line in content.splitlines()}
        self.assertEqual({"root/root"}, owners)

    def test_it_says_what_it_is_and_what_it_needs(self) -> None:
        self.assertEqual("isozone", self.field("Package"))
        self.assertEqual(house.version(), self.field("Version"))
        needed = self.field("Depends")
        for library in ("libc6", "libstdc++6", "librocksdb"):
            self.assertIn(library, needed)
        self.assertNotIn("-dev", needed)
        self.assertNotIn("@", self.field("Maintainer"))  # no address is made up

    def test_it_works_where_it_is_unpacked(self) -> None:
        root = os.path.join(self.scratch, "root")
        self.output_of("dpkg-deb", "--extract", self.package, root)
        library, = glob.glob(os.path.join(root, "usr/lib/**/libisozone.so"), recursive=True)
        self.use(os.path.join(root, "usr/bin/isozone"), "unpacked", LD_LIBRARY_PATH=os.path.dirname(library))
        self.assertNotIn(house.ROOT, self.output_of("readelf", "--dynamic", library))

    def test_the_udev_rule_is_the_one_that_is_documented(self) -> None:
        with open(os.path.join(house.ROOT, "packaging/60-isozone.rules"), encoding="utf-8") as file:
            rule = [line for line in file if not line.startswith("#")]
        with open(os.path.join(house.ROOT, "docs/devices.md"), encoding="utf-8") as file:
            self.assertIn("```text\n" + "".join(rule) + "```", file.read())

    def test_it_is_installed_works_and_is_removed(self) -> None:
        if os.geteuid() != 0 or is_installed("isozone") or self.installed_files():
            self.skipTest("this user is not root, or Isozone is installed")
        self.addCleanup(dpkg, "--purge", "isozone")
        if not has_group():
            self.addCleanup(subprocess.run, ["groupdel", GROUP], check=True)
        installed = dpkg("--install", self.package)
        self.assertEqual(0, installed.returncode, installed.stdout)
        self.assertTrue(has_group())
        self.use("/usr/bin/isozone", "installed")
        removed = dpkg("--purge", "isozone")
        self.assertEqual(0, removed.returncode, removed.stdout)
        self.assertFalse(is_installed("isozone"))
        self.assertEqual([], self.installed_files())


if __name__ == "__main__":
    unittest.main()
