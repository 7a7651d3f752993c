#!/usr/bin/env python3
"""Holds the limits of size of every file and of every function, and warns of a class that offers much.

A class is one idea. Many public methods may be a sign that it is several, which a person has to judge: splitting one
idea into classes that share what is inside it is worse. So this only warns of them.

A C++ file is read by a small scanner, which relies on the format that clang-format gives it: the brace of a body stands
behind a blank, that of an initializer does not, or it stands behind an equals sign or in parentheses. A function has as
many lines as there are from the line of its brace to the line of the one that closes it. Public methods are those that
a class itself declares, overloads of one name once. Constructors, static functions that make one, destructors and
operators are none, and what overrides a method counts where the interface declares it."""

import ast
import re
import unittest
from collections.abc import Iterator
from dataclasses import dataclass, field

import house

FILE_MAX = 700
FUNCTION_MAX = 60
TEST_MAX = 80  # of what is a test, and no more than a list of steps
PUBLIC_MANY = 20

CODE = (".cc", ".h", ".py")
# Parts of a line that hold no braces of the code: comments, strings, characters; macros.
IGNORED = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![\w])\'(?:\\.|[^\'\\\n])+\''
                     r"|^[ \t]*#(?:\\\n|[^\n])*", re.DOTALL | re.MULTILINE)
TOKEN = re.compile(r"[(){};]|\b(?:public|protected|private):")
CLASS = re.compile(r"^(?:template\s*<.*>\s*)?(class|struct|union)\b(?:\s*\[\[\w+\]\]|\s+ISOZONE_\w+(?:\([^)]*\))?)*"
                   r"\s*([\w:]*)", re.DOTALL)
NAMESPACE = re.compile(r"^(inline\s+)?namespace\b|^extern\b\s*$")
TEST = re.compile(r"^(TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P)\s*\(")
NO_METHOD = re.compile(r"^(using|friend|typedef|static_assert|enum)\b")


@dataclass
class Scope:
    kind: str  # namespace, class, function, other
    name: str
    line: int  # of its brace
    is_public: bool = True
    methods: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Function:
    name: str
    line: int
    lines: int
    is_test: bool


@dataclass(frozen=True)
class Class:
    name: str
    line: int
    methods: tuple[str, ...]


def blanked(text: str) -> str:
    """The text with comments, strings and macros replaced by blanks, line by line."""
    return IGNORED.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def outline(declaration: str) -> str:
    """A declaration without attributes, annotations, and what is in angle brackets and parentheses."""
    text = re.sub(r"\[\[.*?\]\]", "", declaration)
    text = re.sub(r"operator\s*(\(\)|[^\s\w(]+)", "operator_", text)
    text = re.sub(r"->|<=>|<=|>=|<<", "", text)
    while (emptied := re.sub(r"\((?:[^()]|\(\))+\)", "()", text)) != text:
        text = emptied
    while (shorter := re.sub(r"<[^<>]*>", "", text)) != text:
        text = shorter
    return re.sub(r"\bISOZONE_\w+(\(\))?", "", text).strip()


def function_name(declaration: str) -> str | None:
    """The name of the function that is declared or begins here; None if it is something else."""
    if NO_METHOD.match(declaration):
        return None
    head, parenthesis, rest = outline(declaration).partition("(")
    if not parenthesis or "=" in head or rest.startswith(")("):
        return None
    name = re.search(r"([~\w:]+)\s*$", head)
    return name[1] if name else None


def is_counted(declaration: str, name: str, of: str) -> bool:
    """A constructor, by whatever name, is none, nor is what the class has to have because of an interface."""
    makes_one = re.match(r"static\b[^(]*\b" + re.escape(of) + r"\b[^(]*\(", declaration)
    overrides = re.search(r"\boverride\b", outline(declaration))
    return not (name.startswith(("~", "operator")) or name == of or makes_one or overrides)


class Scanner:
    """Finds the functions and classes of a C++ file."""

    def __init__(self, text: str) -> None:
        self.text = blanked(text)
        self.functions: list[Function] = []
        self.classes: list[Class] = []
        self.scopes: list[Scope] = []
        self.parentheses = 0
        self.begin = 0  # of the declaration that is being read
        for token in TOKEN.finditer(self.text):
            self.read(token[0], token.start(), token.end())

    def line_of(self, at: int) -> int:
        return self.text.count("\n", 0, at) + 1

    def read(self, token: str, start: int, end: int) -> None:
        if token in "()":
            self.parentheses += 1 if token == "(" else -1
        elif token == "{":
            self.open(start)
        elif token == "}":
            self.close(start, end)
        elif self.parentheses == 0 and (not self.scopes or self.scopes[-1].kind in ("namespace", "class")):
            if token == ";":
                self.declare(self.text[self.begin:start].strip())
            else:
                self.scopes[-1].is_public = token == "public:"
            self.begin = end

    def open(self, at: int) -> None:
        outer = self.scopes[-1].kind if self.scopes else "namespace"
        declaration = self.text[self.begin:at].strip()
        scope = Scope("other", "", self.line_of(at))
        if self.parentheses == 0 and outer in ("namespace", "class"):
            of_class = CLASS.match(declaration)
            function = function_name(declaration)
            if NAMESPACE.match(declaration):
                scope.kind = "namespace"
            elif of_class and "=" not in outline(declaration):
                scope.kind, scope.name, scope.is_public = "class", of_class[2], of_class[1] != "class"
            elif function and self.text[at - 1] in " \n":
                scope.kind, scope.name = "function", declaration if TEST.match(declaration) else function
                self.declare(declaration)
        self.scopes.append(scope)
        if scope.kind != "other":
            self.begin = at + 1

    def close(self, at: int, end: int) -> None:
        scope = self.scopes.pop()
        if scope.kind == "function":
            name = re.sub(r"\s+", " ", scope.name)
            self.functions.append(Function(name, scope.line, self.line_of(at) - scope.line + 1,
                                           TEST.match(scope.name) is not None))
        if scope.kind == "class":
            self.classes.append(Class(scope.name, scope.line, tuple(scope.methods)))
        if scope.kind != "other":
            self.begin = end

    def declare(self, declaration: str) -> None:
        """Notes a method, where the declaration is one of a class."""
        if not self.scopes or self.scopes[-1].kind != "class" or not self.scopes[-1].is_public:
            return
        of = self.scopes[-1]
        name = function_name(declaration)
        if name and is_counted(declaration, name, of.name.rpartition("::")[2]):
            of.methods.append(name)


def python_functions(text: str) -> Iterator[Function]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            yield Function(node.name, node.lineno, lines, node.name.startswith("test_"))


def violations(path: str, text: str) -> list[str]:
    """What of the file is too large."""
    found = []
    lines = len(text.splitlines())
    if lines > FILE_MAX:
        found.append(f"{path}:{lines}: {lines} lines, at most {FILE_MAX}")
    scanner = None if path.endswith(".py") else Scanner(text)
    for function in scanner.functions if scanner else python_functions(text):
        most = TEST_MAX if function.is_test else FUNCTION_MAX
        if function.lines > most:
            found.append(f"{path}:{function.line}: {function.name} has {function.lines} lines, at most {most}")
    return found


def warnings(path: str, text: str) -> list[str]:
    """The classes of the file that offer so much that they may be several ideas."""
    if path.endswith(".py") or not path.startswith(("src/", "tools/")):
        return []
    return [f"{path}:{of.line}: {of.name} has {len(set(of.methods))} public methods, is it one idea? "
            f"{', '.join(dict.fromkeys(of.methods))}"
            for of in Scanner(text).classes if len(set(of.methods)) > PUBLIC_MANY]


class Size(unittest.TestCase):
    def test_nothing_is_too_large(self) -> None:
        files = [path for path in house.our_files() if path.endswith(CODE)]
        self.assertGreater(len(files), 0)
        found = [line for path in files for line in violations(path, house.read(path))]
        for path in files:
            for line in warnings(path, house.read(path)):
                print(f"warning: {line}")
        self.assertEqual([], found, "\n" + "\n".join(found))

    def test_a_file_is_counted(self) -> None:
        self.assertEqual([], violations("src/a.cc", "\n" * FILE_MAX))
        self.assertIn("src/a.cc:701: 701 lines", violations("src/a.cc", "\n" * (FILE_MAX + 1))[0])
        self.assertIn("701 lines", violations("tests/a_test.py", "\n" * (FILE_MAX + 1))[0])

    def test_functions_are_counted(self) -> None:
        cases = {
            "void F() {%s}": ("F", 1),
            "namespace a {\nnamespace {\nint F(int b = {}) const {%s}\n}\n}": ("F", 3),
            "class A {\n public:\n  explicit A(int b) : b_{b}, c_(b) {%s  }\n  int b_;\n};": ("A", 3),
            "std::map<int, int> A::F(\n    std::function<void(int)> g)\n    ISOZONE_REQUIRES(mu) {%s}": ("A::F", 3),
            "template <typename T>\nauto Operator<T>::operator()(T a) -> int {%s}": ("Operator::operator_", 2),
            "// {\nconst char* kText = \"{\";\nstruct A { int b = 0; };\n#define F() {\nvoid G() {%s}": ("G", 5),
        }
        for text, (name, line) in cases.items():
            with self.subTest(text=text):
                just = text % ("\n  g();" * (FUNCTION_MAX - 2) + "\n")
                over = text % ("\n  g();" * (FUNCTION_MAX - 1) + "\n")
                self.assertEqual([], violations("src/a.cc", just))
                self.assertEqual([f"src/a.cc:{line}: {name} has 61 lines, at most 60"], violations("src/a.cc", over))

    def test_tests_may_be_longer(self) -> None:
        steps = "TEST_F(A, DoesB) {" + "\n  g();" * (TEST_MAX - 2) + "\n}\n"
        self.assertEqual([], violations("src/a_test.cc", steps))
        self.assertIn("has 81 lines, at most 80", violations("src/a_test.cc", steps.replace("{", "{\n"))[0])
        python = "def test_a():\n" + "    g()\n" * TEST_MAX
        self.assertIn("a_test.py:1: test_a has 81 lines", violations("a_test.py", python)[0])
        self.assertIn("at most 60", violations("a.py", python.replace("test_", "do_"))[0])

    def test_tables_and_nested_code_are_no_functions(self) -> None:
        for begin in ("constexpr int kTable[] = {", "INSTANTIATE_TEST_SUITE_P(A, B, Values(A{", "enum class A {"):
            with self.subTest(begin=begin):
                end = "}));" if "(" in begin else "};"
                self.assertEqual([], violations("src/a.cc", begin + "\n  1," * 99 + "\n" + end + "\n"))

    def test_public_methods_are_counted(self) -> None:
        methods = "".join(f"  void F{i}(int a = 0);\n" for i in range(PUBLIC_MANY))
        for extra in ("  int G() const { return g_; }", "  [[nodiscard]] static Result<std::vector<int>> G();",
                      "  virtual void G(std::function<void(int)> done) = 0;", "  void G() ISOZONE_REQUIRES(mu);",
                      "  template <typename T>\n  T G(T t);"):
            with self.subTest(extra=extra):
                text = f"class A final : public B {{\n public:\n{methods}{extra}\n}};\n"
                self.assertIn("src/a.h:1: A has 21 public methods, is it one idea? F0, F1",
                              warnings("src/a.h", text)[0])
                self.assertEqual([], violations("src/a.h", text))
                self.assertEqual([], warnings("src/a.h", text.replace("public:", "private:")))
                self.assertEqual([], warnings("tests/a.h", text))
                self.assertIn("A has 21", warnings("src/a.h", text.replace("class A", "struct A"))[0])

    def test_what_is_no_method_is_not_counted(self) -> None:
        methods = "".join(f"  void F{i}();\n" for i in range(PUBLIC_MANY))
        others = ("  void F0(int overload) const;\n"
                  "  A();\n  explicit A(B& b) : b_(b) {}\n  ~A() override;\n  A& operator=(const A&) = delete;\n"
                  "  bool operator()(int a) const { return true; }\n  void G() override;\n  using C = void(int);\n"
                  "  friend void H(A& a);\n  static Result<std::unique_ptr<A>> Open(B& b);\n  static A Of(int b);\n"
                  "  std::function<void(int)> f;\n  int x ISOZONE_GUARDED_BY(mu) = G(1);\n  int y{3};\n"
                  "  void (*done)(A&) = nullptr;\n  static_assert(sizeof(int) == 4);\n  enum class E { kA };\n"
                  "  struct Inner {\n    void Of();\n  };\n private:\n  void P();\n")
        self.assertEqual([], warnings("src/a.h", f"class A : public B {{\n public:\n{methods}{others}}};\n"))


if __name__ == "__main__":
    unittest.main()
