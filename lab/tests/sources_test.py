"""Which sources of the lab decide whether results still count."""
import os
import tempfile
import unittest

import harness  # noqa: F401 - finds the lab
from isozone_lab import cli, sources


class OfFiles(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory(prefix="isozone-lab-test-")
        self.addCleanup(scratch.cleanup)
        self.directory = scratch.name
        for path, text in (("runner.py", "import os\n"), ("tools.py", "from . import plots\n"), ("plots.py", ""),
                           ("other.py", ""), ("experiments/one.py", "from .. import tools\nfrom .shared import SIZE\n"),
                           ("experiments/shared.py", "SIZE = 1\nfrom .one import run\n")):
            self.write(path, text)

    def write(self, path: str, text: str) -> None:
        path = os.path.join(self.directory, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def measuring(self) -> set[str]:
        return sources.measuring([os.path.join(self.directory, "experiments/one.py")])

    def digest(self) -> str:
        return sources.digest(self.measuring(), self.directory)

    def test_what_is_imported_but_for_what_draws(self) -> None:
        names = {os.path.relpath(path, self.directory) for path in self.measuring()}
        self.assertEqual({"experiments/one.py", "experiments/shared.py", "tools.py"}, names)

    def test_a_change_counts_where_it_takes_part(self) -> None:
        before = self.digest()
        self.write("other.py", "changed = True\n")
        self.write("plots.py", "changed = True\n")
        self.assertEqual(before, self.digest())
        self.write("experiments/shared.py", "SIZE = 1  # MiB\n\nfrom .one import run\n")
        self.assertEqual(before, self.digest())
        self.write("experiments/shared.py", "SIZE = 2\n")
        self.assertNotEqual(before, self.digest())

    def test_types_do_not_count(self) -> None:
        self.write("tools.py", "from typing import TYPE_CHECKING\ndef add(a, b):\n    return a + b\n")
        before = self.digest()
        self.write("tools.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .other import Number\n"
                               "def add(a: Number, b: Number) -> Number:\n    return a + b\n")
        self.assertEqual(before, self.digest())


class OfAnExperiment(OfFiles):
    def with_experiment(self, arguments: str) -> str:
        self.write("experiments/one.py", f"from .. import tools\nONE = Experiment({arguments})\n")
        return self.digest()

    def test_what_it_says_and_judges_by_does_not_count(self) -> None:
        before = self.with_experiment("run=run, what='fast', checks=[at_least(2)]")
        self.assertEqual(before, self.with_experiment("run=run, what='faster', checks=[at_least(3)], plot=bars"))
        self.assertNotEqual(before, self.with_experiment("run=run_twice, what='fast', checks=[at_least(2)]"))


class OfExperiments(unittest.TestCase):
    def names(self, experiment: str) -> set[str]:
        one, = cli.choose([experiment])
        return {os.path.relpath(path, sources.PACKAGE) for path in sources.of(one)}

    def test_the_settings_of_an_experiment(self) -> None:
        found = self.names("zenfsplus-groups")
        self.assertLessEqual({"experiments/zenfsplus_groups.py", "experiments/base.py", "db_bench.py", "device.py",
                              "runner.py"}, found)
        self.assertFalse({"plots.py", "report.py", "experiments/zenfsplus_ycsb.py"} & found)

    def test_runs_that_are_shared(self) -> None:
        self.assertEqual(self.names("zenfsplus-bandwidth"), self.names("limit"))
        self.assertIn("experiments/zenfsplus_fillrandom.py", self.names("zenfsplus-bandwidth"))


if __name__ == "__main__":
    unittest.main()
