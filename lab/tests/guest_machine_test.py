"""What a guest boots with: the archive, the modules in their order, and programs with what they load."""
import contextlib
import lzma
import os
import shutil
import stat
import struct
import subprocess
import tempfile
import unittest
from unittest import mock

import harness  # noqa: F401 - finds the lab
from isozone_lab.guest import machine, mariadb
from isozone_lab.guest.initramfs import Initramfs, Modules, read_module
from isozone_lab.processes import RunFailed


def read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


class Archive(unittest.TestCase):
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
        with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(scratch):
            folder = "kernel"  # as the lab names it, seen from where it runs
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
            self.assertTrue(name.encode() + b"\0" in content, name)

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


class Boot(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory(prefix="isozone-lab-test-")
        self.addCleanup(scratch.cleanup)
        self.directory = scratch.name

    def make_kernel(self, packed: bytes) -> None:
        """The shape of a kernel image: a header of two sectors, then `packed` at 16 bytes into the rest."""
        header = bytearray(1024)
        header[0x1F1] = 1
        struct.pack_into("<II", header, 0x248, 16, len(packed))
        os.makedirs(f"{self.directory}/boot")
        with open(f"{self.directory}/boot/vmlinuz-7", "wb") as file:
            file.write(bytes(header) + b"unpacker".ljust(16) + packed)

    def test_the_kernel_boots_unpacked(self) -> None:
        self.make_kernel(lzma.compress(b"the kernel"))
        words = machine.boot_arguments(self.directory, "archive", self.directory, ["job=xfs"])
        self.assertEqual("the kernel", read(words[words.index("-kernel") + 1]))
        self.assertEqual("archive", words[words.index("-initrd") + 1])
        self.assertRegex(words[words.index("-append") + 1], "^console=ttyS0 .* no_timer_check job=xfs$")

    def test_a_kernel_of_another_packing_boots_as_it_is(self) -> None:
        self.make_kernel(b"something else")
        words = machine.boot_arguments(self.directory, "archive", self.directory, [])
        self.assertEqual(f"{self.directory}/boot/vmlinuz-7", words[words.index("-kernel") + 1])

    def test_what_is_missing_is_named(self) -> None:
        with self.assertRaisesRegex(RunFailed, "no kernel in .*: run scripts/fetch-guest-kernel"):
            machine.boot_arguments(self.directory, "archive", self.directory, [])
        with self.assertRaisesRegex(RunFailed, "no-such-program is missing: run scripts/install-dependencies guest"):
            machine.program("no-such-program")
        with self.assertRaisesRegex(RunFailed, "not-here has not been built"):
            machine.add_programs(Initramfs(), {"isozone": "not-here"})

    def test_a_machine_without_mariadb(self) -> None:
        with mock.patch.object(machine, "PATH", self.directory):
            self.assertEqual("none", mariadb.version())
            with self.assertRaisesRegex(RunFailed, "mariadbd is missing: run scripts/install-dependencies databases"):
                mariadb.add_to(Initramfs())

    @unittest.skipUnless(shutil.which("mariadbd", path=machine.PATH) and os.path.exists(mariadb.PLUGIN),
                         "MariaDB or its MyRocks is missing")
    def test_mariadb_has_its_plugin_and_messages_where_it_looks_for_them(self) -> None:
        self.assertRegex(mariadb.version(), r"^\d+\.\d+\.\d+-MariaDB")
        archive = Initramfs()
        mariadb.add_to(archive)
        path = os.path.join(self.directory, "initramfs")
        archive.write(path)
        with open(path, "rb") as file:
            content = file.read()
        for name in ("bin/mariadbd", "bin/mariadb", "usr/lib/mysql/plugin/ha_rocksdb.so",
                     "usr/share/mysql/english/errmsg.sys"):
            self.assertTrue(name.encode() + b"\0" in content, name)


if __name__ == "__main__":
    unittest.main()
