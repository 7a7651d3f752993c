"""How busy the processors are, by /proc/stat, and how much of that others use: not this process, nor its children that
have ended."""

import dataclasses
import os
import re
import resource

from .processes import RunFailed

STAT = "/proc/stat"
LINE = re.compile(r"^cpu +((?:\d+ ?)+)$", re.M)
IDLE = slice(3, 5)  # idle, and idle while something waits for I/O
GUESTS = 8          # the times of guests from here on are counted among those of users as well


@dataclasses.dataclass(frozen=True)
class Ticks:
    """Of all processors since the machine was booted, in clock ticks."""
    busy: int
    idle: int

    @staticmethod
    def of(stat: str) -> "Ticks":
        """From the text of /proc/stat, or from its first line alone."""
        found = LINE.search(stat)
        if found is None:
            raise RunFailed(f"this is not the first line of {STAT}: {stat.partition(chr(10))[0]}")
        ticks = [int(word) for word in found[1].split()][:GUESTS]
        idle = sum(ticks[IDLE])
        return Ticks(sum(ticks) - idle, idle)

    @property
    def total(self) -> int:
        return self.busy + self.idle

    def since(self, begin: "Ticks") -> "Ticks":
        return Ticks(self.busy - begin.busy, self.idle - begin.idle)


def busy_percent(before: str, after: str) -> float:
    """How much of the time between two texts of /proc/stat the processors were not idle."""
    passed = Ticks.of(after).since(Ticks.of(before))
    return 100 * passed.busy / passed.total


@dataclasses.dataclass(frozen=True)
class Moment:
    """What all programs have used so far, and what this process and its children have."""
    all: Ticks
    own_s: float

    @staticmethod
    def now() -> "Moment":
        with open(STAT, encoding="ascii") as file:
            stat = file.read()
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return Moment(Ticks.of(stat), sum(one.ru_utime + one.ru_stime for one in used))

    def others_percent(self, end: "Moment", ticks_per_second: int = os.sysconf("SC_CLK_TCK")) -> float:
        """How much of the time of all processors others used from this moment to `end`; 0 if no time has passed."""
        passed = end.all.since(self.all)
        others = passed.busy - (end.own_s - self.own_s) * ticks_per_second
        return 100 * max(0.0, others) / passed.total if passed.total else 0.0
