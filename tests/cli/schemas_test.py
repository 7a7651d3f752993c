#!/usr/bin/python3
"""Holds every JSON output against its schema in docs/schemas, the schemas against being lax, and what scripts and the
lab read against what the schemas name.

    schemas_test.py ISOZONE LIBISOZONE LIBISOZONE_CONVENTIONAL ISOZONE_YCSB ISOZONE_SIM_TRUTH
        ISOZONE_GC_BENCH
"""

import ast
import glob
import json
import os
import re
import subprocess
import sys
import unittest
from collections.abc import Iterator
from typing import Any

import jsonschema

LIBRARY, CONVENTIONAL, YCSB, SIM_TRUTH, GC_BENCH = (os.path.abspath(sys.argv.pop(2)) for _ in range(5))

import harness  # noqa: E402 - takes its argument

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
SCHEMAS = {os.path.basename(path).removesuffix(".schema.json"): path
           for path in glob.glob(os.path.join(ROOT, "docs/schemas/*.schema.json"))}
READERS = ("scripts/demo", "lab/isozone_lab/device.py", "lab/isozone_lab/ycsb.py", "lab/isozone_lab/experiments/*.py")
# What reads JSON that is not the output of a program of Isozone: the lab's records, RocksDB's log, compile commands,
# outcomes of RocksDB's tests.
OTHER_JSON = {"lab/isozone_lab/outputs.py", "lab/isozone_lab/results.py", "lab/isozone_lab/event_log.py",
              "scripts/lint", "scripts/rocksdb-tests"}
# Keys of the lab's records and of what it parses from db_bench's text.
OTHER_KEYS = {"metric", "x", "parameters", "busy", "compact", "fillrandom", "mixed", "overwrite", "readrandom",
              "readwhilewriting", "write"}

Rule = dict[str, Any]  # of a schema


def load(name: str) -> Any:
    with open(SCHEMAS[name], encoding="utf-8") as file:
        return json.load(file)


def rules(part: Any) -> Iterator[Rule]:
    """Every object in a schema."""
    if isinstance(part, dict):
        yield part
        part = list(part.values())
    if isinstance(part, list):
        for one in part:
            yield from rules(one)


def laxities(schema: Any) -> Iterator[Rule]:
    """The objects of a schema that may hold more or less than is named."""
    for rule in rules(schema):
        if rule.get("type") == "object" or (isinstance(rule.get("type"), list) and "object" in rule["type"]):
            named = rule.get("properties")
            if named is None and not isinstance(rule.get("additionalProperties"), dict):
                yield rule
            elif named is not None and (rule.get("additionalProperties") is not False
                                        or set(rule.get("required", ())) != set(named)):
                yield rule


def keys_read(tree: ast.Module) -> set[str]:
    """The constant keys of subscripts that are read, but for those of parameters, and of dictionaries that the module
    itself makes."""
    read: set[str] = set()
    made: set[object] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            if isinstance(node.slice.value, str) and not ast.unparse(node.value).endswith("parameters"):
                (read if isinstance(node.ctx, ast.Load) else made).add(node.slice.value)
        elif isinstance(node, ast.Dict):
            made |= {key.value for key in node.keys if isinstance(key, ast.Constant)}
        elif isinstance(node, ast.Call):
            made |= {keyword.arg for keyword in node.keywords}
    return read - made


class Schemas(harness.CliTest):
    covered: set[str] = set()

    def setUp(self) -> None:
        super().setUp()
        self.format("timing=off&zones=64&zone_size=4M")

    def check(self, name: str, text: str | bytes) -> None:
        Schemas.covered.add(name)
        store = {f"file:///{other}.schema.json": load(other) for other in SCHEMAS}
        resolver = jsonschema.RefResolver(f"file:///{name}.schema.json", load(name), store)
        errors = jsonschema.Draft202012Validator(load(name), resolver=resolver).iter_errors(json.loads(text))
        self.assertEqual([], [f"{error.json_path}: {error.message[:300]}" for error in errors], name)

    def check_command(self, *command: str) -> None:
        """Name: the words of the command before the first option or device."""
        words = [word for word in command if re.fullmatch("[a-z]+", word)]
        result = self.run_cli(*command)
        self.assertEqual(result.returncode, harness.OK, result.stderr)
        self.check("-".join(words), result.stdout)

    def fill(self) -> None:
        self.ok("cp", self.device, self.write("large", os.urandom(9 << 20)), ":/large")
        self.ok("cp", self.device, self.write("small", b"small"), ":/small")

    def test_devices_and_files(self) -> None:
        self.check("mkfs", self.ok("mkfs", "--force", f"emu:{self.image}?timing=off&zones=64&zone_size=4M", "--json"))
        self.fill()
        for command in ("info", "df", "ls", "zones", "fsck", "why"):
            self.check_command(command, self.device, "--json")
        self.check_command("stat", self.device, "/large", "--json")
        self.check_command("stat", self.device, "/", "--json")
        zone = self.json("stat", self.device, "/large", "--json")["zones"][0]["zone"]
        self.check("zone", self.ok("zones", "--zone", str(zone), self.device, "--json"))
        self.check_command("dump", self.device)

    def test_the_statistics_of_a_device_that_nobody_mounts(self) -> None:
        self.fill()
        for options in ((), ("--zones",)):
            self.check("stats", self.run_cli("stats", "--json", *options, self.device).stdout)

    def test_a_device_without_a_file_system(self) -> None:
        self.ok("bench", "io", "--destroy", "--bytes", "1M", "--reads", "10", self.device)
        info = self.ok("info", self.device, "--json")
        self.assertIsNone(json.loads(info)["file_system"])
        self.check("info", info)

    def test_what_is_damaged_is_reported_by_the_same_schema(self) -> None:
        self.fill()
        stat = self.json("stat", self.device, "/large", "--json")
        layout = harness.ImageLayout(self.image, self.json("info", self.device, "--json")["device"]["geometry"])
        extent = stat["extents"][0]
        layout.patch_zone(extent["zone"], 0, bytes(64 << 10))
        self.check("fsck", self.run_cli("fsck", "--read-data", self.device, "--json").stdout)

    def test_zone_groups(self) -> None:
        self.check_command("izg", "identify", self.device, "--json")
        self.check("zone-groups", self.ok("zones", "--groups", self.device, "--json"))
        # So fast that the host is in doubt of what it sees, if it can see anything.
        result = self.run_cli("izg", "identify", f"emu:{self.image}?speed=20", "--json")
        self.assertIn(result.returncode, (harness.OK, harness.BUSY, harness.UNUSABLE), result.stderr)
        if result.returncode == harness.OK:
            self.check("izg-identify", result.stdout)
        self.check("dump", self.ok("dump", self.device))

    def test_collection(self) -> None:
        self.fill()
        self.ok("rm", self.device, "/small")
        self.check_command("gc", "status", self.device, "--json")
        self.check_command("gc", "run", self.device, "--json")

    def test_benchmarks(self) -> None:
        self.check_command("bench", "device", "--zones", "8", "--samples", "1", "--size", "64K", self.device, "--json")
        self.check("bench-device", self.run_cli("bench", "device", "--zones", "8", "--samples", "1", "--size", "64K",
                                                f"emu:{self.image}?speed=50", "--json").stdout)
        self.check_command("bench", "io", "--bytes", "4M", "--reads", "10", self.device, "--json")
        for part in ("collect", "worker"):
            size = ("--worker-bytes", "4M", "--threads", "1") if part == "worker" else ("--skewed",)
            self.check(f"gc-bench-{part}", self.ok(part, "--zones", "8", *size, self.device, "--json",
                                                   executable=GC_BENCH))
        for part in ("reclaim", "groups"):
            self.check(f"gc-bench-{part}", self.ok(part, self.device, "--json", executable=GC_BENCH))

    def test_simulation(self) -> None:
        self.check_command("simulate", "--json", "--data", "64M", "--zones", "64")

    def test_what_a_mount_counts_and_the_ycsb_driver_measures(self) -> None:
        stats = self.path("stats.json")
        conventional = f"isozone-conventional://{self.path('disk')}?size=512M&timing=off"
        for name, library, uri in (("stats", LIBRARY, f"isozone://{self.device}"),
                                   ("stats-conventional", CONVENTIONAL, conventional)):
            command = [YCSB, "--workload", "a", "--records", "2000", "--operations", "2000", "--interval-ms", "50",
                       "--db", "/db", "--fs-uri", f"{uri}&stats_file={stats}"]
            result = subprocess.run(command, capture_output=True, timeout=120,
                                    env={**os.environ, "LD_PRELOAD": library})
            self.assertEqual(result.returncode, 0, result.stderr)
            self.check("ycsb", result.stdout)
            with open(stats, encoding="utf-8") as file:
                self.check(name, file.read())

    def test_the_simulator_beside_a_mounted_file_system(self) -> None:
        os.mkdir(self.path("device"))
        result = subprocess.run([SIM_TRUTH, "--data-mib", "8", "--directory", self.path("device")],
                                capture_output=True, timeout=120)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.check("sim-truth", result.stdout)
        found = json.loads(result.stdout)
        self.assertEqual(found["put_bytes"], 16 << 20)
        self.assertEqual([], os.listdir(self.path("device")))

    def test_every_command_that_writes_json_has_a_schema(self) -> None:
        def leaves(*command: str) -> Iterator[tuple[tuple[str, ...], bool]]:
            text = self.ok(*command, "--help").decode()
            listed = text.partition("Subcommands:")[2].partition("Exit codes:")[0].partition("Example:")[0]
            parts = re.findall(r"^  ([a-z]+) ", listed, re.MULTILINE)
            if not parts:
                yield command, "--json" in text or command == ("dump",)
            for part in parts:
                yield from leaves(*command, part)

        writers = {"-".join(command) for command, json_output in leaves() if json_output}
        self.assertGreater(len(writers), 10)
        others = {"common", "sim-truth", "stats-conventional", "ycsb", "zone", "zone-groups",
                  *(f"gc-bench-{part}" for part in ("collect", "worker", "reclaim", "groups"))}
        self.assertEqual(writers, set(SCHEMAS) - others)

    def test_no_schema_is_lax(self) -> None:
        for name in SCHEMAS:
            with self.subTest(schema=name):
                jsonschema.Draft202012Validator.check_schema(load(name))
                self.assertEqual([], list(laxities(load(name))))
        self.assertEqual(3, len(list(laxities([{"type": "object"}, {"type": "object", "properties": {}},
                                               {"type": "object", "properties": {"a": {}}, "required": [],
                                                "additionalProperties": False}]))))

    def test_scripts_and_lab_read_nothing_that_no_schema_names(self) -> None:
        named = {key for name in SCHEMAS for rule in rules(load(name)) for key in rule.get("properties", {})
                 if isinstance(rule.get("properties"), dict)}
        enumerated = {value for name in SCHEMAS for rule in rules(load(name)) if isinstance(rule.get("enum"), list)
                      for value in rule["enum"]}
        for pattern in READERS:
            for path in glob.glob(os.path.join(ROOT, pattern)):
                with open(path, encoding="utf-8") as file:
                    tree = ast.parse(file.read())
                with self.subTest(path=os.path.relpath(path, ROOT)):
                    self.assertEqual(set(), keys_read(tree) - named - enumerated - OTHER_KEYS)

    def test_json_is_read_through_the_schemas(self) -> None:
        for path in (*glob.glob(os.path.join(ROOT, "scripts/*")),
                     *glob.glob(os.path.join(ROOT, "lab/isozone_lab/**/*.py"), recursive=True)):
            name = os.path.relpath(path, ROOT)
            if os.path.isfile(path) and name not in OTHER_JSON:
                with self.subTest(path=name), open(path, encoding="utf-8") as file:
                    self.assertNotRegex(file.read(), r"json\.loads?\(")

    @classmethod
    def tearDownClass(cls) -> None:
        missing = set(SCHEMAS) - cls.covered - {"common"}
        if missing and len(sys.argv) == 1:
            raise AssertionError(f"no output was held against {', '.join(sorted(missing))}")


if __name__ == "__main__":
    unittest.main()
