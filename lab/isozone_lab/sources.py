"""Which of the lab's own sources take part in the runs of an experiment: its results count while they stay the same.

These are the module that runs it, the runner, and what both import, but for what only draws, judges and records. Nor do
comments and the types of arguments count, and what an experiment says, draws and judges by in its Experiment(...): a
new target needs no new run.
"""
from __future__ import annotations

import ast
import hashlib
import inspect
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import runner

PACKAGE = os.path.dirname(os.path.abspath(__file__))
NOT_MEASURING = ("plots.py", "progress.py", "results.py", "targets.py")
# What counts of the others' arguments is in the parameters of the runs.
MEASURING_ARGUMENTS = ("run", "variants", "driver", "runs_of")


class Measuring(ast.NodeTransformer):
    """Leaves out of a module what does not take part in runs."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id == "Experiment":
            node.keywords = [one for one in node.keywords if one.arg in MEASURING_ARGUMENTS]
        return self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST | None:
        only_for_types = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        return None if only_for_types else self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node


def tree_of(path: str) -> ast.AST:
    """Of a module: what takes part in runs."""
    with open(path, encoding="utf-8") as file:
        tree: ast.AST = Measuring().visit(ast.parse(file.read()))
    return tree


def imported(path: str) -> Iterator[str]:
    """The files that a module imports of its own package."""
    for node in ast.walk(tree_of(path)):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        place = os.path.normpath(os.path.join(path, *[os.pardir] * node.level, *(node.module or "").split(".")))
        for found in (f"{place}.py", *(os.path.join(place, f"{alias.name}.py") for alias in node.names)):
            if os.path.isfile(found):
                yield found


def measuring(first: Iterable[str]) -> set[str]:
    """The files of the modules `first` and of all that they import, one through another."""
    found: set[str] = set()
    left = list(first)
    while left:
        path = left.pop()
        if path not in found and os.path.basename(path) not in NOT_MEASURING:
            found.add(path)
            left.extend(imported(path))
    return found


def code_of(path: str) -> str:
    """What a module does, whatever its comments."""
    return ast.dump(tree_of(path))


def digest(paths: Iterable[str], root: str = PACKAGE) -> str:
    """Of the names, below `root`, and of what the modules do."""
    parts = [f"{os.path.relpath(path, root)} {code_of(path)}" for path in sorted(paths)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def of(experiment: runner.Runnable) -> set[str]:
    """The files that take part in the runs of an experiment."""
    return measuring([os.path.abspath(inspect.getfile(experiment.run)), os.path.join(PACKAGE, "runner.py")])
