#!/usr/bin/env python3
"""Runs scripts/release in a repository of its own, made of the files of this one that it touches."""

import datetime
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import house

FILES = ("CMakeLists.txt", "CHANGELOG.md", "scripts/release")
NEXT = "0.99.0"


class Release(unittest.TestCase):
    def setUp(self) -> None:
        self.root = tempfile.mkdtemp(prefix="isozone-release-")
        self.addCleanup(shutil.rmtree, self.root)
        for name in FILES:
            os.makedirs(os.path.dirname(os.path.join(self.root, name)), exist_ok=True)
            shutil.copy(os.path.join(house.ROOT, name), os.path.join(self.root, name))
        text = self.read("CHANGELOG.md")
        first = house.find(r"^## \[", text, re.MULTILINE).start()
        section = f"## [{NEXT}] - Unreleased\n\n### Added\n\n* A test.\n\n"
        self.write("CHANGELOG.md", text[:first] + section + text[first:])
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "Begins")

    def read(self, name: str) -> str:
        with open(os.path.join(self.root, name), encoding="utf-8") as file:
            return file.read()

    def write(self, name: str, text: str) -> None:
        with open(os.path.join(self.root, name), "w", encoding="utf-8") as file:
            file.write(text)

    def run_command(self, *command: str) -> subprocess.CompletedProcess[str]:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        environment.update({"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"})
        for role in ("AUTHOR", "COMMITTER"):
            environment.update({f"GIT_{role}_NAME": "test", f"GIT_{role}_EMAIL": "test"})
        return subprocess.run(command, cwd=self.root, env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def git(self, *arguments: str) -> str:
        result = self.run_command("git", *arguments)
        self.assertEqual(0, result.returncode, result.stdout)
        return result.stdout.strip()

    def release(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.run_command("scripts/release", *arguments)

    def assert_refused(self, why: str, *arguments: str) -> None:
        head = self.git("rev-parse", "HEAD")
        result = self.release(*arguments)
        self.assertNotEqual(0, result.returncode)
        self.assertIn(why, result.stdout)
        self.assertEqual((head, ""), (self.git("rev-parse", "HEAD"), self.git("tag")))

    def test_it_sets_the_version_dates_the_changelog_commits_and_tags(self) -> None:
        old = self.read("CMakeLists.txt"), self.read("CHANGELOG.md")
        result = self.release(NEXT)
        self.assertEqual(0, result.returncode, result.stdout)
        self.assertEqual(re.sub(r"(isozone VERSION )[\d.]+", rf"\g<1>{NEXT}", old[0], count=1),
                         self.read("CMakeLists.txt"))
        dates = {datetime.date.today(), datetime.date.today() - datetime.timedelta(days=1)}  # midnight may pass
        self.assertIn(self.read("CHANGELOG.md"),
                      [old[1].replace(f"## [{NEXT}] - Unreleased", f"## [{NEXT}] - {date}", 1) for date in dates])
        self.assertEqual("", self.git("status", "--porcelain"))
        self.assertEqual(f"Releases {NEXT}", self.git("log", "-1", "--format=%s"))
        self.assertEqual(["CHANGELOG.md", "CMakeLists.txt"], self.git("show", "--format=", "--name-only").split())
        self.assertEqual(f"v{NEXT}", self.git("describe", "--exact-match"))

    def test_a_dry_run_says_what_it_would_do_and_changes_nothing(self) -> None:
        head = self.git("rev-parse", "HEAD")
        result = self.release(NEXT, "--dry-run")
        self.assertEqual(0, result.returncode, result.stdout)
        for line in ("would set the version", "would date", f"tag the commit v{NEXT}"):
            self.assertIn(line, result.stdout)
        self.assertEqual((head, "", ""),
                         (self.git("rev-parse", "HEAD"), self.git("status", "--porcelain"), self.git("tag")))

    def test_a_tree_that_is_not_clean_is_refused(self) -> None:
        self.write("stray", "")
        self.assert_refused("not clean", NEXT)

    def test_a_version_without_a_section_is_refused(self) -> None:
        self.assert_refused("has no section", "0.98.0")

    def test_an_empty_section_is_refused(self) -> None:
        self.write("CHANGELOG.md", self.read("CHANGELOG.md").replace("* A test.", ""))
        self.git("commit", "--quiet", "--all", "--message", "Empties")
        self.assert_refused("lists nothing", NEXT)

    def test_an_older_version_is_refused(self) -> None:
        self.assert_refused("is older than", "0.0.1")

    def test_what_is_no_version_is_refused(self) -> None:
        for version in ("1.0", "v1.0.0", "1.0.0-rc1", "01.0.0"):
            self.assert_refused("is no version", version)

    def test_a_version_is_released_once(self) -> None:
        self.assertEqual(0, self.release(NEXT).returncode)
        self.assertIn(f"the tag v{NEXT} exists", self.release(NEXT).stdout)

    def test_the_changelog_has_the_version_that_the_build_has(self) -> None:
        self.assertRegex(house.read("CHANGELOG.md"), rf"(?m)^## \[{re.escape(house.version())}\] - ")


if __name__ == "__main__":
    unittest.main()
