#!/usr/bin/env python3
"""Every command with too few threads, descriptors and memory: it does its work, or says in one line why not, with an
exit code of the manual. It neither hangs nor is ended by an exception. For mount, tests/mount/limits_test.py has that.

    limits_test.py ISOZONE
"""

import http.client
import os
import re
import shutil
import signal
import subprocess
import unittest

import harness

SECONDS = 60  # after which a command hangs
# A user who has no other process, so that the limit counts those of the command.
USER = 64_231
# With fewer descriptors and less memory the loader does not come to the program.
LIMITS = [*(("--nproc", f"{count}") for count in (1, 2, 3, 4, 5, 6, 8)),
          *(("--nofile", f"{count}") for count in (5, 6, 7, 8, 10, 12)),
          *(("--as", f"{mib << 20}") for mib in (64, 96, 128, 192, 256, 384))]
UNTIL_A_SIGNAL = {"serve", "mount", "export"}
# Under these a server either begins or does not. Of threads, serve_test has more.
LIMITS_OF_SERVERS = [*(("--nofile", f"{count}") for count in (4, 5, 6, 8, 20)),
                     *(("--as", f"{mib << 20}") for mib in (96, 256, 512))]
TINY_SHARED_MEMORY = ("unshare", "-m", "sh", "-c",
                      "mount -t tmpfs -o size=64k none /dev/shm && exec \"$0\" \"$@\"")


class Limits(harness.CliTest):
    def setUp(self) -> None:
        super().setUp()
        self.format("timing=off&zones=64&zone_size=4M")
        self.local = self.write("local", b"local" * 1000)
        self.ok("cp", self.device, self.local, ":/file")
        self.ok("backup", self.device, self.path("backup"))
        self.ok("mkfs", f"{self.other()}&zones=64&zone_size=4M")
        self.ok("bench", "io", "--destroy", "--bytes", "1M", "--reads", "10", self.scratch(fresh=True))
        for folder, folders, files in os.walk(self.directory):
            for name in (".", *folders, *files):
                os.chmod(os.path.join(folder, name), 0o777)

    def other(self) -> str:
        return f"emu:{self.path('other.img')}?timing=off"

    def scratch(self, fresh: bool = False) -> str:
        name = f"emu:{self.path('scratch.img')}?timing=off"
        if fresh:
            self.ok("mkfs", f"{name}&zones=64&zone_size=4M")
        return name

    def examples(self) -> dict[str, list[str]]:
        return {
            "mkfs": ["--force", f"emu:{self.path('new.img')}?zones=64&zone_size=4M&timing=on"],
            "info": [self.device],
            "df": [self.device],
            "ls": [self.device],
            "stat": [self.device, "/file"],
            "cat": [self.device, "/file"],
            "cp": [self.device, self.local, ":/copy"],
            "rm": ["-r", self.device, "/none"],
            "backup": [self.device, self.path("archive.tar")],
            "restore": ["--force", self.path("backup"), self.other()],
            "import": [self.scratch(), self.other()],
            "zones": [self.device],
            "fsck": ["--read-data", self.device],
            "dump": [self.device],
            "izg": ["identify", self.device],
            "gc": ["run", self.device],
            "bench": ["io", "--bytes", "4M", "--reads", "10", self.scratch()],
            "stats": ["--json", self.device],
            "top": ["--once", self.device],
            "advise": [self.device],
            "why": [self.device],
            "run": ["--map", f"{self.path('run')}={self.device}", "--", "true"],
            "simulate": ["--data", "8M", "--zones", "64"],
        }

    def check(self, command: list[str], *before: str) -> None:
        with self.subTest(before=before[-1], command=command):
            try:
                result = subprocess.run([*before, harness.PROGRAM, *command], capture_output=True, timeout=SECONDS,
                                        stdin=subprocess.DEVNULL)
            except subprocess.TimeoutExpired:
                self.fail("hangs")
            self.check_end(result.returncode, result.stderr)

    def check_end(self, code: int, said: bytes) -> None:
        errors = said.decode(errors="replace")
        self.assertIn(code, range(11), errors)
        # Warnings of the library are lines of their own.
        own = [line for line in errors.splitlines() if not re.match(r"\[.*\] \[warning\] ", line)]
        self.assertLessEqual(len(own), 1, errors)
        if code != harness.OK:
            self.assertRegex("\n".join(own), r"\Aisozone[^\n]*: [^\n]+\Z")

    def begins(self, command: list[str], *before: str) -> bool:
        """Whether a command that runs until a signal says that it has begun. A request is answered then, and a signal
        ends it."""
        with self.subTest(before=before[-1], command=command), \
                subprocess.Popen([*before, harness.PROGRAM, *command], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE) as server:
            assert server.stdout is not None
            line = server.stdout.readline().decode()
            try:
                if match := re.search(r"http://([0-9.]+:\d+)/", line):
                    connection = http.client.HTTPConnection(match[1], timeout=SECONDS)
                    connection.request("GET", "/api/files?name=file")
                    self.assertIn(connection.getresponse().status, (200, 503))
                    connection.close()
                if line:
                    server.send_signal(signal.SIGTERM)
                _, errors = server.communicate(timeout=SECONDS)
            except (subprocess.TimeoutExpired, TimeoutError):
                self.fail("hangs")
            finally:
                server.kill()
            self.check_end(server.returncode, errors)
            return server.returncode == harness.OK
        return False

    def test_every_command_has_an_example(self) -> None:
        listed = self.ok("--help").decode().partition("Subcommands:")[2].partition("Options of a mount")[0]
        self.assertEqual(set(re.findall(r"^  ([a-z]+) ", listed, re.MULTILINE)),
                         set(self.examples()) | UNTIL_A_SIGNAL)

    @unittest.skipIf(shutil.which("prlimit") is None, "no prlimit")
    def test_every_command_under_every_limit(self) -> None:
        user = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"] if os.geteuid() == 0 else []
        for limit, value in LIMITS:
            for name, arguments in self.examples().items():
                self.check([name, *arguments], *user, "prlimit", f"{limit}={value}")

    @unittest.skipIf(os.geteuid() != 0, "only root can mount a small /dev/shm")
    def test_every_command_with_a_tiny_shared_memory(self) -> None:
        if subprocess.run([*TINY_SHARED_MEMORY, "true"], capture_output=True).returncode != 0:
            self.skipTest("this container may not mount")
        for name, arguments in self.examples().items():
            self.check([name, *arguments], *TINY_SHARED_MEMORY)
        self.assertTrue(self.begins(self.serve(), *TINY_SHARED_MEMORY))

    def serve(self) -> list[str]:
        return ["serve", "--listen", "127.0.0.1:0", self.device]

    @unittest.skipIf(shutil.which("prlimit") is None, "no prlimit")
    def test_servers_under_every_limit(self) -> None:
        begun = [self.begins(self.serve(), "prlimit", f"{limit}={value}") for limit, value in LIMITS_OF_SERVERS]
        self.assertEqual({False, True}, set(begun))
        if os.path.exists("/dev/ublk-control"):
            self.assertTrue(self.begins(["export", self.device], "prlimit", "--nofile=64"))
        for limit, value in LIMITS_OF_SERVERS:
            self.begins(["export", self.device], "prlimit", f"{limit}={value}")


if __name__ == "__main__":
    unittest.main()
