"""How the lab runs a job in a guest: the machine, what is read of it, and every way in which a guest may fail. Shells
take the place of QEMU."""
import os
import re
import tempfile
import unittest
from unittest import mock

import harness  # noqa: F401 - finds the lab
from isozone_lab import versions
from isozone_lab.guest import machine, timed
from isozone_lab.guest.initramfs import Initramfs
from isozone_lab.processes import RunFailed

DONE = r"run: load\r\nbegin: load\r\nfillrandom   : 1\r\n\r\nend: load\r\n" \
       r"begin: device\r\n{}\r\nend: device\r\njob: done\r\n"


class Guests(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory(prefix="isozone-lab-test-")
        self.addCleanup(scratch.cleanup)
        self.directory = scratch.name
        self.noted: list[str] = []

    def watch(self, script: str, time_limit_s: float = 60) -> str:
        return timed.watch(["sh", "-c", script], time_limit_s, self.noted.append)

    def test_what_programs_print_is_read_by_their_names(self) -> None:
        text = self.watch(f"printf '{DONE}'")
        self.assertEqual({"load": "fillrandom   : 1\n\n", "device": "{}\n"}, timed.outputs_of(text))

    def test_progress_is_told(self) -> None:
        self.watch("echo 'run: load at 7.5 s'; printf '... finished 100 ops\\r'; echo 'run: mixed at 81.25 s'")
        self.assertEqual(["load", "mixed"], [words.split()[0] for words in self.noted])
        self.assertRegex(self.noted[0], r"^load begins, at 7\.5 s of the guest, after \d+ s$")

    def test_a_job_that_fails(self) -> None:
        with self.assertRaisesRegex(RunFailed, "job has failed:\nmkfs.xfs: no such device\njob: failed"):
            timed.outputs_of(self.watch("echo mkfs.xfs: no such device; echo job: failed"))

    def test_a_guest_without_a_verdict(self) -> None:
        with self.assertRaisesRegex(RunFailed, "did not come to its end:\nKernel panic"):
            timed.outputs_of(self.watch("echo Kernel panic"))
        # What a program says of itself is no verdict.
        with self.assertRaisesRegex(RunFailed, "did not come to its end"):
            timed.outputs_of("begin: load\nthe job: done\nend: load\n")

    def test_a_guest_that_is_killed(self) -> None:
        with self.assertRaisesRegex(RunFailed, "did not come to its end:\nrun: load"):
            timed.outputs_of(self.watch("echo run: load; kill -9 $$"))

    def test_a_guest_that_takes_too_long(self) -> None:
        with self.assertRaisesRegex(RunFailed, r"stopped after 0\.2 s"):
            self.watch("sleep 600; true", time_limit_s=0.2)

    def test_a_machine_without_qemu(self) -> None:
        with self.assertRaisesRegex(RunFailed, "no-such-qemu: No such file"):
            timed.watch(["no-such-qemu"], 60, self.noted.append)

    def test_a_guest_without_a_kernel(self) -> None:
        build = versions.Build(self.directory, f"{self.directory}/kernel")
        with self.assertRaisesRegex(RunFailed, "run scripts/fetch-guest-kernel --newest .*/kernel"):
            timed.run(build, [], self.directory, 1 << 30, 1, 60, self.noted.append)

    def test_nothing_is_left_of_a_guest(self) -> None:
        os.makedirs(f"{self.directory}/kernel/tools")
        build = versions.Build(self.directory, f"{self.directory}/kernel")
        for script, failure in ((f"printf '{DONE}'", None), ("echo job: failed", RunFailed)):
            with mock.patch.object(timed, "make_initramfs"), \
                    mock.patch.object(timed, "qemu_command", return_value=["sh", "-c", script]):
                if failure is None:
                    timed.run(build, [], self.directory, 1 << 30, 1, 60, self.noted.append)
                else:
                    self.assertRaises(failure, timed.run, build, [], self.directory, 1 << 30, 1, 60, self.noted.append)
            self.assertEqual(["kernel"], os.listdir(self.directory))

    def test_a_job_brings_programs_of_its_own(self) -> None:
        os.makedirs(f"{self.directory}/kernel/tools")
        build = versions.Build(self.directory, f"{self.directory}/kernel")
        seen: list[bytes] = []

        def start(command: list[str], *_: object) -> str:
            with open(command[0], "rb") as file:
                seen.append(file.read())
            return "job: done\n"

        with mock.patch.object(machine, "base_archive", Initramfs), mock.patch.object(machine, "add_programs"), \
                mock.patch.object(machine, "add_tools"), mock.patch.object(machine, "add_modules"), \
                mock.patch.object(machine, "program"), mock.patch.object(timed, "watch", start), \
                mock.patch.object(timed, "qemu_command", lambda _, initramfs, *rest: [initramfs]):
            for add in (None, lambda archive: archive.add("bin/mine", b"program", 0o100755)):
                timed.run(build, [], self.directory, 1 << 30, 1, 60, self.noted.append, add)
        self.assertEqual([False, True], [b"bin/mine\0" in archive for archive in seen])

    def test_the_time_of_the_machine_is_virtual_and_its_chance_has_a_seed(self) -> None:
        with mock.patch.object(machine, "program", lambda name: f"/bin/{name}"), \
                mock.patch.object(machine, "boot_arguments", return_value=["-kernel", "vmlinux"]):
            words = timed.qemu_command("kernel", "initramfs", "scratch", 3 << 30, 7)
        self.assertEqual("/bin/qemu-system-x86_64", words[0])
        for option, value in (("-icount", "shift=0,sleep=off"), ("-smp", "1"), ("-seed", "7"), ("-m", "3072M"),
                              ("-rtc", "base=2026-01-01,clock=vm"), ("-accel", "tcg,thread=single")):
            self.assertEqual(value, words[words.index(option) + 1])

    def test_the_scripts_print_what_is_read(self) -> None:
        text = ""
        for name in timed.SCRIPTS:
            with open(os.path.join(timed.HERE, name), encoding="utf-8") as file:
                text += file.read()
        for words in ("run: $name at $(cut -d' ' -f1 /proc/uptime) s", "begin: $name", "end: $name", "job: done",
                      "job: failed"):
            self.assertTrue(re.search(rf'echo "{re.escape(words)}"', text), words)


if __name__ == "__main__":
    unittest.main()
