"""What the tests of engines in Java share: jars of Maven, and isozone-java."""

import os
import subprocess
import tempfile
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

    def isozone(self, version: str, checked: bool = True) -> str:
        """isozone-java for that release of rocksdbjni; `checked`: with Isozone's assertions."""
        command = [os.path.join(engine.ROOT, "scripts", "build-java"), *(["--checked"] if checked else []), version]
        result = subprocess.run(command, text=True, capture_output=True, timeout=BUILD_TIMEOUT_S)
        if result.returncode != 0 and "is there a network?" in result.stderr:
            self.test.skipTest(result.stderr.strip().splitlines()[-1])
        self.test.assertEqual(0, result.returncode, result.stderr[-4000:])
        return os.path.join(engine.ROOT, result.stdout.strip())

    def artifact(self, group: str, name: str, version: str) -> str:
        path = os.path.join(REPOSITORY, *group.split("."), name, version, f"{name}-{version}.jar")
        if not os.path.exists(path):
            self.maven(COPY + "get", f"-Dartifact={group}:{name}:{version}", "-Dtransitive=false")
        return path

    def with_dependencies(self, directory: str, *artifacts: str) -> None:
        """Lays these, each as group:name:version, and all that they need out in `directory`."""
        with tempfile.TemporaryDirectory(prefix="isozone-maven-") as scratch:
            dependencies = "".join(
                "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>".format(
                    *artifact.split(":")) for artifact in artifacts)
            project = os.path.join(scratch, "pom.xml")
            with open(project, "w", encoding="utf-8") as file:
                file.write("<project><modelVersion>4.0.0</modelVersion><groupId>isozone</groupId>"
                           "<artifactId>test</artifactId><version>1</version>"
                           f"<dependencies>{dependencies}</dependencies></project>")
            self.maven("--file", project, COPY + "copy-dependencies", f"-DoutputDirectory={directory}")

    def maven(self, *arguments: str) -> None:
        result = subprocess.run(["mvn", "--batch-mode", "--quiet", *arguments], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=FETCH_TIMEOUT_S)
        if result.returncode != 0:
            errors = [line for line in result.stdout.splitlines() if "ERROR" in line]
            self.test.skipTest(f"Maven brings nothing: {(errors or ['?'])[0]}")
