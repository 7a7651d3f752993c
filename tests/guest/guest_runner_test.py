#!/usr/bin/env python3
"""Holds what runs the guest to its task, without running one: it fails where the guest fails, what boots is complete,
and every step exists."""

import lzma
import os
import re
import shutil
import stat
import subprocess
import tempfile
import unittest

from guest import problem
from initramfs import Initramfs, Modules, read_module
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

    def test_modules_come_behind_what_they_need(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for name, needed in (("top", "left,mid-dle"), ("left", "base"), ("mid-dle", "base"), ("base", "")):
                with open(os.path.join(folder, f"{name}.ko"), "wb") as file:
                    file.write(b"\x7fELF\0depends=" + needed.encode() + b"\0name=x\0")
            with lzma.open(os.path.join(folder, "packed.ko.xz"), "wb") as file:
                file.write(b"\0depends=top\0")
            order = [os.path.basename(path) for path in Modules(folder).with_dependencies(["packed", "not-there"])]
            self.assertEqual(["base.ko", "left.ko", "mid-dle.ko", "top.ko", "packed.ko.xz"], order)
            self.assertEqual(b"\0depends=top\0", read_module(os.path.join(folder, "packed.ko.xz")))

    def test_a_program_of_another_system_brings_its_own_libraries(self) -> None:
        archive = Initramfs()
        with tempfile.TemporaryDirectory() as folder:
            libraries = os.path.join(folder, "usr/lib/x86_64-linux-gnu")
            os.makedirs(libraries)
            for name in ("ld-linux-x86-64.so.2", "libc.so.6", "libtinfo.so.6"):
                shutil.copy(f"/lib/x86_64-linux-gnu/{name}", libraries)
            shutil.copy("/bin/bash", os.path.join(folder, "shell"))
            archive.add_foreign_program("sh5", os.path.join(folder, "shell"), folder)
            path = os.path.join(folder, "initramfs")
            archive.write(path)
            with open(path, "rb") as file:
                content = file.read()
        for name in ("tools/bin/sh5", "tools/lib/ld-linux-x86-64.so.2", "tools/lib/libc.so.6", "bin/sh5"):
            self.assertIn(name.encode() + b"\0", content)

    @unittest.skipUnless(shutil.which("busybox"), "busybox is missing")
    def test_the_archive_is_one_that_others_read(self) -> None:
        archive = Initramfs()
        archive.add("bin/sh", b"busybox", stat.S_IFLNK | 0o777)
        archive.add("etc/name", b"content", stat.S_IFREG | 0o644)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "initramfs")
            archive.write(path)
            with open(path, "rb") as file:
                subprocess.run(["busybox", "cpio", "-id"], stdin=file, cwd=folder, check=True, capture_output=True)
            self.assertEqual("content", read(os.path.join(folder, "etc", "name")))
            self.assertEqual("busybox", os.readlink(os.path.join(folder, "bin", "sh")))


if __name__ == "__main__":
    unittest.main()
