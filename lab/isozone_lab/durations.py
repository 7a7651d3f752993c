"""How long runs will take, from what this machine has taken for those that it has made."""
import statistics
from collections.abc import Iterable

from .results import Results


class Pace:
    """How many times as long as expected experiments have taken here."""

    def __init__(self, recorded: Iterable[Results], cpu: str) -> None:
        """`recorded`: results of any mode; those of another machine than `cpu` do not count."""
        ratios: dict[str, list[float]] = {}
        for records in recorded:
            header = records.header
            if header["versions"].get("cpu") == cpu:
                ratios.setdefault(header["experiment"], []).extend(
                    run["seconds"] / header["parameters"]["expected_s"]
                    for run in records.runs if run["status"] == "done")
        self.known = {name: statistics.median(values) for name, values in ratios.items() if values}

    def of(self, experiment: str) -> float:
        """That of the experiment; of an experiment that was not run here, the median of the others."""
        default = statistics.median(self.known.values()) if self.known else 1.0
        return self.known.get(experiment, default)

    def basis(self) -> str:
        """What the estimate goes by, for people."""
        if not self.known:
            return "going by what the experiments expect, since none is recorded here yet"
        first, others = sorted(self.known)[:3], len(self.known) > 3
        return f"going by the recorded runs of {', '.join(first)}{' and others' if others else ''}"
