#!/usr/bin/env python3
"""Names are bytes: files whose names are not UTF-8, or could pass for others, are told apart in every output, and found
again by what is read there.

    odd_names_test.py ISOZONE
"""

import json
import os
import re
import subprocess
import tarfile
import unittest
import urllib.parse
import urllib.request
import xml.dom.minidom
from typing import Any

import harness

NAMES = [b"\xe4", b"\xe5", b"\xff\xfe", b"\\xE4", b"\\", b"\\\\", b"a\nb", b"a\\nb", b"a?b", b"tab\there", b"\x01\x7f",
         b"\x1b[31mred\x1b[0m", b"\xc2\x9b31mred", b"caf\xc3\xa9", b"\xc0\x80overlong", b"\xed\xa0\x80surrogate",
         b"%E4", b"\"quoted\" 's'", b" lead", b"trail ", b"&amp;", b'{"a":1}', b"n" * 255, b"\xff" * 255, b"-rf", b":x",
         b"a,b;c=d", b"\\x4", b"\xf4\x90\x80\x80"]
CONTROL = re.compile("[\0-\x09\x0b-\x1f\x7f-\x9f]")


def bytes_of(text: str) -> bytes:
    """What the text of a name stands for (common.schema.json)."""
    parts = re.split(r"(\\\\|\\x[0-9A-F]{2})", text)
    return b"".join(b"\\" if part == "\\\\" else bytes([int(part[2:], 16)]) if part.startswith("\\x") else part.encode()
                    for part in parts)


def printed(name: bytes) -> str:
    """A name as texts for people have it: on one line, and without what drives a terminal."""
    text = name.replace(b"\\", b"\\\\").decode(errors="backslashreplace")
    escaped = re.sub(r"\\x([0-9a-f]{2})", lambda match: match[0].upper().replace("X", "x"), text)
    return CONTROL.sub(lambda match: "".join(f"\\x{byte:02X}" for byte in match[0].encode()),
                       escaped.replace("\n", "\\x0A"))


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
        archive = self.write("archive", self.ok("backup", self.device, "-"))
        with tarfile.open(archive, errors="surrogateescape") as opened:
            names = {b"/" + os.fsencode(member.name) for member in opened if member.isfile()}
        self.assertEqual(names, self.paths | {b"/isozone-backup.json"})
        for backup in (self.path("backup"), archive):
            self.ok("backup", "--verify", backup)
            self.ok("mkfs", f"{other}&zones=64&zone_size=4M", "--force")
            self.ok("restore", backup, other)
            self.assertEqual(self.paths_of(self.json("ls", other, "/odd", "--json")), self.paths)
            for path in self.paths:
                self.assertEqual(self.bytes_ok(b"cat", os.fsencode(other), path), b"content of " + path[len(b"/odd/"):])

    def test_what_is_damaged_in_a_backup_is_named(self) -> None:
        self.ok("backup", self.device, self.path("backup"))
        for name in NAMES:
            path = os.fsencode(self.path("backup/backup-000001/files/odd/")) + name
            os.rename(path, os.fsencode(self.path("away")))
            self.fails(harness.CORRUPTION, [f"/odd/{printed(name)} is missing"], "backup", "--verify",
                       self.path("backup"))
            os.rename(os.fsencode(self.path("away")), path)

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


class OddPlaces(harness.CliTest):
    """Devices, folders and labels whose names are any bytes, in the output of every command."""

    NAME = b"odd\xff\x1b[31m\n'q'\"\\<&>"
    # Without names in their output, or beyond what every machine has.
    OTHERS = {"simulate", "mount", "run"}

    def setUp(self) -> None:
        super().setUp()
        self.place = os.fsencode(self.directory) + b"/" + self.NAME
        self.uri = b"emu:" + self.place + b".img?timing=off"
        with open(self.place, "wb") as file:
            file.write(b"content")
        self.commands: set[str] = set()

    def text_of(self, *arguments: bytes, codes: tuple[int, ...] = (harness.OK,)) -> str:
        """What a command says, which must be lines of text with the name in them, if any, as texts have it."""
        self.commands.add(os.fsdecode(arguments[0]))
        result = subprocess.run([os.fsencode(harness.PROGRAM), *arguments], capture_output=True, timeout=120)
        self.assertIn(result.returncode, codes, (arguments, result.stderr))
        for text in (result.stdout.decode(), result.stderr.decode()):
            self.assertIsNone(CONTROL.search(text), arguments)
            # JSON and metrics quote it once more; errors leave backslashes as they are.
            if result.returncode == harness.OK and not text.startswith(("{", "[", "#")):
                self.assertEqual(text.count("odd"), text.count(printed(self.NAME)), (arguments, text))
        return result.stdout.decode()

    def names_in(self, document: Any) -> set[bytes]:
        """All strings anywhere in a document that have a name of these tests."""
        if isinstance(document, str):
            return {bytes_of(document)} if "odd" in document else set()
        parts = (document.values() if isinstance(document, dict) else document if isinstance(document, list) else [])
        return {name for part in parts for name in self.names_in(part)}

    def test_every_command_keeps_names_on_one_line(self) -> None:
        uri, place, label = self.uri, self.place, self.NAME
        self.text_of(b"mkfs", uri + b"&zones=32&zone_size=4M", b"--label", label)
        for command in (b"info", b"df", b"zones", b"fsck", b"why", b"stats", b"gc status", b"izg identify", b"dump",
                        b"ls"):
            self.text_of(*command.split(), uri)
            options = [] if command == b"dump" else [b"--json"]
            names = self.names_in(json.loads(self.text_of(*command.split(), uri, *options)))
            self.assertTrue(names <= {self.NAME, uri.removesuffix(b"?timing=off")}, (command, names))
        self.text_of(b"gc", b"run", uri)
        self.text_of(b"top", b"--once", uri)
        labels = set(re.findall(r'(?:device|label)="((?:[^"\\]|\\.)*)"', self.text_of(b"stats", uri, b"--prometheus")))
        self.assertEqual({bytes_of(re.sub(r'\\(["\\])', r"\1", label)) for label in labels},
                         {uri.removesuffix(b"?timing=off"), self.NAME})
        self.text_of(b"cp", uri, place, b":/")
        self.text_of(b"stat", uri, b"/" + self.NAME)
        self.text_of(b"cat", uri, b"/" + self.NAME + b"x", codes=(harness.NOT_FOUND,))
        self.text_of(b"zones", uri, b"--svg", place + b".svg", b"--html", place + b".html")
        xml.dom.minidom.parse(os.fsdecode(place + b".svg"))
        self.text_of(b"advise", uri, b"--output", place + b".ini")
        self.text_of(b"backup", uri, place + b".backups")
        self.text_of(b"backup", b"--verify", place + b".backups")
        self.text_of(b"rm", uri, b"/" + self.NAME)
        self.text_of(b"restore", place + b".backups", uri)
        self.text_of(b"import", uri, uri, codes=(harness.NOT_FOUND,))
        self.text_of(b"serve", b"--listen", self.NAME, uri, codes=(harness.USAGE,))
        self.text_of(b"export", b"--remove", b"9", uri, codes=(harness.USAGE, harness.NOT_FOUND, harness.REFUSED))
        self.text_of(b"bench", b"device", b"--zones", b"2", b"--samples", b"2", b"--svg", place + b".bench", uri)
        xml.dom.minidom.parse(os.fsdecode(place + b".bench"))
        known = re.findall(r"(?m)^  ([a-z]+) {3,}", self.ok("--help").decode().split("Subcommands:")[1])
        self.assertEqual(set(known), self.commands | self.OTHERS)


if __name__ == "__main__":
    unittest.main()
