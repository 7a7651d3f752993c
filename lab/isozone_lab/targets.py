"""What the papers say, and whether it was met: a value, or the ratio of two, against a bound."""
from __future__ import annotations

import abc
import dataclasses
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from .results import Results, X


class Point(NamedTuple):
    series: str
    metric: str
    x: X = None


class Verdict(NamedTuple):
    """Of one check, in words. `met` is None where there is no target; one that nothing was measured for is not met."""
    measured: str
    met: bool | None
    has_number: bool = True


NOT_MEASURED = "not measured"


@dataclasses.dataclass(frozen=True)
class Check:
    """`value`, divided by `against` if there is one, lies within `at_least` and `at_most`, where they are given."""
    what: str
    paper: str
    value: Point
    against: Point | None = None
    at_least: float | None = None
    at_most: float | None = None

    def show(self, number: float, unit: str) -> str:
        return format_ratio(number) if self.against else f"{format_number(number)} {unit}".strip()

    @property
    def has_target(self) -> bool:
        return self.at_least is not None or self.at_most is not None

    def target(self, results: Results) -> str:
        unit = results.unit(self.value.metric)
        if self.at_least is not None and self.at_most is not None:
            least, most = self.show(self.at_least, unit), self.show(self.at_most, unit)
            return least if self.at_least == self.at_most else f"{least} to {most}"
        if self.at_least is not None:
            return f"at least {self.show(self.at_least, unit)}"
        return "none" if self.at_most is None else f"at most {self.show(self.at_most, unit)}"

    def number(self, results: Results) -> float | None:
        """The median, or the ratio of the medians; None if it was not measured."""
        value = results.median(*self.value)
        if self.against is None or value is None:
            return value
        base = results.median(*self.against)
        return None if not base else value / base

    def spread(self, results: Results) -> list[float]:
        """The number of every repeat."""
        values = results.values(*self.value)
        if self.against is None:
            return list(values.values())
        base = results.values(*self.against)
        return [value / base[repeat] for repeat, value in values.items() if base.get(repeat)]

    def is_met(self, number: float, or_more: bool) -> bool | None:
        """A value that may be greater is not known to be within a bound above it."""
        if not self.has_target:
            return None
        return ((self.at_least is None or number >= self.at_least) and
                (self.at_most is None or (number <= self.at_most and not or_more)))

    def verdict(self, results: Results) -> Verdict:
        number = self.number(results)
        if number is None:
            return Verdict(NOT_MEASURED, False if self.has_target else None, has_number=False)
        unit = results.unit(self.value.metric)
        or_more = self.against is None and results.is_or_more(*self.value)
        words = self.show(number, unit) + (" or more" if or_more else "")
        spread = self.spread(results)
        if len(spread) > 1:
            words += f" ({self.show(min(spread), '')} to {self.show(max(spread), '')})"
        if self.against:
            medians = (results.median(*self.value), results.median(*self.against))
            words += ": " + " against ".join(format_number(one) for one in medians if one is not None) + f" {unit}"
        return Verdict(words, self.is_met(number, or_more))


class GreatestOf(Check):
    """The greatest value of a series and a metric at all x that were measured is at most a bound."""

    def verdict(self, results: Results) -> Verdict:
        medians = {x: results.median(self.value.series, self.value.metric, x)
                   for x in results.xs(self.value.series, self.value.metric)}
        numbers = {x: number for x, number in medians.items() if number is not None}
        if not numbers:
            return Verdict(NOT_MEASURED, False if self.has_target else None, has_number=False)
        x = max(numbers, key=lambda one: numbers[one])
        words = self.show(numbers[x], results.unit(self.value.metric))
        return Verdict(f"{words}, the greatest of {len(numbers)}: {x}", self.is_met(numbers[x], or_more=False))


@dataclasses.dataclass(frozen=True)
class OfSeveral(abc.ABC):
    """What several ratios come to is at least a bound."""
    what: str
    paper: str
    checks: tuple[Check, ...]
    at_least: float

    def target(self, _: Results) -> str:
        return f"at least {format_ratio(self.at_least)}"

    def verdict(self, results: Results) -> Verdict:
        numbers = [number for number in (check.number(results) for check in self.checks) if number is not None]
        if len(numbers) < len(self.checks):
            return Verdict(NOT_MEASURED, False, has_number=False)
        number, words = self.sum_up(numbers)
        return Verdict(f"{format_ratio(number)}{words}", number >= self.at_least)

    @abc.abstractmethod
    def sum_up(self, numbers: list[float]) -> tuple[float, str]:
        """What the numbers of all checks come to, and words that say what that is."""


class LeastOf(OfSeveral):
    """The least of them."""

    def sum_up(self, numbers: list[float]) -> tuple[float, str]:
        least = min(numbers)
        return least, f", the least of {len(numbers)}: {self.checks[numbers.index(least)].what}"


class MostOf(OfSeveral):
    """The greatest of them."""

    def sum_up(self, numbers: list[float]) -> tuple[float, str]:
        most = max(numbers)
        return most, f", the greatest of {len(numbers)}: {self.checks[numbers.index(most)].what}"


class MeanOf(OfSeveral):
    """Their mean."""

    def sum_up(self, numbers: list[float]) -> tuple[float, str]:
        least, greatest = map(format_ratio, (min(numbers), max(numbers)))
        return statistics.fmean(numbers), f", the mean of {len(numbers)} from {least} to {greatest}"


def ratios(what: str, paper: str, metric: str, series: str, against: str, xs: Sequence[X] = (None,),
           against_metric: str | None = None, against_x: X = None, **bound: float | None) -> list[Check]:
    """A check for each x: `series` against `against`, in the same metric and at the same x if no other is given."""
    return [Check(what.format(x=x), paper, Point(series, metric, x),
                  Point(against, against_metric or metric, x if against_x is None else against_x), **bound) for x in xs]


def format_number(number: float) -> str:
    """With as many digits as one wants to read."""
    if number != 0 and abs(number) < 0.995:
        return f"{number:.2g}"
    if abs(number) < 99.5 and number != round(number):
        return f"{number:.1f}"
    return f"{number:,.0f}"


def format_ratio(ratio: float) -> str:
    """1.42x; small ones as a fraction: 1/51."""
    if 0 < ratio < 0.4:
        return f"1/{1 / ratio:.1f}".removesuffix(".0")
    return f"{ratio:.2f}x"
