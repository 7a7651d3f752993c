"""What results were measured with."""
import os
import tempfile
import unittest
from unittest import mock

import harness  # noqa: F401 - finds the lab
from isozone_lab import versions


class Versions(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory(prefix="isozone-lab-test-")
        self.addCleanup(scratch.cleanup)
        self.build = versions.Build(scratch.name)
        self.profile = os.path.join(scratch.name, "small-zone.profile")
        for target, value in (("isozone_lab.processes.run", lambda _: "isozone 0.1.0\n"),
                              ("isozone_lab.device.PROFILE", self.profile)):
            patch = mock.patch(target, value)
            patch.start()
            self.addCleanup(patch.stop)

    def changed_by(self, path: str) -> list[str]:
        """The versions that another content of a file changes."""
        os.makedirs(os.path.dirname(path), exist_ok=True)
        collected = []
        for text in ("one", "another"):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            collected.append(versions.collect(self.build))
        before, after = collected
        return [name for name in before if before[name] != after[name]]

    def test_every_file_that_takes_part_has_a_digest(self) -> None:
        for path, name in ((self.build.tool, "tool"), (self.build.shared_object, "library"), (self.build.ycsb, "ycsb"),
                           (self.build.sim_truth, "sim_truth"), (self.build.conventional, "conventional"),
                           (self.build.gc_bench, "gc_bench"),
                           (self.profile, "profile")):
            self.assertEqual([name], self.changed_by(path))

    def test_what_is_not_built(self) -> None:
        self.assertEqual("none", versions.collect(self.build)["ycsb"])


if __name__ == "__main__":
    unittest.main()
