"""The YCSB driver (lab/ycsb), as the experiments run it."""
from typing import Any

from . import outputs, processes
from .device import Store
from .runner import Context


def run(context: Context, store: Store, workload: str, phase: str, **options: object) -> Any:
    """Runs one phase, "load" or "run", of a workload, "a" to "f"; gives what the driver reports of the phase."""
    settings = {"workload": workload, "phase": phase, "db": store.database, "seed": context.seed, **options}
    if store.uri:
        settings["fs-uri"] = store.uri
    command = [context.build.ycsb, *(f"--{name}={value}" for name, value in settings.items())]
    return parse(context.execute(command, store.environment), phase)


def parse(text: str, phase: str) -> Any:
    """The part of the driver's JSON that is about `phase`."""
    for report in outputs.read(text, "ycsb")["phase"]:
        if report["phase"] == phase:
            return report
    raise processes.RunFailed(f"the YCSB driver has not reported of the phase {phase}")
