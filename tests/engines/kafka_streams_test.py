#!/usr/bin/env python3
"""Kafka Streams with its stores on Isozone, as docs/engines/kafka-streams.md shows, on a broker that runs here: the
page; two instances that are killed in turn, whose windowed counts are right to the record; with --measure, its
throughput beside stores on local files, each N times in turn.

    kafka_streams_test.py BUILD_DIRECTORY [--measure N [--events N]]

Skipped where there is no JDK, or Maven or cargo bring nothing.
"""

import glob
import os
import re
import shutil
import signal
import time
import unittest
from collections import Counter
from collections.abc import Callable

import engine
import java_engine
import on_mount
from on_mount import mounted

KAFKA = "4.3.0"
LOGGER = "org.slf4j:slf4j-simple:1.7.36"  # what goes wrong is in the output
MEASURE = mounted.option("--measure", 0)
MEASURED_EVENTS = mounted.option("--events", 1_000_000)
PARTITIONS = 4
WINDOW_MS = 30_000
# An hour ago: what is older than a day, the broker removes. It is the beginning of a window.
BEGIN_MS = (int(time.time() * 1000) - 3_600_000) // WINDOW_MS * WINDOW_MS
STEP_MS = 20
KEYS = 97
BATCH = 30_100  # events for each kill; they end within a window
RATE = 1_500  # of them in a second
SETTLE_S = 150  # for what takes a tenth of that: the state moves, and what a killed instance began is aborted
SMALL_JVM = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
             "-Dorg.slf4j.simpleLogger.defaultLogLevel=error")

BROKER = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
log.dirs={directory}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.num.partitions=4
transaction.state.log.min.isr=1
transaction.abort.timed.out.transaction.cleanup.interval.ms=500
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
"""

# An instance that is killed is missed after seconds, not after a minute. No cache: each event reaches the store.
QUICK = """
num.stream.threads=2
session.timeout.ms=3000
heartbeat.interval.ms=500
transaction.timeout.ms=5000
commit.interval.ms=200
statestore.cache.max.bytes=0
"""


class Instance(on_mount.Program):
    """The program of the page, with a device and a directory of its own."""

    def __init__(self, test: "KafkaStreams", name: str, faults: str = "") -> None:
        self.directory = os.path.join(test.scratch, name)
        self.device = f"emu:{self.directory}/ssd.img?timing=off"
        settings = test.settings(name, f"isozone://{self.device}{faults}") + QUICK
        super().__init__(test, name, "java", *SMALL_JVM, "-cp", test.class_path, "WindowedCount",
                         test.write(f"{name}/streams.properties", settings))

    def stores(self) -> list[str]:
        """The databases for which there are local directories now: state/counts/TASK/counts/counts.TIME."""
        found = glob.glob(os.path.join(self.directory, "state", "counts", "*", "counts", "counts.*"))
        return [os.path.relpath(path, self.directory) for path in found]

    def has_a_task(self) -> bool:
        return bool(glob.glob(os.path.join(self.directory, "state", "counts", "*_*")))

    def tasks(self) -> set[str]:
        """Those that have a store."""
        return {store.split("/")[2] for store in self.stores()}


class KafkaStreams(engine.EngineTest):
    def setUp(self) -> None:
        super().setUp()
        self.need("java", "javac", "mvn", "cargo", "unzip")
        self.scratch = os.path.realpath(self.scratch)
        self.environment |= {"KEYS": str(KEYS), "STEP_MS": str(STEP_MS), "BEGIN_MS": str(BEGIN_MS)}
        jars = java_engine.Jars(self)
        jars.with_dependencies(os.path.join(self.scratch, "kafka"), *(
            f"org.apache.kafka:{name}:{KAFKA}" for name in ("kafka-streams", "kafka_2.13")), LOGGER)
        [rocksdbjni] = glob.glob(os.path.join(self.scratch, "kafka", "rocksdbjni-*.jar"))
        version = re.sub(r".*rocksdbjni-|\.jar", "", rocksdbjni)
        shutil.copy(jars.isozone(version, checked=MEASURE == 0), os.path.join(self.scratch, "isozone-java.jar"))
        self.class_path = ".:isozone-java.jar:kafka/*"
        self.start_broker()

    def start_broker(self) -> None:
        self.port, controller = on_mount.free_ports(2)
        self.environment["BOOTSTRAP"] = f"127.0.0.1:{self.port}"
        settings = self.write("broker.properties", BROKER.format(
            port=self.port, controller=controller, directory=os.path.join(self.scratch, "broker")))
        java = ("java", *SMALL_JVM, "-cp", "kafka/*")
        self.run_command(*java, "kafka.tools.StorageTool", "format", "--config", settings, "--cluster-id",
                         "aXNvem9uZS10ZXN0LWlkMQ")
        self.broker = on_mount.Program(self, "broker", *java, "kafka.Kafka", settings)

    def compile(self) -> None:
        """Lays out the programs of the page and the test's own, and makes the topics."""
        for name, text in self.files_of_page("kafka-streams").items():
            self.write(name, text)
        shutil.copy(os.path.join(os.path.dirname(__file__), "KafkaStreamsTool.java"), self.scratch)
        self.run_command("javac", "-cp", self.class_path, "IsozoneConfigSetter.java", "WindowedCount.java",
                         "KafkaStreamsTool.java")
        self.tool("topics", str(PARTITIONS))

    def tool(self, *arguments: str, timeout_s: int = 240) -> str:
        return self.run_command("java", *SMALL_JVM, "-cp", self.class_path, "KafkaStreamsTool", *arguments,
                                timeout_s=timeout_s)

    def settings(self, directory: str, uri: str) -> str:
        text = self.files_of_page("kafka-streams")["streams.properties"]
        for name, value in (("bootstrap.servers", f"127.0.0.1:{self.port}"), ("isozone.uri", uri),
                            ("state.dir", os.path.join(self.scratch, directory, "state"))):
            text, count = re.subn(rf"(?m)^{re.escape(name)}=.*$", f"{name}={value}", text)
            self.assertEqual(1, count, name)
        return text

    def format(self, directory: str) -> None:
        os.makedirs(os.path.join(self.scratch, directory), exist_ok=True)
        self.run_command("isozone", "mkfs", f"emu:{directory}/ssd.img?profile=small-zone&zones=256&timing=off")

    def counts(self) -> Counter[str]:
        return Counter({key: int(count) for key, count in (line.split() for line in self.tool("counts").splitlines())})

    def wait(self, condition: Callable[[], bool], what: str, *programs: on_mount.Program) -> None:
        deadline = time.monotonic() + SETTLE_S
        while not condition():
            for program in programs:
                self.assertFalse(program.has_ended(), f"{program.name} has ended: {program.said()}")
            self.assertLess(time.monotonic(), deadline, f"{what}: " + "; ".join(each.said() for each in programs))
            time.sleep(0.2)

    def wait_for_counts(self, events: int, *programs: on_mount.Program) -> None:
        """Until the counts are those of so many events, each of which was counted once."""
        expected = Counter(f"key{i % KEYS}@{BEGIN_MS + i * STEP_MS // WINDOW_MS * WINDOW_MS}" for i in range(events))
        found: Counter[str] = Counter()

        def is_all_there() -> bool:
            nonlocal found
            found = self.counts()
            self.assertEqual(Counter(), found - expected, "events were counted twice")
            return found == expected

        try:
            self.wait(is_all_there, f"not all of {events} events are counted", *programs)
        except AssertionError as error:
            lacking = expected - found
            raise AssertionError(f"{lacking.total()} events lack in {len(lacking)} windows, as {lacking.most_common(3)}"
                                 ) from error

    def check_device(self, instance: Instance) -> None:
        """It is sound, and holds a database for each local directory, and hardly another one."""
        self.run_command("isozone", "fsck", instance.device)
        listing = self.run_command("isozone", "ls", "-R", instance.device)
        databases = set(re.findall(r"(?m)^(/.*/counts\.\d+):\n(?:.+\n)*CURRENT$", listing))
        stores = {os.path.join(instance.directory, store) for store in instance.stores()}
        self.assertEqual(set(), stores - databases)
        # The last that were dropped are removed when the next one is opened.
        self.assertLessEqual(len(databases - stores), 2 * PARTITIONS)

    def test_the_page(self) -> None:
        self.compile()
        self.tool("produce", "0", "1000", "0")
        build = self.write("scripts/build-java", f'exec {engine.ROOT}/scripts/build-java --checked "$@"')
        os.chmod(build, 0o755)
        output = self.follow_page("kafka-streams", changes={
            "127.0.0.1:9092": f"127.0.0.1:{self.port}", "java -cp '.:": f"timeout {SETTLE_S} java -cp '.:"})
        self.assertRegex(output, r"counts\.\d+/")
        again = on_mount.Program(self, "again", "java", *SMALL_JVM, "-cp", self.class_path, "WindowedCount",
                                 "streams.properties")
        self.wait_for_counts(1000, again)
        self.assertEqual(128 + signal.SIGTERM, again.end(), again.said())

    def test_killed_instances_leave_counts_that_are_right_to_the_record(self) -> None:
        self.compile()
        for name in ("one", "two"):
            self.format(name)
        one, two = Instance(self, "one"), Instance(self, "two")
        self.wait(lambda: one.has_a_task() and two.has_a_task(), "they do not share the work", one, two)
        self.kill_while_events_come(0, one, two)
        self.wait_for_counts(BATCH, two)
        one = Instance(self, "one")
        self.kill_while_events_come(BATCH, two, one)
        self.wait_for_counts(2 * BATCH, one)
        self.assertEqual(128 + signal.SIGTERM, one.end(), one.said())
        for instance in (one, two):
            self.check_device(instance)

    def test_a_device_that_dies_ends_its_instance_and_the_other_one_goes_on(self) -> None:
        self.compile()
        for name in ("one", "two"):
            self.format(name)
        one, two = Instance(self, "one", "&fault_power_cut_after=1000"), Instance(self, "two")
        self.wait(lambda: one.has_a_task() and two.has_a_task(), "they do not share the work", two)
        self.send(0)
        self.wait(one.has_ended, "it does not end", two)
        self.assertIn("Power Loss", one.said())
        self.wait_for_counts(BATCH, two)
        two.end()
        for instance in (one, two):
            self.check_device(instance)

    def test_what_is_gone_is_filled_from_the_broker(self) -> None:
        self.compile()
        self.format("one")
        one = Instance(self, "one")
        self.tool("produce", "0", str(BATCH), "0")
        self.wait_for_counts(BATCH, one)
        for turn, gone in enumerate(("ssd.img", "state"), 1):
            one.end()
            path = os.path.join(one.directory, gone)
            if gone == "state":
                shutil.rmtree(path)
            else:
                os.remove(path)
                self.format("one")
            one = Instance(self, "one")
            self.tool("produce", str(turn * BATCH), str(BATCH), "0")
            self.wait_for_counts((turn + 1) * BATCH, one)
        one.end()
        self.check_device(one)

    def send(self, first: int) -> on_mount.Program:
        return on_mount.Program(self, f"produce{first}", "java", *SMALL_JVM, "-cp", self.class_path, "KafkaStreamsTool",
                                "produce", str(first), str(BATCH), str(RATE))

    def kill_while_events_come(self, first: int, victim: Instance, other: Instance) -> None:
        tool = self.send(first)
        self.wait(lambda: bool(victim.tasks()), "it has no store", victim, other)
        time.sleep(BATCH / RATE / 4)
        self.assertFalse(tool.has_ended(), tool.said())
        victim.end(signal.SIGKILL)
        tasks = victim.tasks()
        self.wait(lambda: tasks <= other.tasks(), "the state does not move", other)
        self.wait(tool.has_ended, "the events are not sent", other)
        self.assertEqual(0, tool.process.returncode, tool.said())

    @unittest.skipIf(MEASURE == 0, "it is asked for with --measure")
    def test_throughput(self) -> None:
        self.compile()
        self.environment |= {"KEYS": str(MEASURED_EVENTS // 10), "STEP_MS": "1"}
        self.tool("produce", "0", str(MEASURED_EVENTS), "0")
        engine.compare_with_local_files(MEASURE, "events a second", self.measure)

    def measure(self, kind: str, turn: int) -> float:
        """Events a second, with new stores."""
        directory = f"{kind}{turn}"
        self.format(directory)
        settings = self.settings(directory, f"isozone://emu:{directory}/ssd.img?timing=off")
        if kind == "local":
            settings = re.sub(r"(?m)^rocksdb\.config\.setter=.*\n", "", settings)
        settings = settings.replace("exactly_once_v2", "at_least_once") + "statestore.cache.max.bytes=0\n"
        settings = re.sub(r"(?m)^application\.id=.*", f"application.id={directory}", settings)
        settings += "auto.offset.reset=earliest\n"
        file = self.write(f"{directory}/streams.properties", settings)
        output = self.run_command("java", "-Xmx1g", "-cp", self.class_path, "KafkaStreamsTool", "measure",
                                  str(MEASURED_EVENTS), file, timeout_s=500)
        shutil.rmtree(os.path.join(self.scratch, directory))
        found = re.search(r"^seconds: ([\d.]+)$", output, re.MULTILINE)
        assert found is not None, output
        return MEASURED_EVENTS / float(found[1])


if __name__ == "__main__":
    unittest.main()
