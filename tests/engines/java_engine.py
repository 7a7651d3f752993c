"""What the tests of engines in Java share: jars of Maven, and isozone-java."""

import os
import subprocess
import unittest

import engine

FETCH_TIMEOUT_S = 600
BUILD_TIMEOUT_S = 1500
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:"
REPOSITORY = os.path.join(os.path.expanduser("~"), ".m2", "repository")


class Jars:
    """Jars for `test`, which is skipped where they cannot be had. They are fetched once, into Maven's repository."""

    def __init__(self, test: unittest.TestCase) -> None:
        self.test = test

    def isozone(self, version: str) -> str:
        """isozone-java for that release of rocksdbjni, with Isozone's assertions."""
        result = subprocess.run([os.path.join(engine.ROOT, "scripts", "build-java"), "--checked", version], text=True,
                                capture_output=True, timeout=BUILD_TIMEOUT_S)
        if result.returncode != 0 and "is there a network?" in result.stderr:
            self.test.skipTest(result.stderr.strip().splitlines()[-1])
        self.test.assertEqual(0, result.returncode, result.stderr[-4000:])
        return os.path.join(engine.ROOT, result.stdout.strip())

    def artifact(self, group: str, name: str, version: str) -> str:
        path = os.path.join(REPOSITORY, *group.split("."), name, version, f"{name}-{version}.jar")
        if not os.path.exists(path):
            self.maven(COPY + "get", f"-Dartifact={group}:{name}:{version}", "-Dtransitive=false")
        return path

    def maven(self, *arguments: str, directory: str | None = None) -> None:
        result = subprocess.run(["mvn", "--batch-mode", "--quiet", *arguments], text=True, cwd=directory,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=FETCH_TIMEOUT_S)
        if result.returncode != 0:
            errors = [line for line in result.stdout.splitlines() if "ERROR" in line]
            self.test.skipTest(f"Maven brings nothing: {(errors or ['?'])[0]}")

    def with_dependencies(self, artifacts: dict[str, str], directory: str) -> None:
        """Copies these artifacts, GROUP:NAME with their versions, and all that they need into a directory."""
        dependencies = "".join(f"<dependency><groupId>{name.split(':')[0]}</groupId><artifactId>{name.split(':')[1]}"
                               f"</artifactId><version>{version}</version></dependency>"
                               for name, version in artifacts.items())
        os.makedirs(directory)
        with open(os.path.join(directory, "pom.xml"), "w", encoding="utf-8") as file:
            file.write('<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
                       "<groupId>org.isozone</groupId><artifactId>engines</artifactId><version>0</version>"
                       f"<dependencies>{dependencies}</dependencies></project>")
        self.maven(COPY + "copy-dependencies", f"-DoutputDirectory={directory}", directory=directory)
