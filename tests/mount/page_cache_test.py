#!/usr/bin/env python3
"""Runs page_cache_test, readers beside writers of each kind, on a mounted directory.

    page_cache_test.py ISOZONE PAGE_CACHE_TEST [--io-uring]
"""

import os
import subprocess
import sys

import mounted

PAGE_CACHE_TEST = os.path.abspath(sys.argv.pop(1))


class PageCache(mounted.MountTest):
    def test_readers_see_what_was_written_last(self) -> None:
        for options in ("", "writeback=on"):
            with self.subTest(options=options):
                daemon = self.mount(options)
                environment = dict(os.environ, ISOZONE_TEST_DIRECTORY=self.directory)
                result = subprocess.run([PAGE_CACHE_TEST, "--gtest_brief=1"], stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, env=environment)
                self.assertEqual(0, result.returncode, result.stdout[-4000:])
                self.assertEqual(0, daemon.end(), daemon.said())
                self.check()


if __name__ == "__main__":
    mounted.main()
