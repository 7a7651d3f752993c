#!/usr/bin/env python3
"""The programs of docs/engines/java.md run as the page says, on the rocksdbjni of Maven, and a jar for another release
is refused; releases with the old ABI of libstdc++ do as well. Skipped where there is no JDK, or Maven or cargo bring
nothing.

    java_test.py BUILD_DIRECTORY
"""

import os
import re
import shutil
import subprocess
import unittest

import engine
import java_engine

VERSION = "11.8.1"
OLD_ABI = ("9.7.3", "10.1.3")

MISUSE = """
import java.nio.file.*;
import org.isozone.Isozone;
import org.rocksdb.*;

public class Misuse {
    static void show(String what, AutoCloseable body) throws Exception {
        try {
            body.close();
            System.out.println(what + ": nothing is wrong");
        } catch (RocksDBException error) {
            System.out.println(what + ": " + error.getMessage());
        }
    }

    public static void main(String[] arguments) throws Exception {
        String uri = "isozone://emu:own.img?profile=small-zone&zones=64&timing=off";
        Isozone.format(uri, false);
        show("format", () -> Isozone.format(uri, false));
        show("absent", () -> Isozone.open("isozone://emu:absent.img"));
        show("no uri", () -> Isozone.open("\\u00e4bc"));
        Env env = Isozone.open("isozone://emu:own.img?timing=off");
        Env second = Isozone.open("isozone://emu:own.img?timing=off");
        show("statistics", () -> System.out.println(Isozone.statistics(env)));
        show("collect", () -> Isozone.collectGarbage(env, 100));
        show("too much", () -> Isozone.collectGarbage(env, 101));
        env.close();
        show("closed", () -> Isozone.statistics(env));
        show("default", () -> Isozone.statistics(Env.getDefault()));
        Options closed = new Options();
        closed.close();
        show("closed options", () -> Isozone.setEnv(closed, second));
        try (Options options = new Options().setCreateIfMissing(true)) {
            Isozone.setEnv(options, second);
            RocksDB database = RocksDB.open(options, "/\\u00e4/db");
            for (int i = 0; i < 10000; ++i) {
                database.put(("key" + i).getBytes(), ("value" + i).getBytes());
            }
            database.close();
            database = RocksDB.open(options, "/\\u00e4/db");
            int found = 0;
            try (RocksIterator each = database.newIterator()) {
                for (each.seekToFirst(); each.isValid(); each.next()) ++found;
            }
            System.out.println("found: " + found);
            database.close();
            Path local = Files.createDirectories(Path.of("root/db"));
            RocksDB.open(options, local.toAbsolutePath().toString()).close();
            int first = Isozone.removeOrphans(second, Path.of("root"));
            Files.delete(local);
            int then = Isozone.removeOrphans(second, Path.of("root"));
            System.out.println("orphans: " + first + ", then " + then);
        }
        second.close();
        Isozone.format(uri, true);
        System.out.println(Isozone.version());
    }
}
"""


class Java(engine.EngineTest):
    def setUp(self) -> None:
        super().setUp()
        self.need("javac", "mvn", "cargo", "unzip")
        self.jars = java_engine.Jars(self)
        self.take(VERSION)

    def take(self, version: str) -> None:
        """Lays out both jars of that release."""
        shutil.copy(self.jars.isozone(version), os.path.join(self.scratch, "isozone-java.jar"))
        shutil.copy(self.jars.artifact("org.rocksdb", "rocksdbjni", version),
                    os.path.join(self.scratch, "rocksdbjni.jar"))

    def java(self, name: str, *, rocksdbjni: str = "rocksdbjni.jar", agent: bool = False, fails: bool = False) -> str:
        arguments = ["-javaagent:isozone-java.jar"] if agent else []
        return self.run_command("java", *arguments, "-cp", f".:isozone-java.jar:{rocksdbjni}", name, fails=fails)

    def test_the_page(self) -> None:
        build = self.write("scripts/build-java", f'exec {engine.ROOT}/scripts/build-java --checked "$@"')
        os.chmod(build, 0o755)
        output = self.follow_page("java")
        self.assertEqual(2, len(re.findall(r"^from a zone$", output, re.MULTILINE)), output)
        self.assertIn("CURRENT", output)
        self.assertEqual("from a zone\n", self.java("App"), "on a device that has the database")

    def test_what_bad_input_gets(self) -> None:
        self.see_what_bad_input_gets(VERSION)

    def test_releases_with_the_old_abi(self) -> None:
        for version in OLD_ABI:
            with self.subTest(version=version):
                self.take(version)
                self.see_what_bad_input_gets(version)
                os.remove(os.path.join(self.scratch, "own.img"))
                shutil.rmtree(os.path.join(self.scratch, "root"))

    def see_what_bad_input_gets(self, version: str) -> None:
        self.write("Misuse.java", MISUSE)
        self.run_command("javac", "-cp", "isozone-java.jar:rocksdbjni.jar", "Misuse.java")
        output = self.java("Misuse")
        lines = dict(line.split(": ", 1) for line in output.splitlines() if ": " in line)
        self.assertIn("carries an Isozone file system already", lines["format"])
        self.assertIn("absent.img", lines["absent"])
        self.assertIn("\u00e4bc", lines["no uri"])
        self.assertEqual("nothing is wrong", lines["statistics"])
        self.assertEqual("nothing is wrong", lines["collect"])
        self.assertIn("from 0 to 100", lines["too much"])
        for what in ("closed", "default"):
            self.assertEqual("the Env is closed, or does not come from Isozone.open", lines[what])
        self.assertEqual("10000", lines["found"])
        self.assertEqual("0, then 1", lines["orphans"])
        self.assertEqual("the Options are closed", lines["closed options"])
        self.assertTrue(output.endswith(f" (RocksDB {version})\n"), output[-200:])

    def test_another_release_is_refused(self) -> None:
        other, none = (self.jars.artifact("org.rocksdb", "rocksdbjni", version) for version in ("9.7.3", "8.11.3"))
        self.write("App.java", self.files_of_page("java")["App.java"])
        self.run_command("javac", "-cp", "isozone-java.jar:rocksdbjni.jar", "App.java")
        refused = (f"this isozone-java is built for rocksdbjni {VERSION}, but the program uses 9.7.3; "
                   "build one for it with scripts/build-java 9.7.3")
        self.assertIn(f"RocksDBException: {refused}\n", self.java("App", rocksdbjni=other, fails=True))
        self.assertEqual(f"isozone-java: {refused}\n", self.java("App", rocksdbjni=other, agent=True, fails=True))
        self.assertIn("but the program uses 8.11.3, for which there is none; use one of these, for which "
                      "scripts/build-java builds one: 9.7.3 ", self.java("App", rocksdbjni=none, fails=True))
        self.assertEqual("isozone-java: rocksdbjni is not on the class path of the program\n",
                         self.java("App", rocksdbjni="nothing.jar", agent=True, fails=True))


class BuildJava(unittest.TestCase):
    def test_what_bad_input_gets(self) -> None:
        for argument, expected in (("11", "usage: "),
                                   ("7.8.3", "no source of RocksDB 7.8.3 is known; known are: 9.7.3")):
            result = subprocess.run([os.path.join(engine.ROOT, "scripts", "build-java"), argument], text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
            self.assertNotEqual(0, result.returncode)
            self.assertIn(expected, result.stdout)


if __name__ == "__main__":
    unittest.main()
