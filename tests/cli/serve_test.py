#!/usr/bin/env python3
"""What isozone serve answers, to whom, and what bad input gets; on devices that nobody has mounted.

    serve_test.py ISOZONE
"""

import http.client
import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import time
import unittest
from typing import Any

import harness
from harness import BUSY, NOT_FOUND, PERMISSION, UNUSABLE, USAGE

NOBODY = 65534
LONELY = 64321  # a user who has no processes
PATIENCE = 60  # seconds; only a hang takes so long
PAGE_OF_VERSION_99 = struct.pack("<QI", 0x4547415054534F5A, 99) + bytes(1000)
HEAD_WORDS, ENTRY_WORDS = 7, 5  # of zone_frames.h


class ServeTest(harness.CliTest):
    def setUp(self) -> None:
        super().setUp()
        self.format()

    def start(self, *arguments: str, listen: str = "127.0.0.1:0") -> subprocess.Popen[bytes]:
        """Starts a server at a port that the kernel chooses, and waits until it answers."""
        server = subprocess.Popen([harness.PROGRAM, "serve", "--listen", listen, *arguments],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.end, server)
        assert server.stdout is not None
        line = server.stdout.readline().decode()
        match = re.search(r"at http://(\S+):(\d+)/ until", line)
        assert match, line
        self.host, self.port = match[1].strip("[]"), int(match[2])
        return server

    def put_page(self, content: bytes) -> None:
        """Puts a file in the place of the device's statistics page."""
        status = os.stat(self.image)
        page = f"/dev/shm/isozone-{status.st_dev:x}-{status.st_ino:x}"
        self.addCleanup(os.unlink, page)
        with open(page, "wb") as file:
            file.write(content)

    def end(self, server: subprocess.Popen[bytes]) -> None:
        server.kill()
        server.communicate(timeout=PATIENCE)

    def ask(self, path: str, method: str = "GET",
            headers: dict[str, str] | None = None) -> tuple[http.client.HTTPResponse, bytes]:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, headers=headers or {})
            response = connection.getresponse()
            return response, response.read()
        finally:
            connection.close()

    def document(self, path: str, status: int = 200) -> Any:
        response, body = self.ask(path)
        self.assertEqual(response.status, status, body)
        self.assertEqual(response.headers["Content-Type"], "application/json")
        return json.loads(body)

    def raw(self, content: bytes) -> bytes:
        """What the server says to these bytes until it closes the connection."""
        with socket.create_connection((self.host, self.port), timeout=PATIENCE) as connection:
            said = b""
            try:
                connection.sendall(content)
                connection.shutdown(socket.SHUT_WR)
                while part := connection.recv(65536):
                    said += part
            except OSError:  # it has closed the connection before it had all
                pass
            return said


class Answers(ServeTest):
    def test_the_state_on_a_device_that_nobody_has_mounted(self) -> None:
        self.ok("cp", self.device, self.write("table", b"x" * 3_000_000), ":/table")
        self.start(self.device)
        devices = self.document("/api/devices")["devices"]
        self.assertEqual([device["life"] for device in devices], ["not-mounted"])
        self.assertIn("no process publishes", devices[0]["note"])
        self.assertEqual(devices[0]["name"], f"emu:{self.image}")
        served = self.document("/api/stats?zones=1")
        shown = json.loads(self.run_cli("stats", "--json", "--zones", self.device).stdout)
        for document in (served, shown):
            del document["taken_s"]
        self.assertEqual(served, shown)

    def test_what_is_no_page_does_not_hide_the_device(self) -> None:
        self.put_page(b"no page")
        self.start(self.device)
        device = self.document("/api/devices")["devices"][0]
        self.assertEqual(device["life"], "not-mounted")
        self.assertIn("a foreign page is ignored", device["note"])

    def test_a_relative_path_is_the_same_device(self) -> None:
        directory = os.getcwd()
        self.addCleanup(os.chdir, directory)
        os.chdir(self.directory)
        self.start("emu:ssd.img?timing=off")
        self.assertEqual(self.document("/api/devices")["devices"][0]["name"], f"emu:{self.image}")

    def test_metrics_of_all_devices(self) -> None:
        other = f"emu:{self.path('other.img')}?timing=off"
        self.ok("mkfs", f"emu:{self.path('other.img')}?{harness.SMALL_DEVICE}")
        self.start(self.device, other)
        response, body = self.ask("/metrics")
        self.assertEqual(response.headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
        text = body.decode()
        for image in ("ssd.img", "other.img"):
            self.assertIn(f'isozone_device_readable{{device="emu:{self.path(image)}"}} 1\n', text)
            self.assertIn(f'isozone_mounted{{device="emu:{self.path(image)}"}} 0\n', text)
        self.assertEqual(text.count("# TYPE isozone_capacity_bytes gauge"), 1)
        series = [line.rpartition(" ")[0] for line in text.splitlines() if not line.startswith("#")]
        self.assertEqual(len(set(series)), len(series))

    def test_frames_of_zones(self) -> None:
        self.start(self.device)
        whole = self.ask("/api/zones")[1]
        words = struct.unpack_from("<7I", whole)
        version, instance, number, base, zones, entries, size = words
        self.assertEqual((version, base, zones, entries), (1, 0, 32, 32))
        meta = json.loads(whole[(HEAD_WORDS + entries * ENTRY_WORDS) * 4:])
        self.assertEqual(size, len(whole) - (HEAD_WORDS + entries * ENTRY_WORDS) * 4)
        self.assertEqual((meta["life"], meta["reads"], meta["waits"]), ("not-mounted", [], []))
        same = struct.unpack_from("<7I", self.ask(f"/api/zones?since={instance}-{number}")[1])
        self.assertEqual(same[2:6], (number, number, 32, 0))
        unknown = struct.unpack_from("<7I", self.ask(f"/api/zones?since={instance ^ 2}-{number}")[1])
        self.assertEqual(unknown[3:6], (0, 32, 32))

    def test_files_of_a_zone_and_zones_of_a_file(self) -> None:
        self.ok("cp", self.device, self.write("table", b"x" * 3_000_000), ":/table")
        self.start(self.device)
        found = self.document("/api/files?name=tab")
        self.assertEqual([file["path"] for file in found["files"]], ["/table"])
        self.assertFalse(found["more"])
        zones = found["files"][0]["zones"]
        self.assertEqual(sum(zone["bytes"] for zone in zones), found["files"][0]["size"])
        within = self.document(f"/api/zone?zone={zones[0]['zone']}")
        self.assertEqual(within, self.json("zones", "--json", "--zone", str(zones[0]["zone"]), self.device))
        self.assertEqual(self.document("/api/files?name=nothing")["files"], [])

    def test_a_database_that_cannot_be_read_costs_its_keys_alone(self) -> None:
        self.ok("cp", self.device, self.write("000007.sst", b"x" * 100_000), ":/000007.sst")
        for manifest in (None, b"", b"\x00" * 40_000, b"\xff" * 40_000, b"\x01\x02\x03"):
            for current in (b"", b"MANIFEST-000001\n", b"../MANIFEST-000001\n", b"MANIFEST-/\n", b"\xff" * 5000):
                self.ok("cp", self.device, self.write("CURRENT", current), ":/CURRENT")
                if manifest is not None:
                    self.ok("cp", self.device, self.write("MANIFEST", manifest), ":/MANIFEST-000001")
                zone = self.json("stat", self.device, "/000007.sst", "--json")["zones"][0]["zone"]
                files = self.json("zones", "--json", "--zone", str(zone), self.device)["files"]
                self.assertEqual([file["table"] for file in files if file["paths"] == ["/000007.sst"]], [None])

    def test_labels_are_utf8_and_tell_devices_apart(self) -> None:
        devices = []
        for name in (b"\xc3\xa4.img", b"\xe4.img", b"\xe5.img", b'"\\.img'):
            image = os.path.join(os.fsencode(self.directory), name)
            self.ok("mkfs", os.fsdecode(b"emu:" + image + b"?" + harness.SMALL_DEVICE.encode()))
            devices.append(os.fsdecode(b"emu:" + image + b"?timing=off"))
        self.start(*devices)
        readable = re.findall(r'^isozone_device_readable\{device=".*/(.+)"\} 1$', self.ask("/metrics")[1].decode(),
                              re.MULTILINE)
        self.assertEqual(readable, ["ä.img", r"\\xE4.img", r"\\xE5.img", r'\"\\\\.img'])

    def test_bad_parameters_get_one_line(self) -> None:
        self.start(self.device)
        for path, status in (("/api/zone", 400), ("/api/zone?zone=x", 400), ("/api/zone?zone=-1", 400),
                             ("/api/zone?zone=99999", 400), ("/api/zone?zone=4294967296", 400),
                             ("/api/files", 400), ("/api/zones?since=1", 400), ("/api/zones?since=a-b", 400),
                             ("/api/stats?device=1", 404), ("/api/stats?device=x", 400), ("/api/nothing", 404),
                             ("/nothing", 404), ("/../../etc/passwd", 404), ("/api/", 404)):
            with self.subTest(path=path):
                self.assertNotIn("\n", self.document(path, status)["error"])

    def test_the_page_needs_nobody_else(self) -> None:
        self.start(self.device)
        response, body = self.ask("/")
        self.assertEqual(response.headers["Content-Type"], "text/html; charset=utf-8")
        self.assertIn("default-src 'none'", response.headers["Content-Security-Policy"])
        self.assertEqual(response.headers["X-Content-Type-Options"], "nosniff")
        names = re.findall(r'(?:src|href)="([^"#:]+)"', body.decode())
        self.assertIn("map.js", names)
        for name in names:
            response, content = self.ask(f"/{name}")
            self.assertEqual(response.status, 200, name)
            self.assertNotRegex(content.decode(), r"https?://(?!www\.w3\.org)")
        self.assertNotRegex(body.decode(), r"https?://(?!www\.w3\.org)")

    def test_a_signal_ends_it_in_good_order(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            # Children inherit a signal that is ignored, as SIGINT is in the background of a shell.
            self.addCleanup(signal.signal, number, signal.signal(number, signal.SIG_DFL))
            server = self.start(self.device)
            connection = http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE)
            connection.request("GET", "/api/devices")
            connection.getresponse().read()  # and the connection stays open
            server.send_signal(number)
            output, errors = server.communicate(timeout=PATIENCE)
            self.assertEqual((server.returncode, errors), (0, b""), output)
            connection.close()

    def test_a_signal_that_nohup_ignores_does_not_end_it(self) -> None:
        self.addCleanup(signal.signal, signal.SIGHUP, signal.signal(signal.SIGHUP, signal.SIG_IGN))
        server = self.start(self.device)
        # The thread that waits for them does not hold them back meanwhile.
        other = next(task for task in os.listdir(f"/proc/{server.pid}/task") if task != str(server.pid))

        def held_back() -> list[int]:
            with open(f"/proc/{server.pid}/task/{other}/status", encoding="utf-8") as file:
                mask = int(re.findall(r"^SigBlk:\s*(\w+)$", file.read(), re.MULTILINE)[0], 16)
            return [mask >> (number - 1) & 1 for number in (signal.SIGHUP, signal.SIGTERM)]

        deadline = time.monotonic() + PATIENCE
        while held_back() == [1, 1] and time.monotonic() < deadline:  # a thread that begins holds back all
            time.sleep(0.01)
        self.assertEqual(held_back(), [0, 1])
        server.send_signal(signal.SIGHUP)
        self.document("/api/devices")

    @unittest.skipUnless(os.geteuid() == 0, "the limit counts all threads of a user, so it takes one who has no others")
    def test_with_few_threads_it_serves_or_says_so(self) -> None:
        os.chmod(self.directory, 0o755)
        os.chown(self.image, LONELY, LONELY)
        program = shutil.copy(harness.PROGRAM, self.path("isozone"))
        served = []
        for threads in (1, 2, 3, 4, 5, 8, 12, 20, 30, 40, 50):
            server = subprocess.Popen(["prlimit", f"--nproc={threads}", program, "serve", "--listen", "127.0.0.1:0",
                                       self.device], user=LONELY, group=LONELY, extra_groups=[],
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.addCleanup(self.end, server)
            assert server.stdout is not None
            match = re.search(r"at http://(\S+):(\d+)/ until", server.stdout.readline().decode())
            if match:
                served.append(threads)
                self.host, self.port = match[1], int(match[2])
                self.document("/api/devices")
                server.send_signal(signal.SIGTERM)
            _, errors = server.communicate(timeout=PATIENCE)
            said = "" if match else r"isozone[^\n]*: cannot [^\n]*ulimit -u[^\n]*\n"
            self.assertEqual(server.returncode, 0 if match else harness.IO_ERROR, (threads, errors))
            self.assertRegex(errors.decode(), rf"\A{said}\Z")
        self.assertEqual([50], served[-1:], served)


class Refusals(ServeTest):
    def test_bad_arguments(self) -> None:
        for words, arguments in ((["--listen", "127.0.0.1:9464"], ("--listen", "here:80", self.device)),
                                 (["no address"], ("--listen", "192.0.2.1:0", self.device)),
                                 (["--allow-host", "without a port"],
                                  ("--listen", "127.0.0.1:0", "--allow-host", "storage7.lan:9464", self.device)),
                                 (["--allow-host"], ("--listen", "127.0.0.1:0", "--allow-host", "", self.device)),
                                 (["twice"], ("--listen", "127.0.0.1:0", self.device, self.device)),
                                 (["DEVICE"], ())):
            with self.subTest(arguments=arguments):
                self.fails(USAGE, words, "serve", *arguments)

    def test_a_port_that_is_taken(self) -> None:
        self.start(self.device)
        self.fails(BUSY, [f"127.0.0.1:{self.port} is taken", "--listen"], "serve", "--listen",
                   f"127.0.0.1:{self.port}", self.device)

    def test_devices_that_cannot_be_read(self) -> None:
        listen = ("serve", "--listen", "127.0.0.1:0")
        self.fails(NOT_FOUND, ["missing.img"], *listen, f"emu:{self.path('missing.img')}")
        self.fails(UNUSABLE, ["garbage.img"], *listen, f"emu:{self.write('garbage.img', b'x' * 8192)}")
        if os.geteuid() == 0:
            os.chmod(self.directory, 0o755)
            os.chmod(self.image, 0o600)
            self.fails(PERMISSION, ["ssd.img"], *listen, self.device, user=NOBODY, group=NOBODY)

    def test_a_page_of_another_version(self) -> None:
        self.put_page(PAGE_OF_VERSION_99)
        self.fails(UNUSABLE, ["version 99"], "serve", "--listen", "127.0.0.1:0", self.device)

    def test_a_device_that_goes_bad_meanwhile_is_told_of(self) -> None:
        self.start(self.device)
        self.put_page(PAGE_OF_VERSION_99)
        while self.document("/api/devices")["devices"][0]["life"] != "unknown":
            pass
        self.assertIn("version 99", self.document("/api/stats", 503)["error"])
        metrics = self.ask("/metrics")[1].decode()
        self.assertIn(f'isozone_device_readable{{device="emu:{self.image}"}} 0\n', metrics)
        self.assertNotIn("isozone_capacity_bytes{", metrics)

    def test_names_that_are_not_its_own(self) -> None:
        self.start("--allow-host", "storage7.lan", self.device)
        for host, status in (("evil.example", 403), (f"evil.example:{self.port}", 403), ("", 403),
                             (f"localhost:{self.port}", 200), ("127.0.0.1", 200), ("Storage7.lan:80", 200)):
            with self.subTest(host=host):
                self.assertEqual(self.ask("/api/devices", headers={"Host": host})[0].status, status)
        self.assertIn(b"403", self.raw(b"GET /api/devices HTTP/1.0\r\n\r\n").split(b"\r\n")[0])
        self.assertIn(b"403", self.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n"))

    def test_what_pages_of_other_sites_ask_for(self) -> None:
        self.start(self.device)
        for site, mode, status in (("cross-site", "no-cors", 403), ("same-site", "cors", 403), ("cross-site", "", 403),
                                   ("cross-site", "navigate", 200), ("same-origin", "cors", 200),
                                   ("none", "navigate", 200)):
            with self.subTest(site=site, mode=mode):
                headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode}
                self.assertEqual(self.ask("/api/stats?zones=1", headers=headers)[0].status, status)

    def test_whatever_would_write(self) -> None:
        self.start(self.device)
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
            response, _ = self.ask("/metrics", method)
            self.assertEqual((response.status, response.headers["Allow"]), (405, "GET, HEAD"), method)
        response, body = self.ask("/metrics", "HEAD")
        self.assertEqual((response.status, body), (200, b""))
        self.assertGreater(int(response.headers["Content-Length"]), 1000)

    def test_an_address_that_others_reach_is_warned_of(self) -> None:
        server = self.start(self.device, listen="0.0.0.0:0")
        server.terminate()
        self.assertIn(b"others can reach", server.communicate(timeout=PATIENCE)[1])


class Limits(ServeTest):
    GET = b"GET /api/devices HTTP/1.1\r\nHost: localhost\r\n"

    def test_a_head_that_is_too_long(self) -> None:
        self.start(self.device)
        self.assertTrue(self.raw(self.GET + b"\r\n").startswith(b"HTTP/1.1 200"))
        self.assertEqual(self.raw(self.GET + b"X: " + b"y" * 100_000 + b"\r\n\r\n").count(b" 200 "), 0)
        self.assertEqual(self.raw(self.GET + b"X: y\r\n" * 100_000 + b"\r\n").count(b" 200 "), 0)
        self.assertEqual(self.raw(b"GET /" + b"y" * 100_000 + b" HTTP/1.1\r\n\r\n").count(b" 200 "), 0)
        self.document("/api/devices")

    def test_parts_of_an_answer_cost_no_more_than_the_whole(self) -> None:
        self.start(self.device)
        _, whole = self.ask("/metrics")
        ranges = "bytes=" + ",".join(["0-"] * 500)
        response, body = self.ask("/metrics", headers={"Range": ranges, "Accept-Encoding": "gzip, br"})
        self.assertEqual((response.status, len(body)), (200, len(whole)))
        self.assertNotIn("Content-Encoding", response.headers)

    def test_a_range_of_many_parts_needs_no_deep_stack(self) -> None:
        before = resource.getrlimit(resource.RLIMIT_STACK)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_STACK, before)
        resource.setrlimit(resource.RLIMIT_STACK, (2 << 20, before[1]))  # of each thread of the server
        server = self.start(self.device)
        for name in ("Range", "rANGE"):
            response, _ = self.ask("/metrics", headers={name: "bytes=-" + ",-" * 4000})
            self.assertEqual(response.status, 200)
        self.assertIsNone(server.poll(), "it has ended")

    def test_a_body_is_not_read_as_the_next_request(self) -> None:
        self.start(self.device)
        hidden = self.GET + b"\r\n"
        head = b"Host: localhost\r\nContent-Length: %d\r\n\r\n" % len(hidden)
        for line, status in ((b"GET /nothing HTTP/1.1\r\n", b"404"),
                             (b"GET /nothing HTTP/1.1\r\nRange: bytes=x\r\n", b"404"),
                             (b"GET /" + b"y" * 9000 + b" HTTP/1.1\r\n", b"414"),
                             (b"GET /nothing\r\n", b"400"), (b"nothing\r\n", b"400")):
            with self.subTest(line=line[:40]):
                said = self.raw(line + head + hidden)
                self.assertEqual((said.count(b"HTTP/1.1 "), said[9:12]), (1, status))

    def test_too_many_connections(self) -> None:
        self.start(self.device)
        held = [socket.create_connection((self.host, self.port), timeout=PATIENCE) for _ in range(32)]
        for connection in held:
            self.addCleanup(connection.close)
            connection.sendall(self.GET + b"\r\n")
            self.assertTrue(connection.recv(4096).startswith(b"HTTP/1.1 200"))
        self.assertEqual(self.raw(self.GET + b"\r\n"), b"", "one more is closed")
        for connection in held:
            connection.close()
        while not self.raw(self.GET + b"\r\n"):
            pass

    def test_who_says_nothing_keeps_nobody_out(self) -> None:
        self.start(self.device)
        silent = [socket.create_connection((self.host, self.port), timeout=PATIENCE) for _ in range(20)]
        for connection in silent:
            self.addCleanup(connection.close)
            connection.sendall(b"GET /api")  # and no more
        self.document("/api/devices")
        # A request that never ends is given up.
        self.assertEqual(silent[0].recv(4096)[:9].replace(b"HTTP/1.1 ", b""), b"")

    def test_rubbish(self) -> None:
        """Whatever comes, the server lives, and answers others."""
        seed = int(os.environ.get("ISOZONE_TEST_SEED", "1"))
        print(f"ISOZONE_TEST_SEED={seed}")
        chance = random.Random(seed)
        server = self.start(self.device)
        pieces = [b"GET ", b"/", b"/api/zones", b"/metrics", b"?since=", b"%", b"%00", b"%zz", b" HTTP/1.1", b"\r\n",
                  b"\n", b"Host: localhost", b"Host:", b"Range: bytes=", b"0-,-5,", b"9-1", b"Content-Length: ", b"-1",
                  b"99999999999999999999", b"Transfer-Encoding: chunked", b"Expect: 100-continue", b"\0", b"\xff\xfe",
                  b"HEAD ", b"PRI * HTTP/2.0", b"Connection: close", b"&" * 50, b"=" * 50, b"a" * 9000, b": ", b"\t"]
        for _ in range(300):
            content = b"".join(chance.choice(pieces) for _ in range(chance.randrange(1, 30)))
            if chance.random() < 0.3:
                content = self.GET + content
            if chance.random() < 0.5:
                content += b"\r\n\r\n"
            if chance.random() < 0.2:
                content = bytes(chance.randrange(256) for _ in range(chance.randrange(1, 400)))
            said = self.raw(content)
            self.assertTrue(said == b"" or said.startswith(b"HTTP/1.1 "), (content, said[:100]))
        self.assertIsNone(server.poll(), "it has ended")
        self.document("/api/devices")


if __name__ == "__main__":
    unittest.main()
