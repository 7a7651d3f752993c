"""Every experiment, in the order of the page."""
from . import fig3, fig8, fig9, fig10, fig11, fig14, limit, parallel, table1, zippydb

ALL = [module.EXPERIMENT for module in (fig3, fig8, fig9, table1, fig10, fig11, fig14, zippydb, parallel, limit)]
