"""The command lines: lists, errors and exit codes."""
import contextlib
import importlib.util
import io
import os
import subprocess
import sys
import tempfile
import unittest
from typing import NoReturn
from unittest import mock

import harness
from isozone_lab import cli, experiments


def call(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-B", os.path.join(harness.LAB, program), *words], capture_output=True,
                          text=True, timeout=60, check=False)


class CommandLine(unittest.TestCase):
    def fails(self, code: int, words: str, program: str, *arguments: str) -> None:
        """With this exit code and one line on standard error."""
        done = call(program, *arguments)
        self.assertEqual(code, done.returncode, done.stderr)
        self.assertRegex(done.stderr, r"\A[^\n]+\n\Z")
        self.assertIn(words, done.stderr)
        self.assertEqual("", done.stdout)

    def test_list(self) -> None:
        done = call("run", "--list")
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertEqual([one.name for one in experiments.ALL], [line.split()[0] for line in done.stdout.splitlines()])

    def test_an_unknown_experiment(self) -> None:
        self.fails(cli.USAGE, "unknown experiment 'fig99'; there are: zenfsplus-interference, zenfsplus-groups", "run",
                   "zenfsplus-interference", "fig99")

    def test_nothing_is_built(self) -> None:
        with tempfile.TemporaryDirectory(prefix="isozone-lab-test-") as empty:
            self.fails(cli.FAILED, "tools/isozone/isozone is missing; use make lab", "run", "zenfsplus-interference",
                       "--build", empty)

    def test_usage(self) -> None:
        for words in (("--repeats", "0"), ("--no-such-option",), ("--seed", "x"), ("--speed", "0"), ("--speed", "nan")):
            done = call("run", *words)
            self.assertEqual(cli.USAGE, done.returncode)
            self.assertIn("usage: lab/run", done.stderr)

    def test_choice(self) -> None:
        everything = [one for one in experiments.ALL if one.name != "kernel-myrocks"]  # needs a database server
        self.assertEqual(everything, cli.choose([]))
        self.assertEqual(everything, cli.choose(["all"]))
        self.assertEqual(["kernel-myrocks"], [one.name for one in cli.choose(["kernel-myrocks"])])
        self.assertEqual(["soak", "limit"], [one.name for one in cli.choose(["soak", "limit", "soak"])])

    def test_earlier_names(self) -> None:
        self.assertLessEqual(set(experiments.EARLIER_NAMES.values()), {one.name for one in experiments.ALL})
        self.assertEqual(["zenfsplus-bandwidth"], [one.name for one in cli.choose(["fig9", "zenfsplus-bandwidth"])])

    def test_results_under_earlier_names_are_kept(self) -> None:
        with tempfile.TemporaryDirectory(prefix="isozone-lab-test-") as directory:
            for name in ("fig9.json", "fig9.0123.json", "gc-waf.json", "lifetime-waf.json", "soak.json", "fig9.svg"):
                with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
                    file.write(name)
            said = io.StringIO()
            with contextlib.redirect_stderr(said):
                cli.rename_results(directory)
                cli.rename_results(directory)
            self.assertEqual(["fig9.svg", "gc-waf.json", "lifetime-waf.json", "soak.json",
                              "zenfsplus-bandwidth.0123.json", "zenfsplus-bandwidth.json"],
                             sorted(os.listdir(directory)))
        self.assertRegex(said.getvalue(), r"\Afig9.0123.json is zenfsplus-bandwidth.0123.json from now on\n[^\n]+\n\Z")

    def test_the_list_says_what_was_published_where(self) -> None:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            cli.list_experiments()
        self.assertRegex(said.getvalue(), r"(?m)^zenfsplus-bandwidth +Bandwidth .*ZenFS\+.*, Fig\. 9\)$")

    def test_the_speed_of_a_device(self) -> None:
        scaled, counted = cli.choose(["zenfsplus-bandwidth", "lifetime-capacity"])
        for words, expected in (([], scaled.quick["speed"]), (["--speed", "1"], 1)):
            arguments = cli.run_parser().parse_args(["--quick", *words])
            self.assertEqual(expected, cli.header_of(scaled, arguments, {})["parameters"]["speed"])
            self.assertNotIn("speed", cli.header_of(counted, arguments, {})["parameters"])

    def test_the_sources_of_the_lab_decide(self) -> None:
        one, = cli.choose(["zenfsplus-groups"])
        arguments = cli.run_parser().parse_args(["--quick"])
        made = [cli.header_of(one, arguments, {})]
        with mock.patch("isozone_lab.sources.digest", lambda _: "another"):
            made.append(cli.header_of(one, arguments, {}))
        self.assertEqual("another", made[1]["versions"]["lab"])
        self.assertNotEqual(made[0]["fingerprint"], made[1]["fingerprint"])

    def test_a_page_of_nothing(self) -> None:
        with tempfile.TemporaryDirectory(prefix="isozone-lab-test-") as empty, self.assertRaises(cli.Refused):
            cli.print_page(empty)

    @unittest.skipUnless(importlib.util.find_spec("matplotlib"), "matplotlib is not installed")
    def test_a_page_of_a_file_that_is_cut_off(self) -> None:
        with tempfile.TemporaryDirectory(prefix="isozone-lab-test-") as directory:
            with open(os.path.join(directory, "zenfsplus-groups.json"), "w", encoding="utf-8") as file:
                file.write('{"experiment": "zenfsplus-groups", "mode"')
            self.fails(cli.FAILED, "zenfsplus-groups.json is cut off", "report", "--out", directory)

    def test_interruption(self) -> None:
        def action() -> NoReturn:
            raise KeyboardInterrupt

        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            self.assertEqual(cli.INTERRUPTED, cli.guarded("lab/run", action))
        self.assertEqual("lab/run: interrupted; the same command continues\n", said.getvalue())


if __name__ == "__main__":
    unittest.main()
