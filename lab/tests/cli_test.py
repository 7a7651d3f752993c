"""The command lines: lists, errors and exit codes."""
import contextlib
import importlib.util
import io
import os
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import harness
from isozone_lab import cli, experiments


def call(program, *words):
    return subprocess.run([sys.executable, "-B", os.path.join(harness.LAB, program), *words], capture_output=True,
                          text=True, timeout=60, check=False)


class CommandLine(unittest.TestCase):
    def fails(self, code, words, program, *arguments):
        """With this exit code and one line on standard error."""
        done = call(program, *arguments)
        self.assertEqual(code, done.returncode, done.stderr)
        self.assertRegex(done.stderr, r"\A[^\n]+\n\Z")
        self.assertIn(words, done.stderr)
        self.assertEqual("", done.stdout)

    def test_list(self):
        done = call("run", "--list")
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertEqual([one.name for one in experiments.ALL], [line.split()[0] for line in done.stdout.splitlines()])

    def test_an_unknown_experiment(self):
        self.fails(cli.USAGE, "unknown experiment 'fig99'; there are: fig3, fig8", "run", "fig3", "fig99")

    def test_nothing_is_built(self):
        with tempfile.TemporaryDirectory(prefix="isozone-lab-test-") as empty:
            self.fails(cli.FAILED, "tools/isozone/isozone is missing; use make lab", "run", "fig3", "--build", empty)

    def test_usage(self):
        for words in (("--repeats", "0"), ("--no-such-option",), ("--seed", "x"), ("--speed", "0"), ("--speed", "nan")):
            done = call("run", *words)
            self.assertEqual(cli.USAGE, done.returncode)
            self.assertIn("usage: lab/run", done.stderr)

    def test_choice(self):
        everything = list(experiments.ALL)
        self.assertEqual(everything, cli.choose([]))
        self.assertEqual(everything, cli.choose(["all"]))
        self.assertEqual(["fig8", "fig3"], [one.name for one in cli.choose(["fig8", "fig3", "fig8"])])

    def test_the_speed_of_a_device(self):
        scaled, counted = cli.choose(["fig9", "capacity"])
        for words, expected in (([], scaled.quick["speed"]), (["--speed", "1"], 1)):
            arguments = cli.run_parser().parse_args(["--quick", *words])
            self.assertEqual(expected, cli.header_of(scaled, arguments, {})["parameters"]["speed"])
            self.assertNotIn("speed", cli.header_of(counted, arguments, {})["parameters"])

    def test_the_sources_of_the_lab_decide(self):
        one, = cli.choose(["fig8"])
        arguments = cli.run_parser().parse_args(["--quick"])
        made = [cli.header_of(one, arguments, {})]
        with mock.patch("isozone_lab.sources.digest", lambda _: "another"):
            made.append(cli.header_of(one, arguments, {}))
        self.assertEqual("another", made[1]["versions"]["lab"])
        self.assertNotEqual(made[0]["fingerprint"], made[1]["fingerprint"])

    def test_a_page_of_nothing(self):
        with tempfile.TemporaryDirectory(prefix="isozone-lab-test-") as empty, self.assertRaises(cli.Refused):
            cli.print_page(empty)

    @unittest.skipUnless(importlib.util.find_spec("matplotlib"), "matplotlib is not installed")
    def test_a_page_of_a_file_that_is_cut_off(self):
        with tempfile.TemporaryDirectory(prefix="isozone-lab-test-") as directory:
            with open(os.path.join(directory, "fig8.json"), "w", encoding="utf-8") as file:
                file.write('{"experiment": "fig8", "mode"')
            self.fails(cli.FAILED, "fig8.json is cut off", "report", "--out", directory)

    def test_interruption(self):
        def action():
            raise KeyboardInterrupt

        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            self.assertEqual(cli.INTERRUPTED, cli.guarded("lab/run", action))
        self.assertEqual("lab/run: interrupted; the same command continues\n", said.getvalue())


if __name__ == "__main__":
    unittest.main()
