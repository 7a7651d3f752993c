#!/usr/bin/env python3
"""A mount with too few descriptors, too little memory, or no shared memory: it begins and works, or says in one line
why not, with an exit code of the manual. It neither hangs nor keeps what the command was started with. Of threads,
user_test has that.

    few_descriptors_test.py ISOZONE
"""

import os
import re
import subprocess

import mounted

CODES = range(11)
LIMITS = [*(f"--nofile={count}" for count in (4, 5, 6, 8, 10, 11, 12, 14, 24)),
          *(f"--as={mib << 20}" for mib in (64, 300, 350, 600))]
SLOW = (r"\[[^\n]*\] \[isozone\] \[warning\] each flush of a log writes to the device, which is slow: there is no "
        r"memory that outlives the process \(cannot make {}/isozone-\S+-kept: {}\); set kept_memory or "
        r"kept_memory_directory\n")


class Limits(mounted.MountTest):
    def works(self) -> None:
        for name in ("first", "second"):
            with open(self.path(name), "w", encoding="ascii") as file:
                file.write(name * 10_000)
        with open(self.path("first"), encoding="ascii") as file:
            self.assertEqual("first" * 10_000, file.read())

    def mounts(self, limit: str) -> bool:
        """In the background; whether there is a mount, which is then used and ended."""
        try:
            result = subprocess.run(["prlimit", limit, mounted.PROGRAM, "mount", self.device, self.directory],
                                    capture_output=True, text=True, timeout=mounted.WAIT_S)
        except subprocess.TimeoutExpired:
            self.fail(f"{limit}: hangs")
        self.assertEqual(result.returncode == 0, mounted.is_mounted(self.directory), limit)
        if result.returncode == 0:
            self.works()
            mounted.unmount(self.directory)
            mounted.wait_until(self.is_whole, "the daemon ends")
            return True
        own = re.sub(r"^\[.*\] \[warning\] .*\n", "", result.stderr, flags=re.MULTILINE)
        self.assertIn(result.returncode, CODES, limit)
        self.assertRegex(own, r"\Aisozone mount: [^\n]*(Too many open files; |\(ulimit -v\))[^\n]*\n\Z", limit)
        return False

    def test_in_the_background(self) -> None:
        begun = {limit: self.mounts(limit) for limit in LIMITS}
        self.assertEqual({False, True}, set(begun.values()))
        self.assertTrue(begun["--nofile=24"] and begun["--as=629145600"], begun)

    def is_whole(self) -> bool:
        return subprocess.run([mounted.PROGRAM, "fsck", "--read-data", self.device],
                              capture_output=True).returncode == 0

    def test_a_signal_ends_it(self) -> None:
        for limit in ("--nofile=24", "--as=629145600"):
            daemon = self.mount(starter=("prlimit", limit))
            self.works()
            self.assertEqual(0, daemon.end(), daemon.said())

    def test_without_shared_memory_it_says_so_in_one_line(self) -> None:
        for directory, why in ((f"{self.scratch}/tiny", "No space left on device"),
                               (f"{self.scratch}/missing", "No such file or directory")):
            if directory.endswith("tiny"):
                if os.geteuid() != 0:  # only root can mount it
                    continue
                os.mkdir(directory)
                subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", directory], check=True)
                self.addCleanup(subprocess.run, ["umount", directory], check=True)
            daemon = self.mount(device=f"{self.device}&kept_memory_directory={directory}")
            self.works()
            self.assertEqual(0, daemon.end(), daemon.said())
            self.assertEqual(1, len(re.findall(SLOW.format(directory, why), daemon.said())), daemon.said())
            self.assertEqual(1, daemon.said().count("[warning]"), daemon.said())


if __name__ == "__main__":
    mounted.main()
