#!/usr/bin/env python3
"""What isozone why tells of a device at rest, and what isozone advise gives for one.

    space_test.py ISOZONE
"""

import os
import unittest
from typing import Any

import harness

MIB = 1 << 20


class Why(harness.CliTest):
    def setUp(self) -> None:
        super().setUp()
        self.format()

    def copy_in(self, size: int, name: str) -> None:
        self.ok("cp", self.device, self.write("file", os.urandom(size)), f":/{name}")

    def why(self) -> Any:
        why = self.json("why", self.device, "--json")
        self.assertEqual(sum(part["bytes"] for part in why["parts"]), why["capacity"])
        why["parts"] = {part["part"]: part["bytes"] for part in why["parts"]}
        return why

    def test_an_empty_device_is_free_but_for_what_is_kept(self) -> None:
        why = self.why()
        df = self.json("df", self.device, "--json")
        self.assertEqual(why["capacity"], 32 * 4 * MIB)
        self.assertEqual({name for name, size in why["parts"].items() if size}, {"free", "reserved", "metadata"})
        for part, figure in (("free", "free"), ("reserved", "reserved"), ("metadata", "metadata")):
            self.assertEqual(why["parts"][part], df[figure])
        self.assertEqual(why["remarks"], [])

    def test_files_are_told_apart_by_their_names(self) -> None:
        self.copy_in(3 * MIB + 1, "000012.sst")
        self.copy_in(MIB, "000013.blob")
        self.copy_in(MIB + 7, "000014.sst.trash")
        self.copy_in(5, "OPTIONS-000003")
        parts = self.why()["parts"]
        self.assertEqual([parts[name] for name in ("tables", "blobs", "trash", "other")],
                         [3 * MIB + 1, MIB, MIB + 7, 5])
        self.assertEqual(parts["unnamed"], 0)

    def test_what_was_deleted_beside_live_data_is_dead_and_the_totals_are_those_of_df(self) -> None:
        for number in range(8):
            self.copy_in(2 * MIB, f"{number:06}.sst")
        for number in (0, 2, 4):
            self.ok("rm", self.device, f"/{number:06}.sst")
        why = self.why()
        df = self.json("df", self.device, "--json")
        self.assertEqual(why["parts"]["tables"], 10 * MIB)
        self.assertEqual(why["live"], df["live"])
        self.assertGreater(why["dead"], 0)
        # Dead zones that can be written further are free to df.
        self.assertEqual(why["writable"] + why["dead"], df["free"] + df["dead"])

    def test_the_text_names_each_part_with_what_frees_it(self) -> None:
        self.copy_in(3 * MIB, "000012.sst")
        text = self.ok("why", self.device).decode()
        self.assertRegex(text, r"(?m)^ +3\.0 MiB +2\.3 % +\d+ +Tables$")
        self.assertIn("Freed by deleting keys", text)
        self.assertRegex(text, r"128\.0 MiB +100\.0 % +32 +All zones")
        self.assertNotIn("Padding", text)
        self.assertIn("this is the state on the device", text)

    def test_lost_zones_are_unusable(self) -> None:
        self.copy_in(3 * MIB, "000012.sst")
        used = {zone["zone"] for zone in self.json("stat", self.device, "/000012.sst", "--json")["zones"]}
        layout = harness.ImageLayout(self.image, self.json("info", self.device, "--json")["device"]["geometry"])
        lost = next(zone for zone in range(31, 0, -1) if zone not in used)
        layout.patch(layout.ZONE_TABLE + lost * layout.ZONE_ENTRY, (0xF).to_bytes(8, "little"))
        why = self.why()
        self.assertEqual(why["parts"]["unusable"], 4 * MIB)
        self.assertEqual(why["capacity"], 32 * 4 * MIB)

    def test_what_bad_input_gets(self) -> None:
        self.fails(harness.USAGE, ["DEVICE", "isozone why --help"], "why")
        self.fails(harness.NOT_FOUND, ["nowhere.img"], "why", f"emu:{self.path('nowhere.img')}")
        self.fails(harness.USAGE, ["zones"], "why", f"{self.device}&zones=12")
        with open(self.path("text"), "w", encoding="utf-8") as file:
            file.write("no image")
        self.fails(harness.UNUSABLE, ["text"], "why", f"emu:{self.path('text')}")


class Advise(harness.CliTest):
    def setUp(self) -> None:
        super().setUp()
        self.format()

    def advise(self, *arguments: str) -> dict[str, str]:
        """The settings; each must have a comment above it."""
        settings = {}
        reason = ""
        for line in self.ok("advise", self.device, "--memory", "1G", *arguments).decode().splitlines():
            key, equals, value = line.strip().partition("=")
            if equals and not line.startswith("#") and not line.startswith("  #"):
                self.assertTrue(reason.startswith("  # ") or key.endswith("_version"), line)
                settings[key] = value
            reason = line
        return settings

    def test_tables_fill_the_zones_of_the_device(self) -> None:
        # 128 MiB, of which a database of the size that is supposed has at least 64 tables.
        settings = self.advise()
        self.assertEqual(settings["target_file_size_base"], str((4 << 20) // 32 * 31))
        self.assertEqual(settings["compaction_style"], "kCompactionStyleNone")
        self.assertLess(int(self.advise("--workload", "read")["write_buffer_size"]), 64 << 20)

    def test_what_is_given_counts(self) -> None:
        self.assertIn("write workload, 1.0 GiB of memory", self.ok(
            "advise", self.device, "--memory", "1G", "--workload", "write", "--database", "50M").decode())
        self.assertIn("a database of 50.0 MiB.", self.ok("advise", self.device, "--database", "50M").decode())
        self.assertIn("1.0 GiB of memory, 3 cores, ", self.ok(
            "advise", self.device, "--memory", "1G", "--cores", "3").decode())
        self.assertIn("60 % of the device", self.ok("advise", self.device).decode())

    def test_the_file_is_what_would_be_printed_and_is_never_written_over(self) -> None:
        path = self.path("options.ini")
        said = self.ok("advise", self.device, "--memory", "1G", "--output", path).decode()
        self.assertIn("Note: ", said)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertEqual(text, self.ok("advise", self.device, "--memory", "1G").decode())
        self.fails(harness.REFUSED, ["options.ini", "exists"], "advise", self.device, "--output", path)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(text, file.read())

    def test_a_device_that_is_not_formatted_gets_advice(self) -> None:
        layout = harness.ImageLayout(self.image, self.json("info", self.device, "--json")["device"]["geometry"])
        for zone in range(3):
            layout.patch_zone(zone, 0, bytes(1 << 20))
        self.assertIn("target_file_size_base", self.advise())

    def test_what_bad_input_gets(self) -> None:
        self.fails(harness.USAGE, ["does not fit", "1.0 TiB", "MiB for files"],
                   "advise", self.device, "--database", "1T")
        self.fails(harness.USAGE, ["at least 32.0 MiB", "1.0 MiB"], "advise", self.device, "--memory", "1M")
        self.fails(harness.USAGE, ["at least 32.0 MiB"], "advise", self.device, "--memory", "0")
        self.fails(harness.USAGE, ["--memory", "much"], "advise", self.device, "--memory", "much")
        self.fails(harness.USAGE, ["--cores", "0"], "advise", self.device, "--cores", "0")
        self.fails(harness.USAGE, ["'all'", "write, read, mixed"], "advise", self.device, "--workload", "all")
        self.fails(harness.NOT_FOUND, ["nowhere.img"], "advise", f"emu:{self.path('nowhere.img')}")
        self.fails(harness.NOT_FOUND, ["cannot write"], "advise", self.device, "--output",
                   self.path("no/such/folder.ini"))


if __name__ == "__main__":
    unittest.main()
