"""What the house-rule tests share: where the repository is and which files in it are ours."""

import os
import re
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GENERATED = {".git", "build", "out", "__pycache__"}


def our_files() -> list[str]:
    """Paths, relative to the repository, of every file that is committed or about to be."""
    listing = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                             capture_output=True, text=True)
    if listing.returncode == 0:
        return sorted(path for path in listing.stdout.split("\0") if os.path.isfile(os.path.join(ROOT, path)))
    found = []  # not a git checkout: a source archive
    for folder, subfolders, names in os.walk(ROOT):
        subfolders[:] = [name for name in subfolders if name not in GENERATED]
        found += [os.path.relpath(os.path.join(folder, name), ROOT) for name in names]
    return sorted(found)


def read(path: str) -> str:
    with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def find(pattern: str | re.Pattern[str], text: str, flags: int = 0) -> re.Match[str]:
    """The first match; AssertionError where there is none."""
    found = re.search(pattern, text, flags)
    if found is None:
        raise AssertionError(f"nothing matches {pattern}")
    return found


def version() -> str:
    """The version of the project, as CMake has it."""
    return find(r"^project\(isozone VERSION (\d+\.\d+\.\d+)", read("CMakeLists.txt"), re.MULTILINE)[1]
