#!/usr/bin/env python3
"""import: a database that RocksDB has written through ZenFS, and that was not closed, is opened from Isozone.

    import_rocksdb_test.py ISOZONE LIBISOZONE
"""

import hashlib
import os
import subprocess
import sys
import unittest

import harness
import zenfs_device

LIBRARY = os.path.abspath(sys.argv.pop(1))


class ImportedDatabase(harness.CliTest):
    def ldb(self, device: str, path: str, *arguments: str) -> bytes:
        result = subprocess.run(["ldb", f"--fs_uri=isozone://{device}", f"--db={path}", *arguments],
                                capture_output=True, timeout=120, env=dict(os.environ, LD_PRELOAD=LIBRARY))
        self.assertEqual(0, result.returncode, result.stderr)
        return result.stdout

    def test_it_has_every_key_that_zenfs_would_give(self) -> None:
        target = zenfs_device.imported(self)
        database = zenfs_device.content()["database"]
        for path in (database["path"], "/checkpoint"):
            self.assertEqual(b"OK\n", self.ldb(target, path, "checkconsistency"))
        for _ in range(2):  # with the WAL, and after it was replayed
            found = self.ldb(target, database["path"], "scan")
            self.assertEqual(database["keys"], found.count(b"\n"))
            self.assertEqual(database["sha256"], hashlib.sha256(found).hexdigest())
            self.ldb(target, database["path"], "compact")


if __name__ == "__main__":
    unittest.main()
