#!/usr/bin/env python3
"""import: ZenFS devices, made here byte by byte, whole and damaged, and one that ZenFS itself has written.

    import_test.py ISOZONE
"""

import hashlib
import os
import random
import struct
import subprocess
import unittest

import harness
import zenfs_device

SEED = int(os.environ.get("ISOZONE_TEST_SEED", "23"))
BLOCK = 4096
CLOSED = (1 << 64) - 1
CRC_TABLE = []
for value in range(256):
    for _ in range(8):
        value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    CRC_TABLE.append(value)


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 128:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def sized(data: bytes) -> bytes:
    return varint(len(data)) + data


def padded(data: bytes, block: int = BLOCK) -> bytes:
    return data + bytes(-len(data) % block)


def frame(data: bytes, block: int = BLOCK) -> bytes:
    """A write to a log, as it is on the device."""
    return padded(struct.pack("<Q", len(data)) + data, block)


def record(payload: bytes) -> bytes:
    length = struct.pack("<I", len(payload))
    crc = crc32c(length + payload)
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    return padded(struct.pack("<I", masked) + length + payload)


def file_record(number: int, names: list[str], size: int, extents: list[tuple[int, int]], *, sparse: bool = False,
                active: int = CLOSED) -> bytes:
    encoded = struct.pack("<IQIQII", 1, number, 3, size, 4, 2)
    for start, length in extents:
        encoded += struct.pack("<I", 5) + sized(struct.pack("<QQ", start, length))
    encoded += struct.pack("<IQIQ", 6, 1_600_000_000 + number, 7, active)
    if sparse:
        encoded += struct.pack("<I", 8)
    for name in names:
        encoded += struct.pack("<I", 9) + sized(name.encode())
    return encoded


def snapshot(*files: bytes) -> bytes:
    return record(struct.pack("<I", 1) + sized(b"".join(sized(file) for file in files)))


def change(tag: int, data: bytes) -> bytes:
    return record(struct.pack("<I", tag) + sized(data))


class ImportTest(harness.CliTest):
    def setUp(self) -> None:
        super().setUp()
        self.random = random.Random(SEED)
        self.format()
        geometry = self.json("info", self.device, "--json")["device"]["geometry"]
        self.zone_size: int = geometry["zone_size"]
        self.zone_count: int = geometry["zone_count"]
        self.layout = harness.ImageLayout(self.image, geometry)
        for zone in (1, 2):
            self.layout.write_empty_zone(zone, bytes(BLOCK))
        self.target = f"emu:{self.path('target.img')}?timing=off"
        self.ok("mkfs", f"emu:{self.path('target.img')}?{harness.SMALL_DEVICE}")

    def superblock(self, sequence: int = 1, version: int = 2, block: int = BLOCK) -> bytes:
        fields = struct.pack("<I37sIIIIIII", 0x5A454E46, b"a unique name", sequence, version, 0, block,
                             self.zone_size // block, self.zone_count, 10)
        return record(fields + struct.pack("<256s64s123s", b"/tmp/aux", b"v2.1.4", b""))

    def start(self, zone: int, offset: int = 0) -> int:
        return zone * self.zone_size + offset

    def make(self) -> tuple[bytes, dict[str, bytes]]:
        """Writes the data of some files; returns the metadata that names them, and the files."""
        table = self.random.randbytes(1_500_000)
        moved = self.random.randbytes(300_000)
        self.layout.write_empty_zone(5, padded(table[:1_000_000]))
        self.layout.write_empty_zone(6, padded(table[1_000_000:]) + padded(moved))
        moved_at = self.start(6, len(padded(table[1_000_000:])))
        writes = [self.random.randbytes(size) for size in (100, 4088, 5000, 9)]
        frames = [frame(data) for data in writes]
        self.layout.write_empty_zone(7, b"".join(frames))
        first = (self.start(7, 8), 100)
        log = file_record(3, ["/db/000009.log"], 100, [first], sparse=True, active=self.start(7, len(frames[0])))
        table_file = file_record(1, ["/db/000007.sst"], 1_000_000, [(self.start(5), 1_000_000)])
        metadata = (
            self.superblock(sequence=7)
            + snapshot(file_record(9, ["/db/gone"], 0, []), log)
            + change(2, table_file)
            + change(2, file_record(1, ["/db/000007.sst", "/checkpoint/000007.sst"], 1_500_000,
                                    [(self.start(6), 500_000)]))
            + change(2, file_record(2, ["/db/000008.sst"], 300_000, [(self.start(5), 300_000)]))
            + change(5, file_record(2, ["/db/000008.sst"], 300_000, [(moved_at, 300_000)]))
            + change(3, struct.pack("<Q", 9) + sized(b"/db/gone"))
            + change(2, file_record(4, ["/db/CURRENT"], 0, [])))
        files = {"/db/000007.sst": table, "/checkpoint/000007.sst": table, "/db/000008.sst": moved,
                 "/db/000009.log": b"".join(writes), "/db/CURRENT": b""}
        return metadata, files

    def files(self) -> dict[str, bytes]:
        listed = self.json("ls", "-R", self.target, "--json")
        return {file["path"]: self.ok("cat", self.target, file["path"]) for file in listed
                if file["type"] != "directory"}


class Whole(ImportTest):
    def test_every_file_is_imported(self) -> None:
        metadata, files = self.make()
        self.layout.write_empty_zone(0, metadata)
        with open(self.image, "rb") as image:
            before = image.read()
        self.assertIn(b"4 files", self.ok("import", self.device, self.target))
        self.assertEqual(files, self.files())
        self.assertEqual(2, self.json("stat", self.target, "/db/000007.sst", "--json")["links"])
        with open(self.image, "rb") as image:
            self.assertEqual(before, image.read(), "the ZenFS device was written")
        self.ok("import", self.device, self.target)
        self.assertEqual(files, self.files())
        self.ok("fsck", "--read-data", self.target)

    def test_the_newest_zone_with_a_snapshot_counts(self) -> None:
        metadata, files = self.make()
        self.layout.write_empty_zone(1, metadata)
        self.layout.write_empty_zone(0, self.superblock(sequence=3) + snapshot())
        self.layout.write_empty_zone(2, self.superblock(sequence=8))
        self.ok("import", self.device, self.target)
        self.assertEqual(files, self.files())

    def test_kills_in_between(self) -> None:
        metadata, files = self.make()
        self.layout.write_empty_zone(0, metadata)
        for _ in range(6):
            process = subprocess.Popen([harness.PROGRAM, "import", self.device, self.target],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                process.wait(self.random.uniform(0, 0.1))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.ok("import", self.device, self.target)
        self.assertEqual(files, self.files(), f"seed {SEED}")

    def test_another_file_of_the_name_is_kept(self) -> None:
        metadata, _ = self.make()
        self.layout.write_empty_zone(0, metadata)
        self.ok("cp", self.target, self.write("old", b"old"), ":/old")
        tree = self.path("db")
        os.mkdir(tree)
        self.write("db/000008.sst", b"mine")
        self.ok("cp", "-r", self.target, tree, ":/db")
        self.fails(harness.REFUSED, ["/db/000008.sst"], "import", self.device, self.target)
        self.assertEqual({"/old": b"old", "/db/000008.sst": b"mine"}, self.files())


    def test_another_file_of_a_second_name_is_kept(self) -> None:
        metadata, _ = self.make()
        self.layout.write_empty_zone(0, metadata)
        os.mkdir(self.path("checkpoint"))
        self.write("checkpoint/000007.sst", b"mine")
        self.ok("cp", "-r", self.target, self.path("checkpoint"), ":/checkpoint")
        self.fails(harness.REFUSED, ["/checkpoint/000007.sst"], "import", self.device, self.target)
        self.assertEqual({"/checkpoint/000007.sst": b"mine"}, self.files())


class WrittenByZenFs(harness.CliTest):
    def test_every_file_is_as_zenfs_reads_it(self) -> None:
        target = zenfs_device.imported(self)
        files = zenfs_device.content()["files"]
        listed = [file["path"] for file in self.json("ls", "-R", target, "--json") if file["type"] != "directory"]
        self.assertEqual([file["path"] for file in files], sorted(listed))
        for file in files:
            found = self.json("stat", target, file["path"], "--json")
            found["sha256"] = hashlib.sha256(self.ok("cat", target, file["path"])).hexdigest()
            self.assertEqual(file, {name: found[name] for name in file})
        self.ok("fsck", "--read-data", target)


class Unusual(ImportTest):
    """What ZenFS itself was seen to leave on a device."""

    def check(self, metadata: bytes, files: dict[str, bytes]) -> None:
        self.layout.write_empty_zone(0, metadata)
        self.ok("import", self.device, self.target)
        self.assertEqual(files, self.files())

    def test_a_name_as_long_as_names_may_be(self) -> None:
        name = "/db/" + "n" * 255
        self.layout.write_empty_zone(5, padded(b"content"))
        self.check(self.superblock() + snapshot(file_record(1, [name], 7, [(self.start(5), 7)])), {name: b"content"})

    def test_blocks_that_are_larger_than_those_of_the_device(self) -> None:
        # ZenFS takes the physical block, and Isozone what the device needs to be written in.
        block = 4 * BLOCK
        writes = [self.random.randbytes(size) for size in (100, block, 9)]
        self.layout.write_empty_zone(5, b"".join(frame(data, block) for data in writes))
        log = file_record(1, ["/db/000009.log"], 0, [], sparse=True, active=self.start(5))
        self.check(padded(self.superblock(block=block), block) + padded(snapshot(log), block),
                   {"/db/000009.log": b"".join(writes)})

    def test_a_write_to_a_log_that_a_power_cut_tore(self) -> None:
        """ZenFS takes all of it for written. Where it has mounted the device since, the metadata says so."""
        whole, torn = self.random.randbytes(1000), self.random.randbytes(20_000)
        written = frame(whole) + frame(torn)[:2 * BLOCK]
        self.layout.write_empty_zone(5, written)
        first, second = (self.start(5, 8), 1000), (self.start(5, BLOCK + 8), 20_000)
        logs = {
            "open": file_record(1, ["/db/9.log"], 1000, [first], sparse=True, active=self.start(5, BLOCK)),
            "recovered": file_record(1, ["/db/9.log"], 21_000, [first, second], sparse=True),
        }
        for what, log in logs.items():
            with self.subTest(what):
                self.check(self.superblock() + snapshot(log), {"/db/9.log": whole + torn[:2 * BLOCK - 8]})
                self.ok("rm", self.target, "/db/9.log")


class PowerCutWhileTheMetadataMoves(ImportTest):
    """ZenFS has begun to write a list of the files into the next metadata zone. It does not mount such a device."""

    def tear(self, sequence: int) -> dict[str, bytes]:
        metadata, files = self.make()
        many = snapshot(*(file_record(number, [f"/db/{number:06}.sst"], 0, []) for number in range(100)))
        self.layout.write_empty_zone(0, metadata + record(struct.pack("<I", 4)))
        self.layout.write_empty_zone(1, self.superblock(sequence) + many[:BLOCK])
        return files

    def test_the_zone_before_counts(self) -> None:
        files = self.tear(8)
        self.ok("import", self.device, self.target)
        self.assertEqual(files, self.files())

    def test_an_older_zone_does_not(self) -> None:
        self.tear(9)
        self.fails(harness.CORRUPTION, ["cut off"], "import", self.device, self.target)
        self.assertEqual({}, self.files())


class Damaged(ImportTest):
    def check(self, metadata: bytes, files: dict[str, bytes], what: str) -> None:
        """Nothing but an error of one line, or files as they were at some time."""
        self.layout.write_empty_zone(0, metadata)
        result = self.run_cli("import", self.device, self.target)
        if result.returncode == harness.OK:
            for name, content in self.files().items():
                self.assertTrue(files[name].startswith(content), f"{what}: {name}")
        else:
            self.assertIn(result.returncode, (harness.CORRUPTION, harness.UNUSABLE, harness.NOT_FOUND), what)
            self.assertRegex(result.stderr.decode(), r"\Aisozone import: [^\n]+\n\Z", what)
            self.assertEqual({}, self.files(), what)

    def test_a_changed_byte_is_found(self) -> None:
        metadata, _ = self.make()
        for start in range(0, len(metadata), BLOCK):
            for at in (0, 4, 8, 12, 20, *self.random.sample(range(8, 100), 3)):
                length = struct.unpack_from("<I", metadata, start + 4)[0]
                if at < 8 + length:
                    damaged = bytearray(metadata)
                    damaged[start + at] ^= 1 << self.random.randrange(8)
                    self.layout.write_empty_zone(0, bytes(damaged))
                    self.fails(harness.NOT_FOUND if start == 0 else harness.CORRUPTION, ["ZenFS"], "import",
                               self.device, self.target)

    def test_metadata_that_ends_early_is_as_of_an_earlier_time(self) -> None:
        metadata, files = self.make()
        files["/db/gone"] = b""
        # The fifth record is of a file that has another content later.
        for blocks in (1, 2, 3, 4, 6, 7):
            image = self.path(f"target{blocks}.img")
            self.ok("mkfs", f"emu:{image}?{harness.SMALL_DEVICE}")
            self.target = f"emu:{image}?timing=off"
            self.check(metadata[:blocks * BLOCK], files, f"cut behind record {blocks}")

    def test_fields_that_lie(self) -> None:
        _, files = self.make()
        far = self.start(self.zone_count)
        log = self.start(7)  # with 20 KiB written
        self.layout.write_empty_zone(8, padded(struct.pack("<Q", self.zone_size - 7)))
        for what, content in {
                "an extent behind the device": file_record(1, ["/a"], 10, [(far, 10)]),
                "an extent in the metadata": file_record(1, ["/a"], 10, [(0, 10)]),
                "an extent behind the write pointer": file_record(1, ["/a"], 10, [(self.start(20), 10)]),
                "an extent that wraps": file_record(1, ["/a"], 10, [(self.start(5), CLOSED)]),
                "a size without extents": file_record(1, ["/a"], 10, []),
                "a name that leads away": file_record(1, ["/../a"], 0, []),
                "a write nowhere": file_record(1, ["/a"], 0, [], active=far),
                "a torn write of no log": file_record(1, ["/a"], 30_000, [(log + 8, 30_000)]),
                "a torn write that is not the last": file_record(
                    1, ["/a"], 30_001, [(log + 8, 30_000), (self.start(5), 1)], sparse=True),
                "a torn write that would reach the next zone": file_record(
                    1, ["/a"], self.zone_size, [(log + 8, self.zone_size)], sparse=True),
                "a torn write behind the write pointer": file_record(
                    1, ["/a"], 30_000, [(log + 40_000, 30_000)], sparse=True),
                "a write to a log over the end of its zone": file_record(
                    1, ["/a"], 0, [], sparse=True, active=self.start(8)),
                "no fields": b"",
        }.items():
            with self.subTest(what):
                self.check(self.superblock() + snapshot(content), files, what)
                self.assertEqual({}, self.files())

    def test_no_zenfs_and_other_versions(self) -> None:
        self.fails(harness.NOT_FOUND, ["no ZenFS"], "import", self.target, self.device)
        self.layout.write_empty_zone(0, self.superblock(version=1) + snapshot())
        self.fails(harness.UNUSABLE, ["version 1"], "import", self.device, self.target)


if __name__ == "__main__":
    unittest.main()
