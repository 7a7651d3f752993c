#!/usr/bin/env python3
"""What bad input gets: one line that says what is wrong and what to do, its exit code, and nothing lost.

    errors_test.py ISOZONE
"""

import functools
import os
import shutil
import struct
import subprocess
import unittest
from collections.abc import Iterable
from typing import Unpack

import harness
from harness import BUSY, CORRUPTION, IO_ERROR, NO_SPACE, NOT_FOUND, OK, PERMISSION, READ_ONLY, REFUSED, UNUSABLE, USAGE

NOBODY = 65534


def close(descriptors: Iterable[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


class Words(harness.CliTest):
    """Of the command line itself."""

    def test_no_command(self) -> None:
        self.fails(USAGE, ["mkfs", "zones"])

    def test_unknown_command(self) -> None:
        self.fails(USAGE, ["'mkf'", "mkfs"], "mkf", self.device)

    def test_missing_device(self) -> None:
        self.fails(USAGE, ["DEVICE", "isozone ls --help"], "ls")

    def test_unknown_option_of_a_command(self) -> None:
        self.fails(USAGE, ["--frobnicate", "isozone df --help"], "df", "--frobnicate", self.device)

    def test_bad_colour(self) -> None:
        self.fails(USAGE, ["--color"], "--color=mauve", "df", self.device)

    def test_bad_size(self) -> None:
        self.fails(USAGE, ["12parsecs"], "bench", "device", "--size", "12parsecs", self.device)

    def test_size_that_does_not_suit(self) -> None:
        self.format()
        self.fails(USAGE, ["1000", "multiple of"], "bench", "device", "--size", "1000", self.device)

    def test_a_zone_that_does_not_exist(self) -> None:
        self.format()
        self.fails(USAGE, ["999"], "zones", self.device, "--zone", "999")
        self.fails(USAGE, ["--zone", "--table"], "zones", self.device, "--zone", "1", "--table")

    def test_export_of_what_the_kernel_does_not_take(self) -> None:
        self.fails(USAGE, ["DEVICE is required"], "export")
        self.fails(USAGE, ["--recover", "--id"], "export", self.device, "--recover")
        self.fails(USAGE, ["--remove", "nothing else"], "export", self.device, "--remove", "0")
        self.fails(NOT_FOUND, [self.image], "export", self.device)
        self.format("timing=off&zones=32&zone_size=3M")
        self.fails(UNUSABLE, ["power of two", "zone_size=4194304&zone_capacity=3145728"], "export", self.device)

    def test_long_label(self) -> None:
        self.fails(USAGE, ["63"], "mkfs", self.device, "--label", "x" * 64)
        self.assertFalse(os.path.exists(self.image))

    def test_cp_without_a_device_path(self) -> None:
        self.format()
        self.fails(USAGE, [":/dir/file"], "cp", self.device, "here", "there")

    def test_cp_with_a_relative_device_path(self) -> None:
        self.format()
        self.fails(USAGE, [":/dir/file"], "cp", self.device, ":file", self.directory)


class Uri(harness.CliTest):
    def test_no_scheme(self) -> None:
        self.fails(USAGE, ["emu:"], "info", self.image)

    def test_unknown_scheme(self) -> None:
        self.fails(UNUSABLE, ["floppy", "emu"], "info", f"floppy:{self.image}")

    def test_the_profile_of_a_conventional_ssd_is_not_zoned(self) -> None:
        self.fails(USAGE, ["profile conventional", "not zoned", "small-zone"],
                   "mkfs", f"emu:{self.image}?profile=conventional")
        self.assertFalse(os.path.exists(self.image))

    def test_unknown_option(self) -> None:
        self.format()
        self.fails(USAGE, ["zonse", "zones"], "info", f"emu:{self.image}?zonse=12")

    def test_mkfs_with_an_unknown_option_makes_nothing(self) -> None:
        self.fails(USAGE, ["zonse", "zones"], "mkfs", f"emu:{self.image}?zonse=12")
        self.assertFalse(os.path.exists(self.image))

    def test_force_with_an_option_that_cannot_be_loses_nothing(self) -> None:
        self.format()
        uuid = self.json("info", self.device, "--json")["file_system"]["uuid"]
        for option in ("gc=foo", "policy=foo", "zones=12"):
            self.fails(USAGE, [option.split("=")[1]], "mkfs", "--force", f"{self.device}&{option}")
        self.assertEqual(uuid, self.json("info", self.device, "--json")["file_system"]["uuid"])

    def test_mkfs_of_too_few_zones_makes_nothing(self) -> None:
        for options in ("zones=3", "zones=32&max_active=1&max_open=1"):
            self.fails(UNUSABLE, ["needs at least"], "mkfs", f"emu:{self.image}?{options}")
            self.assertFalse(os.path.exists(self.image))

    def test_mkfs_of_a_uri_that_is_not_to_be_written_makes_nothing(self) -> None:
        self.fails(READ_ONLY, ["read_only=on"], "mkfs", f"emu:{self.image}?zones=64&read_only=on")
        self.assertFalse(os.path.exists(self.image))

    def test_closed_streams_leave_the_image_alone(self) -> None:
        self.format()
        for closed in ([0], [1], [2], [0, 1, 2]):
            command = ("rm", f"{self.device}&fault_read_error=0.0001", "/no_such_file")  # says something on stderr
            for arguments in (command, ("info", "--json", self.device)):
                subprocess.run([harness.PROGRAM, *arguments], timeout=60, check=False,
                               preexec_fn=functools.partial(close, closed))
            self.ok("fsck", self.device)

    def test_a_database_uri_may_be_given_as_it_is(self) -> None:
        self.format()
        uri = f"{self.device}&stats_file=/tmp/stats.json&log_dir=/tmp"
        self.assertEqual(b"", self.ok("ls", uri))
        self.ok("ls", uri + "&read_only=on")
        self.fails(READ_ONLY, ["read_only=on"], "rm", uri + "&read_only=on", "/x")

    def test_bad_value(self) -> None:
        self.fails(USAGE, ["zones", "many"], "mkfs", f"emu:{self.image}?zones=many")
        self.assertFalse(os.path.exists(self.image))

    def test_unknown_policy(self) -> None:
        self.format()
        self.fails(USAGE, ["policy", "zenfs", "zenfs+gc"], "df", f"{self.device}&policy=wishful")

    def test_option_that_contradicts_the_image(self) -> None:
        self.format()
        self.fails(USAGE, ["zones", "12", "32"], "df", f"{self.device}&zones=12")


class Gc(harness.CliTest):
    def test_no_part(self) -> None:
        self.fails(USAGE, ["isozone gc --help"], "gc")

    def test_unknown_scheme_names_the_known_ones(self) -> None:
        self.format()
        for part in ("run", "status"):
            self.fails(USAGE, ["wishful", "lifetime", "lsm-zgc"], "gc", part, self.device, "--scheme", "wishful")
        self.fails(USAGE, ["wishful", "lifetime"], "gc", "status", f"{self.device}&gc=wishful")

    def test_bad_percentage(self) -> None:
        self.format()
        for percent in ("101", "-1", "some"):
            self.fails(USAGE, ["--until"], "gc", "run", self.device, "--until", percent)

    def test_bad_option_of_the_uri(self) -> None:
        self.format()
        self.fails(USAGE, ["gc_start", "99"], "gc", "status", f"{self.device}&gc_start=99")
        self.fails(USAGE, ["gc_strat", "gc_start"], "gc", "status", f"{self.device}&gc_strat=9")

    def test_device_in_use(self) -> None:
        self.format()
        with harness.Writer(self.image):
            self.fails(BUSY, [self.image, "in use", "isozone::CollectGarbage"], "gc", "run", self.device)

    def test_missing_image(self) -> None:
        for part in ("run", "status"):
            self.fails(NOT_FOUND, [self.image], "gc", part, self.device)
        self.assertFalse(os.path.exists(self.image))

    def test_not_formatted(self) -> None:
        self.format()
        self.ok("bench", "device", "--zones", "31", "--samples", "1", "--size", "64K", "--destroy", self.device)
        for part in ("run", "status"):
            self.fails(UNUSABLE, ["not formatted", "mkfs"], "gc", part, self.device)

    def test_victims_that_cannot_be_read_are_said(self) -> None:
        self.format()
        names = [self.write(f"file{i}", os.urandom(1 << 20)) for i in range(8)]
        self.ok("cp", self.device, *names, ":/")
        self.ok("rm", self.device, *(f"/file{i}" for i in range(0, 8, 2)))
        for seed in range(1, 30):  # with some, the mount fails already
            result = self.run_cli("gc", "run", f"{self.device}&fault_read_error=0.3&fault_seed={seed}")
            self.assertEqual(result.returncode, IO_ERROR, result.stderr)
            if b"could not be collected" in result.stderr.splitlines()[-1]:
                break
        else:
            raise AssertionError("no seed let it mount")
        for i in range(1, 8, 2):
            with open(names[i], "rb") as file:
                self.assertEqual(self.ok("cat", self.device, f"/file{i}"), file.read())


class Image(harness.CliTest):
    def test_missing(self) -> None:
        for command in ("info", "df", "ls", "zones", "fsck", "dump"):
            self.fails(NOT_FOUND, [self.image], command, self.device)
        self.assertFalse(os.path.exists(self.image))

    def test_truncated(self) -> None:
        self.format()
        os.truncate(self.image, 1 << 20)
        self.fails(UNUSABLE, [self.image, "cut off"], "df", self.device)
        self.fails(UNUSABLE, [self.image], "mkfs", self.device)

    def test_not_an_image(self) -> None:
        text = b"This is a letter to a friend.\n" * 10_000
        self.write("ssd.img", text)
        self.fails(UNUSABLE, [self.image, "not"], "df", self.device)
        self.fails(UNUSABLE, [self.image, "not"], "mkfs", self.device, "--force")
        with open(self.image, "rb") as file:
            self.assertEqual(file.read(), text)

    def test_of_another_version(self) -> None:
        self.format()
        harness.ImageLayout(self.image, {"zone_size": 1, "zone_count": 1}).patch(8, struct.pack("<I", 999))
        self.fails(UNUSABLE, [self.image, "version", "999"], "df", self.device)

    def test_a_directory(self) -> None:
        os.mkdir(self.image)
        result = self.run_cli("df", self.device)
        self.assertNotEqual(result.returncode, OK)
        self.assertEqual(result.stderr.count(b"\n"), 1)

    def test_in_use_by_another_process(self) -> None:
        self.format()
        with harness.Writer(self.image):
            self.fails(BUSY, [self.image, "in use"], "mkfs", self.device, "--force")
            self.fails(BUSY, [self.image, "in use"], "fsck", self.device)
            self.fails(BUSY, [self.image, "in use"], "rm", self.device, "/file")
            self.fails(BUSY, [self.image, "in use"], "bench", "io", self.device)


class Permission(harness.CliTest):
    """Root may do everything, so these run as nobody there."""

    def setUp(self) -> None:
        super().setUp()
        self.format()
        self.as_nobody: harness.Options = {"executable": shutil.copy(harness.PROGRAM, self.path("isozone"))}
        os.chmod(self.directory, 0o755)
        if os.geteuid() == 0:
            self.as_nobody.update({"user": NOBODY, "group": NOBODY})

    def fails(self, code: int, words: Iterable[str], *arguments: str,
              **options: Unpack[harness.Options]) -> subprocess.CompletedProcess[bytes]:
        merged: harness.Options = {**self.as_nobody, **options}
        return super().fails(code, words, *arguments, **merged)

    def test_image_that_may_not_be_read(self) -> None:
        os.chmod(self.image, 0o000)
        self.fails(PERMISSION, [self.image], "df", self.device)

    def test_image_that_may_not_be_written(self) -> None:
        os.chmod(self.image, 0o444)
        self.fails(PERMISSION, [self.image], "mkfs", self.device, "--force")

    def test_directory_that_may_not_be_written(self) -> None:
        os.chmod(self.directory, 0o555)
        self.fails(PERMISSION, ["other.img"], "mkfs", f"emu:{self.path('other.img')}?{harness.SMALL_DEVICE}")

    def test_fsck_needs_to_read_only(self) -> None:
        os.chmod(self.image, 0o444)
        result = self.run_cli("fsck", self.device, **self.as_nobody)
        self.assertEqual((result.returncode, result.stderr), (OK, b""))


class Format(harness.CliTest):
    def wipe(self) -> None:
        """Leaves a device that carries no file system."""
        self.format()
        self.ok("bench", "device", "--zones", "31", "--samples", "1", "--size", "64K", "--destroy", self.device)

    def geometry(self) -> harness.Geometry:
        geometry: harness.Geometry = self.json("info", self.device, "--json")["device"]["geometry"]
        return geometry

    def test_not_formatted(self) -> None:
        self.wipe()
        for command in ("df", "ls", "zones", "dump", "fsck"):
            self.fails(UNUSABLE, ["not formatted", "mkfs"], command, self.device)

    def test_formatted_already(self) -> None:
        self.format()
        self.ok("cp", self.device, self.write("file", b"kept"), ":/file")
        self.fails(REFUSED, ["--force"], "mkfs", self.device)
        self.assertEqual(self.ok("cat", self.device, "/file"), b"kept")

    def test_formatted_by_zenfs(self) -> None:
        self.wipe()
        ZENFS_MAGIC = 0x5A454E46
        superblock = (bytes(8) + struct.pack("<I", ZENFS_MAGIC)).ljust(4096, b"\0")
        harness.ImageLayout(self.image, self.geometry()).write_empty_zone(0, superblock)
        self.fails(UNUSABLE, ["ZenFS"], "df", self.device)
        self.fails(REFUSED, ["ZenFS", "--force"], "mkfs", self.device)
        self.assertGreater(self.run_cli("df", self.device).returncode, OK)

    def test_too_few_zones(self) -> None:
        self.fails(UNUSABLE, ["zones", "4"], "mkfs", f"emu:{self.image}?timing=off&zones=4&zone_size=4M")

    def test_too_few_active_zones(self) -> None:
        self.fails(UNUSABLE, ["active", "1"], "mkfs", f"emu:{self.image}?{harness.SMALL_DEVICE}&max_active=1")

    def test_damaged_metadata(self) -> None:
        self.format()
        for number in range(20):
            self.ok("cp", self.device, self.write("file", b"x" * number), f":/file{number}")
        copies = self.json("info", self.device, "--json")["file_system"]["metadata"]["whole"]
        layout = harness.ImageLayout(self.image, self.geometry())
        for zones in copies:
            layout.patch_zone(zones[0], 4096, b"\xA5" * 4096)
        result = self.run_cli("fsck", self.device)
        self.assertEqual(result.returncode, CORRUPTION, result.stderr)
        self.assertEqual(result.stderr.count(b"\n"), 1)
        self.assertIn(b"copy out", result.stderr)


class Profile(harness.CliTest):
    def test_bad_line_is_named(self) -> None:
        profile = self.write("my.profile", b"# mine\nname = mine\nzone_count = plenty\n")
        self.fails(USAGE, ["my.profile:3", "plenty"], "mkfs", f"emu:{self.image}?profile={profile}")
        self.assertFalse(os.path.exists(self.image))

    def test_unknown_profile(self) -> None:
        self.fails(NOT_FOUND, ["tiny-zone", "small-zone"], "mkfs", f"emu:{self.image}?profile=tiny-zone")

    def test_missing_file(self) -> None:
        self.fails(NOT_FOUND, ["none.profile"], "mkfs", f"emu:{self.image}?profile={self.path('none.profile')}")


@unittest.skipIf(os.geteuid() != 0, "needs root, to mount a small file system")
class FullHost(harness.CliTest):
    """The disk of the image has less room than the image may take."""

    def setUp(self) -> None:
        super().setUp()
        self.disk = self.path("disk")
        os.mkdir(self.disk)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24M", "tmpfs", self.disk],
                          capture_output=True).returncode != 0:
            self.skipTest("no file system can be mounted here")
        self.addCleanup(subprocess.run, ["umount", self.disk], check=True)
        self.made = self.ok("mkfs", f"emu:{self.disk}/ssd.img?{harness.SMALL_DEVICE}")
        self.device = f"emu:{self.disk}/ssd.img?timing=off"

    def test_mkfs_warns(self) -> None:
        warning = r"the image may come to take 128.0 MiB, and its disk has 2\d\.\d MiB left"
        self.assertRegex(self.made.decode(), "\nwarning: " + warning)
        [told] = self.json("mkfs", "--force", "--json", self.device)["warnings"]
        self.assertRegex(told, warning)

    def test_mkfs_does_not_warn_of_what_fits(self) -> None:
        subprocess.run(["mount", "-o", "remount,size=200M", self.disk], check=True)
        self.assertEqual(self.json("mkfs", "--force", "--json", self.device)["warnings"], [])

    def test_it_is_one_line_and_goes_away_with_its_cause(self) -> None:
        self.ok("cp", self.device, self.write("kept", b"kept"), ":/kept")
        large = self.write("large", os.urandom(40 << 20))
        self.fails(NO_SPACE, ["the disk under the device is full"], "cp", self.device, large, ":/large")
        self.assertEqual(self.ok("cat", self.device, "/kept"), b"kept")
        subprocess.run(["mount", "-o", "remount,size=200M", self.disk], check=True)
        self.ok("cp", self.device, large, ":/large")
        self.ok("fsck", "--read-data", self.device)


class Files(harness.CliTest):
    def setUp(self) -> None:
        super().setUp()
        self.format()
        self.ok("cp", self.device, self.write("kept", b"kept"), ":/kept")

    def names(self) -> list[str]:
        return self.ok("ls", self.device).decode().split()

    def test_no_such_file(self) -> None:
        for command in ("ls", "stat", "cat", "rm"):
            self.fails(NOT_FOUND, ["/nothing"], command, self.device, "/nothing")
        self.fails(NOT_FOUND, ["/nothing"], "cp", self.device, ":/nothing", self.directory)
        self.fails(NOT_FOUND, ["absent"], "cp", self.device, self.path("absent"), ":/")

    def test_relative_path(self) -> None:
        self.fails(USAGE, ["kept"], "cat", self.device, "kept")

    def test_full_device(self) -> None:
        large = self.write("large", os.urandom(256 << 20))
        self.ok("cp", self.device, self.write("old", b"old"), ":/large")
        self.fails(NO_SPACE, ["has room for", "remove files"], "cp", self.device, large, ":/large")
        self.assertEqual(self.names(), ["kept", "large"])
        self.assertEqual(self.ok("cat", self.device, "/large"), b"old")
        self.ok("cp", self.device, self.write("more", os.urandom(8 << 20)), ":/more")
        self.assertTrue(self.json("fsck", self.device, "--json")["clean"])

    def test_directory_without_r(self) -> None:
        os.mkdir(self.path("tree"))
        self.fails(REFUSED, ["-r"], "cp", self.device, self.path("tree"), ":/")
        self.ok("cp", "-r", self.device, self.path("tree"), ":/")
        self.fails(REFUSED, ["-r"], "rm", self.device, "/kept", "/tree")
        self.assertEqual(self.names(), ["kept", "tree/"])

    def test_root_cannot_be_removed(self) -> None:
        self.fails(USAGE, ["root"], "rm", "-r", self.device, "/")
        self.assertEqual(self.names(), ["kept"])

    def test_rm_of_several_removes_none_if_one_is_missing(self) -> None:
        self.fails(NOT_FOUND, ["/nothing"], "rm", self.device, "/kept", "/nothing")
        self.assertEqual(self.names(), ["kept"])

    def test_directory_into_itself(self) -> None:
        os.mkdir(self.path("tree"))
        self.ok("cp", "-r", self.device, self.path("tree"), ":/")
        self.fails(USAGE, ["/tree"], "cp", "-r", self.device, ":/tree", ":/tree")

    def test_several_files_into_a_file(self) -> None:
        one, two = self.write("one", b"1"), self.write("two", b"2")
        self.fails(REFUSED, ["/kept", "not a directory"], "cp", self.device, one, two, ":/kept")

    def test_two_sources_of_one_name(self) -> None:
        os.mkdir(self.path("other"))
        one, two = self.write("one", b"1"), self.write("other/one", b"2")
        self.fails(REFUSED, ["/one"], "cp", self.device, one, two, ":/")
        self.assertEqual(self.names(), ["kept"])

    def test_output_that_cannot_be_written(self) -> None:
        with open("/dev/full", "wb") as full:
            result = subprocess.run([harness.PROGRAM, "cat", self.device, "/kept"], stdout=full, stderr=subprocess.PIPE)
        self.assertEqual(result.returncode, NO_SPACE)
        self.assertIn(b"standard output", result.stderr)

    def test_svg_that_cannot_be_written(self) -> None:
        self.fails(NOT_FOUND, ["absent/map.svg"], "zones", self.device, "--svg", self.path("absent/map.svg"))

    def test_bench_without_enough_empty_zones(self) -> None:
        before = self.json("zones", self.device, "--json")
        self.fails(NO_SPACE, ["--destroy", "32"], "bench", "device", "--zones", "31", self.device)
        self.assertEqual(self.json("zones", self.device, "--json"), before)

    def test_read_error_of_the_device(self) -> None:
        result = self.run_cli("cat", f"{self.device}&fault_read_error=1&fault_seed=7", "/kept")
        self.assertEqual(result.returncode, IO_ERROR)
        seed, error = result.stderr.decode().splitlines()
        self.assertIn("fault_seed=7", seed)
        self.assertIn("Unrecovered Read Error", error)


if __name__ == "__main__":
    unittest.main()
