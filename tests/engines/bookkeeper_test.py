#!/usr/bin/env python3
"""BookKeeper with the databases of its bookies on Isozone, as docs/engines/bookkeeper.md shows, with a ZooKeeper and
three bookies that run here: the page; bookies that are killed while entries are written, and come back with every
copy; one that is lost, whose ledgers are replicated again; a device that dies; with --measure, BookKeeper's own
BenchThroughputLatency beside databases on local files, each N times in turn.

    bookkeeper_test.py BUILD_DIRECTORY [--measure N [--seconds N]]

Skipped where there is no JDK, or Maven or cargo bring nothing.
"""

import glob
import os
import re
import shutil
import signal
import socket
import time
import unittest
from collections.abc import Callable

import engine
import java_engine
import on_mount
from on_mount import mounted

BOOKKEEPER = "4.18.0"
BENCHMARK = "4.17.3"  # the last one that was published
# What ZooKeeper as a server needs, and leaves to others.
SERVER = ("io.dropwizard.metrics:metrics-core:4.1.12.1", "org.xerial.snappy:snappy-java:1.1.10.7")
MEASURE = mounted.option("--measure", 0)
MEASURED_S = mounted.option("--seconds", 20)
LEDGERS = 12
ENTRIES = 12_000
RATE = 1_000  # of them in a second
SETTLE_S = 150
SMALL_JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
SHELL = "org.apache.bookkeeper.bookie.BookieShell"

ZOOKEEPER = """
tickTime=1000
dataDir={directory}
clientPort={port}
clientPortAddress=127.0.0.1
admin.enableServer=false
"""

# The databases are written often, and a bookie that is killed is missed after seconds.
QUICK = """
flushInterval=100
zkTimeout=4000
"""

ERRORS = '<Configuration><Appenders><Console name="out" target="SYSTEM_ERR"/></Appenders>' \
    '<Loggers><Root level="error"><AppenderRef ref="out"/></Root></Loggers></Configuration>'


class Bookie(on_mount.Program):
    """A bookie with a device and directories of its own, set up as the page shows."""

    def __init__(self, test: "BookKeeper", name: str, port: int, faults: str = "", local: bool = False) -> None:
        self.directory = os.path.join(test.scratch, name)
        self.device = f"emu:{self.directory}/ssd.img?timing=off"
        self.port = port
        self.settings = test.write_settings(name, port, f"isozone://{self.device}{faults}", local)
        jvm = ("-Xmx1g",) if MEASURE else SMALL_JVM
        super().__init__(test, name, "java", *jvm, "-javaagent:isozone-java.jar", "-cp", test.class_path,
                         "org.apache.bookkeeper.server.Main", "--conf", self.settings)

    def listens(self) -> bool:
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", self.port)) == 0


class BookKeeper(engine.EngineTest):
    def setUp(self) -> None:
        super().setUp()
        self.need("java", "javac", "mvn", "cargo", "unzip")
        self.scratch = os.path.realpath(self.scratch)
        self.jars = java_engine.Jars(self)
        self.jars.with_dependencies(os.path.join(self.scratch, "bookkeeper"),
                                    f"org.apache.bookkeeper:bookkeeper-server:{BOOKKEEPER}", *SERVER)
        [rocksdbjni] = glob.glob(os.path.join(self.scratch, "bookkeeper", "rocksdbjni-*.jar"))
        version = re.sub(r".*rocksdbjni-|\.jar", "", rocksdbjni)
        shutil.copy(self.jars.isozone(version, checked=MEASURE == 0), os.path.join(self.scratch, "isozone-java.jar"))
        self.class_path = ".:bookkeeper/*"
        self.write("errors.xml", ERRORS)
        self.start_zookeeper()

    def start_zookeeper(self) -> None:
        self.port, *self.ports = on_mount.free_ports(4)
        self.environment["METADATA_URI"] = f"zk+hierarchical://127.0.0.1:{self.port}/ledgers"
        settings = self.write("zoo.cfg", ZOOKEEPER.format(
            port=self.port, directory=os.path.join(self.scratch, "zookeeper")))
        zookeeper = on_mount.Program(self, "zookeeper", "java", *SMALL_JVM, "-cp", self.class_path,
                                     "org.apache.zookeeper.server.ZooKeeperServerMain", settings)

        def answers() -> bool:
            with socket.socket() as one:
                return one.connect_ex(("127.0.0.1", self.port)) == 0
        self.wait(answers, "ZooKeeper does not listen", zookeeper)

    def java(self, *arguments: str) -> str:
        """Runs a program that says only what goes wrong beside its own output."""
        return self.run_command("java", *SMALL_JVM, "-Dlog4j2.configurationFile=errors.xml", "-cp", self.class_path,
                                *arguments)

    def write_settings(self, name: str, port: int, uri: str, local: bool) -> str:
        """The files of the page for the bookie `name`, with databases on local files if `local`."""
        files = self.files_of_page("bookkeeper")
        for file in ("entry_locations.ini", "ledger_metadata.ini"):
            text, count = re.subn(r"(?m)^  env=.*\n", "" if local else f"  env={{id={uri}}}\n", files[file])
            self.assertEqual(1, count, file)
            self.write(f"{name}/{file}", text)
        text = files["bookie.conf"]
        for word, other in (("=3181", f"={port}"), (":2181", f":{self.port}"), ("=bookie/", f"={self.scratch}/{name}/"),
                            ("Conf=", f"Conf={self.scratch}/{name}/")):
            text = text.replace(word, other)
        return self.write(f"{name}/bookie.conf", text + ("" if MEASURE else QUICK))

    def start(self, local: bool = False, names: tuple[str, ...] = ("one", "two", "three"),
              faults: str = "") -> list[Bookie]:
        """A new cluster of three bookies; `faults` are those of the first one's device."""
        settings = self.write_settings("client", 0, "", local)
        self.java(SHELL, "-conf", settings, "initnewcluster")
        for name in names:
            self.format(name)
        bookies = [Bookie(self, name, port, faults if name == names[0] else "", local)
                   for name, port in zip(names, self.ports, strict=True)]
        self.wait_for(*bookies)
        return bookies

    def wait_for(self, *bookies: Bookie) -> None:
        self.wait(lambda: all(each.listens() for each in bookies), "a bookie does not listen", *bookies)

    def format(self, directory: str) -> None:
        os.makedirs(os.path.join(self.scratch, directory), exist_ok=True)
        self.run_command("isozone", "mkfs", f"emu:{directory}/ssd.img?profile=small-zone&zones=256&timing=off")

    def compile(self) -> None:
        shutil.copy(os.path.join(os.path.dirname(__file__), "BookKeeperTool.java"), self.scratch)
        self.run_command("javac", "-cp", self.class_path, "BookKeeperTool.java")

    def write_entries(self, name: str) -> on_mount.Program:
        return on_mount.Program(self, name, "java", *SMALL_JVM, "-Dlog4j2.configurationFile=errors.xml", "-cp",
                                self.class_path, "BookKeeperTool", "write", str(LEDGERS), str(ENTRIES), str(RATE))

    def kill_while_entries_come(self, victim: Bookie, tool: on_mount.Program) -> None:
        self.wait(lambda: f"acknowledged: {ENTRIES // 3}" in tool.said(), "no entries come", victim, tool)
        self.assertFalse(tool.has_ended(), tool.said())
        victim.end(signal.SIGKILL)

    def ledgers(self, tool: on_mount.Program, *bookies: Bookie) -> list[str]:
        """Those that `tool` has written, as it says when it ends."""
        self.wait(tool.has_ended, "the entries are not written", *bookies)
        self.assertEqual(0, tool.process.returncode, tool.said())
        found = re.findall(r"(?m)^ledger (\d+:\d+)$", tool.said())
        self.assertEqual(LEDGERS, len(found), tool.said())
        self.assertEqual(ENTRIES, sum(int(each.split(":")[1]) for each in found))
        return found

    def check_entries(self, ledgers: list[str]) -> dict[int, int]:
        """Every entry is there, and every copy on the bookie that is to have it. Gives the copies by port."""
        output = self.java("BookKeeperTool", "check", *ledgers)
        found = {int(port): int(copies) for port, copies in re.findall(r"(?m)^bookie \S+:(\d+) (\d+)$", output)}
        self.assertEqual(2 * sum(int(each.split(":")[1]) for each in ledgers), sum(found.values()), output)
        return found

    def check_device(self, bookie: Bookie) -> None:
        """It is sound and holds both databases, of which there is nothing on local files."""
        self.run_command("isozone", "fsck", bookie.device)
        for name in ("ledgers", "locations"):
            path = f"{bookie.directory}/ledgers/current/{name}"
            self.assertIn("CURRENT", self.run_command("isozone", "ls", bookie.device, path))
            self.assertEqual([], glob.glob(f"{path}/*"))

    def wait(self, condition: Callable[[], bool], what: str, *programs: on_mount.Program) -> None:
        deadline = time.monotonic() + SETTLE_S
        while not condition():
            for program in programs:
                self.assertFalse(program.has_ended(), f"{program.name} has ended: {program.said()}")
            self.assertLess(time.monotonic(), deadline, f"{what}: " + "; ".join(each.said() for each in programs))
            time.sleep(0.2)

    def test_the_page(self) -> None:
        build = self.write("scripts/build-java", f'exec {engine.ROOT}/scripts/build-java --checked "$@"')
        os.chmod(build, 0o755)
        output = self.follow_page("bookkeeper", timeout_s=SETTLE_S, changes={
            ":2181": f":{self.port}", "=3181": f"={self.ports[0]}"})
        for name in ("ledgers", "locations"):
            self.assertRegex(output, rf"(?m)^/bookie/ledgers/current/{name}:\n(?:.+\n)*CURRENT$")

    def test_killed_bookies_come_back_with_every_copy(self) -> None:
        self.compile()
        bookies = self.start()
        ledgers: list[str] = []
        for turn in (0, 1):
            victim, others = bookies[turn], [each for each in bookies if each is not bookies[turn]]
            tool = self.write_entries(f"write{turn}")
            self.kill_while_entries_come(victim, tool)
            ledgers += self.ledgers(tool, *others)
            bookies[turn] = Bookie(self, victim.name, victim.port)
            self.wait_for(bookies[turn])
            self.assertEqual(set(self.ports), set(self.check_entries(ledgers)))
        for bookie in bookies:
            bookie.end(signal.SIGKILL)
        bookies = [Bookie(self, each.name, each.port) for each in bookies]
        self.wait_for(*bookies)
        self.check_entries(ledgers)
        for bookie in bookies:
            bookie.end()
            self.check_device(bookie)

    def test_the_ledgers_of_a_lost_bookie_are_replicated(self) -> None:
        self.compile()
        bookies = self.start()
        tool = self.write_entries("write")
        lost = bookies.pop()
        self.kill_while_entries_come(lost, tool)
        shutil.rmtree(lost.directory)
        ledgers = self.ledgers(tool, *bookies)
        self.java(SHELL, "-conf", bookies[0].settings, "recover", "-f", "-d", f"127.0.0.1:{lost.port}")
        self.assertEqual({each.port for each in bookies}, set(self.check_entries(ledgers)))
        self.format(lost.name)
        bookies.append(Bookie(self, lost.name, lost.port))
        self.wait_for(*bookies)
        ledgers += self.ledgers(self.write_entries("again"), *bookies)
        self.assertEqual(set(self.ports), set(self.check_entries(ledgers)))
        for bookie in bookies:
            bookie.end()
            self.check_device(bookie)

    def test_a_device_that_dies_costs_no_entry(self) -> None:
        self.compile()
        dying, *others = self.start(faults="&fault_power_cut_after=120")
        ledgers = self.ledgers(self.write_entries("write"), *others)
        self.assertIn("Power Loss", self.log(dying))
        self.assertIn("Exception flushing ledgers", self.log(dying))
        self.assertFalse(dying.has_ended())
        dying.end(signal.SIGKILL)
        again = Bookie(self, dying.name, dying.port)
        self.wait_for(again)
        self.check_entries(ledgers)
        for bookie in (again, *others):
            bookie.end()
            self.check_device(bookie)

    def log(self, program: on_mount.Program) -> str:
        with open(program.output, encoding="utf-8", errors="replace") as file:
            return file.read()

    @unittest.skipIf(MEASURE == 0, "it is asked for with --measure")
    def test_throughput(self) -> None:
        shutil.copy(self.jars.artifact("org.apache.bookkeeper", "bookkeeper-benchmark", BENCHMARK),
                    os.path.join(self.scratch, "bookkeeper"))
        engine.compare_with_local_files(MEASURE, "entries a second", self.measure)

    def measure(self, kind: str, turn: int) -> float:
        """Entries a second, by a new cluster."""
        names = tuple(f"{kind}{turn}-{number}" for number in range(3))
        bookies = self.start(kind == "local", names)
        output = self.run_command(
            "java", "-Xmx1g", "-cp", self.class_path, "org.apache.bookkeeper.benchmark.BenchThroughputLatency",
            "-zookeeper", f"127.0.0.1:{self.port}", "-time", str(MEASURED_S), "-ledgers", "10", "-throttle", "20000",
            "-sendlimit", "10000000", timeout_s=MEASURED_S + 120)
        for bookie in bookies:
            bookie.end()
            shutil.rmtree(bookie.directory)
        self.java(SHELL, "-conf", self.write_settings("client", 0, "", False), "nukeexistingcluster", "-f", "-p",
                  "/ledgers")
        found = re.search(r"(\d+) completions in (\d+) milliseconds", output)
        assert found is not None, output[-4000:]
        return int(found[1]) * 1000 / int(found[2])


if __name__ == "__main__":
    unittest.main()
