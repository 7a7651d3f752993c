"""Progress with the time left: a live bar on a terminal (python3-rich), lines of text elsewhere."""
import sys
import time
from typing import Any, Protocol, Self, TextIO


def duration(seconds: float) -> str:
    """As people say it: 40 s, 12 min, 3 h 05 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"


def left(seconds: float) -> str:
    return f"about {duration(seconds)} left"


class Progress(Protocol):
    """What runs are shown on, from the beginning of a `with` block to its end."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def start(self, index: int, name: str, seconds_left: float) -> None: ...

    def finish(self, name: str, seconds: float, text: str) -> None: ...

    def note(self, text: str) -> None: ...


class Lines:
    """One line when a run begins and one when it has ended."""

    def __init__(self, total: int, stream: TextIO | None = None) -> None:
        self.total = total
        self.stream = stream or sys.stderr

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def start(self, index: int, name: str, seconds_left: float) -> None:
        self.note(f"[{index}/{self.total}] {name} ... {left(seconds_left)}")

    def finish(self, name: str, seconds: float, text: str) -> None:
        self.note(f"{name}: {text} [{duration(seconds)}]")

    def note(self, text: str) -> None:
        print(text, file=self.stream, flush=True)


class Bar:
    """The same with a bar below; the time left runs down within a run, too."""

    def __init__(self, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn
        self.total = total
        self.console = Console(stderr=True)
        self.progress = Progress(TextColumn("{task.description}"), BarColumn(),
                                 TextColumn("{task.completed:.0f}/{task.total:.0f}"), self._left_column(),
                                 console=self.console, transient=True)
        self.task = self.progress.add_task("", total=total)
        self.deadline = time.monotonic()

    def _left_column(self) -> Any:
        from rich.progress import ProgressColumn
        from rich.text import Text

        class Left(ProgressColumn):  # type: ignore[misc] # mypy does not look into rich
            def render(column: Any, task: Any) -> Any:  # noqa: N805 - `self` is the bar
                return Text(left(max(0, self.deadline - time.monotonic())))

        return Left()

    def __enter__(self) -> Self:
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def start(self, index: int, name: str, seconds_left: float) -> None:
        self.deadline = time.monotonic() + seconds_left
        self.progress.update(self.task, completed=index - 1, description=name)

    def finish(self, name: str, seconds: float, text: str) -> None:
        self.progress.advance(self.task)
        self.note(f"{name}: {text} [{duration(seconds)}]")

    def note(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False)


def create(total: int) -> Progress:
    """A bar where one can be drawn."""
    if sys.stderr.isatty():
        try:
            return Bar(total)
        except ImportError:
            pass
    return Lines(total)
