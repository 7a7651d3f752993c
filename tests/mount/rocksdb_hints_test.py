#!/usr/bin/env python3
"""Tables of a RocksDB that says how long they will live (8 and later), on a mounted directory.

    rocksdb_hints_test.py ISOZONE TABLES_BY_LEVEL
"""

import json
import os
import subprocess
import sys

import mounted

TABLES_BY_LEVEL = os.path.abspath(sys.argv.pop(1))
# As tables_by_level.cc says.
BY_HINT = {0: "medium", 1: "medium", 2: "long", 3: "extreme"}
BY_THREAD = {0: "medium", 1: "long", 2: "not-set", 3: "not-set"}


class RocksdbHints(mounted.MountTest):
    def setUp(self) -> None:
        super().setUp()
        self.databases = 0

    def make_database(self) -> dict[int, str]:
        """Makes a new one, and gives the path of its table in each level."""
        self.databases += 1
        name = f"db{self.databases}"
        result = subprocess.run([TABLES_BY_LEVEL, self.path(name)], capture_output=True, text=True,
                                timeout=mounted.WAIT_S)
        self.assertEqual((0, ""), (result.returncode, result.stderr))
        tables = [line.split() for line in result.stdout.splitlines()]
        self.assertEqual(sorted(BY_HINT), sorted(int(level) for level, _ in tables), result.stdout)
        return {int(level): f"/{name}{table}" for level, table in tables}

    def lifetimes(self, tables: dict[int, str]) -> dict[int, str]:
        """By level, as the device has them."""
        listed = {level: json.loads(self.run_tool("ls", "-l", "--json", self.device, path))
                  for level, path in tables.items()}
        return {level: str(entry["lifetime"]) for level, (entry,) in listed.items()}

    def lifetimes_of_zones(self, path: str) -> set[str]:
        zones = json.loads(self.run_tool("zones", "--json", self.device))
        places = json.loads(self.run_tool("stat", "--json", self.device, path))["zones"]
        return {str(zones[place["zone"]]["lifetime"]) for place in places}

    def test_tables_lie_where_the_hint_of_their_level_says(self) -> None:
        daemon = self.mount()
        tables: dict[int, str] = {}

        def as_hinted() -> bool:
            nonlocal tables
            tables = self.make_database()
            return self.lifetimes(tables) == BY_HINT

        # The daemon goes on without a hint that it does not learn at once, as on a busy machine.
        mounted.wait_until(as_hinted, "a database all of whose tables have the lifetimes of its hints")
        for level, path in tables.items():
            self.assertEqual({BY_HINT[level]}, self.lifetimes_of_zones(path), f"level {level}")
        daemon = self.mount_again(daemon)
        self.assertEqual(BY_HINT, self.lifetimes(tables))
        self.assertEqual(0, daemon.end(), daemon.said())
        self.check()

    def test_where_no_hints_are_read_threads_say_it(self) -> None:
        daemon = self.mount("writeback=on")
        self.assertEqual(BY_THREAD, self.lifetimes(self.make_database()))
        self.assertEqual(0, daemon.end(), daemon.said())


if __name__ == "__main__":
    mounted.main()
