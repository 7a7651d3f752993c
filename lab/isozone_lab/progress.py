"""Progress with the time left: a live bar on a terminal (python3-rich), lines of text elsewhere."""
import sys
import time


def duration(seconds):
    """As people say it: 40 s, 12 min, 3 h 05 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"


def left(seconds):
    return f"about {duration(seconds)} left"


class Lines:
    """One line when a run begins and one when it has ended."""

    def __init__(self, total, stream=None):
        self.total = total
        self.stream = stream or sys.stderr

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def start(self, index, name, seconds_left):
        self.note(f"[{index}/{self.total}] {name} ... {left(seconds_left)}")

    def finish(self, name, seconds, text):
        self.note(f"{name}: {text} [{duration(seconds)}]")

    def note(self, text):
        print(text, file=self.stream, flush=True)


class Bar:
    """The same with a bar below; the time left runs down within a run, too."""

    def __init__(self, total):
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn
        self.total = total
        self.console = Console(stderr=True)
        self.progress = Progress(TextColumn("{task.description}"), BarColumn(),
                                 TextColumn("{task.completed:.0f}/{task.total:.0f}"), self._left_column(),
                                 console=self.console, transient=True)
        self.task = self.progress.add_task("", total=total)
        self.deadline = time.monotonic()

    def _left_column(self):
        from rich.progress import ProgressColumn
        from rich.text import Text

        class Left(ProgressColumn):
            def render(column, task):  # noqa: N805 - `self` is the bar
                return Text(left(max(0, self.deadline - time.monotonic())))

        return Left()

    def __enter__(self):
        self.progress.start()
        return self

    def __exit__(self, *_):
        self.progress.stop()

    def start(self, index, name, seconds_left):
        self.deadline = time.monotonic() + seconds_left
        self.progress.update(self.task, completed=index - 1, description=name)

    def finish(self, name, seconds, text):
        self.progress.advance(self.task)
        self.note(f"{name}: {text} [{duration(seconds)}]")

    def note(self, text):
        self.console.print(text, markup=False, highlight=False)


def create(total):
    """A bar where one can be drawn."""
    if sys.stderr.isatty():
        try:
            return Bar(total)
        except ImportError:
            pass
    return Lines(total)
