"""Which of the lab's own sources take part in the runs of an experiment: its results count while they stay the same.

These are the module that runs it, the runner, and what both import, but for what only draws, judges and records. Nor do
comments count, and what an experiment says, draws and judges by in its Experiment(...): a new target needs no new run.
"""
import ast
import hashlib
import inspect
import os

PACKAGE = os.path.dirname(os.path.abspath(__file__))
NOT_MEASURING = ("plots.py", "results.py", "targets.py")
# What counts of the others' arguments is in the parameters of the runs.
MEASURING_ARGUMENTS = ("run", "variants", "driver", "runs_of")


def imported(path):
    """The files that a module imports of its own package."""
    with open(path, encoding="utf-8") as file:
        nodes = [node for node in ast.walk(ast.parse(file.read())) if isinstance(node, ast.ImportFrom) and node.level]
    for node in nodes:
        place = os.path.normpath(os.path.join(path, *[os.pardir] * node.level, *(node.module or "").split(".")))
        for file in (f"{place}.py", *(os.path.join(place, f"{alias.name}.py") for alias in node.names)):
            if os.path.isfile(file):
                yield file


def measuring(first):
    """The files of the modules `first` and of all that they import, one through another."""
    found, left = set(), list(first)
    while left:
        path = left.pop()
        if path not in found and os.path.basename(path) not in NOT_MEASURING:
            found.add(path)
            left.extend(imported(path))
    return found


class Measuring(ast.NodeTransformer):
    """Leaves out of a module what does not take part in runs."""

    def visit_Call(self, node):
        if isinstance(node.func, ast.Name) and node.func.id == "Experiment":
            node.keywords = [one for one in node.keywords if one.arg in MEASURING_ARGUMENTS]
        return self.generic_visit(node)


def code_of(path):
    """What a module does, whatever its comments."""
    with open(path, encoding="utf-8") as file:
        return ast.dump(Measuring().visit(ast.parse(file.read())))


def digest(paths, root=PACKAGE):
    """Of the names, below `root`, and of what the modules do."""
    parts = [f"{os.path.relpath(path, root)} {code_of(path)}" for path in sorted(paths)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def of(experiment):
    """The files that take part in the runs of an experiment."""
    return measuring([os.path.abspath(inspect.getsourcefile(experiment.run)), os.path.join(PACKAGE, "runner.py")])
