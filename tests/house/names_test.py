#!/usr/bin/env python3
"""Holds the names that the documents set in backticks against the tree: files and folders, `Class::Member`, names of
classes and constants, and tests. Documents are the *.md of the root, and those in docs, docs/engines, docs/measurements
and examples; fenced blocks are left out, and so are the names of other programs.
"""

import os
import re
import unittest

import house

DOCUMENT = re.compile(r"^(?:(?:docs|docs/engines|docs/measurements|examples)/)?[^/]+\.md$")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`\n]+(?:\n[^`\n]+)?)`")
SOURCE = (".h", ".cc")
LISTED = (*SOURCE, ".py", ".md", ".cmake", ".json", ".map", ".sh", ".txt", ".yml", ".toml", ".profile", ".supp")
FILE = re.compile(r"[\w.-]+(?:/[\w.-]+)*")
MEMBER = re.compile(r"(?:[A-Za-z_]\w*::)+~?[A-Za-z_]\w*")
CAMEL = re.compile(r"[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+|k[A-Z]\w+")
TEST = re.compile(r"([A-Z]\w+)\.([A-Z]\w*)(\*?)")
# Of RocksDB, ZenFS and the C++ library.
FOREIGN_CLASSES = {"DB", "DBOptions", "Env", "FSWritableFile", "FSRandomAccessFile", "ObjectRegistry", "ZenFS", "std",
                   "rocksdb", "BackupEngine", "GCWorker"}
# Headers where they are installed, RocksDB's own scripts, and patterns such as NAME.json.
FOREIGN_FILES = re.compile(r"^((include/)?(rocksdb|isozone)/.*\.h|db_crashtest\.py|[A-Z.]+\.json)$")
FOREIGN_TESTS = ("docs/rocksdb-tests.md",)  # names tests of RocksDB
DECLARED = re.compile(r"\b(?:class|struct|enum|namespace|union|using)\s+"
                      r"(?:(?:\w+(?:\([^)]*\))?|\[\[\w+\]\])\s+)*?(\w+)\s*(?:final\s*)?[:;{=]")


def code_in(text: str) -> set[str]:
    """What a document sets in backticks, each once, without fenced blocks."""
    return {" ".join(words.split()) for words in CODE.findall(FENCED.sub("", text))}


class Tree:
    def __init__(self) -> None:
        self.files = house.our_files()
        self.paths = set(self.files)
        for path in self.files:
            while path := os.path.dirname(path):
                self.paths.add(path)
        self.top = {path for path in self.paths if "/" not in path}
        self.endings = {"/".join(path.split("/")[start:])
                        for path in self.paths for start in range(path.count("/") + 1)}
        code = [house.read(path) for path in self.files
                if path.endswith((*SOURCE, ".py", ".cmake", "CMakeLists.txt")) and not __file__.endswith(path)]
        words_of_files = [set(re.findall(r"\w+", text)) for text in code]
        self.words = set().union(*words_of_files)
        self.words_beside: dict[str, set[str]] = {}  # by class, namespace or enumeration: of the files that declare it
        for text, words in zip(code, words_of_files, strict=True):
            for name in DECLARED.findall(text):
                self.words_beside.setdefault(name, set()).update(words)
        self.tests = {test for text in code for test in re.findall(r"\bTEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\)", text)}

    def has_file(self, name: str) -> bool:
        return name.rstrip("/") in self.endings

    def has_member(self, name: str) -> bool:
        """A file that declares a class, namespace or enumeration of that name names the member."""
        *scopes, member = name.replace("~", "").split("::")
        return member in self.words_beside.get(scopes[-1], set())

    def has_test(self, suite: str, name: str, open_end: bool) -> bool:
        return any(found_suite == suite and (found.startswith(name) if open_end else found == name)
                   for found_suite, found in self.tests)


def unknown(words: str, tree: Tree, has_own_tests: bool = True) -> str | None:
    """Why the words, set in backticks, name something that does not exist; None where they do not."""
    name = words.removesuffix("()")
    if FILE.fullmatch(name):
        in_tree = "/" in name and name.split("/")[0] in tree.top
        listed = name.endswith(LISTED) and name[0] not in "-_."
        if (in_tree or listed) and not FOREIGN_FILES.match(name) and not tree.has_file(name):
            return "no such file or folder"
    if MEMBER.fullmatch(name):
        if name.split("::")[0] not in FOREIGN_CLASSES and not tree.has_member(name):
            return "no such member"
    elif CAMEL.fullmatch(name):
        if name not in FOREIGN_CLASSES and name not in tree.words:
            return "no such name in the code"
    elif match := TEST.fullmatch(name):
        if has_own_tests and not name.endswith(LISTED) and not tree.has_test(match[1], match[2], match[3] == "*"):
            return "no such test"
    return None


class Names(unittest.TestCase):
    tree: Tree

    @classmethod
    def setUpClass(cls) -> None:
        cls.tree = Tree()

    def test_every_name_in_the_documents_exists(self) -> None:
        documents = [path for path in self.tree.files if DOCUMENT.match(path)]
        self.assertIn("README.md", documents)
        found, count = [], 0
        for path in documents:
            names = code_in(house.read(path))
            count += len(names)
            found += [f"{path}: `{name}`: {why}" for name in sorted(names)
                      if (why := unknown(name, self.tree, path not in FOREIGN_TESTS))]
        self.assertGreater(count, 100)
        self.assertEqual([], found, "\n" + "\n".join(found))

    def test_every_document_is_in_the_index_of_its_folder(self) -> None:
        for folder in ("docs", "docs/measurements"):
            index = house.read(f"{folder}/README.md")
            documents = [path for path in self.tree.files if re.fullmatch(rf"{folder}/[^/]+\.md", path)]
            self.assertGreater(len(documents), 5)
            self.assertEqual([], [path for path in documents if path != f"{folder}/README.md"
                                  and f"]({os.path.basename(path)})" not in index])

    def test_every_engine_is_in_the_index_and_has_a_test(self) -> None:
        index = house.read("docs/engines/README.md")
        names = {path.rpartition("/")[2].removesuffix(".md") for path in self.tree.files
                 if re.fullmatch(r"docs/engines/[^/]+\.md", path)} - {"README"}
        self.assertEqual([], sorted(name for name in names if f"]({name}.md)" not in index))
        self.assertEqual([], sorted(name for name in names if not self.tree.has_file(
            f"tests/engines/{name.replace('-', '_')}_test.py")))

    def test_every_link_to_a_file_leads_somewhere(self) -> None:
        found = []
        for path in self.tree.files:
            if not DOCUMENT.match(path):
                continue
            for target in re.findall(r"\]\(([^)\s]+)\)", FENCED.sub("", house.read(path))):
                goal = target.split("#")[0]
                if re.match(r"[a-z]+:", target) or not goal:
                    continue
                if os.path.normpath(os.path.join(os.path.dirname(path), goal)) not in self.tree.paths:
                    found.append(f"{path}: {target}")
        self.assertEqual([], found)

    def test_unknown_names_are_found(self) -> None:
        for words, why in {"src/attic": "no such file or folder", "attic.cc": "no such file or folder",
                           "ZonePool::Atticise": "no such member", "Attic::Acquire": "no such member",
                           "ZoneAttic": "no such name", "FaultTest.Attic*": "no such test"}.items():
            with self.subTest(words=words):
                self.assertIn(why, unknown(words, self.tree) or "")

    def test_known_names_and_what_is_no_name_pass(self) -> None:
        for words in ("README.md", "zoned_device.h", "device/zoned_device.h", "src/base", "ZonedDevice::Submit",
                      "ZonedDevice", "Status::ok()", "Env::GetFileSystem()", "make test", "timing=off",
                      "kFormatVersion", "isozone gc status", "/dir", "stats_file=/path", "build/checked", "db_bench"):
            with self.subTest(words=words):
                self.assertIsNone(unknown(words, self.tree))

    def test_fenced_blocks_are_left_out(self) -> None:
        self.assertEqual({"a b", "c"}, code_in("`a\nb`\n```console\n$ `x`\n```\n`c`\n"))


if __name__ == "__main__":
    unittest.main()
