"""Every experiment, in the order of the page."""
from . import (
    ageing,
    capacity,
    deletion_delay,
    fig3,
    fig8,
    fig9,
    fig10,
    fig11,
    fig14,
    gc_copies,
    gc_latency,
    gc_waf,
    limit,
    parallel,
    soak,
    table1,
    zgc,
    zippydb,
)

ALL = [*(module.EXPERIMENT for module in (fig3, fig8, fig9, table1, fig10, fig11, fig14, zippydb, parallel, limit,
                                          capacity, deletion_delay)),
       *gc_waf.EXPERIMENTS, gc_latency.EXPERIMENT, *gc_copies.EXPERIMENTS, soak.EXPERIMENT, ageing.EXPERIMENT,
       *zgc.EXPERIMENTS]


def that_run(chosen):
    """The experiments whose runs those of `chosen` show, each once."""
    known = {one.name: one for one in ALL}
    return [known[name] for name in dict.fromkeys(one.runs_of or one.name for one in chosen)]
