#!/usr/bin/env python3
"""cp --resume: copies that were killed are continued, and what is there is compared.

    resume_test.py ISOZONE
"""

import os
import random
import subprocess
import unittest

import harness

SEED = int(os.environ.get("ISOZONE_TEST_SEED", "24"))


class Resume(harness.CliTest):
    def setUp(self) -> None:
        super().setUp()
        self.random = random.Random(SEED)
        self.format()
        os.mkdir(self.path("tree"))
        self.content = {name: self.random.randbytes(size) for name, size in
                        (("a", 3_000_001), ("b", 20_000_000), ("c", 5), ("d", 0))}
        for name, content in self.content.items():
            self.write(f"tree/{name}", content)

    def kill_copies(self, *arguments: str) -> None:
        for _ in range(8):
            process = subprocess.Popen([harness.PROGRAM, "cp", "-r", "--resume", self.device, *arguments],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                process.wait(self.random.uniform(0, 0.2))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def test_kills_on_the_way_in_and_out(self) -> None:
        os.mkdir(self.path("out"))
        self.ok("cp", "--resume", "-r", self.device, self.path("tree"), ":/in")
        self.ok("rm", "-r", self.device, "/in")
        self.ok("cp", self.device, self.path("tree/c"), ":/c")
        self.kill_copies(self.path("tree"), ":/")
        self.ok("cp", "-r", "--resume", self.device, self.path("tree"), ":/")
        for name, content in self.content.items():
            self.assertEqual(content, self.ok("cat", self.device, f"/tree/{name}"), f"seed {SEED}")
        self.assertEqual(["a", "b", "c", "d"], self.ok("ls", self.device, "/tree").decode().split())
        self.kill_copies(":/tree", self.path("out"))
        self.ok("cp", "-r", "--resume", self.device, ":/tree", self.path("out"))
        self.assertEqual(["a", "b", "c", "d"], sorted(os.listdir(self.path("out/tree"))))
        for name, content in self.content.items():
            with open(self.path(f"out/tree/{name}"), "rb") as file:
                self.assertEqual(content, file.read(), f"seed {SEED}")

    def test_only_what_is_right_is_kept(self) -> None:
        self.ok("cp", "-r", self.device, self.path("tree"), ":/")
        target = self.path("b")
        content = self.content["b"]
        for there in (b"", content[:1_234_567], content[:99_999] + b"wrong" + content[100_004:2_000_000],
                      content + b"more"):
            for name in ("b", "b.isozone-cp"):
                self.write(name, there)
                self.ok("cp", "--resume", self.device, ":/tree/b", target)
                with open(target, "rb") as file:
                    self.assertEqual(content, file.read())
                self.assertFalse(os.path.exists(target + ".isozone-cp"))
                os.remove(target)

    def test_what_came_from_the_device_leads_nowhere_else(self) -> None:
        """A device that has links under the names that copies use, and one in place of a directory."""
        os.makedirs(self.path("A"))
        os.makedirs(self.path("B/x"))
        os.makedirs(self.path("victims"))
        os.makedirs(self.path("out"))
        victim = self.write("victims/kept", b"kept")
        os.symlink(victim, self.path("A/a.isozone-cp"))
        os.symlink(self.path("victims"), self.path("A/x"))
        self.write("B/x/kept", b"new")
        self.write("B/a", b"kept and more")
        for name in ("A", "B"):
            self.ok("cp", "-r", self.device, self.path(name), f":/{name}")
        self.ok("cp", "-r", self.device, ":/A/x", ":/A/a.isozone-cp", self.path("out"))
        self.ok("cp", "-r", "--resume", self.device, ":/B/a", self.path("out"))
        self.fails(harness.REFUSED, ["out/x", "symbolic link"], "cp", "-r", self.device, ":/B/x", self.path("out"))
        with open(victim, "rb") as kept, open(self.path("out/a"), "rb") as copied:
            self.assertEqual((b"kept", b"kept and more"), (kept.read(), copied.read()))
        self.assertFalse(os.path.islink(self.path("out/a")))
        os.symlink(self.path("out"), self.path("link"))  # the target itself may be a link
        self.ok("cp", "-r", self.device, ":/", self.path("link"))
        self.assertTrue(os.path.exists(self.path("out/B/x/kept")))

    def test_a_whole_file_is_left_as_it_is(self) -> None:
        self.ok("cp", "-r", self.device, self.path("tree"), ":/")
        inode = self.json("stat", self.device, "/tree/b", "--json")["inode"]
        self.write("tree/a", self.content["a"][::-1])
        self.ok("cp", "-r", "--resume", self.device, self.path("tree"), ":/")
        self.assertEqual(inode, self.json("stat", self.device, "/tree/b", "--json")["inode"])
        self.assertEqual(self.content["a"][::-1], self.ok("cat", self.device, "/tree/a"))


if __name__ == "__main__":
    unittest.main()
