"""What the tests of the lab share: finding it, and small records to work on."""
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any

LAB = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, LAB)

from isozone_lab import outputs  # noqa: E402 - only found by the line above
from isozone_lab.results import Header, Measurement, Outcome, Results, Variant, X  # noqa: E402 - as above

FACTS: dict[str, Any] = {"seconds": 2.0, "seed": 1, "commands": ["db_bench --num=1"]}


def example(name: str) -> Any:
    """The smallest document that docs/schemas/`name`.schema.json allows."""
    def made(rule: outputs.Rule, file: str) -> Any:
        rule, file = outputs.resolve(rule, file)
        if "anyOf" in rule:
            return made(rule["anyOf"][0], file)
        if "enum" in rule:
            return rule["enum"][0]
        kind = rule["type"] if isinstance(rule["type"], str) else rule["type"][0]
        if kind == "object":
            return {key: made(rule["properties"][key], file) for key in rule.get("required", ())}
        return {"array": [], "string": "", "boolean": False, "integer": 0, "number": 0.0}[kind]

    return made(outputs.schema_file(f"{name}.schema.json"), f"{name}.schema.json")


def header(**changes: Any) -> Header:
    return {"experiment": "small", "mode": "quick", "parameters": {"expected_s": 7, "data_bytes": 0}, "seed": 1,
            "versions": {"isozone": "0"}, "fingerprint": "f", **changes}


def records(values: Mapping[tuple[str, X], Iterable[float]], metric: str = "rate", unit: str = "ops/s",
            **changes: Any) -> Results:
    """`values`: {(series, x): [the value of each repeat]}."""
    made = Results(header(**changes))
    for (series, x), repeats in values.items():
        for repeat, value in enumerate(repeats, 1):
            made.succeeded(Variant(series, x), repeat, Outcome([Measurement(metric, value, unit)]), **FACTS)
    return made


def load(path: str | None) -> Results:
    """The records of a file that must be there."""
    found = Results.load(path) if path is not None else None
    if found is None:
        raise AssertionError(f"there are no records in {path}")
    return found
