#!/usr/bin/env python3
"""One word a thing: the table of that name in docs/glossary.md says which word is taken, and which others are not. No
text of ours has one of the others: comments, messages and documents. Names of code and of formats may have them, but
for those of NAMES_TOO."""

import re
import unittest

import house

GLOSSARY = "docs/glossary.md"
ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| [^|]+ \|$", re.MULTILINE)
# Texts that quote others: what the papers say, and what other programs print.
FOREIGN = (GLOSSARY, "tests/house/words_test.py", "docs/rocksdb-tests.md")
WRITTEN = (".h", ".cc", ".c", ".py", ".md", ".js", ".html", ".json", ".1")
NAMES_TOO = ("alive",)  # no name has these words either
# What may have a word that is not taken: the long form, which introduces the short one.
LONG_FORMS = {"collection": re.compile(r"garbage[\s/#*\"-]+$", re.IGNORECASE)}
GAP = r"[\s/#*\"]+"  # between two words, which may be on two lines of a comment or of a message
STRING = r'"(?:\\.|[^"\\\n])*"'
# In order: what is text is found before what is code.
TEXT = {
    (".h", ".cc", ".c", ".js"): re.compile(rf"//[^\n]*|/\*.*?\*/|'(?:\\.|[^'\\\n])'|{STRING}|`[^`]*`", re.DOTALL),
    (".py",): re.compile(rf"#[^\n]*|\"{{3}}.*?\"{{3}}|'[^'\n]*'|{STRING}", re.DOTALL),
}
NAME = re.compile(r'(?<!")"[\w.#$/-]*"(?!")')  # a string of one word


def refused_words() -> dict[str, str]:
    """The words that are not taken, each with the one that is."""
    section = house.read(GLOSSARY).split("\n## One word a thing\n")[1].split("\n## ")[0]
    rows = [(taken.strip(), others) for taken, others in ROW.findall(section)][1:]  # without the heading
    return {other.strip(): taken for taken, others in rows for other in others.split(",")}


def blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def prose(path: str, text: str) -> str:
    """The text with spaces in place of names, that is, of code and of strings of one word."""
    for endings, pattern in TEXT.items():
        if path.endswith(endings):
            kept, end = [], 0
            for match in pattern.finditer(text):
                kept += [blank(text[end:match.start()]), match[0]]
                end = match.end()
            text = "".join(kept) + blank(text[end:])
    return NAME.sub(lambda name: blank(name[0]), text)


def violations(path: str, text: str, refused: dict[str, str]) -> list[str]:
    found = []
    without_names = prose(path, text)
    for word, taken in refused.items():
        # Calls of others' functions, such as is_alive(), are not ours to name.
        pattern = re.compile(rf"(?<![\w-]){re.escape(word).replace(chr(92) + ' ', GAP)}(?![\w(])", re.IGNORECASE)
        searched = text if word in NAMES_TOO else without_names
        for match in pattern.finditer(searched):
            if word in LONG_FORMS and LONG_FORMS[word].search(searched[:match.start()][-80:]):
                continue
            line = text.count("\n", 0, match.start()) + 1
            found.append(f'{path}:{line}: "{re.sub(GAP, " ", match[0])}"; the glossary says "{taken}"')
    return found


class Words(unittest.TestCase):
    def test_every_text_has_the_words_of_the_glossary(self) -> None:
        refused = refused_words()
        self.assertLessEqual({"alive", "collection", "collections", "set aside", "lent"}, refused.keys())
        files = [path for path in house.our_files() if path.endswith(WRITTEN) and path not in FOREIGN]
        self.assertGreater(len(files), 0)
        found = [line for path in files for line in violations(path, house.read(path), refused)]
        self.assertEqual([], found, "\n" + "\n".join(found))

    def test_violations_are_found(self) -> None:
        refused = {"alive": "live", "set aside": "reserved"}
        self.assertEqual(['a.h:2: "Alive"; the glossary says "live"'],
                         violations("a.h", "// A zone.\n// Alive bytes.", refused))
        self.assertEqual(1, len(violations("a.md", "It is set aside.", refused)))
        self.assertEqual(1, len(violations("a.h", "// It is set\n  // aside.", refused)))
        self.assertEqual(1, len(violations("a.cc", 'Print("a" "set "\n  "aside for it");', refused)))
        self.assertEqual([], violations("a.py", "thread.is_alive() and alive()", refused))
        self.assertEqual(1, len(violations("a.cc", "bool alive = true;", refused)))
        self.assertEqual(1, len(violations("a.json", '{"alive": 1}', refused)))

    def test_names_and_the_long_form_are_no_violations(self) -> None:
        refused = {"collection": "GC"}
        for path, text in (("a.md", "A collection."), ("a.h", "Zone collection;  // of the collection"),
                           ("a.cc", "Print(\"{} for collection\");"), ("a.py", 'x = 1  # collection "x"'),
                           ("a.py", '"""Collection."""'), ("a.json", '{"description": "the collection"}'),
                           ("a.md", "garbage: a collection"), ("a.cc", "f('\"'); // collection")):
            self.assertEqual(1, len(violations(path, text, refused)), text)
        for path, text in (("a.md", "Garbage collection and garbage-collection."),
                           ("a.h", "// Garbage\n// collection."),
                           ("a.cc", 'Print("garbage "\n      "collection");'), ("a.json", '{"collection": 1}'),
                           ("a.cc", 'Zone& collection = Of("collection");'), ("a.cc", "collection.Begin();  // It."),
                           ("a.py", "from collections import Counter\nx: Collection[str]"),
                           ("a.json", '"common.json#/$defs/collection"')):
            self.assertEqual([], violations(path, text, refused), text)


if __name__ == "__main__":
    unittest.main()
