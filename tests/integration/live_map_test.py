#!/usr/bin/python3
"""What isozone serve tells of a database that another process has open, with the library preloaded: to Prometheus, with
the rules and the dashboard in contrib, and to a browser.

    live_map_test.py LIBISOZONE ISOZONE

The database is stopped (SIGSTOP) where the test compares what the server shows with what `isozone stats` says: nothing
changes then. ISOZONE_SCREENSHOTS names a folder for pictures of the page.
"""

import functools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import Any

import browser

LIBRARY, ISOZONE = (os.path.abspath(sys.argv.pop(1)) for _ in range(2))
CONTRIB = os.path.join(os.path.dirname(__file__), "..", "..", "contrib")
PATIENCE = 120  # seconds; only a hang takes so long


# Whatever proxy the environment names: the servers are of this machine.
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def get(url: str) -> bytes:
    with DIRECT.open(url, timeout=PATIENCE) as response:
        content: bytes = response.read()
        return content


def wait_until(holds: Callable[[], Any], what: str) -> Any:
    """Asks again and again; gives the first answer that is true."""
    until = time.monotonic() + PATIENCE
    while not (answer := holds()):
        if time.monotonic() > until:
            raise TimeoutError(f"never: {what}")
        time.sleep(0.05)
    return answer


class ServedDatabase(unittest.TestCase):
    def setUp(self) -> None:
        self.scratch = tempfile.mkdtemp(prefix="isozone-serve-")
        self.addCleanup(shutil.rmtree, self.scratch)
        self.image = os.path.join(self.scratch, "ssd.img")
        self.device = f"emu:{self.image}?timing=off"
        subprocess.run([ISOZONE, "mkfs", self.device + "&zones=128&zone_size=8M", "--label", "test"],
                       check=True, stdout=subprocess.DEVNULL, timeout=PATIENCE)

    def end(self, process: subprocess.Popen[Any]) -> None:
        process.kill()
        process.wait(timeout=PATIENCE)
        if process.stdout is not None:
            process.stdout.close()

    def start_database(self) -> subprocess.Popen[bytes]:
        """A database that is written until it is killed, once it has written a compaction."""
        process = subprocess.Popen(
            ["db_bench", f"--fs_uri=isozone://{self.device}", "--db=/bench", "--benchmarks=overwrite",
             "--duration=3600", "--num=60000", "--value_size=800", "--compression_type=none",
             "--write_buffer_size=2097152", "--target_file_size_base=2097152", "--max_bytes_for_level_base=8388608"],
            env=dict(os.environ, LD_PRELOAD=LIBRARY), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        self.addCleanup(self.end, process)

        def has_compacted() -> bool:
            document = self.stats()
            self.assertIsNone(process.poll(), "db_bench has ended")
            levels = document["zones_now"]["by_level"]
            return document["life"] == "mounted" and "1" in levels and document["history_is_long"]

        wait_until(has_compacted, "a compaction")
        return process

    def stats(self, *arguments: str) -> Any:
        result = subprocess.run([ISOZONE, "stats", "--json", *arguments, self.device], capture_output=True, text=True,
                                check=True, timeout=PATIENCE)
        document = json.loads(result.stdout)
        document["history_is_long"] = document["rates"]["seconds"] > 1
        return document

    def serve(self, *options: str) -> str:
        """Starts a server; gives its address."""
        server = subprocess.Popen([ISOZONE, "serve", "--listen", "127.0.0.1:0", *options, self.device],
                                  stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.end, server)
        assert server.stdout is not None
        match = re.search(r"http://(\S+)/ until", server.stdout.readline())
        assert match
        return f"http://{match[1]}"

    def stop(self, process: subprocess.Popen[bytes]) -> None:
        """No thread of it runs when this returns."""
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: all(self.state(thread) == "T" for thread in os.listdir(f"/proc/{process.pid}/task")),
                   "all threads are stopped")

    def state(self, thread: str) -> str:
        with open(f"/proc/{thread}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0]


class Metrics(ServedDatabase):
    def test_the_server_says_what_stats_says_and_survives_the_process(self) -> None:
        process = self.start_database()
        address = self.serve()
        self.stop(process)
        shown = self.without_times(self.stats("--zones"))
        # The first looks may be of the moment before.
        wait_until(lambda: self.without_times(json.loads(get(f"{address}/api/stats?zones=1"))) == shown,
                   "the server says what stats says")
        self.check_metrics(address)

        process.kill()
        process.wait(timeout=PATIENCE)
        device = wait_until(lambda: self.device_of(address, lambda life: life != "mounted"), "it is seen to have ended")
        self.assertEqual(device["life"], "died")
        self.assertIn(f"process {process.pid} (db_bench) has ended without unmounting", device["note"])
        died = json.loads(get(f"{address}/api/stats"))
        self.assertEqual(died["user_bytes_appended"], shown["user_bytes_appended"])
        self.start_database()
        wait_until(lambda: self.device_of(address, lambda life: life == "mounted"), "it is mounted again")

    def device_of(self, address: str, fits: Callable[[str], bool]) -> Any:
        """The device that is served, if its life fits."""
        device = json.loads(get(f"{address}/api/devices"))["devices"][0]
        return device if fits(device["life"]) else None

    def without_times(self, document: Any) -> Any:
        """A document of stats without what goes on while the process stands still: since when something is."""
        document.pop("history_is_long", None)
        document.pop("waits")
        for event in document["events"]:
            event.pop("seconds_ago")
        return document

    def check_metrics(self, address: str) -> None:
        text = get(f"{address}/metrics").decode()
        stats = self.stats()
        values = dict(line.rpartition(" ")[::2] for line in text.splitlines() if not line.startswith("#"))
        device = f'device="emu:{self.image}"'
        self.assertEqual(float(values[f"isozone_mounted{{{device}}}"]), 1)
        self.assertEqual(float(values[f"isozone_appended_bytes_total{{{device}}}"]), stats["user_bytes_appended"])
        for name, figures in stats["classes"].items():
            self.assertEqual(float(values[f'isozone_written_bytes_total{{{device},class="{name}"}}']),
                             figures["bytes_written"])
        if promtool := shutil.which("promtool"):
            result = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True,
                                    timeout=PATIENCE)
            self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))

    def test_files_of_a_zone_that_is_being_written(self) -> None:
        self.start_database()
        address = self.serve()
        found = json.loads(get(f"{address}/api/files?name=CURRENT"))["files"]
        self.assertEqual([file["path"] for file in found], ["/bench/CURRENT"])
        zone = found[0]["zones"][0]["zone"]
        paths = [path for file in json.loads(get(f"{address}/api/zone?zone={zone}"))["files"]
                 for path in file["paths"]]
        self.assertIn("/bench/CURRENT", paths)


@unittest.skipUnless(shutil.which("prometheus") and shutil.which("promtool"), "there is no prometheus here")
class WithPrometheus(ServedDatabase):
    def contrib(self, name: str) -> str:
        with open(os.path.join(CONTRIB, name), encoding="utf-8") as file:
            return file.read()

    def expressions(self) -> list[str]:
        """All that the dashboard and the rules ask for, with the variables of the dashboard set."""
        dashboard = json.loads(self.contrib("grafana/isozone.json"))
        asked = [target["expr"].replace("$device", ".*").replace("$__rate_interval", "1m")
                 for panel in dashboard["panels"] for target in panel.get("targets", [])]
        return asked + re.findall(r"^ +expr: (.+)$", self.contrib("prometheus/isozone.rules.yml"), re.MULTILINE)

    def test_the_rules_are_sound(self) -> None:
        for command in ("check config prometheus.yml", "test rules isozone.rules.test.yml"):
            result = subprocess.run(["promtool", *command.split()], cwd=os.path.join(CONTRIB, "prometheus"),
                                    capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_every_metric_that_is_asked_for_exists(self) -> None:
        address = self.serve()
        exist = set(re.findall(r"^(isozone_\w+)\{", get(f"{address}/metrics").decode(), re.MULTILINE))
        asked = {name for expression in self.expressions()
                 for name in re.findall(r"(?<![\w:])isozone_\w+", expression)}
        self.assertGreater(len(asked), 30)
        self.assertEqual(asked - exist, set())

    def test_prometheus_scrapes_it_and_knows_every_expression(self) -> None:
        self.start_database()
        served = self.serve()
        config = self.contrib("prometheus/prometheus.yml").replace("127.0.0.1:9464", served.removeprefix("http://"))
        config = config.replace("15s", "1s").replace("isozone.rules.yml",
                                                     os.path.abspath(f"{CONTRIB}/prometheus/isozone.rules.yml"))
        with open(os.path.join(self.scratch, "prometheus.yml"), "w", encoding="utf-8") as file:
            file.write(config)
        address = self.start_prometheus()
        for expression in ('up{job="isozone"} == 1', "rate(isozone_written_bytes_total[1m]) > 0"):
            wait_until(functools.partial(self.query, address, expression), expression)
        for expression in self.expressions():
            with self.subTest(expression=expression):
                self.query(address, expression)
        self.assertEqual(self.query(address, "isozone_mounted")[0]["value"][1], "1")

    def start_prometheus(self) -> str:
        """Prometheus cannot have the kernel choose a port: one that is free is tried, and another if it was taken."""
        while True:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                port = probe.getsockname()[1]
            process = subprocess.Popen(
                ["prometheus", f"--config.file={self.scratch}/prometheus.yml",
                 f"--storage.tsdb.path={self.scratch}/data", f"--web.listen-address=127.0.0.1:{port}"],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.addCleanup(self.end, process)
            while process.poll() is None:
                try:
                    get(f"http://127.0.0.1:{port}/-/ready")
                    return f"http://127.0.0.1:{port}"
                except (urllib.error.URLError, OSError):
                    time.sleep(0.05)

    def query(self, address: str, expression: str) -> Any:
        answer = json.loads(get(f"{address}/api/v1/query?query={urllib.parse.quote(expression)}"))
        self.assertEqual(answer["status"], "success")
        return answer["data"]["result"]


@unittest.skipUnless(browser.program(), "there is no chromium here")
class InTheBrowser(ServedDatabase):
    def open(self, url: str, width: int = 1440, height: int = 900) -> browser.Browser:
        page = browser.Browser(width, height)
        self.addCleanup(page.close)
        page.open(url)
        page.wait("document.body.dataset.taken !== undefined && document.querySelector('#legend span') !== null")
        return page

    def picture(self, page: browser.Browser, name: str) -> None:
        if folder := os.environ.get("ISOZONE_SCREENSHOTS"):
            page.screenshot(os.path.join(folder, f"{name}.png"))

    def legend(self, page: browser.Browser) -> dict[str, int]:
        texts = page.value("[...document.querySelectorAll('#legend span[data-key]')].map(e => e.textContent)")
        return {name: int(count) for name, count in (text.rsplit(": ", 1) for text in texts if ": " in text)}

    def expected_levels(self, zones: Any) -> dict[str, int]:
        counts: dict[str, int] = {}
        for zone in zones:
            level = zone["level"]
            key = "no level" if level is None else f"L{min(level, 7)}"
            if zone["use"] in ("metadata", "log"):
                key = zone["use"]
            if zone["written"] == 0 and zone["phase"] != "leased":
                key = "free"
            counts[key] = counts.get(key, 0) + 1
        return counts

    def test_the_page_shows_what_stats_says(self) -> None:
        process = self.start_database()
        page = self.open(self.serve())
        seconds = "Number(document.querySelector('#timeline').dataset.seconds)"
        page.wait(f"{seconds} >= 3")
        self.picture(page, "live-map")
        self.stop(process)
        stats = self.stats("--zones")
        written = "[...document.querySelectorAll('#classes tr[data-class]')].map(" \
                  "r => [r.dataset.class, Number(r.dataset.written), Number(r.dataset.read)])"
        expected = [[name, of["bytes_written"], of["bytes_read"]] for name, of in stats["classes"].items()]
        page.wait(f"JSON.stringify({written}) === {json.dumps(json.dumps(expected, separators=(',', ':')))}")
        # The map is asked for by itself: it may still be the one of the moment before.
        page.wait(f"{seconds} >= {page.value(seconds) + 2}")
        levels = self.expected_levels(stats["zones"])
        wait_until(lambda: self.legend(page) == levels, f"the legend says {levels}")
        figure = "document.querySelector('[data-figure={}]').textContent"
        self.assertEqual(page.value(figure.format("write-amplification")), f"{stats['write_amplification']:.2f}")
        self.assertEqual(page.value(figure.format("active")).split(" ")[0], str(stats["space"]["active_zones"]))
        self.assertRegex(page.value(figure.format("kept-memory")), r"^[0-9.]+ ([KM]i)?B$")
        self.assertEqual(page.value(figure.format("held-by-readers")), "0 B")
        self.assertEqual(page.value("document.querySelector('#life').textContent"), "mounted")
        self.check_zones(page, stats)
        self.check_keys(page)
        self.assertEqual(page.complaints, [])

        process.kill()
        page.wait("document.querySelector('#life').textContent === 'died'")
        page.wait("document.querySelector('#wait').textContent.includes('has ended without unmounting')")

    def check_zones(self, page: browser.Browser, stats: Any) -> None:
        """Each zone is told as stats has it."""
        block = stats["geometry"]["block_size"]
        page.value("document.querySelector('#overlay').focus()")
        page.key("Home")
        for zone in stats["zones"][:40]:
            text = page.value("document.querySelector('#hint').textContent")
            self.assertIn(f"Zone {zone['zone']} ·", text)
            self.assertIn(f"· group {zone['group']} ·", text)
            if zone["phase"] == "leased":
                self.assertIn(f"written by {zone['writer']}", text)
            if zone["written"] < block * 256:
                self.assertIn(f"{zone['written'] / 1024:.1f} KiB of " if zone["written"] else "0 B of ", text)
            page.key("ArrowRight")

    def check_keys(self, page: browser.Browser) -> None:
        for number, key in enumerate("23456", 1):
            page.key(key)
            self.assertTrue(page.value(f"document.querySelectorAll('#modes button')[{number}].ariaChecked === 'true'"))
            self.picture(page, f"mode-{key}")
        page.key("1")
        page.key(" ")
        page.wait("document.querySelector('#live').ariaPressed === 'false'")
        page.value("(() => { const t = document.querySelector('#time'); t.value = 0;"
                   " t.dispatchEvent(new Event('input')); })()")
        page.wait("/^−\\d+:\\d\\d$/.test(document.querySelector('#moment').textContent)")
        page.key("l")
        page.wait("document.querySelector('#moment').textContent === 'now'")
        page.key("t")
        page.wait("document.documentElement.dataset.theme === 'light'"
                  " || document.documentElement.dataset.theme === 'dark'")
        self.picture(page, "other-theme")

    def test_a_file_is_found_and_its_stripe_shown(self) -> None:
        self.start_database()
        page = self.open(self.serve())
        page.value("document.querySelector('#search').value = 'CURRENT';"
                   "document.querySelector('#search').dispatchEvent(new Event('input'))")
        page.wait("document.querySelector('#selection li') !== null")
        self.assertEqual(page.value("document.querySelector('#selection li span').textContent"), "/bench/CURRENT")
        self.picture(page, "search")

    def test_the_map_in_one_file_shows_what_is_on_the_device(self) -> None:
        process = self.start_database()
        process.kill()
        process.wait(timeout=PATIENCE)
        path = os.path.join(self.scratch, "zones.html")
        subprocess.run([ISOZONE, "zones", "--html", path, self.device], check=True, stdout=subprocess.DEVNULL,
                       timeout=PATIENCE)
        page = self.open(f"file://{path}")
        self.stats()  # removes the page of the process that was killed
        zones = self.stats("--zones")["zones"]
        self.assertEqual(self.legend(page), self.expected_levels(zones))
        listed = json.loads(subprocess.run([ISOZONE, "ls", "-R", "--json", self.device, "/"], check=True,
                                           capture_output=True, timeout=PATIENCE).stdout)
        tables = [entry["path"] for entry in listed if entry["path"].endswith(".sst")]
        page.value("document.querySelector('#search').value = '.sst';"
                   "document.querySelector('#search').dispatchEvent(new Event('input'))")
        page.wait("document.querySelector('#selection li') !== null")
        titles = "[...document.querySelectorAll('#selection li span:first-child')].map(e => e.textContent)"
        self.assertEqual(sorted(page.value(titles)), sorted(tables))
        page.value("document.querySelector('#selection li button').click()")
        self.picture(page, "still")
        page.value("document.querySelector('#overlay').focus()")
        for key in (" ", "l", "Escape", "End"):
            page.key(key)
        self.assertIn(f"Zone {len(zones) - 1} ·", page.value("document.querySelector('#hint').textContent"))
        self.assertEqual(page.complaints, [])

    def place(self, page: browser.Browser, zone: int) -> list[float]:
        """Where the middle of a zone is on the page."""
        place: list[float] = page.value(
            f"(() => {{ const map = document.querySelector('#overlay').getBoundingClientRect();"
            f" const size = Number(document.querySelector('#overlay').dataset.pitch),"
            f" columns = Number(document.querySelector('#overlay').dataset.columns);"
            f" return [map.left + 3 + ({zone} % columns + 0.5) * size,"
            f" map.top + 3 + (Math.floor({zone} / columns) + 0.5) * size]; }})()")
        return place

    def test_a_click_shows_the_files_of_a_zone(self) -> None:
        process = self.start_database()
        page = self.open(self.serve())
        self.stop(process)
        zone = next(zone["zone"] for zone in self.stats("--zones")["zones"]
                    if zone["use"] == "data" and zone["live"] > 0 and zone["phase"] != "leased")
        at = self.place(page, zone)
        for kind in ("mousePressed", "mouseReleased"):
            page.call("Input.dispatchMouseEvent", type=kind, x=at[0], y=at[1], button="left", clickCount=1)
        page.wait("document.querySelector('#selection li') !== null")
        self.assertEqual(page.value("document.querySelector('#selection h2').textContent"), f"Zone {zone}")
        shown = page.value("[...document.querySelectorAll('#selection li span:first-child')].map(e => e.textContent)")
        self.assertEqual(shown, self.paths_in(zone))

    def paths_in(self, zone: int) -> list[str]:
        """The first name of each file in a zone."""
        files = json.loads(subprocess.run([ISOZONE, "zones", "--json", "--zone", str(zone), self.device], check=True,
                                          capture_output=True, timeout=PATIENCE).stdout)["files"]
        return [file["paths"][0] for file in files]

    def key_ranges(self) -> dict[str, str]:
        """What RocksDB's own tool finds in the MANIFEST: the keys of each live table, as the page shows them."""
        current, manifest = (os.path.join(self.scratch, name) for name in ("CURRENT", "MANIFEST"))
        self.copy("/bench/CURRENT", current)
        with open(current, encoding="ascii") as file:
            self.copy(f"/bench/{file.read().strip()}", manifest)
        dump = subprocess.run(["ldb", "manifest_dump", f"--path={manifest}", "--hex"], capture_output=True, text=True,
                              check=True, timeout=PATIENCE).stdout
        pattern = r"^ (\d+):\d+(?:\[\d+ .. \d+\])?\['?([0-9A-F]+)'? seq:\d+, type:\d+ .. '?([0-9A-F]+)'? seq:"
        return {f"/bench/{int(number):06}.sst": f"0x{smallest} – 0x{largest}"
                for number, smallest, largest in re.findall(pattern, dump, re.MULTILINE)}

    def copy(self, path: str, to: str) -> None:
        subprocess.run([ISOZONE, "cp", self.device, f":{path}", to], check=True, stdout=subprocess.DEVNULL,
                       timeout=PATIENCE)

    def test_files_are_shown_with_the_keys_that_they_hold(self) -> None:
        process = self.start_database()
        page = self.open(self.serve())
        self.stop(process)
        expected = self.key_ranges()
        self.assertGreater(len(expected), 3)
        page.value("document.querySelector('#search').value = '.sst';"
                   "document.querySelector('#search').dispatchEvent(new Event('input'))")
        page.wait("document.querySelector('#selection li .keys') !== null")
        shown = page.value("Object.fromEntries([...document.querySelectorAll('#selection li')].filter("
                           "e => e.querySelector('.keys')).map(e => [e.querySelector('span').textContent,"
                           " e.querySelector('.keys').textContent]))")
        self.assertEqual(shown, expected)
        # Whoever rests on a zone sees the same of the files in it.
        page.key("Escape")
        zone = next(zone["zone"] for zone in self.stats("--zones")["zones"]
                    if zone["use"] == "data" and any(path in expected for path in self.paths_in(zone["zone"])))
        at = self.place(page, zone)
        page.call("Input.dispatchMouseEvent", type="mouseMoved", x=at[0], y=at[1])
        page.wait("document.querySelector('#selection li .keys') !== null")
        self.assertEqual(page.value("document.querySelector('#selection h2').textContent"), f"Zone {zone}")
        self.picture(page, "keys")
        for path, keys in page.value("[...document.querySelectorAll('#selection li')].filter(e => e.querySelector("
                                     "'.keys')).map(e => [e.querySelector('span').textContent,"
                                     " e.querySelector('.keys').textContent])"):
            self.assertEqual(keys, expected[path])
        text = subprocess.run([ISOZONE, "zones", "--zone", str(zone), self.device], capture_output=True, text=True,
                              check=True, timeout=PATIENCE).stdout
        rows = [line.split() for line in text.splitlines() if line.endswith(".sst")]
        # Of tables that are being written, or that nobody has removed yet, the database knows no keys.
        live = [row for row in rows if row[-1] in expected]
        self.assertGreater(len(live), 0)
        self.assertEqual([row for row in rows if row not in live and len(row) > len(("BYTES", "KIND", "NAME"))], [])
        for row in live:
            self.assertEqual(f"{row[-3]} – {row[-2]}", expected[row[-1]])
            self.assertRegex(row[-4], "^L[0-6]$")
        silent = json.loads(get(f"{self.serve('--no-keys')}/api/zone?zone={zone}"))
        self.assertEqual([file["table"] for file in silent["files"]], [None] * len(silent["files"]))
        self.assertEqual(page.complaints, [])

    def test_it_fits_on_a_phone(self) -> None:
        self.start_database()
        page = self.open(self.serve(), 390, 844)
        page.wait("Number(document.querySelector('#timeline').dataset.seconds) >= 2")
        self.assertLessEqual(page.value("document.documentElement.scrollWidth"), 390)
        self.assertLessEqual(page.value("document.querySelector('#zones').getBoundingClientRect().right"), 390)
        self.picture(page, "phone")
        self.assertEqual(page.complaints, [])


if __name__ == "__main__":
    unittest.main()
