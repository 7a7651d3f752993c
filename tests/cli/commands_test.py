#!/usr/bin/env python3
"""The good path of every command.

    commands_test.py ISOZONE
"""

import json
import os
import pty
import re
import signal
import subprocess
import time
import unittest
import xml.etree.ElementTree
from collections.abc import Callable
from typing import Any

import harness


class Mkfs(harness.CliTest):
    def test_makes_the_image_and_says_what_it_made(self) -> None:
        output = self.ok("mkfs", f"emu:{self.image}?{harness.SMALL_DEVICE}", "--label", "trial").decode()
        self.assertIn("32 zones", output)
        self.assertIn("label trial", output)
        self.assertTrue(os.path.exists(self.image))

    def test_json_and_info_agree(self) -> None:
        made = self.json("mkfs", f"emu:{self.image}?{harness.SMALL_DEVICE}", "--label", "trial", "--json")
        info = self.json("info", self.device, "--json")
        self.assertEqual(made["uuid"], info["file_system"]["uuid"])
        self.assertEqual(made["label"], info["file_system"]["label"])
        self.assertEqual(made["zones"], info["device"]["geometry"]["zone_count"])

    def test_force_formats_again(self) -> None:
        self.format()
        first = self.json("info", self.device, "--json")["file_system"]["uuid"]
        self.ok("mkfs", self.device, "--force")
        self.assertNotEqual(first, self.json("info", self.device, "--json")["file_system"]["uuid"])


class Info(harness.CliTest):
    def test_describes_device_and_file_system(self) -> None:
        self.format()
        output = self.ok("info", self.device).decode()
        for words in ("small-zone", "Zones", "Active zones", "File system", "UUID", "reserved"):
            self.assertIn(words, output)

    def test_describes_a_device_that_is_not_formatted(self) -> None:
        self.format()
        layout = harness.ImageLayout(self.image, self.json("info", self.device, "--json")["device"]["geometry"])
        for zone in range(3):
            layout.patch_zone(zone, 0, bytes(1 << 20))
        info = self.json("info", self.device, "--json")
        self.assertIsNone(info["file_system"])
        self.assertIn(b"isozone mkfs", self.ok("info", self.device))

    def test_df_follows_what_is_stored(self) -> None:
        self.format()
        before = self.json("df", self.device, "--json")
        self.ok("cp", self.device, self.write("file", os.urandom(3 << 20)), ":/file")
        after = self.json("df", self.device, "--json")
        self.assertEqual(after["live"] - before["live"], 3 << 20)
        self.assertLess(after["free"], before["free"])
        self.assertEqual(after["capacity"], before["capacity"])
        self.assertRegex(self.ok("df", self.device).decode(), r"(?s)CAPACITY.*FREE %.*MiB")


class Files(harness.CliTest):
    def setUp(self) -> None:
        super().setUp()
        self.format()
        self.content = os.urandom(2_500_001)
        tree = self.path("tree")
        os.makedirs(os.path.join(tree, "deep", "empty"))
        self.write("tree/large", self.content)
        self.write("tree/deep/small", b"a few words\n")
        self.write("tree/deep/nothing", b"")
        self.ok("cp", "-r", self.device, tree, ":/")

    def names(self, *arguments: str) -> list[str]:
        return self.ok("ls", self.device, *arguments).decode().split()

    def test_ls_lists_a_directory_in_order(self) -> None:
        self.assertEqual(self.names("/tree"), ["deep/", "large"])

    def test_ls_lists_a_file(self) -> None:
        self.assertEqual(self.names("/tree/large"), ["large"])

    def test_ls_long_and_recursive(self) -> None:
        output = self.ok("ls", "-lR", self.device, "/tree").decode()
        self.assertRegex(output, r"(?m)^data .* 2500001 .* large$")
        self.assertRegex(output, r"(?m)^small .* 12 .* small$")
        self.assertIn("/tree/deep/empty:", output)

    def test_ls_json_has_every_path(self) -> None:
        files = {file["path"]: file for file in self.json("ls", "-R", self.device, "--json")}
        self.assertEqual(files["/tree/large"]["size"], len(self.content))
        self.assertEqual(files["/tree/deep/empty"]["type"], "directory")

    def test_stat_shows_extents_that_make_up_the_file(self) -> None:
        stat = self.json("stat", self.device, "/tree/large", "--json")
        self.assertEqual(stat["paths"], ["/tree/large"])
        self.assertEqual(sum(extent["length"] for extent in stat["extents"]), len(self.content))
        self.assertEqual({zone["zone"] for zone in stat["zones"]}, {extent["zone"] for extent in stat["extents"]})
        self.assertEqual(sum(zone["bytes"] for zone in stat["zones"]), len(self.content))
        self.assertEqual(self.json("stat", self.device, "/tree", "--json")["zones"], [])
        output = self.ok("stat", self.device, "/tree/large").decode()
        self.assertIn(f"{stat['zones'][0]['zone']} (", output)
        self.assertIn("2500001 bytes", output)
        self.assertIn("OFFSET IN ZONE", output)

    def test_cat_gives_the_bytes(self) -> None:
        self.assertEqual(self.ok("cat", self.device, "/tree/deep/small", "/tree/large"),
                         b"a few words\n" + self.content)

    def test_cp_brings_a_tree_back(self) -> None:
        self.ok("cp", "-r", self.device, ":/tree", self.path("back"))
        with open(self.path("back/large"), "rb") as file:
            self.assertEqual(file.read(), self.content)
        with open(self.path("back/deep/nothing"), "rb") as file:
            self.assertEqual(file.read(), b"")
        self.assertTrue(os.path.isdir(self.path("back/deep/empty")))

    def test_cp_of_a_tree_keeps_symbolic_links_and_permissions(self) -> None:
        tree = self.path("tree")
        os.symlink("../nowhere", os.path.join(tree, "deep", "link"))
        os.symlink("large", os.path.join(tree, "near"))
        os.chmod(os.path.join(tree, "large"), 0o500)
        os.mkdir(os.path.join(tree, "private"), 0o700)
        for _ in range(2):  # the second one replaces what is there
            self.ok("cp", "-r", self.device, tree, ":/")
        self.ok("cp", "-r", "--resume", self.device, tree, ":/")
        self.ok("fsck", self.device)
        self.ok("cp", "-r", self.device, ":/tree", self.path("back"))
        self.ok("cp", "-r", self.device, ":/tree", self.directory)  # onto the tree that it came from
        self.assertEqual("large", os.readlink(os.path.join(tree, "near")))
        self.assertEqual(["deep", "large", "near", "private"], sorted(os.listdir(self.path("back"))))
        self.assertEqual(("../nowhere", "large"),
                         (os.readlink(self.path("back/deep/link")), os.readlink(self.path("back/near"))))
        modes = [os.stat(self.path(f"back/{name}")).st_mode & 0o777 for name in ("large", "private")]
        self.assertEqual([0o500, 0o700], modes)
        self.ok("cp", self.device, os.path.join(tree, "near"), ":/followed")
        self.assertEqual(self.content, self.ok("cat", self.device, "/followed"))
        self.fails(harness.USAGE, ["/tree/near", "symbolic link", "-r"], "cp", self.device, ":/tree/near", ":/copy")
        self.fails(harness.REFUSED, ["/tree/near", "symbolic link"], "cp", self.device, self.path("tree/large"),
                   ":/tree/near")

    def test_cp_into_a_directory_keeps_the_name(self) -> None:
        self.ok("cp", self.device, ":/tree/large", ":/tree/deep/small", self.directory)
        self.assertEqual(os.path.getsize(self.path("large")), len(self.content))
        self.assertEqual(os.path.getsize(self.path("small")), 12)

    def test_cp_within_the_device(self) -> None:
        self.ok("cp", self.device, ":/tree/large", ":/tree/copy")
        self.assertEqual(self.ok("cat", self.device, "/tree/copy"), self.content)

    def test_cp_replaces_a_file(self) -> None:
        self.ok("cp", self.device, self.write("new", b"new"), ":/tree/large")
        self.assertEqual(self.ok("cat", self.device, "/tree/large"), b"new")
        self.assertEqual(self.names("/tree"), ["deep/", "large"])

    def test_cp_of_the_content_of_a_directory(self) -> None:
        self.ok("cp", "-r", self.device, ".", ":/tree/deep/empty", cwd=self.path("tree/deep"))
        self.assertEqual(self.names("/tree/deep/empty"), ["empty/", "nothing", "small"])

    def begin_cp(self, speed: float, source: str, target: str, sign: Callable[[str], bool]) -> subprocess.Popen[bytes]:
        """Starts a copy on a slow device, and waits for a file that `sign` finds among those that it has open."""
        process = subprocess.Popen([harness.PROGRAM, "cp", f"emu:{self.image}?speed={speed}", source, target],
                                   stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        descriptors = f"/proc/{process.pid}/fd"
        while process.poll() is None:
            for descriptor in os.listdir(descriptors):
                try:
                    name = os.readlink(f"{descriptors}/{descriptor}")
                    with open(f"{descriptors}info/{descriptor}") as info:
                        position = int(info.readline().split()[1])
                except FileNotFoundError:
                    continue
                if position > 0 and sign(name):
                    return process
        self.fail("the copy ended before it could be stopped")

    def test_a_cp_that_is_killed_leaves_nothing_on_the_local_disk(self) -> None:
        os.mkdir(self.path("target"))
        process = self.begin_cp(0.01, ":/tree/large", self.path("target/large"),
                                lambda name: name.startswith(self.path("target/")))
        process.kill()
        process.wait()
        self.assertEqual(os.listdir(self.path("target")), [])

    def test_a_cp_that_is_told_to_end_leaves_nothing_on_the_device(self) -> None:
        source = self.write("source", os.urandom(8 << 20))
        process = self.begin_cp(0.1, source, ":/copy", lambda name: name == source)
        process.terminate()
        self.assertEqual(process.wait(), -signal.SIGTERM)
        self.assertEqual(self.names("/"), ["tree/"])

    def test_rm_removes_files(self) -> None:
        self.ok("rm", self.device, "/tree/large", "/tree/deep/nothing")
        self.assertEqual(self.names("/tree"), ["deep/"])
        self.assertEqual(self.names("/tree/deep"), ["empty/", "small"])

    def test_rm_removes_trees(self) -> None:
        self.ok("rm", "-r", self.device, "/tree", "/tree/deep", "/tree")
        self.assertEqual(self.names(), [])

    def test_fsck_finds_it_clean_and_reads_every_byte(self) -> None:
        report = self.json("fsck", "--read-data", self.device, "--json")
        self.assertTrue(report["clean"], report["findings"])
        self.assertEqual(report["files"], 3)
        self.assertIn(b"clean", self.ok("fsck", self.device))

    def test_dump_has_files_and_zones(self) -> None:
        dump = self.json("dump", self.device)
        paths = {path: file for file in dump["files"] for path in file["paths"]}
        self.assertEqual(paths["/tree/large"]["size"], len(self.content))
        self.assertEqual(len(dump["zones"]), 32)
        self.assertEqual(dump["device"]["geometry"]["zone_count"], 32)

    def test_readers_run_beside_a_writer(self) -> None:
        with harness.Writer(self.image):
            for command in ("info", "df", "ls", "zones", "dump"):
                self.ok(command, self.device)


class Zones(harness.CliTest):
    def setUp(self) -> None:
        super().setUp()
        self.format()
        self.ok("cp", self.device, self.write("file", os.urandom(6 << 20)), ":/file")

    def test_map_has_a_cell_for_each_zone(self) -> None:
        output = self.ok("zones", self.device).decode()
        row, = re.findall(r"(?m)^ +0  (.*)$", output)
        cells = row.split()
        self.assertEqual(len(cells), 32)
        self.assertEqual(cells.count("."), self.json("df", self.device, "--json")["empty_zones"])
        self.assertIn("metadata", output)

    def test_table_leaves_out_free_zones_unless_asked(self) -> None:
        short = self.ok("zones", "--table", self.device).decode().splitlines()
        long = self.ok("zones", "--table", "--all", self.device).decode().splitlines()
        self.assertEqual(len(long), 33)
        self.assertLess(len(short), len(long))

    def test_json_has_every_zone(self) -> None:
        zones = self.json("zones", self.device, "--json")
        self.assertEqual([zone["zone"] for zone in zones], list(range(32)))
        self.assertEqual(sum(zone["live"] for zone in zones if zone["use"] == "data"), 6 << 20)

    def test_a_zone_names_the_files_in_it(self) -> None:
        self.ok("cp", self.device, self.write("other", b"a few words"), ":/other")
        for zone in self.json("zones", self.device, "--json"):
            asked = ("zones", self.device, "--zone", str(zone["zone"]))
            self.assertEqual((found := self.json(*asked, "--json"))["zone"], zone)
            expected = {path: of["bytes"] for path in ("/file", "/other")
                        for of in self.json("stat", self.device, path, "--json")["zones"] if of["zone"] == zone["zone"]}
            self.assertEqual({file["paths"][0]: file["bytes"] for file in found["files"]}, expected)
            listed = self.ok(*asked).decode()
            self.assertTrue(all(path in listed for path in expected), listed)

    def test_svg_is_well_formed_and_has_title_and_legend(self) -> None:
        self.ok("mkfs", self.device, "--force", "--label", "a <b> & c")
        self.ok("zones", self.device, "--svg", self.path("map.svg"))
        text = "".join(xml.etree.ElementTree.parse(self.path("map.svg")).getroot().itertext())
        self.assertTrue("a <b> & c" in text and "metadata" in text, text)


class MetadataCopies(harness.CliTest):
    def metadata(self) -> Any:
        return self.json("info", self.device, "--json")["file_system"]["metadata"]

    def damage(self, zone: int) -> None:
        geometry = self.json("info", self.device, "--json")["device"]["geometry"]
        harness.ImageLayout(self.image, geometry).patch_zone(zone, 100, b"damage")

    def test_a_damaged_one_is_shown_and_repaired(self) -> None:
        self.format()
        self.ok("cp", self.device, self.write("file", b"kept"), ":/file")
        before = self.metadata()
        self.assertEqual((before["copies"], len(before["whole"])), (2, 2))
        self.assertIn(b"2 of 2 copies whole", self.ok("info", self.device))
        for zones in before["whole"]:
            lost = zones[0]
            self.damage(lost)
            self.assertEqual(len(self.metadata()["whole"]), 1)
            self.assertIn(b"1 of 2 copies whole", self.ok("info", self.device))
            result = self.fails(harness.CORRUPTION, ["invariants", "fsck --repair mends"], "fsck", self.device)
            report = result.stdout.decode()
            self.assertIn(f"superblock corrupt in zone {lost}", report)
            self.assertIn("1 of 2 copies of the metadata are left", report)
            self.assertIn("--repair", report)
            self.assertEqual(self.ok("cat", self.device, "/file"), b"kept")
            repaired = self.run_cli("fsck", "--repair", self.device, "--json")
            self.assertEqual(repaired.returncode, harness.OK, repaired.stderr)
            self.assertEqual(len(json.loads(repaired.stdout)["metadata"]["whole"]), 2)
            self.assertEqual(len(self.metadata()["whole"]), 2)
        self.assertEqual(self.ok("cat", self.device, "/file"), b"kept")

    def test_one_is_kept_where_one_was_asked_for(self) -> None:
        made = self.json("mkfs", f"emu:{self.image}?{harness.SMALL_DEVICE}", "--metadata-copies", "1", "--json")
        self.assertEqual(made["metadata"], {"copies": 1, "whole": [[0]]})
        self.assertEqual(self.json("fsck", self.device, "--json")["metadata"], {"copies": 1, "whole": [[0]]})


class Izg(harness.CliTest):
    def identify(self, device: str) -> Any:
        """Measures; on a busy machine it may give up."""
        for _ in range(10):
            result = self.run_cli("izg", "identify", device, "--json")
            if result.returncode != harness.BUSY:
                break
        self.assertEqual(result.returncode, harness.OK, result.stderr.decode())
        return json.loads(result.stdout)

    # Which groups are found depends on the clock; device/izg/identify_test.cc says what is right, in virtual time.
    def test_identify_stores_what_show_shows(self) -> None:
        self.ok("mkfs", f"emu:{self.image}?zones=40&zone_size=4M")
        device = f"emu:{self.image}"
        self.ok("cp", device, self.write("file", b"kept"), ":/file")
        before = self.json("zones", device, "--json")
        found = self.identify(device)
        self.assertTrue(found["stored"])
        self.assertEqual(found["cost"]["zones"], 39)  # one is empty but reserved for metadata
        self.assertEqual(len(found["group_of_zone"]), 40)
        shown = self.json("zones", "--groups", device, "--svg", self.path("groups.svg"), "--json")
        dumped = self.json("dump", device)["zone_groups"]
        for key in ("groups", "group_of_zone", "channel_of_group", "confidence_percent"):
            self.assertEqual(shown[key], found[key])
            self.assertEqual(dumped[key], found[key])
        xml.etree.ElementTree.parse(self.path("groups.svg"))
        self.assertIn("group", self.ok("info", device).decode())
        after = self.json("zones", device, "--json")
        self.assertEqual([zone["use"] for zone in after], [zone["use"] for zone in before])
        self.assertEqual(self.ok("cat", device, "/file"), b"kept")
        self.assertTrue(self.json("fsck", device, "--json")["clean"])

    def test_identify_killed_at_any_time_leaves_the_file_system_whole(self) -> None:
        self.ok("mkfs", f"emu:{self.image}?zones=40&zone_size=4M")
        device = f"emu:{self.image}"
        self.ok("cp", device, self.write("file", b"kept"), ":/file")
        for seconds in (0.05, 0.2, 0.5):
            process = subprocess.Popen([harness.PROGRAM, "izg", "identify", device], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            time.sleep(seconds)
            process.kill()
            process.wait()
            self.assertTrue(self.json("fsck", device, "--json")["clean"])
            self.assertEqual(self.ok("cat", device, "/file"), b"kept")
        found = self.identify(device)
        # Nothing of what was left is in its way: all but superblocks, journal and checkpoint.
        self.assertLessEqual(found["group_of_zone"].count(65535), 4)
        self.ok("cp", device, self.write("file", b"second"), ":/second")
        self.assertTrue(self.json("fsck", device, "--json")["clean"])

    def test_identify_interrupted_leaves_empty_what_was_empty(self) -> None:
        self.ok("mkfs", f"emu:{self.image}?zones=40&zone_size=4M")
        device = f"emu:{self.image}"
        before = self.json("zones", device, "--json")
        # So slow that it cannot be done before it is interrupted.
        process = subprocess.Popen([harness.PROGRAM, "izg", "identify", device + "?speed=0.1"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while all(zone["state"] == was["state"]
                  for zone, was in zip(self.json("zones", device, "--json"), before, strict=True)):
            time.sleep(0.05)  # until it has begun to write
        process.send_signal(signal.SIGINT)
        error = process.communicate(timeout=120)[1].decode()
        self.assertEqual(process.returncode, -signal.SIGINT, error)
        states = [zone["state"] for zone in self.json("zones", device, "--json")]
        self.assertEqual(states.count("empty"), [zone["state"] for zone in before].count("empty"))
        self.fails(harness.NOT_FOUND, ["never measured"], "zones", "--groups", device)

    def test_identify_shows_its_progress_on_a_terminal(self) -> None:
        self.ok("mkfs", f"emu:{self.image}?zones=40&zone_size=4M")
        terminal, standard_error = pty.openpty()
        process = subprocess.Popen([harness.PROGRAM, "izg", "identify", f"emu:{self.image}?speed=0.2"],
                                   stdout=subprocess.DEVNULL, stderr=standard_error)
        os.close(standard_error)
        shown = b""
        while b"ETA" not in shown:
            shown += os.read(terminal, 4096)  # raises when the process ends
        process.kill()
        process.wait()
        os.close(terminal)
        self.assertIn(b"finding groups", shown)
        self.assertIn(b" of 39", shown)

    def test_identify_finds_nothing_where_nothing_interferes(self) -> None:
        self.format()
        result = self.run_cli("izg", "identify", self.device)
        # Without timing, latencies are the host's: on a busy one they may look like those of a memory.
        if result.returncode == harness.OK:
            self.assertIn("every zone is a group of its own", result.stdout.decode())
            self.assertIn("timing=off", result.stdout.decode())
        else:
            self.assertIn("the device answers reads from memory", result.stderr.decode())
        self.assertEqual(self.json("zones", "--groups", self.device, "--json")["groups"], 0)

    def test_what_is_in_doubt_does_not_take_the_place_of_what_was_measured(self) -> None:
        self.ok("mkfs", f"emu:{self.image}?zones=40&zone_size=4M")
        self.identify(f"emu:{self.image}")
        before = self.json("zones", "--groups", f"emu:{self.image}", "--json")
        doubtful = self.json("izg", "identify", f"emu:{self.image}?timing=off", "--json")
        self.assertFalse(doubtful["stored"])
        self.assertIn("timing=off", doubtful["problem"])
        self.assertIn("not stored", self.ok("izg", "identify", f"emu:{self.image}?timing=off").decode())
        self.assertEqual(self.json("zones", "--groups", f"emu:{self.image}", "--json"), before)
        self.assertTrue(self.json("izg", "identify", "--force", f"emu:{self.image}?timing=off", "--json")["stored"])
        self.assertEqual(self.json("zones", "--groups", f"emu:{self.image}", "--json")["groups"], 0)

    def test_identify_stores_nothing_on_a_device_without_file_system(self) -> None:
        self.format()
        self.ok("bench", "device", "--zones", "31", "--samples", "1", "--size", "64K", "--destroy", self.device)
        self.assertFalse(self.json("izg", "identify", self.device, "--json")["stored"])

    def test_identify_killed_on_a_device_without_file_system_leaves_one_that_can_be_formatted(self) -> None:
        self.ok("mkfs", f"emu:{self.image}?zones=40&zone_size=4M")
        device = f"emu:{self.image}"
        self.ok("bench", "device", "--zones", "31", "--samples", "1", "--size", "64K", "--destroy", device)
        process = subprocess.Popen([harness.PROGRAM, "izg", "identify", device], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        time.sleep(0.5)
        process.kill()
        process.wait()
        self.ok("mkfs", device)

    def test_show_says_what_to_do_where_nothing_was_measured(self) -> None:
        self.format()
        self.fails(harness.NOT_FOUND, ["never measured", "izg identify"], "zones", "--groups", self.device)


class Gc(harness.CliTest):
    """Garbage is made by removing every second of many files that share zones."""

    def setUp(self) -> None:
        super().setUp()
        self.format()
        self.content = [os.urandom(1 << 20) for _ in range(24)]
        names = [self.write(f"file{i:02}", content) for i, content in enumerate(self.content)]
        self.ok("cp", self.device, *names, ":/")
        self.ok("rm", self.device, *(f"/file{i:02}" for i in range(0, 24, 2)))

    def check_files(self) -> None:
        for i in range(1, 24, 2):
            self.assertEqual(self.ok("cat", self.device, f"/file{i:02}"), self.content[i])
        self.assertTrue(self.json("fsck", "--read-data", self.device, "--json")["clean"])

    def test_status_shows_victims_and_does_nothing(self) -> None:
        before = self.json("zones", self.device, "--json")
        plan = self.json("gc", "status", self.device, "--json")["all"]
        self.assertEqual(plan["scheme"], "isozone")
        self.assertGreater(len(plan["victims"]), 0)
        zones = {zone["zone"]: zone for zone in before}
        for victim in plan["victims"]:
            zone = zones[victim["zone"]]
            self.assertEqual(victim["valid"], zone["live"])
            self.assertEqual(victim["dead"], zone["written"] - zone["live"])
            self.assertAlmostEqual(victim["cost"], victim["valid"] / victim["dead"])
        self.assertEqual(plan["to_copy"], sum(victim["valid"] for victim in plan["victims"]))
        self.assertEqual(plan["to_reclaim"], sum(victim["dead"] for victim in plan["victims"]))
        costs = [victim["cost"] for victim in plan["victims"]]
        self.assertEqual(costs, sorted(costs))
        self.assertEqual(self.json("zones", self.device, "--json"), before)
        output = self.ok("gc", "status", "--victims", self.device).decode()
        self.assertRegex(output, r"(?s)gc run would collect  \d+ zones: .* to copy, .* to gain\n\nZONE .* COST\n")

    def test_status_says_what_the_scheme_would_do_now(self) -> None:
        def now(uri: str, *options: str) -> dict[str, Any]:
            plan: dict[str, Any] = self.json("gc", "status", uri, *options, "--json")["now"]
            return plan

        # A device as empty as this one is left alone, unless the scheme begins that early.
        self.assertEqual(now(self.device)["victims"], [])
        early = now(f"{self.device}&gc_start=90", "--scheme", "lsm-zgc")
        self.assertEqual(early["scheme"], "lsm-zgc")
        self.assertGreater(len(early["victims"]), 0)
        self.assertEqual(now(f"{self.device}&policy=zenfs")["scheme"], "none")
        self.assertEqual(now(f"{self.device}&policy=zenfs+gc")["scheme"], "zenfs")

    def test_status_counts_every_zone_with_data_once(self) -> None:
        status = self.json("gc", "status", self.device, "--json")
        zones = [zone for zone in self.json("zones", self.device, "--json")
                 if zone["use"] in ("data", "log") and zone["written"] > 0]
        self.assertEqual(sum(bucket["zones"] for bucket in status["utilisation"]), len(zones))
        self.assertEqual(sum(bucket["dead"] for bucket in status["utilisation"]),
                         sum(zone["written"] - zone["live"] for zone in zones))
        for bucket in status["utilisation"]:
            low = bucket["from_percent"]
            expected = sum(1 for zone in zones if low <= min(99, 100 * zone["live"] // zone["capacity"]) < low + 10)
            self.assertEqual(bucket["zones"], expected)
        self.assertEqual(status["dead"], self.json("df", self.device, "--json")["dead"])
        self.assertEqual(status["now"]["victims"], [])
        output = self.ok("gc", "status", self.device).decode()
        self.assertRegex(output, r"It would now collect +nothing\n")
        self.assertRegex(output, r"(?m)^ *40-50 % +\d+ ")
        self.assertRegex(output, r"(?m)^90-100 % +\d+ ")

    def test_run_collects_all_and_keeps_every_file(self) -> None:
        dead = self.json("df", self.device, "--json")["dead"]
        plan = self.json("gc", "status", self.device, "--json")["all"]
        done = self.json("gc", "run", self.device, "--json")
        self.assertEqual(done["zones"], len(plan["victims"]))
        self.assertEqual(done["bytes_copied"], plan["to_copy"])
        self.assertEqual(done["bytes_reclaimed"], plan["to_reclaim"])
        self.assertGreater(done["after"]["free"], done["before"]["free"])
        self.assertEqual((done["failed_zones"], done["read_errors"], done["mismatches"]), (0, 0, 0))
        self.assertLess(self.json("df", self.device, "--json")["dead"], dead)
        self.check_files()
        self.assertEqual(self.json("gc", "run", self.device, "--json")["zones"], 0)

    def test_run_stops_when_enough_is_free(self) -> None:
        free = self.json("gc", "status", self.device, "--json")["space"]["free_percent"]
        nothing = self.json("gc", "run", self.device, "--until", str(free - 1), "--json")
        self.assertEqual((nothing["zones"], nothing["bytes_copied"]), (0, 0))
        self.assertEqual(nothing["before"], nothing["after"])
        self.check_files()

    def test_run_says_what_it_did(self) -> None:
        output = self.ok("gc", "run", self.device, "--scheme", "lifetime").decode()
        self.assertIn("Collected with scheme lifetime", output)
        for words in (r"Zones +\d+ emptied, 0 skipped, 0 failed", r"Copied +\S+ MiB", r"Reclaimed +\S+ MiB",
                      r"Free before .* %", r"Free after .* %"):
            self.assertRegex(output, words)
        self.check_files()

    def test_run_with_every_scheme(self) -> None:
        for scheme in ("none", "zenfs", "full", "zenfs+", "lsm-zgc", "isozone"):
            self.ok("mkfs", "--force", self.device)
            names = [self.path(f"file{i:02}") for i in range(24)]
            self.ok("cp", self.device, *names, ":/")
            self.ok("rm", self.device, *(f"/file{i:02}" for i in range(0, 24, 2)))
            with self.subTest(scheme=scheme):
                self.assertGreater(self.json("gc", "run", self.device, "--scheme", scheme, "--json")["zones"], 0)
                self.check_files()

    def test_run_killed_at_any_time_leaves_every_file(self) -> None:
        for seconds in (0.005, 0.02, 0.05):
            process = subprocess.Popen([harness.PROGRAM, "gc", "run", self.device], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            time.sleep(seconds)
            process.kill()
            process.wait()
            self.check_files()

    def test_looking_runs_beside_a_writer(self) -> None:
        with harness.Writer(self.image):
            self.ok("gc", "status", self.device)
            self.ok("gc", "status", "--victims", self.device)


class Bench(harness.CliTest):
    OPTIONS = ("--zones", "8", "--samples", "4", "--size", "64K")

    def test_device_measures_every_zone_and_leaves_the_file_system_whole(self) -> None:
        self.format()
        self.ok("cp", self.device, self.write("file", b"kept"), ":/file")
        before = self.json("zones", self.device, "--json")
        result = self.json("bench", "device", *self.OPTIONS, self.device, "--json")
        for direction in ("reads", "writes"):
            self.assertEqual([point["distance"] for point in result[direction]["points"]], list(range(1, 9)))
            self.assertGreater(result[direction]["alone_us"], 0)
        self.assertEqual(self.json("zones", self.device, "--json"), before)
        self.assertEqual(self.ok("cat", self.device, "/file"), b"kept")
        self.assertTrue(self.json("fsck", self.device, "--json")["clean"])

    def test_device_knows_what_zones_share(self) -> None:
        self.ok("mkfs", f"emu:{self.image}?zones=64&zone_size=4M&speed=50")
        result = self.json("bench", "device", "--zones", "33", "--samples", "1", "--size", "64K",
                           f"emu:{self.image}?speed=50", "--json")
        sharing = {point["distance"]: point["sharing"] for point in result["reads"]["points"]}
        self.assertEqual(sharing[32], "same die")
        self.assertEqual(sharing[8], "same channel")
        self.assertEqual(sharing[1], "nothing shared")
        self.assertGreaterEqual(result["lateness"]["median_us"], 0)

    def test_device_draws(self) -> None:
        self.format()
        output = self.ok("bench", "device", *self.OPTIONS, self.device, "--svg", self.path("bands.svg")).decode()
        self.assertIn("Reads beside a reader", output)
        self.assertIn("Writes beside a writer", output)
        self.assertIn("timing=off", output)
        root = xml.etree.ElementTree.parse(self.path("bands.svg")).getroot()
        self.assertEqual(len(root.findall(".//{*}circle[@r='3.5']")), 16)

    def test_destroy_takes_a_full_device(self) -> None:
        self.format()
        self.ok("bench", "device", "--zones", "31", "--samples", "1", "--size", "64K", "--destroy", self.device)
        self.assertIsNone(self.json("info", self.device, "--json")["file_system"])

    def test_io_measures_writes_and_reads(self) -> None:
        self.format()
        arguments = ("bench", "io", "--bytes", "8M", "--depth", "4", "--reads", "50", self.device)
        rows = json.loads(self.ok(*arguments, "--json"))
        self.assertEqual([(row["test"], row["depth"]) for row in rows],
                         [("sequential write", 4), ("sequential read", 4), ("random read", 1), ("random read", 4)])
        for row in rows:
            self.assertGreater(row["bytes_per_second"], 0)
            self.assertGreaterEqual(row["p99_us"], row["p50_us"])
        self.assertIn(b"THROUGHPUT", self.ok(*arguments))


if __name__ == "__main__":
    unittest.main()
