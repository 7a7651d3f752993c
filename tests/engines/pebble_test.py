#!/usr/bin/env python3
"""Pebble on a mounted directory: the page, with its own benchmark and check; every synced write that had returned is
there after kills of the program and of the daemon and after power cuts of the device.

    pebble_test.py BUILD_DIRECTORY [--kills N]

Skipped where there is no Go of 1.21 or newer, or where its modules cannot be had.
"""

import os
import random
import re
import signal
import subprocess
import unittest

import on_mount
from on_mount import mounted

KILLS = mounted.option("--kills", 6)
WRITERS = 3
KEYS = 300  # that are acknowledged before something is killed
BUILD_TIMEOUT_S = 1500
MODULE = "github.com/cockroachdb/pebble/cmd/pebble@v1.1.5"

# PROOF DIRECTORY TURN WRITERS: each writer puts keys for as long as it lives; `WRITER NUMBER` is printed for each that
# was synced. PROOF DIRECTORY: prints `TURN WRITER COUNT` of what is there, each without a gap and with its value.
PROOF = """package main

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"strconv"

	"github.com/cockroachdb/pebble"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func value(key string) []byte { return bytes.Repeat([]byte(key), 40) }

func put(database *pebble.DB, turn, writer int, done chan<- string) {
	for number := 0; ; number++ {
		key := fmt.Sprintf("%04d %02d %08d ", turn, writer, number)
		check(database.Set([]byte(key), value(key), pebble.Sync))
		done <- fmt.Sprintf("%d %d", writer, number)
	}
}

func count(database *pebble.DB) {
	all, err := database.NewIter(nil)
	check(err)
	var turn, writer, number, count int
	for all.First(); all.Valid(); all.Next() {
		key := string(all.Key())
		if !bytes.Equal(all.Value(), value(key)) {
			log.Fatalf("%s has another value", key)
		}
		if count > 0 && key[:8] != fmt.Sprintf("%04d %02d ", turn, writer) {
			fmt.Println(turn, writer, count)
			count = 0
		}
		_, err := fmt.Sscanf(key, "%d %d %d ", &turn, &writer, &number)
		check(err)
		if number != count {
			log.Fatalf("%s comes after %d others", key, count)
		}
		count++
	}
	check(all.Error())
	fmt.Println(turn, writer, count)
	check(all.Close())
}

func main() {
	database, err := pebble.Open(os.Args[1], &pebble.Options{MemTableSize: 256 << 10})
	check(err)
	if len(os.Args) == 2 {
		count(database)
		check(database.Close())
		return
	}
	turn, _ := strconv.Atoi(os.Args[2])
	writers, _ := strconv.Atoi(os.Args[3])
	done := make(chan string)
	for writer := 0; writer < writers; writer++ {
		go put(database, turn, writer, done)
	}
	for text := range done {
		fmt.Println(text)
	}
}
"""


class Pebble(on_mount.MountedTest):
    commands = ("go",)

    def setUp(self) -> None:
        super().setUp()
        # The modules that are there already, and what is built of them, are used again.
        settings = subprocess.run(["go", "env", "GOVERSION", "GOPATH", "GOMODCACHE", "GOCACHE"], capture_output=True,
                                  text=True, check=True).stdout.splitlines()
        found = re.match(r"go(\d+)\.(\d+)", settings[0])
        if found is None or (int(found[1]), int(found[2])) < (1, 21):
            self.skipTest(f"Go is {settings[0]}, and Pebble needs 1.21")
        for name, value in zip(("GOPATH", "GOMODCACHE", "GOCACHE"), settings[1:], strict=True):
            self.environment[name] = value
        self.environment["GOFLAGS"] = "-mod=mod -buildvcs=false"

    def fetch(self, directory: str) -> None:
        """A module in `directory` of the scratch directory, with Pebble; skips where it cannot be had."""
        where = os.path.join(self.scratch, directory)
        for command in (["go", "mod", "init", "app"], ["go", "get", MODULE]):
            done = subprocess.run(command, cwd=where, env=self.environment, capture_output=True, text=True,
                                  timeout=BUILD_TIMEOUT_S, check=False)
            if done.returncode != 0:
                self.skipTest(f"the modules cannot be had: {(done.stderr.strip().splitlines() or ['?'])[-1]}")

    def test_the_page(self) -> None:
        self.write("modules/main.go", self.files_of_page("pebble")["main.go"])
        self.fetch("modules")
        self.leave_to_page()
        output = self.follow_page("pebble", timeout_s=BUILD_TIMEOUT_S)
        self.assertRegex(output, r"(?m)^from a zone$")
        self.assertRegex(output, r"(?m)^checked \d+ point")
        self.assertRegex(output, r"ops/sec")

    def counts(self, turn: int) -> dict[int, int]:
        """How many keys of a turn are there, by writer."""
        output = self.run_command("./proof", f"{self.directory}/db")
        return {int(writer): int(count) for found, writer, count in re.findall(r"(?m)^(\d+) (\d+) (\d+)$", output)
                if int(found) == turn}

    def acknowledged(self, program: on_mount.Program) -> list[int]:
        """How many keys the program has put, by writer."""
        with open(program.output, encoding="utf-8") as file:
            lines = re.findall(r"^(\d+) (\d+)$", file.read(), re.MULTILINE)
        return [sum(int(writer) == one for writer, _ in lines) for one in range(WRITERS)]

    def write_until_killed(self, turn: int, daemon: mounted.Daemon) -> tuple[mounted.Daemon, on_mount.Program]:
        """The program, the daemon and the power of the device end in turn."""
        kind = turn % 3
        if kind == 2:
            self.assertEqual(0, daemon.end(), daemon.said())
            commands = random.Random(turn).randrange(200, 2000)
            daemon = self.mount(f"{self.device}&fault_power_cut_after={commands}&fault_seed={turn}")
        proof = on_mount.Program(self, f"proof{turn}", "./proof", f"{self.directory}/db", str(turn), str(WRITERS))
        mounted.wait_until(lambda: proof.has_ended() or min(self.acknowledged(proof)) > KEYS, "it does not get on")
        if kind == 0:
            self.assertFalse(proof.has_ended(), proof.said())
            proof.end(signal.SIGKILL)
            return daemon, proof
        if kind == 1:
            daemon.end(signal.SIGKILL)
        mounted.wait_until(proof.has_ended, "it goes on without its directory")
        daemon.end(signal.SIGKILL)
        return self.mount(), proof

    def test_no_synced_write_is_lost_when_the_program_the_daemon_or_the_device_dies(self) -> None:
        self.write("proof-source/main.go", PROOF)
        self.fetch("proof-source")
        self.run_command("go", "build", "-C", "proof-source", "-o", "../proof", ".", timeout_s=BUILD_TIMEOUT_S)
        daemon = self.mount()
        for turn in range(KILLS):
            daemon, proof = self.write_until_killed(turn, daemon)
            found = self.counts(turn)
            for writer, known in enumerate(self.acknowledged(proof)):
                # What had returned may not have been printed yet, and one more may have been written.
                self.assertGreaterEqual(found.get(writer, 0), known, f"turn {turn}")
        self.assertEqual(0, daemon.end(), daemon.said())
        self.check_device()


if __name__ == "__main__":
    unittest.main()
