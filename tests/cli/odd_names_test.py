#!/usr/bin/env python3
"""Names are bytes: files whose names are not UTF-8, or could pass for others, are told apart in every output, and found
again by what is read there.

    odd_names_test.py ISOZONE
"""

import json
import os
import re
import subprocess
import unittest
import urllib.parse
import urllib.request
from typing import Any

import harness

NAMES = [b"\xe4", b"\xe5", b"\xff\xfe", b"\\xE4", b"\\", b"\\\\", b"a\nb", b"a\\nb", b"a?b", b"tab\there", b"\x01\x7f",
         b"\x1b[31mred\x1b[0m", b"\xc2\x9b31mred", b"caf\xc3\xa9", b"\xc0\x80overlong", b"\xed\xa0\x80surrogate",
         b"%E4", b"\"quoted\" 's'", b" lead", b"trail ", b"&amp;", b'{"a":1}']


def bytes_of(text: str) -> bytes:
    """What the text of a name stands for (common.schema.json)."""
    parts = re.split(r"(\\\\|\\x[0-9A-F]{2})", text)
    return b"".join(b"\\" if part == "\\\\" else bytes([int(part[2:], 16)]) if part.startswith("\\x") else part.encode()
                    for part in parts)


class OddNames(harness.CliTest):
    def setUp(self) -> None:
        super().setUp()
        self.format("timing=off&zones=64&zone_size=4M")
        folder = self.path("odd")
        os.mkdir(folder)
        for name in NAMES:
            with open(os.fsencode(folder) + b"/" + name, "wb") as file:
                file.write(b"content of " + name)
        self.ok("cp", "-r", self.device, folder, ":/")
        self.paths = {b"/odd/" + name for name in NAMES}

    def bytes_ok(self, *arguments: bytes) -> bytes:
        result = subprocess.run([os.fsencode(harness.PROGRAM), *arguments], capture_output=True, timeout=120)
        self.assertEqual((result.returncode, result.stderr), (harness.OK, b""), arguments)
        return result.stdout

    def paths_of(self, found: Any) -> set[bytes]:
        """All paths anywhere in a document that are below /odd/."""
        if isinstance(found, str):
            return {bytes_of(found)} if found.startswith("/odd/") else set()
        parts = found.values() if isinstance(found, dict) else found if isinstance(found, list) else []
        return {path for part in parts for path in self.paths_of(part)}

    def test_json_has_every_name(self) -> None:
        self.assertEqual(self.paths_of(self.json("ls", self.device, "/odd", "--json")), self.paths)
        self.assertEqual(self.paths_of(self.json("dump", self.device)), self.paths)
        stat = [self.bytes_ok(b"stat", b"--json", os.fsencode(self.device), path) for path in sorted(self.paths)]
        self.assertEqual([self.paths_of(json.loads(text)["path"]) for text in stat],
                         [{path} for path in sorted(self.paths)])
        zones = {zone["zone"] for text in stat for zone in json.loads(text)["zones"]}
        in_zones = [self.json("zones", "--zone", str(zone), self.device, "--json") for zone in zones]
        self.assertEqual(self.paths_of(in_zones), self.paths)

    def test_text_has_a_line_for_every_name(self) -> None:
        lines = self.ok("ls", self.device, "/odd").decode().splitlines()
        self.assertEqual({bytes_of(line) for line in lines}, set(NAMES))
        self.assertFalse([line for line in lines if re.search("[\0-\x1f\x7f-\x9f]", line)])

    def test_an_error_is_one_line_whatever_the_name(self) -> None:
        for name in NAMES:
            result = subprocess.run([os.fsencode(harness.PROGRAM), b"stat", os.fsencode(self.device), b"/no/" + name],
                                    capture_output=True, timeout=120)
            self.assertEqual(result.returncode, harness.NOT_FOUND)
            self.assertRegex(result.stderr.decode(), "\\Aisozone stat: [^\0-\x1f\x7f-\x9f]+\n\\Z")

    def test_names_come_back_from_backups_and_copies(self) -> None:
        copy, other = self.path("copy"), f"emu:{self.path('other.img')}?timing=off"
        self.ok("cp", "-r", self.device, ":/odd", copy)
        self.assertEqual(set(os.listdir(os.fsencode(copy))), set(NAMES))
        self.ok("backup", self.device, self.path("backup"))
        self.ok("mkfs", f"{other}&zones=64&zone_size=4M")
        self.ok("restore", self.path("backup"), other)
        self.assertEqual(self.paths_of(self.json("ls", other, "/odd", "--json")), self.paths)
        for path in self.paths:
            self.assertEqual(self.bytes_ok(b"cat", os.fsencode(other), path), b"content of " + path[len(b"/odd/"):])

    def test_the_map_finds_a_file_by_the_text_of_its_name(self) -> None:
        server = subprocess.Popen([harness.PROGRAM, "serve", "--listen", "127.0.0.1:0", self.device],
                                  stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        assert server.stdout
        self.addCleanup(server.stdout.close)
        match = re.search(r"http://\S+/", server.stdout.readline())
        assert match
        for text in (r"\xE4", "/odd/", "caf\xe9"):
            with urllib.request.urlopen(f"{match[0]}api/files?name={urllib.parse.quote(text)}", timeout=60) as reply:
                found = self.paths_of(json.load(reply))
            self.assertTrue(found)
            self.assertTrue(all(path in self.paths for path in found), found)
            if text == r"\xE4":
                self.assertIn(b"/odd/\xe4", found)


if __name__ == "__main__":
    unittest.main()
