"""Measures which zones of an emulated device share hardware.

A busy host sends its reads too late to see how those of a fast device meet. So the device is slowed down then, which
changes nothing of who shares what; what a zone programs a second is then measured as much too low.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

from . import outputs, processes

SLOWER = (1, 0.5, 0.25)
TOO_BUSY = 4  # what izg identify ends with where the host cannot measure: see isozone --help


def identify(tool: str, image: str, speed: float = 1, note: Callable[[str], None] = lambda text: None,
             tries: Sequence[float] = SLOWER) -> dict[str, Any] | None:
    """What is found on the device in the file `image`, which then holds it, at `speed` times its published speed or,
    where that is needed, at less: by the factors `tries`, in turn; None where the host is too busy for all of that.
    `note` is told why it takes longer.
    """
    for slower in tries:
        pace = f"{speed * slower:g}"
        result = subprocess.run([tool, "izg", "identify", f"emu:{image}?speed={pace}", "--json"],
                                capture_output=True, text=True,
                                preexec_fn=processes.dies_with(os.getpid()))
        if result.returncode not in (0, TOO_BUSY):
            raise processes.RunFailed(f"isozone izg identify emu:{image} failed: {result.stderr.strip()}")
        if result.returncode == 0:
            found: dict[str, Any] = outputs.read(result.stdout, "izg-identify")
            if found["problem"] is None:
                return found
        note(f"this host is too busy to measure a device of {pace} x the published speed")
    return None
