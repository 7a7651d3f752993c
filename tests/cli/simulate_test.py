#!/usr/bin/env python3
"""What `isozone simulate` tells, and what it answers to bad input.

    simulate_test.py ISOZONE
"""

import os
import pty
import subprocess
import unittest

import harness
from harness import NO_SPACE, NOT_FOUND, USAGE

SMALL = ("simulate", "--data", "256M", "--zones", "64")


class Simulate(harness.CliTest):
    def test_the_same_seed_gives_the_same(self) -> None:
        first = self.json(*SMALL, "--json")
        self.assertEqual(first, self.json(*SMALL, "--json"))
        self.assertNotEqual(first, self.json(*SMALL, "--seed", "2", "--json"))

    def test_text_and_json_agree(self) -> None:
        report = self.json(*SMALL, "--json")
        text = self.ok(*SMALL).decode()
        self.assertIn(f"{report['files']} files", text)
        self.assertIn(f"{report['end']['zones_in_use']} of 64", text)
        self.assertIn("small-zone: 64 zones of 72.0 MiB", text)

    def test_phases_are_put_one_after_another(self) -> None:
        report = self.json(*SMALL, "--phase", "sequential", "--phase", "zipfian:64M", "--phase", "70/30:64M", "--json")
        self.assertEqual(report["put_bytes"], (256 + 64 + 64) << 20)
        self.assertEqual(report["live_bytes"], 256 << 20)
        times = [sample["seconds"] for sample in report["samples"]]
        self.assertEqual(times, sorted(times))

    def test_keys_and_values_make_the_data(self) -> None:
        report = self.json("simulate", "--zones", "64", "--keys", "100000", "--value-size", "1004", "--json")
        self.assertEqual(report["setup"]["data_bytes"], 100000 * 1024)

    def test_the_records_of_a_list_are_put(self) -> None:
        records = self.write("records", b"7\n9\n7\n")
        report = self.json(*SMALL, "--phase", "list:1M", "--list", records, "--json")
        self.assertEqual(report["live_bytes"], 2 * 65536)

    def test_a_limit_is_a_number_of_zones(self) -> None:
        report = self.json("simulate", "--data", "256M", "--limit", "4G", "--json")
        self.assertEqual(report["setup"]["zones"], (4 << 30) // (72 << 20))

    def test_policies_and_pickers_differ(self) -> None:
        plain = ("simulate", "--profile", "ll-paper", "--zones", "128", "--data", "1G", "--phase", "shuffled",
                 "--memtable", "4M", "--table", "4M", "--level-base", "10M", "--policy", "level", "--gc", "none",
                 "--put-rate", "4M", "--compactions", "1", "--json")
        leveled = self.json(*plain)
        sweeps = self.json(*plain, "--compaction", "ll")
        self.assertEqual(leveled["written_bytes"]["short_lived"], 0)
        self.assertGreater(sweeps["written_bytes"]["short_lived"], 0)
        self.assertLess(sweeps["end"]["zones_in_use"], leveled["end"]["zones_in_use"])

    def test_progress_is_shown_on_a_terminal(self) -> None:
        terminal, standard_error = pty.openpty()
        process = subprocess.Popen([harness.PROGRAM, "simulate", "--data", "400G"], stdout=subprocess.DEVNULL,
                                   stderr=standard_error)
        os.close(standard_error)
        shown = b""
        while b"ETA" not in shown:
            shown += os.read(terminal, 4096)  # raises when the process ends
        process.kill()
        process.wait()
        os.close(terminal)
        self.assertIn(b"simulating", shown)
        self.assertIn(b" of 800.0 GiB", shown)

    def test_a_full_device(self) -> None:
        self.fails(NO_SPACE, ["the device is full", "larger device"], "simulate", "--data", "2G", "--zones", "24")

    def test_unknown_names(self) -> None:
        for option, name, known in (("--profile", "tiny", "small-zone"), ("--policy", "best", "lifetime"),
                                    ("--gc", "best", "zenfs+"), ("--compaction", "best", "leveled"),
                                    ("--hints", "best", "steered"),
                                    ("--phase", "random", "shuffled")):
            with self.subTest(option=option):
                code = NOT_FOUND if option == "--profile" else USAGE
                self.fails(code, [name, known], *SMALL, option, name)

    def test_values_out_of_range(self) -> None:
        for words, arguments in (
            (["whole blocks", "--grain"], ("--grain", "1000")),
            (["memtable", "--grain"], ("--memtable", "1K")),
            (["out of order"], ("--stop-trigger", "2")),
            (["below the hard one"], ("--soft-pending", "2G", "--hard-pending", "1G")),
            (["--gc-start"], ("--gc-start", "100")),
            (["--t-zone"], ("--t-zone", "memory")),
            (["--zones", "--limit"], ("--limit", "1G")),
            (["--list"], ("--phase", "list")),
            (["--list", "--phase list"], ("--list", "records")),
            (["--value-size", "--keys"], ("--value-size", "100")),
            (["12parsecs"], ("--table", "12parsecs")),
        ):
            with self.subTest(arguments=arguments):
                self.fails(USAGE, words, *SMALL, *arguments)
        self.fails(USAGE, ["the device has 3 zones"], "simulate", "--zones", "3")
        self.fails(USAGE, ["--sweep has no effect with --steering on"], "simulate", "--steering", "on", "--sweep", "1M")
        self.fails(USAGE, ["fewer than three levels"], "simulate", "--steering", "on", "--levels", "2")
        self.fails(USAGE, ["less than a zone of 72.0 MiB"], "simulate", "--limit", "10M")

    def test_a_list_that_cannot_be_used(self) -> None:
        self.fails(NOT_FOUND, ["cannot read", "nowhere"], *SMALL, "--phase", "list", "--list", "nowhere")
        text = self.write("records", b"7\nseven\n")
        self.fails(USAGE, ["line 2"], *SMALL, "--phase", "list", "--list", text)
        beyond = self.write("beyond", b"4096\n")
        self.fails(USAGE, ["record 4096", "--data"], *SMALL, "--phase", "list", "--list", beyond)


if __name__ == "__main__":
    unittest.main()
