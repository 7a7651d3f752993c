#!/usr/bin/env python3
"""One word a thing: the table of that name in docs/glossary.md says which word is taken, and which others are not. No
text of ours has one of the others: comments, messages, documents and names of JSON."""

import re
import unittest

import house

GLOSSARY = "docs/glossary.md"
ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| [^|]+ \|$", re.MULTILINE)
# Texts that quote others: what the papers say, and what other programs print.
FOREIGN = (GLOSSARY, "tests/house/words_test.py", "docs/rocksdb-tests.md")
WRITTEN = (".h", ".cc", ".c", ".py", ".md", ".js", ".html", ".json", ".1")


def refused_words() -> dict[str, str]:
    """The words that are not taken, each with the one that is."""
    section = house.read(GLOSSARY).split("\n## One word a thing\n")[1].split("\n## ")[0]
    rows = [(taken.strip(), others) for taken, others in ROW.findall(section)][1:]  # without the heading
    return {other.strip(): taken for taken, others in rows for other in others.split(",")}


def violations(path: str, text: str, refused: dict[str, str]) -> list[str]:
    found = []
    for word, taken in refused.items():
        # Calls of others' functions, such as is_alive(), are not ours to name.
        pattern = re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w(])", re.IGNORECASE)
        for match in pattern.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            found.append(f'{path}:{line}: "{match[0]}"; the glossary says "{taken}"')
    return found


class Words(unittest.TestCase):
    def test_every_text_has_the_words_of_the_glossary(self) -> None:
        refused = refused_words()
        self.assertIn("alive", refused)
        files = [path for path in house.our_files() if path.endswith(WRITTEN) and path not in FOREIGN]
        self.assertGreater(len(files), 0)
        found = [line for path in files for line in violations(path, house.read(path), refused)]
        self.assertEqual([], found, "\n" + "\n".join(found))

    def test_violations_are_found(self) -> None:
        refused = {"alive": "live", "set aside": "reserved"}
        self.assertEqual(['a.h:2: "Alive"; the glossary says "live"'],
                         violations("a.h", "// A zone.\n// Alive bytes.", refused))
        self.assertEqual(1, len(violations("a.md", "It is set aside.", refused)))
        self.assertEqual([], violations("a.py", "thread.is_alive() and alive()", refused))


if __name__ == "__main__":
    unittest.main()
