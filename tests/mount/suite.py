"""Test programs of others, crates of Rust: built once for each build directory, and run on a mounted directory."""

import os
import re
import shutil
import subprocess

import mounted

BUILD_TIMEOUT_S = 1500
CRATES = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(mounted.PROGRAM))), "crates")


class CannotHave(Exception):
    pass


def program_of_crate(name: str, version: str) -> str:
    """The program of a crate, which is built where it is not there yet. CannotHave says in one line why it is not to be
    had."""
    root = os.path.join(CRATES, f"{name}-{version}")
    program = os.path.join(root, "bin", name)
    if os.path.exists(program):
        return program
    cargo = shutil.which("cargo")
    if cargo is None:
        raise CannotHave(f"the crate {name} cannot be had: cargo is not there")
    built = subprocess.run([cargo, "install", name, "--version", version, "--locked", "--debug", "--root",
                            root],
                           stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S)
    if built.returncode == 0:
        return program
    # The registry cannot be reached, or the compiler is too old: `error: ` begins the line that says so.
    reasons = re.findall(r"^error: (.+)$", built.stderr, re.MULTILINE) or built.stderr.splitlines() or ["?"]
    raise CannotHave(f"the crate {name} cannot be had: {reasons[0]}")
