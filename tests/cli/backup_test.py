#!/usr/bin/env python3
"""backup and restore: folders, archives, kills in between, damage, and a writer beside.

    backup_test.py ISOZONE
"""

import fcntl
import io
import json
import os
import random
import shutil
import stat
import subprocess
import tarfile
import time
import unittest
from typing import Any

import harness

SEED = int(os.environ.get("ISOZONE_TEST_SEED", "20"))


def tree_of(folder: str) -> dict[str, bytes | None]:
    """Every file below `folder` with its content, and every directory with None."""
    found: dict[str, bytes | None] = {}
    for parent, directories, files in os.walk(folder):
        for name in directories:
            found[os.path.relpath(os.path.join(parent, name), folder)] = None
        for name in files:
            with open(os.path.join(parent, name), "rb") as file:
                found[os.path.relpath(os.path.join(parent, name), folder)] = file.read()
    return found


def crc32c(data: bytes) -> int:
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


class BackupTest(harness.CliTest):
    def setUp(self) -> None:
        super().setUp()
        self.random = random.Random(SEED)
        self.format()
        self.target = self.device.replace("ssd.img", "target.img")
        self.ok("mkfs", f"emu:{self.path('target.img')}?{harness.SMALL_DEVICE}")
        self.tree = self.path("tree")
        os.makedirs(os.path.join(self.tree, "deep", "empty"))
        for number in range(8):
            self.write(f"tree/{number:06}.sst", self.random.randbytes(1_000_001))
        self.write("tree/CURRENT", b"MANIFEST-000001\n")
        self.write("tree/deep/nothing", b"")
        self.write("tree/deep/100% \N{LATIN SMALL LETTER U WITH DIAERESIS}\n", b"a name")
        self.ok("cp", "-r", self.device, self.tree, ":/db")
        self.folder = self.path("backups")

    def back(self, device: str) -> dict[str, bytes | None]:
        folder = self.path("back")
        shutil.rmtree(folder, ignore_errors=True)
        self.ok("cp", "-r", device, ":/db", folder)
        return tree_of(folder)

    def newest(self) -> str:
        return os.path.join(self.folder, max(name for name in os.listdir(self.folder) if "partial" not in name))

    def archive(self) -> bytes:
        return self.ok("backup", self.device, "-")

    def feed(self, archive: bytes, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([harness.PROGRAM, *arguments], input=archive, capture_output=True, timeout=120)

    def kill_after(self, seconds: float, *arguments: str) -> None:
        """Runs a command and kills it then, unless it has ended."""
        process = subprocess.Popen([harness.PROGRAM, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Folder(BackupTest):
    def test_holds_the_files_and_brings_them_back(self) -> None:
        self.assertIn(b"11 files", self.ok("backup", self.device, self.folder))
        self.assertEqual(tree_of(self.tree), tree_of(os.path.join(self.newest(), "files", "db")))
        self.assertIn(b"is whole", self.ok("backup", "--verify", self.folder))
        self.ok("restore", self.folder, self.target)
        self.assertEqual(tree_of(self.tree), self.back(self.target))
        self.assertEqual(b"db/\n", self.ok("ls", self.target, "/"))
        self.ok("fsck", "--read-data", self.target)

    def test_copies_only_what_has_changed(self) -> None:
        self.ok("backup", self.device, self.folder)
        time.sleep(3)  # times have a granularity of a second, so files are settled only then
        self.ok("backup", self.device, self.folder)
        inode = os.stat(os.path.join(self.newest(), "files/db/000003.sst")).st_ino
        self.ok("rm", self.device, "/db/000001.sst")
        self.ok("cp", self.device, self.write("new", b"new"), ":/db/000009.sst")
        output = self.ok("backup", self.device, self.folder)
        self.assertIn(b"copied 1 files, 3 B", output)
        files = os.path.join(self.newest(), "files/db")
        self.assertEqual(inode, os.stat(os.path.join(files, "000003.sst")).st_ino)
        self.assertNotIn("000001.sst", os.listdir(files))
        self.assertEqual(1, len(os.listdir(self.folder)))
        self.ok("restore", self.folder, self.target)
        self.assertEqual(tree_of(files), self.back(self.target))
        # A file that was changed in the backup is copied again, so that the damage does not spread.
        with open(os.path.join(files, "000003.sst"), "r+b") as changed:
            changed.write(b"changed")
        self.ok("backup", self.device, self.folder)
        self.ok("backup", "--verify", self.folder)

    def test_keeps_as_many_as_it_is_told(self) -> None:
        for _ in range(4):
            self.ok("backup", "--keep", "2", self.device, self.folder)
        self.assertEqual(["backup-000003", "backup-000004"], sorted(os.listdir(self.folder)))
        self.ok("rm", self.device, "-r", "/db")
        self.ok("backup", "--keep", "3", self.device, self.folder)
        self.ok("restore", os.path.join(self.folder, "backup-000003"), self.target)
        self.assertEqual(tree_of(self.tree), self.back(self.target))

    def test_kills_in_between_cost_nothing_but_time(self) -> None:
        complete = False
        for _ in range(6):
            self.kill_after(self.random.uniform(0, 0.15), "backup", self.device, self.folder)
            complete = complete or os.path.exists(os.path.join(self.folder, "backup-000001"))
            if complete:  # there is one from then on, whatever is killed
                self.ok("backup", "--verify", self.folder)
        self.ok("backup", self.device, self.folder)
        self.assertEqual(tree_of(self.tree), tree_of(os.path.join(self.newest(), "files", "db")))
        for _ in range(6):
            self.kill_after(self.random.uniform(0, 0.15), "restore", self.folder, self.target)
        result = self.run_cli("restore", self.folder, self.target)
        # A restore that was not killed in time has done all of it.
        self.assertIn(result.returncode, (harness.OK, harness.REFUSED), f"seed {SEED}: {result.stderr.decode()}")
        self.assertEqual(tree_of(self.tree), self.back(self.target), f"seed {SEED}")
        self.assertEqual(b"db/\n", self.ok("ls", self.target, "/"))

    def stop(self) -> None:
        """Makes the newest backup one that was stopped just before it got its name."""
        complete = self.newest()
        with open(os.path.join(complete, "isozone-backup.json"), "rb") as file:
            manifest = json.load(file)
        lines = [manifest["uuid"], *(json.dumps(file) for file in manifest["files"] if "size" in file)]
        os.rename(complete, complete + ".partial")
        with open(complete + ".partial/journal", "w") as journal:
            journal.write("\n".join(lines) + "\n")

    def test_a_backup_that_was_stopped_is_continued(self) -> None:
        self.ok("backup", self.device, self.folder)
        self.stop()
        self.fails(harness.NOT_FOUND, ["no complete backup"], "restore", self.folder, self.target)
        self.fails(harness.NOT_FOUND, ["no complete backup"], "backup", "--verify", self.folder)
        self.assertIn(b"copied 0 files", self.ok("backup", self.device, self.folder))
        self.assertEqual(["backup-000001"], os.listdir(self.folder))
        self.assertEqual(["files", "isozone-backup.json"], sorted(os.listdir(self.newest())))
        self.ok("backup", "--verify", self.folder)

    def test_backups_of_another_file_system_are_kept(self) -> None:
        self.ok("backup", self.device, self.folder)
        for _ in range(2):
            self.fails(harness.REFUSED, ["another file system", "another folder"], "backup", self.target, self.folder)
            self.assertEqual(tree_of(self.tree), tree_of(os.path.join(self.folder, "backup-000001/files/db")))
        self.stop()
        self.fails(harness.REFUSED, ["another file system", "another folder"], "backup", self.target, self.folder)
        self.assertIn(b"copied 0 files", self.ok("backup", self.device, self.folder))

    def test_what_others_have_put_there_is_left_alone(self) -> None:
        for name in ("backup-000001", "backup-000002.partial", "backup-000007.partial"):
            os.makedirs(os.path.join(self.folder, name))
            self.write(f"backups/{name}/thesis.txt", b"mine")
        self.write("backups/backup-000003", b"mine")
        before = tree_of(self.folder)
        self.ok("backup", self.device, self.folder)
        self.ok("backup", self.device, self.folder)
        self.assertIn("backup-000005", os.listdir(self.folder))
        for name, content in before.items():
            self.assertEqual(content, tree_of(self.folder)[name])
        self.ok("backup", "--verify", self.folder)

    def test_a_removal_that_was_stopped_is_continued(self) -> None:
        self.ok("backup", self.device, self.folder)
        self.ok("backup", "--keep", "2", self.device, self.folder)
        newest = self.newest()
        os.rename(os.path.join(newest, "isozone-backup.json"), os.path.join(newest, "removed"))
        os.mkdir(os.path.join(self.folder, "backup-000003"))
        self.ok("backup", self.device, self.folder)
        self.assertEqual(["backup-000002", "backup-000003"], sorted(os.listdir(self.folder)))
        self.ok("backup", "--verify", self.folder)

    def test_one_that_is_being_read_is_not_removed(self) -> None:
        self.ok("backup", self.device, self.folder)
        reader = os.open(self.newest(), os.O_RDONLY)
        fcntl.flock(reader, fcntl.LOCK_SH)
        self.ok("backup", self.device, self.folder)
        self.assertEqual(["backup-000001", "backup-000002"], sorted(os.listdir(self.folder)))
        os.close(reader)
        self.ok("backup", self.device, self.folder)
        self.assertEqual(["backup-000003"], os.listdir(self.folder))

    def test_a_number_that_cannot_be_followed(self) -> None:
        self.ok("backup", self.device, self.folder)
        os.rename(self.newest(), os.path.join(self.folder, "backup-4294967295"))
        self.fails(harness.REFUSED, ["highest number", "rename"], "backup", self.device, self.folder)
        self.assertEqual(["backup-4294967295"], os.listdir(self.folder))


class Archive(BackupTest):
    def test_is_read_by_tar_and_python(self) -> None:
        archive = self.archive()
        with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
            for member in opened.getmembers():
                self.assertTrue(member.isfile() or member.isdir())
            content = opened.extractfile("db/000005.sst")
            assert content is not None
            self.assertEqual(tree_of(self.tree)["000005.sst"], content.read())
        folder = self.path("extracted")
        os.mkdir(folder)
        result = subprocess.run(["tar", "-xf", "-", "-C", folder], input=archive, capture_output=True, timeout=60)
        self.assertEqual((0, b""), (result.returncode, result.stderr))
        self.assertEqual(tree_of(self.tree), tree_of(os.path.join(folder, "db")))

    def test_restores_what_it_holds(self) -> None:
        archive = self.archive()
        file = self.write("archive.tar", archive)
        self.assertIn(b"is whole", self.ok("backup", "--verify", file))
        result = self.feed(archive, "restore", "-", self.target)
        self.assertEqual(harness.OK, result.returncode, result.stderr)
        self.assertEqual(tree_of(self.tree), self.back(self.target))
        self.fails(harness.REFUSED, ["/db", "--force"], "restore", file, self.target)
        self.ok("restore", "--force", file, self.target)
        self.assertEqual(tree_of(self.tree), self.back(self.target))

    def test_one_that_is_cut_off_anywhere_is_refused(self) -> None:
        archive = self.archive()
        end = archive.index(b"isozone-backup.json") - 300
        for length in [0, 1, 511, 512, 10240, end, len(archive) // 3 // 512 * 512,
                       *(self.random.randrange(len(archive) - 20480) for _ in range(10))]:
            with self.subTest(length=length, seed=SEED):
                result = self.feed(archive[:length], "backup", "--verify", "-")
                self.assertEqual(harness.CORRUPTION, result.returncode)
                self.assertRegex(result.stderr.decode(), r"\Aisozone backup: [^\n]+\n\Z")
        self.assertEqual(harness.CORRUPTION, self.feed(archive[:end], "restore", "-", self.target).returncode)
        self.assertEqual(b"", self.ok("ls", self.target, "/"))
        self.assertEqual(harness.OK, self.feed(archive, "restore", "-", self.target).returncode)
        self.assertEqual(tree_of(self.tree), self.back(self.target))

    def test_a_changed_byte_is_found(self) -> None:
        archive = bytearray(self.archive())
        at = archive.index(tree_of(self.tree)["000002.sst"] or b"")
        archive[at + 77] ^= 1
        self.fails(harness.CORRUPTION, ["/db/000002.sst", "checksum"], "backup", "--verify",
                   self.write("archive.tar", bytes(archive)))

    def test_kills_of_a_restore_leave_nothing_under_its_name(self) -> None:
        file = self.write("archive.tar", self.archive())
        for _ in range(6):
            self.kill_after(self.random.uniform(0, 0.15), "restore", file, self.target)
            self.assertIn(self.ok("ls", self.target, "/"), (b"", b"db/\n", b".isozone-restore/\n"), f"seed {SEED}")
        result = self.run_cli("restore", file, self.target)
        self.assertIn(result.returncode, (harness.OK, harness.REFUSED), f"seed {SEED}: {result.stderr.decode()}")
        self.assertEqual(tree_of(self.tree), self.back(self.target), f"seed {SEED}")


class PowerCuts(harness.CliTest):
    """A restore onto a device that loses power in any of its commands; then the same command again."""

    OLD_FILES = 3000  # more than one record of the journal removes

    def setUp(self) -> None:
        super().setUp()
        self.random = random.Random(SEED)
        self.format()
        os.makedirs(self.path("new/deep"))
        for number in range(4):
            self.write(f"new/{number:06}.sst", self.random.randbytes(100_001))
        self.write("new/deep/small", b"new")
        self.new = tree_of(self.path("new"))
        self.ok("cp", "-r", self.device, self.path("new"), ":/db")
        self.ok("cp", self.device, self.write("note", b"beside"), ":/note")
        self.ok("backup", self.device, self.path("backups"))
        self.write("archive.tar", self.ok("backup", self.device, "-"))
        self.target = self.device.replace("ssd.img", "target.img")
        self.ok("mkfs", f"emu:{self.path('before.img')}?{harness.SMALL_DEVICE}")

    def names(self) -> set[bytes] | None:
        """Of the files of the database on the target, if there is one."""
        if b"db/\n" not in self.ok("ls", self.target, "/"):
            return None
        return set(self.ok("ls", self.target, "/db").splitlines())

    def cut(self, after: int, source: str, *options: str) -> subprocess.CompletedProcess[bytes]:
        """A restore in which power fails after so many commands."""
        subprocess.run(["cp", "--sparse=always", self.path("before.img"), self.path("target.img")], check=True)
        return self.run_cli("restore", *options, self.path(source), f"{self.target}&fault_power_cut_after={after}")

    def new_names(self) -> set[bytes]:
        return {b"deep/", *(name.encode() for name in os.listdir(self.path("new")) if name != "deep")}

    def check_cut(self, after: int, source: str) -> bool:
        """Cuts, checks, and restores again. Whether power failed before all was done."""
        said = f"seed {SEED}, cut after {after} commands"
        cut = self.cut(after, source)
        if cut.returncode == harness.OK:
            return False
        self.assertIn(cut.returncode, (harness.UNUSABLE, harness.IO_ERROR, harness.READ_ONLY), said)
        # Beside what the log says of the device.
        lines = [line for line in cut.stderr.splitlines() if line.startswith(b"isozone restore: ")]
        self.assertEqual(len(lines), 1, f"{said}: {cut.stderr.decode()}")
        self.ok("fsck", self.target)
        self.assertIn(self.names(), (None, self.new_names()), said)
        again = self.run_cli("restore", self.path(source), self.target)
        self.assertIn(again.returncode, (harness.OK, harness.REFUSED), f"{said}: {again.stderr.decode()}")
        shutil.rmtree(self.path("back"), ignore_errors=True)
        self.ok("cp", "-r", self.target, ":/db", self.path("back"))
        self.assertEqual(tree_of(self.path("back")), self.new, said)
        self.assertEqual(self.ok("ls", self.target, "/"), b"db/\nnote\n", said)
        return True

    def cut_everywhere(self, source: str) -> None:
        """Cuts in every so many commands, until the restore ends before that."""
        step = 17
        after = self.random.randrange(step)
        while self.check_cut(after, source):
            after += step
        self.assertGreater(after, 2 * step)

    def test_of_the_target_leave_nothing_half_under_a_name(self) -> None:
        self.cut_everywhere("backups")

    def test_while_an_archive_is_restored(self) -> None:
        self.cut_everywhere("archive.tar")

    def test_while_files_are_replaced_leave_all_of_them_or_none(self) -> None:
        os.makedirs(self.path("old"))
        for number in range(self.OLD_FILES):
            self.write(f"old/{number:06}", b"x")
        self.ok("cp", "-r", self.target.replace("target", "before"), self.path("old"), ":/db")
        end = 8  # more than it takes, soon
        while self.cut(end, "backups", "--force").returncode != harness.OK:
            end += 8
        old = {f"{number:06}".encode() for number in range(self.OLD_FILES)}
        found = []
        for after in range(end - 18, end):
            self.cut(after, "backups", "--force")
            found.append(self.names())
            self.assertIn(found[-1], (None, self.new_names(), old), f"cut after {after} commands")
        self.assertIn(old, found)
        self.assertIn(self.new_names(), found)


class Attributes(BackupTest):
    """What files have beside their content, on a device that gets it from an archive that this test makes itself."""

    CONTENT = b"#!/bin/sh\n"

    def entry(self, path: str, kind: str, mode: str, **more: Any) -> dict[str, Any]:
        return {"paths": [path], "type": kind, "mode": mode, "user": 0, "group": 0, "modified": 1_700_000_000,
                "modified_ns": 0, "changed": 1_700_000_000, "changed_ns": 0, **more}

    def file(self, path: str, mode: str, **more: Any) -> dict[str, Any]:
        return self.entry(path, "data", mode, inode=7, size=len(self.CONTENT), lifetime=0, level=-1, extents=0,
                          crc32c=crc32c(self.CONTENT), **more)

    def manifest(self) -> dict[str, Any]:
        files = [self.file("/d/plain", "0644"),
                 self.file("/d/run", "4755", user=1000, group=4_000_000_000, modified_ns=123_456_789,
                           xattrs={"user.note": "a%00b", "user.odd=": "%25"}) | {"paths": ["/d/run", "/d/too"]},
                 self.entry("/d/up", "symlink", "0777", inode=9, target="../%C3%BC%20x", user=12, modified_ns=5),
                 self.entry("/d/loop", "symlink", "0777", inode=10, target="loop")]
        document = {"format": "isozone-backup", "version": 1, "uuid": "00000000-0000-0000-0000-000000000000",
                    "label": "", "began": 1_700_000_100, "root": self.entry("/", "directory", "1777", user=3),
                    "files": [self.entry("/d", "directory", "2750", group=5, modified_ns=1,
                                         xattrs={"user.of": "directory"}), *files]}
        text = json.dumps(document, separators=(",", ":"))
        return document | {"crc32c": f"{crc32c(text.encode()):08x}"}

    def made(self) -> bytes:
        """The archive, as another program could write it: it has attributes in the manifest only."""
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as opened:
            def add(name: str, kind: bytes, content: bytes = b"", target: str = "") -> None:
                info = tarfile.TarInfo(name)
                info.type, info.size, info.linkname = kind, len(content), target
                opened.addfile(info, io.BytesIO(content))
            add("d", tarfile.DIRTYPE)
            add("d/plain", tarfile.REGTYPE, self.CONTENT)
            add("d/run", tarfile.REGTYPE, self.CONTENT)
            add("d/up", tarfile.SYMTYPE, target="../\N{LATIN SMALL LETTER U WITH DIAERESIS} x")
            add("d/loop", tarfile.SYMTYPE, target="loop")
            add("isozone-backup.json", tarfile.REGTYPE, json.dumps(self.manifest()).encode())
        return archive.getvalue()

    def attributes_in(self, manifest: dict[str, Any]) -> dict[str, dict[str, Any]]:
        compared = ("type", "mode", "user", "group", "modified", "modified_ns", "xattrs", "target")
        return {file["paths"][0]: {"paths": file["paths"], **{key: file.get(key) for key in compared}}
                for file in [manifest["root"], *manifest["files"]]}

    def restored(self) -> None:
        result = self.feed(self.made(), "restore", "-", self.target)
        self.assertEqual((harness.OK, b""), (result.returncode, result.stderr))

    def backed_up(self, device: str) -> dict[str, dict[str, Any]]:
        shutil.rmtree(self.folder, ignore_errors=True)  # a folder takes one file system
        self.ok("backup", device, self.folder)
        with open(os.path.join(self.newest(), "isozone-backup.json"), "rb") as file:
            return self.attributes_in(json.load(file))

    def test_are_restored_and_backed_up_again(self) -> None:
        self.restored()
        self.ok("fsck", "--read-data", self.target)
        wanted = self.attributes_in(self.manifest())
        self.assertEqual(wanted, self.backed_up(self.target))
        self.ok("backup", "--verify", self.folder)
        self.ok("restore", "--force", self.folder, self.device)
        self.assertEqual(wanted, self.backed_up(self.device))
        result = self.feed(self.ok("backup", self.device, "-"), "restore", "--force", "-", self.target)
        self.assertEqual((harness.OK, b""), (result.returncode, result.stderr))
        self.assertEqual(wanted, self.backed_up(self.target))

    def fill(self, device: str) -> None:
        """Many small files, a sparse one, and larger ones until nothing fits any more."""
        os.mkdir(self.path("small"))
        for number in range(500):
            self.write(f"small/{number}", self.random.randbytes(number))
        with open(self.path("sparse"), "wb") as file:
            for number in range(20):
                file.seek(number << 25)
                file.write(self.random.randbytes(5000))
        self.ok("cp", "-r", device, self.path("small"), self.path("sparse"), ":/")
        for size in (16 << 20, 1 << 20, 64 << 10, 4 << 10):
            source = self.write("source", self.random.randbytes(size))
            for number in range(40):
                result = self.run_cli("cp", device, source, f":/{size}.{number}")
                if result.returncode != harness.OK:
                    break
            self.assertEqual((result.returncode, b"nothing was" in result.stderr), (harness.NO_SPACE, True), size)
        self.assertLess(self.json("df", device, "--json")["free"], 4 << 10)

    def test_what_fills_a_device_is_restored_to_an_equal_one(self) -> None:
        self.restored()
        self.fill(self.target)
        wanted = self.backed_up(self.target)
        archive = self.write("archive", self.ok("backup", self.target, "-"))
        for backup in (self.folder, archive):
            self.ok("mkfs", f"emu:{self.image}?{harness.SMALL_DEVICE}", "--force")
            self.ok("restore", backup, self.device)
            self.ok("fsck", self.device)
            again = self.ok("backup", self.device, "-")
            self.assertEqual(self.feed(again, "backup", "--verify", "-").returncode, harness.OK)
            with tarfile.open(fileobj=io.BytesIO(again)) as opened:
                manifest = opened.extractfile("isozone-backup.json")
                assert manifest
                self.assertEqual(self.attributes_in(json.load(manifest)), wanted)

    def test_names_that_backups_use_are_refused(self) -> None:
        for name in (".isozone-restore", ".isozone-restore/x", "isozone-backup.json/x"):
            archive = io.BytesIO()
            with tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as opened:
                opened.addfile(tarfile.TarInfo(name))
            for command in (["backup", "--verify", "-"], ["restore", "-", self.target]):
                result = self.feed(archive.getvalue(), *command)
                self.assertEqual(harness.CORRUPTION, result.returncode, result.stderr)
                self.assertIn(b"a name that backups use", result.stderr)
        self.assertEqual(b"", self.ok("ls", self.target, "/"))
        manifest = self.manifest()
        del manifest["crc32c"]
        manifest["files"][1]["paths"] = ["/.isozone-restore/x"]
        text = json.dumps(manifest, separators=(",", ":"))
        os.makedirs(self.folder)
        manifest["crc32c"] = f"{crc32c(text.encode()):08x}"
        self.write("backups/isozone-backup.json", json.dumps(manifest).encode())
        self.fails(harness.CORRUPTION, ["a name that backups use"], "restore", self.folder, self.target)

    def test_a_class_that_no_file_has_is_refused(self) -> None:
        os.makedirs(self.folder)
        for member, value in (("level", -2), ("level", 128), ("level", 300), ("lifetime", 6)):
            manifest = self.manifest()
            del manifest["crc32c"]
            manifest["files"][1][member] = value
            text = json.dumps(manifest, separators=(",", ":"))
            manifest["crc32c"] = f"{crc32c(text.encode()):08x}"
            self.write("backups/isozone-backup.json", json.dumps(manifest).encode())
            with self.subTest(member=member, value=value):
                self.fails(harness.CORRUPTION, [member, str(value)], "backup", "--verify", self.folder)
                self.fails(harness.CORRUPTION, [member, str(value)], "restore", self.folder, self.target)
        self.assertEqual(b"", self.ok("ls", self.target, "/"))

    def test_all_names_are_verified(self) -> None:
        self.restored()
        self.ok("backup", self.target, self.folder)
        files = os.path.join(self.newest(), "files")
        os.remove(os.path.join(files, "d/too"))
        self.fails(harness.CORRUPTION, ["/d/too", "missing"], "backup", "--verify", self.folder)
        shutil.copyfile(os.path.join(files, "d/run"), os.path.join(files, "d/too"))
        self.ok("backup", "--verify", self.folder)
        with open(os.path.join(files, "d/too"), "r+b") as file:
            file.write(b"?")
        self.fails(harness.CORRUPTION, ["/d/too", "checksum"], "backup", "--verify", self.folder)

    def test_a_folder_has_symbolic_links_and_lets_nobody_else_in(self) -> None:
        self.restored()
        self.ok("backup", self.target, self.folder)
        files = os.path.join(self.newest(), "files/d")
        self.assertEqual(("loop", "../\N{LATIN SMALL LETTER U WITH DIAERESIS} x"),
                         (os.readlink(os.path.join(files, "loop")), os.readlink(os.path.join(files, "up"))))
        self.assertEqual(0o700, stat.S_IMODE(os.stat(self.newest()).st_mode))
        self.assertEqual(1_700_000_000_123_456_789, os.stat(os.path.join(files, "run")).st_mtime_ns)
        os.remove(os.path.join(files, "loop"))
        self.ok("backup", "--verify", self.folder)  # the manifest has it
        os.symlink("elsewhere", os.path.join(files, "loop"))
        self.fails(harness.CORRUPTION, ["/d/loop", "symbolic link"], "backup", "--verify", self.folder)

    def test_tar_and_python_read_them_in_an_archive(self) -> None:
        self.restored()
        archive = self.ok("backup", self.target, "-")
        with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
            members = {member.name: member for member in opened.getmembers()}
        run, link = members["d/run"], members["d/up"]
        self.assertEqual((0o4755, 1000, 4_000_000_000), (run.mode, run.uid, run.gid))
        self.assertEqual("1700000000.123456789", run.pax_headers["mtime"])
        self.assertEqual("a\0b", run.pax_headers["SCHILY.xattr.user.note"])
        self.assertEqual((True, 12, "../\N{LATIN SMALL LETTER U WITH DIAERESIS} x"),
                         (link.issym(), link.uid, link.linkname))
        self.assertEqual((True, 0o2750, 5), (members["d"].isdir(), members["d"].mode, members["d"].gid))
        folder = self.path("extracted")
        os.mkdir(folder)
        result = subprocess.run(["tar", "-xpf", "-", "--no-same-owner", "-C", folder], input=archive,
                                capture_output=True, timeout=60)
        self.assertEqual((0, b""), (result.returncode, result.stderr))
        found = os.stat(os.path.join(folder, "d/run"))
        self.assertEqual((0o755, 1_700_000_000_123_456_789, 2),
                         (found.st_mode & 0o777, found.st_mtime_ns, found.st_nlink))
        self.assertEqual("loop", os.readlink(os.path.join(folder, "d/loop")))


class BesideAWriter(BackupTest):
    def test_a_backup_is_as_of_one_moment(self) -> None:
        """The writer keeps two files in step: the second is replaced only when the first has been."""
        stop = self.path("stop")
        script = (f"i=0; while [ ! -e {stop} ]; do i=$((i + 1)); echo $i > {self.path('step')}; "
                  f"{harness.PROGRAM} cp '{self.device}' {self.path('step')} :/db/first && "
                  f"{harness.PROGRAM} cp '{self.device}' {self.path('step')} :/db/second; done")
        for name in ("first", "second"):
            self.ok("cp", self.device, self.write("step", b"0\n"), f":/db/{name}")
        with subprocess.Popen(["bash", "-c", script]) as writer:
            try:
                for _ in range(5):
                    self.ok("backup", self.device, self.folder)
                    files = os.path.join(self.newest(), "files/db")
                    with open(os.path.join(files, "first")) as first, open(os.path.join(files, "second")) as second:
                        self.assertIn(int(first.read()) - int(second.read()), (0, 1))
                    self.ok("backup", "--verify", self.folder)
            finally:
                self.write("stop", b"")
                writer.wait(60)


class Errors(BackupTest):
    def test_a_damaged_folder_is_refused_and_the_device_keeps_what_it_has(self) -> None:
        self.ok("backup", self.device, self.folder)
        file = os.path.join(self.newest(), "files/db/000004.sst")
        manifest = os.path.join(self.newest(), "isozone-backup.json")
        content = tree_of(self.tree)["000004.sst"] or b""
        self.ok("cp", self.target, self.write("old", b"old"), ":/old")
        for damage, words in ((content[:500_000], "bytes"), (content[:-1] + b"\0", "checksum"), (None, "missing")):
            os.remove(file)
            if damage is not None:
                with open(file, "wb") as opened:
                    opened.write(damage)
            self.fails(harness.CORRUPTION, ["000004.sst", words], "backup", "--verify", self.folder)
            self.fails(harness.CORRUPTION, ["000004.sst", words], "restore", "--force", self.folder, self.target)
            self.assertEqual(b"old", self.ok("cat", self.target, "/old"))
            if damage is None:
                with open(file, "wb"):
                    pass
        with open(manifest, "rb") as opened:
            text = opened.read()
        for _ in range(30):
            at = self.random.randrange(len(text))
            with open(manifest, "wb") as opened:
                opened.write(text[:at] if at % 2 else text[:at] + bytes([text[at] ^ 1]) + text[at + 1:])
            result = self.run_cli("backup", "--verify", self.folder)
            self.assertNotEqual(harness.OK, result.returncode, f"seed {SEED}, byte {at}")
            self.assertRegex(result.stderr.decode(), r"\Aisozone backup: [^\n]+\n\Z")

    def test_a_manifest_that_is_nested_deep(self) -> None:
        os.mkdir(self.folder)
        text = b'{"format": "isozone-backup", "version": 1, "crc32c": "", "files": '
        manifest = self.write("backups/isozone-backup.json", text + b"[" * 300_000 + b"]" * 300_000 + b"}")
        archive = self.path("deep.tar")
        with tarfile.open(archive, "w") as opened:
            opened.add(manifest, "isozone-backup.json")
        for command in (["backup", "--verify", archive], ["backup", "--verify", self.folder],
                        ["restore", self.folder, self.target]):
            self.fails(harness.CORRUPTION, ["nested too deep"], *command)

    def test_an_empty_directory_that_is_missing(self) -> None:
        self.ok("backup", self.device, self.folder)
        os.rmdir(os.path.join(self.newest(), "files/db/deep/empty"))
        self.fails(harness.CORRUPTION, ["/db/deep/empty", "missing"], "backup", "--verify", self.folder)
        self.ok("restore", self.folder, self.target)  # the manifest has it
        self.assertEqual(tree_of(self.tree), self.back(self.target))

    def test_a_restore_that_was_stopped_does_not_prevent_backups(self) -> None:
        os.mkdir(self.path("tree/.isozone-restore"))
        os.mkdir(self.path("tree/.isozone-restore/files"))
        self.write("tree/.isozone-restore/files/a", b"a")
        self.ok("cp", "-r", self.device, self.path("tree/.isozone-restore"), ":/.isozone-restore")
        self.ok("backup", self.device, self.folder)
        self.assertEqual(["db"], os.listdir(os.path.join(self.newest(), "files")))
        self.ok("backup", "--verify", self.folder)
        self.ok("cp", self.device, self.write("moving", b"id"), ":/.isozone-restore/moving")
        self.fails(harness.REFUSED, ["isozone restore", "again"], "backup", self.device, self.folder)

    @unittest.skipIf(os.geteuid() != 0, "needs root, to become another user")
    def test_a_backup_of_another_user(self) -> None:
        self.ok("backup", self.device, self.folder)
        os.chmod(self.directory, 0o755)
        self.fails(harness.PERMISSION, ["backup-000001"], "backup", "--verify", self.folder, user=65534, group=65534)

    def test_what_is_asked_for_wrongly(self) -> None:
        self.fails(harness.USAGE, ["--keep"], "backup", self.device, "-", "--keep", "2")
        self.fails(harness.USAGE, ["--keep"], "backup", "--verify", self.folder, "--keep", "2")
        self.fails(harness.USAGE, ["DIR or -"], "backup", self.device)
        self.fails(harness.USAGE, ["--verify"], "backup", self.device, "--verify", self.folder)
        self.fails(harness.NOT_FOUND, ["missing"], "backup", f"emu:{self.path('missing')}", self.folder)
        self.fails(harness.NOT_FOUND, ["missing"], "restore", self.path("missing"), self.target)
        self.fails(harness.CORRUPTION, ["no backup"], "restore", self.write("text", b"text"), self.target)
        self.fails(harness.REFUSED, ["tree/CURRENT"], "backup", self.device, os.path.join(self.tree, "CURRENT"))

    def test_a_device_that_is_too_small(self) -> None:
        small = f"emu:{self.path('small.img')}?timing=off&zones=16&zone_size=1M"
        self.ok("mkfs", small)
        self.ok("backup", self.device, self.folder)
        self.write("large", self.random.randbytes(12 << 20))
        self.ok("cp", self.device, self.path("large"), ":/db/large")
        self.ok("backup", self.device, self.folder)
        self.fails(harness.NO_SPACE, [], "restore", self.folder, small)

    @unittest.skipIf(os.geteuid() != 0, "needs root, to mount a small file system")
    def test_a_full_disk(self) -> None:
        os.mkdir(self.folder)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3M", "tmpfs", self.folder],
                          capture_output=True).returncode != 0:
            self.skipTest("no file system can be mounted here")
        self.addCleanup(subprocess.run, ["umount", self.folder], check=True)
        self.fails(harness.NO_SPACE, ["has room for", "nothing was"], "backup", self.device, self.folder)
        self.fails(harness.NOT_FOUND, ["no complete backup"], "backup", "--verify", self.folder)


if __name__ == "__main__":
    unittest.main()
