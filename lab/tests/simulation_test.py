"""What the experiments measure of what `isozone simulate` reports."""
import json
import unittest
from typing import Any

import harness
from isozone_lab import simulation


class FakeContext:
    """Answers every command with one report."""

    def __init__(self, report: Any) -> None:
        self.report = report
        self.seed = 7
        self.commands: list[list[str]] = []

        class Build:
            tool = "isozone"
        self.build = Build()

    def execute(self, command: list[object]) -> str:
        self.commands.append([str(word) for word in command])
        return json.dumps(self.report)


def sample(seconds: float, put_bytes: int, zones: list[int]) -> dict[str, Any]:
    return {"seconds": seconds, "put_bytes": put_bytes, "compaction_bytes": 0, "copied_bytes": 0,
            "zones_in_use": sum(zones), "free_percent": 50.0, "zones_by_utilisation": zones}


END = sample(3, 6_000_000, [1, 0, 0, 0, 0, 0, 0, 0, 0, 3])
REPORT = {
    "put_bytes_per_second": 2e6, "settled_seconds": 5.0, "compactions": 4, "files": 12,
    "written_bytes": {"log": 0, "flush": 1 << 30, "compaction": 3 << 30, "copied": 2 << 30, "short_lived": 1 << 29},
    "read_bytes": {"compaction": 2 << 30}, "end": END,
    "samples": [sample(0, 0, []), sample(1, 3_000_000, []), sample(2, 4_000_000, []), END]}


class Simulation(unittest.TestCase):
    def test_measures_what_is_reported(self) -> None:
        outcome = simulation.outcome(REPORT)
        found = {one.metric: one.value for one in outcome.measurements}
        self.assertEqual(2, found["put"])
        self.assertEqual((3, 2, 6), (found["compaction"], found["copied"], found["written"]))
        self.assertEqual((4, 75), (found["zones"], found["zones above 90 %"]))
        self.assertEqual([3, 1, 2], outcome.details["put rates"])
        self.assertAlmostEqual(40.8, found["variation of put"], places=1)

    def test_options_are_those_of_the_command_line(self) -> None:
        context = FakeContext(harness.example("simulate"))
        phases = ["shuffled", "uniform:2G"]
        report = simulation.run(context, phases, level_base="10M", gc="none")  # type: ignore[arg-type]
        self.assertEqual(0, report["put_bytes"])
        self.assertEqual(["isozone", "simulate", "--json", "--seed", "7", "--phase", "shuffled", "--phase",
                          "uniform:2G", "--level-base", "10M", "--gc", "none"], context.commands[0])

    def test_no_time_between_samples_is_no_rate(self) -> None:
        self.assertEqual([], simulation.rates([sample(1, 0, []), sample(1, 5, [])]))
        self.assertEqual(0, simulation.variation([]))


if __name__ == "__main__":
    unittest.main()
