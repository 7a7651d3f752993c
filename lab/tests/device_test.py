"""Devices of other shapes, and the places of databases."""
import json
import os
import tempfile
import unittest
from collections.abc import Sequence

import harness
from isozone_lab import device
from isozone_lab.processes import Environment, RunFailed
from isozone_lab.versions import Build


class Devices(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory(prefix="isozone-lab-test-")
        self.addCleanup(scratch.cleanup)
        self.scratch = scratch.name
        self.shelf = device.Shelf(Build("build"), self.scratch)
        self.commands: list[list[str]] = []

    def execute(self, command: Sequence[object], environment: Environment | None = None) -> str:
        """Pretends to be the programs: makes the files that they would."""
        words = [str(word) for word in command]
        self.commands.append(words)
        made = words[-1] if words[0] == "cp" else words[-1].removeprefix("emu:").split("?")[0]
        with open(made, "a", encoding="utf-8"):
            return ""

    def test_the_profile_in_the_repository_can_be_changed(self) -> None:
        with open(self.shelf.profile(device.Shape(dies=2)), encoding="utf-8") as file:
            lines = [line.split("#")[0].split("=") for line in file if "=" in line.split("#")[0]]
        values = {key.strip(): value.strip() for key, value in lines}
        self.assertEqual(("2", "2", "small-zone-2"), (values["dies"], values["channels"], values["name"]))
        self.assertEqual("small-zone", self.shelf.profile(device.Shape()))

    def test_channels(self) -> None:
        self.assertEqual([1, 8, 8], [device.Shape(dies=dies).channels for dies in (1, 8, 32)])

    def test_a_profile_without_the_keys_is_refused(self) -> None:
        with self.assertRaises(RunFailed):
            device.with_dies("name = x\n", device.Shape(dies=1))

    def test_a_shape_is_formatted_once_and_copied_for_every_run(self) -> None:
        for series in ("zenfs", "isozone"):
            with self.shelf.zoned(series, device.Shape(), self.execute) as store:
                self.assertIn(device.POLICIES[series], store.uri)
                self.assertTrue(os.path.exists(store.image))
            self.assertFalse(os.path.exists(store.image))
        self.assertEqual(["mkfs", "izg", "--sparse=always", "--sparse=always"], [words[1] for words in self.commands])

    def test_a_shape_without_groups_is_not_measured(self) -> None:
        shape = device.Shape(zones=512, profile="lifetime-paper", zone_kib=512)
        with self.shelf.zoned("lifetime+gc", shape, self.execute, "&checkpoint_after=1024K") as store:
            self.assertIn("policy=lifetime&checkpoint_after=1024K&log_dir=", store.uri)
            with open(store.statistics_file, "w", encoding="utf-8") as file:
                json.dump({**harness.example("stats"), "syncs": 3}, file)
            self.assertEqual(3, store.statistics()["syncs"])
        self.assertEqual([["mkfs"], ["--sparse=always"]], [words[1:2] for words in self.commands])
        self.assertTrue(self.commands[0][-1].endswith(
            "?profile=lifetime-paper&zones=512&zone_size=512K&zone_capacity=512K"))

    def test_no_statistics(self) -> None:
        with self.shelf.zoned("isozone", device.Shape(), self.execute) as store, self.assertRaises(RunFailed):
            store.statistics()

    def test_a_conventional_ssd(self) -> None:
        with self.shelf.conventional(1024, 2, 7) as store:
            self.assertIn("isozone-conventional:///", store.uri)
            self.assertIn("?size=1024M&age=2&age_seed=7&speed=1&", store.uri)
            os.makedirs(store.directory)
        self.assertEqual([], os.listdir(self.scratch))

    def test_a_shape_is_measured_at_the_speed_it_runs_at(self) -> None:
        for speed in (1, 0.25):
            with self.shelf.store("isozone", device.Shape(), self.execute, speed=speed) as store:
                self.assertEqual(speed != 1, "&speed=0.25" in store.uri)
        measured = [words[-1].split("?")[1] for words in self.commands if words[1] == "izg"]
        self.assertEqual(["", "speed=0.25"], measured)

    def test_tmpfs_needs_no_device(self) -> None:
        with self.shelf.store("tmpfs", device.Shape(), self.execute) as store:
            self.assertEqual(("", {}), (store.uri, store.environment))
            os.makedirs(store.database)
            with open(os.path.join(store.database, "LOG"), "w", encoding="utf-8") as file:
                file.write("log")
            self.assertEqual("log", store.info_log())
        self.assertEqual([], os.listdir(self.scratch))

    def test_the_info_log_of_a_device(self) -> None:
        with self.shelf.store("isozone", device.Shape(), self.execute) as store:
            with self.assertRaises(RunFailed):
                store.info_log()
            for name in ("db_LOG", "db_LOG.old"):
                with open(os.path.join(store.log_directory, name), "w", encoding="utf-8") as file:
                    file.write(name)
            self.assertEqual("db_LOG", store.info_log())


if __name__ == "__main__":
    unittest.main()
