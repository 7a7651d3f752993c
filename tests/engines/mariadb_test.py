#!/usr/bin/env python3
"""MariaDB whose MyRocks is on a mounted directory: the page; no acknowledged row is lost when the server and the daemon
are killed and in power cuts of the device; a backup beside a server that writes is restored to another device.

    mariadb_test.py BUILD_DIRECTORY [--kills N] [--cuts N]

Skipped where MariaDB, its plugin or sysbench are not there.
"""

import getpass
import glob
import os
import random
import signal
import subprocess
import threading
import unittest

import on_mount
from on_mount import mounted

KILLS = mounted.option("--kills", 4)
CUTS = mounted.option("--cuts", 2)
WRITERS = 2
ROWS = 20  # that each writer has acknowledged before something is killed
CONTENT = "repeat(md5(concat(writer, ' ', id)), 30)"
# Small, so that flushes and compactions run in each turn.
FAMILY = "write_buffer_size=512k;target_file_size_base=512k;max_bytes_for_level_base=2m"
SYSBENCH_TABLES = 2


class Inserts(threading.Thread):
    """Inserts rows by a client, each in a transaction with a second one; knows how many commits were acknowledged."""

    def __init__(self, client: list[str], turn: int, writer: int) -> None:
        super().__init__(daemon=True)
        self.turn, self.writer = turn, writer
        self.acknowledged = 0
        self.process = subprocess.Popen([*client, "--unbuffered", "--skip-reconnect"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def run(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        row = f"{self.turn}, {self.writer}"
        try:
            for number in range(1, 1_000_000):
                self.process.stdin.write(f"begin; insert into proof.one values ({row}, {number}, {CONTENT}); "
                                         f"insert into proof.two values ({row}, {number}, {CONTENT}); commit; "
                                         f"select {number};\n")
                self.process.stdin.flush()
                if self.process.stdout.readline() != f"{number}\n":
                    return
                self.acknowledged = number
        except BrokenPipeError:
            pass
        finally:
            self.process.kill()

    def stop(self) -> None:
        self.process.kill()
        self.join()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            try:
                pipe.close()
            except BrokenPipeError:
                pass


class MariaDb(on_mount.MountedTest):
    commands = ("mariadbd", "mariadb", "mariadb-install-db", "sysbench")

    def setUp(self) -> None:
        if not glob.glob("/usr/lib/mysql/plugin/ha_rocksdb.so"):
            self.skipTest("mariadb-plugin-rocksdb is not there")
        super().setUp()
        self.data = os.path.join(self.scratch, "data")
        self.socket = os.path.join(self.scratch, "socket")
        self.environment["TMPDIR"] = self.scratch  # a server that starts removes temporary tables of all others

    def tool(self, name: str) -> list[str]:
        """A client program of MariaDB that talks to the server of the test."""
        return [name, "--no-defaults", "--user=root", f"--socket={self.socket}"]

    def client(self) -> list[str]:
        return self.tool("mariadb") + ["--batch", "--skip-column-names"]

    def query(self, statement: str) -> list[str]:
        return self.run_command(*self.client(), "-e", statement).splitlines()

    def install(self) -> None:
        self.run_command("mariadb-install-db", "--no-defaults", f"--datadir={self.data}", "--skip-test-db",
                         "--auth-root-authentication-method=normal", f"--user={getpass.getuser()}")

    def serve(self) -> on_mount.Program:
        """Starts the server, and waits until it answers."""
        server = on_mount.Program(
            self, "mariadbd", "mariadbd", "--no-defaults", f"--user={getpass.getuser()}", f"--datadir={self.data}",
            f"--socket={self.socket}", "--skip-networking", "--plugin-load-add=ha_rocksdb", "--pid-file=mariadbd.pid",
            f"--rocksdb-datadir={self.directory}/rocksdb", f"--rocksdb-default-cf-options={FAMILY}")
        ping = [*self.tool("mariadb-admin"), "ping"]
        mounted.wait_until(lambda: server.has_ended() or
                           subprocess.run(ping, capture_output=True, check=False).returncode == 0,
                           "the server does not answer")
        self.assertFalse(server.has_ended(), server.said())
        return server

    def sysbench(self, *arguments: str) -> list[str]:
        return ["sysbench", "oltp_write_only", f"--mysql-socket={self.socket}", "--mysql-user=root",
                "--mysql-db=sysbench", "--mysql-storage-engine=rocksdb", f"--tables={SYSBENCH_TABLES}",
                "--table-size=5000", "--rand-seed=1", *arguments]

    def create(self) -> None:
        """Makes the tables of the proof and those of sysbench."""
        columns = ("turn int, writer int, id int, content varbinary(1000), "
                   "primary key (turn, writer, id), key (content(20))")
        self.query("create database sysbench; create database proof; " +
                   "".join(f"create table proof.{name} ({columns}) engine=rocksdb; " for name in ("one", "two")))
        self.run_command(*self.sysbench("prepare"))

    def start_writers(self, turn: int) -> list[Inserts]:
        writers = [Inserts(self.client(), turn, number) for number in range(WRITERS)]
        for writer in writers:
            self.addCleanup(writer.stop)
            writer.start()
        return writers

    def start_load(self, turn: int) -> tuple[list[Inserts], on_mount.Program]:
        """Writers whose rows are counted, beside sysbench."""
        load = on_mount.Program(self, "sysbench", *self.sysbench("--threads=2", "--time=0", "run"))
        writers = self.start_writers(turn)
        mounted.wait_until(lambda: all(writer.acknowledged > ROWS for writer in writers), "the writers do not get on")
        return writers, load

    def end_load(self, writers: list[Inserts], load: on_mount.Program) -> None:
        load.end(signal.SIGKILL)
        for writer in writers:
            writer.stop()

    def check_rows(self, writers: list[Inserts]) -> None:
        """Every commit that was acknowledged is there and whole, and at most the next one of each writer."""
        for writer in writers:
            if writer.acknowledged == 0:
                continue
            rows = f"where turn={writer.turn} and writer={writer.writer}"
            good = f"count(*), min(id), max(id), sum(content <> {CONTENT})"
            one, two = (self.query(f"select {good} from proof.{name} {rows}") for name in ("one", "two"))
            self.assertEqual(one, two)
            count, first, last, wrong = (int(word) for word in one[0].split("\t"))
            self.assertEqual((1, count, 0), (first, last, wrong), f"turn {writer.turn}")
            self.assertIn(count, (writer.acknowledged, writer.acknowledged + 1), f"turn {writer.turn}")

    def check_tables(self) -> None:
        tables = ["proof.one", "proof.two", *(f"sysbench.sbtest{number + 1}" for number in range(SYSBENCH_TABLES))]
        for line in self.query(f"check table {', '.join(tables)} extended"):
            self.assertRegex(line, r"\tstatus\tOK$")

    def test_the_page(self) -> None:
        self.leave_to_page()
        # The page leaves its server and its daemon running where a command of it fails.
        self.addCleanup(self.end_page)
        output = self.follow_page("mariadb")
        self.assertRegex(output, r"(?s)from a zone.*\tOK")
        self.assertRegex(output, r"\d+\.sst|\d+\.log")

    def end_page(self) -> None:
        pid_file = os.path.join(self.data, "mariadbd.pid")
        if os.path.exists(pid_file):
            with open(pid_file, encoding="ascii") as file:
                os.kill(int(file.read()), signal.SIGKILL)

    def test_no_acknowledged_row_is_lost_when_the_server_and_the_daemon_are_killed(self) -> None:
        self.install()
        daemon, all_writers = self.mount(), []
        server = self.serve()
        self.create()
        for turn in range(KILLS):
            writers, load = self.start_load(turn)
            if turn % 2 == 0:
                server.end(signal.SIGKILL)
            else:
                daemon.end(signal.SIGKILL)
                # A commit that cannot be written ends the server.
                mounted.wait_until(server.has_ended, "the server goes on without its directory")
                daemon = self.mount()
            self.end_load(writers, load)
            server = self.serve()
            all_writers += writers
            self.check_rows(writers)
            if turn == KILLS - 1 or turn % 10 == 9:
                self.check_rows(all_writers)
            self.check_tables()
        self.assertEqual(0, server.end(), server.said())
        self.assertEqual(0, daemon.end(), daemon.said())
        self.check_device()

    def test_a_backup_beside_a_server_that_writes_is_restored(self) -> None:
        self.install()
        daemon, server = self.mount(), self.serve()
        self.create()
        writers, load = self.start_load(0)
        acknowledged = [writer.acknowledged for writer in writers]
        self.run_command("isozone", "backup", self.device, "backup")
        self.run_command(*self.tool("mariadb-dump"), "--single-transaction", "--databases", "proof",
                         "--result-file=dump.sql")
        self.end_load(writers, load)
        self.assertEqual(0, server.end(), server.said())
        self.assertEqual(0, daemon.end(), daemon.said())

        other = f"emu:{self.scratch}/other.img?timing=off"
        self.format(other)
        self.run_command("isozone", "restore", "backup", other)
        daemon, server = self.mount(other), self.serve()
        self.check_tables()
        for writer, known in zip(writers, acknowledged, strict=True):
            self.check_at_least(writer, known)
        self.query("source dump.sql")
        for writer, known in zip(writers, acknowledged, strict=True):
            self.check_at_least(writer, known)
        self.assertEqual(0, server.end(), server.said())
        self.assertEqual(0, daemon.end(), daemon.said())

    def test_no_acknowledged_row_is_lost_in_a_power_cut(self) -> None:
        self.install()
        daemon, server, chance = self.mount(), self.serve(), random.Random(1)
        self.create()
        self.assertEqual(0, server.end(), server.said())
        self.assertEqual(0, daemon.end(), daemon.said())
        acknowledged = 0
        for turn in range(CUTS):
            commands = chance.randrange(300, 2000)
            daemon = self.mount(f"{self.device}&fault_power_cut_after={commands}&fault_seed={turn}")
            server = self.serve()
            writers = self.start_writers(turn)
            mounted.wait_until(server.has_ended, "the server goes on without power")
            daemon.end(signal.SIGKILL)
            for writer in writers:
                writer.stop()
            acknowledged += sum(writer.acknowledged for writer in writers)
            daemon, server = self.mount(), self.serve()
            self.check_rows(writers)
            self.check_tables()
            self.assertEqual(0, server.end(), server.said())
            self.assertEqual(0, daemon.end(), daemon.said())
        self.check_device()
        self.assertGreater(acknowledged, ROWS)

    # MyRocks acknowledges a commit whose log has no room, on tmpfs as well. It ends itself at the next one, unless
    # RocksDB has found room meanwhile and goes on; then each such commit is lost.
    def test_what_a_full_device_has_taken_moves_to_a_larger_one(self) -> None:
        self.install()
        small = f"emu:{self.scratch}/small.img?timing=off"
        self.run_command("isozone", "mkfs", f"{small}&zones=40&zone_size=4M")
        daemon, server = self.mount(small), self.serve()
        self.query("create database app; create table app.t (id int primary key, content longblob) engine=rocksdb")
        acknowledged, chance = 0, random.Random(1)
        while not server.has_ended() and acknowledged < 200:  # MiB: more than the device has
            insert = f"insert into app.t values ({acknowledged + 1}, x'{chance.randbytes(1 << 20).hex()}')"
            done = subprocess.run(self.client(), input=insert, text=True, capture_output=True, check=False)
            if done.returncode == 0:
                acknowledged += 1
            else:
                mounted.wait_until(server.has_ended, "the server goes on without room")
        server.end(signal.SIGKILL)
        refused = server.count(r"No space left on device: While appending to file: \S+\.log:")
        self.assertGreater(server.count("No space left on device"), 0, server.said())
        self.assertGreater(acknowledged, 50)
        daemon.end()

        self.run_command("isozone", "backup", small, "backup")
        self.run_command("isozone", "restore", "backup", self.device)
        daemon, server = self.mount(), self.serve()
        lost = acknowledged - int(self.query("select count(*) from app.t")[0])
        self.assertTrue(-1 <= lost <= max(1, refused),
                        f"{lost} of {acknowledged} rows are lost, and {refused} writes of the log were refused")
        self.query(f"delete from app.t where id <= {acknowledged // 2}")
        self.assertRegex(self.query("check table app.t extended")[0], r"\tstatus\tOK$")
        self.assertEqual(0, server.end(), server.said())
        self.assertEqual(0, daemon.end(), daemon.said())

    def check_at_least(self, writer: Inserts, known: int) -> None:
        """The rows are without a gap and whole, up to those that were `known` at least."""
        one, two = (self.query(f"select count(*), max(id), sum(content <> {CONTENT}) from proof.{name} "
                               f"where writer={writer.writer}")[0] for name in ("one", "two"))
        self.assertEqual(one, two)
        count, last, wrong = (int(word) for word in one.split("\t"))
        self.assertEqual((count, 0), (last, wrong))
        self.assertGreaterEqual(count, known)


if __name__ == "__main__":
    unittest.main()
