"""Reads the JSON that isozone's programs write, by the schemas in docs/schemas.

scripts and lab read such output through here only. A test holds every output against its schema; so what a program has
lost, or a script misspells, is named with the schema where a plain dictionary would give a KeyError.
"""

import functools
import json
import os
from typing import Any, NoReturn

from . import processes

Rule = dict[str, Any]  # of a schema

SCHEMAS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "schemas")


class Unexpected(processes.RunFailed):
    """What was read is not what its schema says; the message is for people."""


class Fields(dict[str, Any]):
    """A JSON object that names its schema when it is asked for what it does not hold."""

    schema = "?"

    def __missing__(self, key: str) -> NoReturn:
        raise Unexpected(f"{self.schema} has no field '{key}': see docs/schemas/{self.schema}.schema.json")


@functools.cache
def schema_file(name: str) -> Rule:
    with open(os.path.join(SCHEMAS, name), encoding="utf-8") as file:
        rule: Rule = json.load(file)
    return rule


def resolve(rule: Rule, file: str) -> tuple[Rule, str]:
    """The rule that `rule` refers to, if it does, and the file it is in."""
    while "$ref" in rule:
        path, _, pointer = rule["$ref"].partition("#/")
        file = path or file
        rule = functools.reduce(lambda part, key: part[key], pointer.split("/"), schema_file(file))
    return rule, file


def missing(value: Any, rule: Rule, file: str, place: str = "") -> list[str]:
    """Where in `value` a field is missing that `rule`, of the schema `file`, requires."""
    rule, file = resolve(rule, file)
    if "anyOf" in rule:
        rule, file = resolve(rule["anyOf"][0], file)
    found = []
    if isinstance(value, dict):
        found += [f"{place}.{key}" for key in rule.get("required", ()) if key not in value]
        parts = {key: rule.get("properties", {}).get(key, rule.get("additionalProperties")) for key in value}
        for key, part in parts.items():
            if isinstance(part, dict):
                found += missing(value[key], part, file, f"{place}.{key}")
    elif isinstance(value, list) and "items" in rule:
        found += [line for one in value for line in missing(one, rule["items"], file, f"{place}[]")]
    elif rule.get("type") in ("object", "array") and value is not None:
        found.append(f"{place} as {rule['type']}")
    return list(dict.fromkeys(found))


def read(text: str, name: str) -> Any:
    """The document `text`, which is to be as docs/schemas/`name`.schema.json says."""
    kind = type("Fields", (Fields,), {"schema": name})
    try:
        document = json.loads(text, object_hook=kind)
    except ValueError as error:
        raise Unexpected(f"{name}: no JSON: {text[:200]!r}") from error
    file = f"{name}.schema.json"
    lost = missing(document, schema_file(file), file)
    if lost:
        raise Unexpected(f"{name} lacks {', '.join(lost)}, which docs/schemas/{file} requires")
    return document


def read_file(path: str, name: str) -> Any:
    with open(path, encoding="utf-8") as file:
        return read(file.read(), name)
