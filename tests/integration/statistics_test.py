#!/usr/bin/python3
"""What isozone stats and isozone top tell of a database that another process has open, with the library preloaded:
while it runs, after it was killed, and when nobody has the device.

    statistics_test.py LIBISOZONE ISOZONE
"""

import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import unittest
from typing import Any

import jsonschema

LIBRARY, ISOZONE = (os.path.abspath(sys.argv.pop(1)) for _ in range(2))
SCHEMAS = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "schemas")
PATIENCE = 120  # seconds; only a hang takes so long
NOBODY = "no process publishes statistics"
STRANGER = 65533  # a user who may not write the image


def schema(name: str) -> Any:
    with open(os.path.join(SCHEMAS, f"{name}.schema.json"), encoding="utf-8") as file:
        return json.load(file)


def check_schema(document: Any) -> None:
    store = {f"file:///{name}.schema.json": schema(name) for name in ("stats", "common")}
    resolver = jsonschema.RefResolver("file:///stats.schema.json", store["file:///stats.schema.json"], store)
    jsonschema.Draft202012Validator(schema("stats"), resolver=resolver).validate(document)


class StatisticsTest(unittest.TestCase):
    def setUp(self) -> None:
        self.scratch = tempfile.mkdtemp(prefix="isozone-statistics-")
        self.addCleanup(shutil.rmtree, self.scratch)
        self.image = os.path.join(self.scratch, "ssd.img")
        self.device = f"emu:{self.image}?timing=off"
        self.isozone("mkfs", self.device + "&zones=128&zone_size=8M")
        status = os.stat(self.image)
        self.page = f"/dev/shm/isozone-{status.st_dev:x}-{status.st_ino:x}"

    def isozone(self, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        result = subprocess.run([ISOZONE, *arguments], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(result.returncode, code, result.stderr)
        return result

    def look(self) -> Any:
        document = json.loads(self.isozone("stats", "--json", "--zones", self.device).stdout)
        check_schema(document)
        return document

    def start_database(self, options: str = "", *arguments: str) -> subprocess.Popen[bytes]:
        """A database that is written until it is killed, once it has flushed a table."""
        process = subprocess.Popen(
            ["db_bench", f"--fs_uri=isozone://{self.device}{options}", "--db=/bench", "--benchmarks=overwrite",
             "--duration=3600", "--num=20000", "--value_size=800", "--compression_type=none",
             "--write_buffer_size=2097152", "--target_file_size_base=2097152", *arguments],
            env=dict(os.environ, LD_PRELOAD=LIBRARY), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        self.addCleanup(self.end, process)
        return process

    def end(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.wait()

    def await_flush(self, process: subprocess.Popen[bytes]) -> Any:
        while not os.path.exists(self.page):
            self.assertIsNone(process.poll(), "db_bench has ended")
        while (document := self.look())["classes"]["flush"]["bytes_written"] == 0:
            self.assertIsNone(process.poll(), "db_bench has ended")
        return document

    def test_a_running_database_is_seen_and_a_killed_one_for_the_last_time(self) -> None:
        process = self.start_database()
        document = self.await_flush(process)
        self.assertEqual(document["life"], "mounted")
        self.assertEqual(document["process"]["pid"], process.pid)
        self.assertEqual(document["process"]["program"], "db_bench")
        self.assertEqual(document["geometry"]["zone_count"], 128)
        self.assertGreater(document["write_amplification"], 0.5)
        self.assertEqual(sum(document["zones_now"]["by_phase"].values()), 128)
        self.assertGreater(document["classes"]["wal"]["write_latency_us"]["count"], 0)
        self.assertTrue(any(zone["writer"] == "log" for zone in document["zones"]))
        self.assertEqual(self.look()["process"]["pid"], process.pid, "looking has not touched it")
        self.check_prometheus()
        self.check_why(process)

        process.kill()
        process.wait()
        self.assertTrue(os.path.exists(self.page))
        last = self.isozone("stats", "--json", self.device)
        self.assertEqual(last.stderr.count("\n"), 1)
        self.assertIn(f"process {process.pid} (db_bench) has ended without unmounting", last.stderr)
        died = json.loads(last.stdout)
        check_schema(died)
        self.assertEqual(died["life"], "died")
        self.assertGreaterEqual(died["user_bytes_appended"], document["user_bytes_appended"])
        self.assertFalse(os.path.exists(self.page))
        rest = self.isozone("stats", "--json", self.device)
        self.assertIn(NOBODY, rest.stderr)
        self.assertFalse(json.loads(self.isozone("why", "--json", self.device).stdout)["mounted"])
        self.assertEqual(json.loads(rest.stdout)["life"], "not-mounted")

    def check_why(self, process: subprocess.Popen[bytes]) -> None:
        why = json.loads(self.isozone("why", "--json", self.device).stdout)
        parts = {part["part"]: part["bytes"] for part in why["parts"]}
        self.assertTrue(why["mounted"])
        self.assertEqual(sum(parts.values()), why["capacity"])
        self.assertEqual(why["capacity"], 128 * (8 << 20))
        # The log that is written now has a zone, and RocksDB may not have synced all of what it wrote.
        self.assertGreater(parts["logs"] + parts["unnamed"], 0)
        self.assertGreater(parts["rest-writing"], 0)
        self.assertGreater(parts["free"], 0)
        self.assertIn(f"Process {process.pid} (db_bench) has it mounted", self.isozone("why", self.device).stdout)

    def test_every_command_tells_the_same_of_a_log_that_is_being_written(self) -> None:
        """Its size to the last append, though the device does not have all of it; and what the device has."""
        process = self.start_database("", "--write_buffer_size=1073741824", "--benchmark_write_rate_limit=2000000")
        while not os.path.exists(self.page) or self.look()["classes"]["wal"]["bytes_written"] < 3 << 20:
            self.assertIsNone(process.poll(), "db_bench has ended")
        self.stop_between_writes(process)
        files = json.loads(self.isozone("ls", "--json", self.device, "/bench").stdout)
        [log] = [file for file in files if file["path"].endswith(".log")]
        stat = json.loads(self.isozone("stat", "--json", self.device, log["path"]).stdout)
        self.isozone("cp", self.device, f":{log['path']}", f"{self.scratch}/copy")
        self.isozone("backup", self.device, f"{self.scratch}/backup")
        dump = json.loads(self.isozone("dump", self.device).stdout)
        [dumped] = [file for file in dump["files"] if log["path"] in file["paths"]]
        with open(f"{self.scratch}/copy", "rb") as copy:
            content = copy.read()
        self.assertEqual({stat["size"], len(content), dumped["size"]}, {log["size"]})
        catted = subprocess.run([ISOZONE, "cat", self.device, log["path"]], capture_output=True, timeout=PATIENCE)
        self.assertTrue(catted.stdout == content)
        self.isozone("mkfs", f"emu:{self.scratch}/copy.img?zones=128&zone_size=8M")
        self.isozone("restore", f"{self.scratch}/backup", f"emu:{self.scratch}/copy.img?timing=off")
        restored = subprocess.run([ISOZONE, "cat", f"emu:{self.scratch}/copy.img?timing=off", log["path"]],
                                  capture_output=True, timeout=PATIENCE)
        self.assertTrue(restored.stdout == content)

        self.assertEqual({stat["allocated"], dumped["allocated"], sum(zone["bytes"] for zone in stat["zones"])},
                         {log["allocated"]})
        self.assertGreaterEqual(log["allocated"], 3 << 20)
        space = json.loads(self.isozone("df", "--json", self.device).stdout)
        why = json.loads(self.isozone("why", "--json", self.device).stdout)
        page = self.look()["space"]
        self.assertEqual({space["live"], why["live"]}, {page["live_bytes"]})
        self.assertEqual({space["dead"], why["dead"]}, {page["dead_bytes"]})
        self.assertEqual({space["free"], why["writable"]}, {page["free_bytes"]})
        self.assertGreaterEqual(space["live"], log["allocated"])
        memory = self.look()["kept_memory"]
        self.assertGreaterEqual(memory["used_bytes"], log["size"] - log["allocated"])
        for command in ("stats", "top --once"):
            self.assertIn(" shared memory hold what the device does not have yet",
                          self.isozone(*command.split(), self.device).stdout)

    def test_a_listing_leaves_out_what_goes_meanwhile(self) -> None:
        process = self.start_database()
        self.await_flush(process)
        for _ in range(30):  # without that, one in three failed
            self.isozone("ls", "--json", self.device, "/bench")
        self.assertIsNone(process.poll(), "db_bench has ended")

    def stop_between_writes(self, process: subprocess.Popen[bytes]) -> None:
        """Stops it where its page shows all that it has written: it publishes several times between two frames."""
        while True:
            process.send_signal(signal.SIGSTOP)
            os.waitpid(process.pid, os.WUNTRACED)
            space = json.loads(self.isozone("df", "--json", self.device).stdout)
            if space["live"] == self.look()["space"]["live_bytes"]:
                return
            process.send_signal(signal.SIGCONT)

    def test_a_reader_that_holds_what_was_removed_is_told_of(self) -> None:
        """A stopped process that reads a table, which compaction then removes."""
        process = self.start_database()
        self.await_flush(process)
        reader = self.start_to_read_a_table(process)
        remark = rf"Process {reader.pid} \(isozone\) reads files that were removed or moved\. They hold [0-9.]+ MiB in "
        self.stop_once_it_is_told(process, remark)
        self.assertRegex(" ".join(self.isozone("why", self.device).stdout.split()), remark)
        document = self.look()
        self.assertLessEqual(document["held_by_readers_bytes"], document["space"]["dead_bytes"])
        held = re.search(r"^isozone_held_by_readers_bytes\{[^}]*\} (\S+)$",
                         self.isozone("stats", "--prometheus", self.device).stdout, re.MULTILINE)
        assert held is not None
        self.assertEqual(float(held[1]), document["held_by_readers_bytes"])
        for command in ("stats", "top --once"):
            self.assertRegex(self.isozone(*command.split(), self.device).stdout,
                             r"Readers +other processes still read in zones that hold [0-9.]+ MiB of what is dead")

        process.send_signal(signal.SIGCONT)
        self.end(reader)
        while self.look()["held_by_readers_bytes"] > 0:
            self.assertIsNone(process.poll(), "db_bench has ended")
        self.assertFalse(any("reads files" in told for told in self.why_remarks()))

    def stop_once_it_is_told(self, process: subprocess.Popen[bytes], remark: str) -> None:
        """A zone that is held, and has room, may be written further; then something lives in it for a while."""
        while True:
            while self.look()["held_by_readers_bytes"] == 0:
                self.assertIsNone(process.poll(), "db_bench has ended")
            process.send_signal(signal.SIGSTOP)
            os.waitpid(process.pid, os.WUNTRACED)
            if self.look()["held_by_readers_bytes"] > 0 and any(re.match(remark, one) for one in self.why_remarks()):
                return
            process.send_signal(signal.SIGCONT)

    def why_remarks(self) -> list[str]:
        remarks: list[str] = json.loads(self.isozone("why", "--json", self.device).stdout)["remarks"]
        return remarks

    def start_to_read_a_table(self, process: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
        """The reader has it open, and is stopped before its end: a pipe holds less than a table."""
        while True:
            self.assertIsNone(process.poll(), "db_bench has ended")
            files = json.loads(self.isozone("ls", "--json", self.device, "/bench").stdout)
            tables = [file["path"] for file in files if file["path"].endswith(".sst") and file["size"] > 1 << 20]
            if not tables:
                continue
            reader = subprocess.Popen([ISOZONE, "cat", self.device, tables[-1]], stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL)
            self.addCleanup(self.end, reader)
            assert reader.stdout is not None
            self.addCleanup(reader.stdout.close)
            if reader.stdout.read(1) != b"":  # it was removed before it was opened
                reader.send_signal(signal.SIGSTOP)
                os.waitpid(reader.pid, os.WUNTRACED)
                return reader

    def check_prometheus(self) -> None:
        text = self.isozone("stats", "--prometheus", self.device).stdout
        samples = [line for line in text.splitlines() if not line.startswith("#")]
        for line in samples:
            self.assertRegex(line, r'^isozone_[a-z_]+\{device="[^"]*"(,[a-z_]+="[^"]*")*\} [0-9.e+-]+$')
        self.assertEqual(len({line.rpartition(" ")[0] for line in samples}), len(samples), "each series once")
        families = re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE)
        self.assertEqual(len(families), len(dict(families)))
        for name, kind in families:
            self.assertEqual(kind == "counter", name.endswith("_total"), name)
        self.assertNotIn("zone=", text)
        buckets = [float(line.rpartition(" ")[2]) for line in samples
                   if line.startswith("isozone_write_duration_seconds_bucket") and 'class="wal"' in line]
        self.assertEqual(buckets, sorted(buckets))
        self.assertGreater(buckets[-1], 0)
        if promtool := shutil.which("promtool"):
            result = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True,
                                    timeout=PATIENCE)
            self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))

    def test_the_next_mount_replaces_what_a_killed_process_left(self) -> None:
        process = self.start_database()
        self.await_flush(process)
        process.kill()
        process.wait()
        self.assertTrue(os.path.exists(self.page))
        source = os.path.join(self.scratch, "file")
        with open(source, "wb") as file:
            file.write(os.urandom(1 << 20))
        self.assertRegex(self.isozone("cp", self.device, source, ":/file").stderr,
                         r"\A\[.*\] took over from a process that was killed: .*\n\Z")
        self.assertFalse(os.path.exists(self.page), "the mount has replaced the page, and has taken its own with it")

    def test_a_watch_ends_with_the_mount(self) -> None:
        process = self.start_database()
        self.await_flush(process)
        watch = subprocess.Popen([ISOZONE, "stats", "--json", "--watch", "--interval", "0.1", self.device],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(watch.kill)
        assert watch.stdout is not None
        for _ in range(3):
            self.assertEqual(json.loads(watch.stdout.readline())["life"], "mounted")
        process.send_signal(signal.SIGKILL)
        process.wait()
        output, errors = watch.communicate(timeout=PATIENCE)
        self.assertEqual(watch.returncode, 0)
        self.assertEqual(json.loads(output.splitlines()[-1])["life"], "died")
        self.assertIn("has ended without unmounting", errors)

    def test_pages_that_are_of_no_use_give_one_line(self) -> None:
        self.put_page(99)
        for command in ("stats", "top --once"):
            error = self.isozone(*command.split(), self.device, code=3).stderr
            self.assertRegex(error, r"\Aisozone \w+: [^\n]*version 99[^\n]*\n\Z")

    def put_page(self, version: int) -> None:
        with open(self.page, "wb") as file:
            file.write(struct.pack("<QI", 0x4547415054534F5A, version) + bytes(1000))
        self.addCleanup(os.unlink, self.page)

    def check_ignored(self, why: str) -> None:
        """What lies in the place of the page hides nothing."""
        result = self.isozone("stats", "--json", self.device)
        self.assertEqual(json.loads(result.stdout)["life"], "not-mounted")
        self.assertRegex(result.stderr, rf"\Aisozone stats: a foreign page is ignored \([^\n]*{why}[^\n]*\n\Z")
        self.assertIn("a foreign page is ignored", self.isozone("top", "--once", self.device).stdout)

    def test_what_is_no_page_does_not_hide_the_device(self) -> None:
        os.symlink("/nowhere", self.page)
        self.addCleanup(os.unlink, self.page)
        self.check_ignored("symbolic links")
        os.unlink(self.page)
        with open(self.page, "wb") as file:
            file.write(b"no page")
        self.check_ignored("not a statistics page")

    @unittest.skipUnless(os.geteuid() == 0, "only root makes files of another user")
    def test_the_page_of_a_stranger_does_not_hide_the_device(self) -> None:
        self.put_page(99)
        os.chown(self.page, STRANGER, STRANGER)
        self.check_ignored(f"belongs to user {STRANGER}, who may not write")

    # --- top ---

    def test_top_needs_a_terminal_or_prints_once(self) -> None:
        self.assertIn("--once", self.isozone("top", self.device, code=1).stderr)
        picture = self.isozone("top", "--once", self.device).stdout
        self.assertIn("compaction-write", picture)
        self.assertIn(NOBODY, picture)
        self.assertNotIn("\x1b", picture)

    def test_top_fills_the_terminal_follows_its_size_and_leaves_it_as_it_was(self) -> None:
        process = self.start_database()
        self.await_flush(process)
        pid, terminal = pty.fork()
        if pid == 0:
            os.environ.update(NO_COLOR="1", TERM="xterm")
            os.execv(ISOZONE, [ISOZONE, "top", "--interval", "0.2", self.device])
        self.addCleanup(os.close, terminal)
        self.resize(terminal, pid, 30, 100)
        frame = self.read_until(terminal, b"nobody waits|waits for", b"q quit")
        self.assertTrue(frame.startswith(b"\x1b[?1049h"))
        self.assertNotIn(b"\x1b[38;5", frame)
        self.assertIn(b"compaction-write", frame)
        self.resize(terminal, pid, 6, 40)
        for _ in range(2):  # the first may have been drawn before
            frame = self.read_until(terminal, b"q quit", b"\x1b\\[K")
        text = re.sub(rb"\x1b\[[?0-9;]*[A-Za-z]", b"", frame)
        self.assertLessEqual(max(len(line) for line in text.split(b"\r\n")), 80)
        os.write(terminal, b"q")
        end = self.read_until(terminal, b"\x1b\\[\\?1049l")
        self.assertIn(b"\x1b[?25h", end)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        self.assertIsNone(process.poll(), "it was not touched")

    def resize(self, terminal: int, pid: int, rows: int, columns: int) -> None:
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.kill(pid, signal.SIGWINCH)

    def read_until(self, terminal: int, *patterns: bytes) -> bytes:
        read = b""
        while not all(re.search(pattern, read) for pattern in patterns):
            if not select.select([terminal], [], [], PATIENCE)[0]:
                self.fail(f"nothing more than {read!r}")
            try:
                read += os.read(terminal, 65536)
            except OSError:  # the terminal is closed
                break
        return read


if __name__ == "__main__":
    unittest.main()
