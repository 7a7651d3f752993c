"""One HTML page of all experiments that were run: plots, what the papers say, what was measured, what failed.

The page needs no other file: plots are inside.
"""
import base64
import html
import os
from collections.abc import Iterable, Sequence

from . import device, experiments, plots, results
from .experiments.base import Experiment, Target
from .results import Record, Results

Entry = tuple[Experiment, Results]

STYLE = """
:root { --ink: #20242a; --faint: #68707c; --line: #dfe3e8; --paper: #fff; --good: #1d7a3e; --bad: #b3261e; }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 1000px;
       margin: 2rem auto; padding: 0 1rem; }
h1 { margin-bottom: 0; } h2 { margin: 3rem 0 .3rem; border-top: 1px solid var(--line); padding-top: 1.5rem; }
p { margin: .4rem 0; } .faint { color: var(--faint); } img { width: 100%; height: auto; margin: .8rem 0; }
.table { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; margin: .8rem 0; }
th, td { text-align: left; vertical-align: top; padding: .35rem .7rem .35rem 0; border-bottom: 1px solid var(--line); }
th { font-weight: 600; color: var(--faint); font-size: 13px; }
.checks td:nth-child(3), .met, .missed { white-space: nowrap; }
.met { color: var(--good); font-weight: 600; } .missed { color: var(--bad); font-weight: 600; }
.failed { border-left: 4px solid var(--bad); padding: .1rem 1rem; margin: 1rem 0; background: #fdf3f2; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: 12px; line-height: 1.4; margin: .4rem 0; }
summary { cursor: pointer; color: var(--faint); } a { color: #1a5fb4; }
"""
MET = {True: '<span class="met">met</span>', False: '<span class="missed">not met</span>', None: ""}


def escape(value: object) -> str:
    return html.escape(str(value))


def table(head: Iterable[str], rows: Iterable[Iterable[str]], kind: str) -> str:
    """Of cells that are HTML; `kind` is for the style."""
    cells = "".join(f"<th>{name}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>\n" for row in rows)
    return f'<div class="table {kind}"><table><tr>{cells}</tr>\n{body}</table></div>\n'


def check_row(check: Target, records: Results) -> list[str]:
    verdict = check.verdict(records)
    return [*map(escape, (check.what, check.paper, check.target(records), verdict.measured)), MET[verdict.met]]


def check_table(checks: Sequence[Target], records: Results) -> str:
    rows = [check_row(check, records) for check in checks]
    return table(("what", "paper says", "target", "we measured", ""), rows, "checks")


def failure_block(run: Record) -> str:
    where = results.Variant(run["series"], run["x"])
    return (f'<div class="failed"><p><b>Failed:</b> {escape(where)}, repeat {run["repeat"]}</p>'
            f'<pre>{escape(run["error"])}</pre></div>\n')


def command_block(records: Results) -> str:
    """The commands of the first repeat of each variant."""
    first = [run for run in records.runs if run["repeat"] == 1]
    text = "\n\n".join(f"{results.Variant(run['series'], run['x'])}\n" + "\n".join(run["commands"]) for run in first)
    return f"<details><summary>commands</summary><pre>{escape(text)}</pre></details>\n"


def counted(number: int, thing: str) -> str:
    return f"{number} {thing}" + ("" if number == 1 else "s")


def facts(records: Results) -> str:
    header = records.header
    done = [run for run in records.runs if run["status"] == "done"]
    repeats = max((run["repeat"] for run in done), default=0)
    minutes = sum(run["seconds"] for run in done) / 60
    versions = ", ".join(f"{name} {value}" for name, value in header["versions"].items())
    return (f'<p class="faint">{escape(header["mode"])} run, {counted(repeats, "repeat")}, '
            f'{counted(len(done), "run")} in {minutes:.1f} min, seed {header["seed"]}; {escape(versions)}</p>\n')


def plot_image(experiment: Experiment, directory: str) -> str:
    """The plot, inside the page, with a link to the file; nothing if it was not drawn."""
    path = os.path.join(directory, f"{experiment.name}.svg")
    if not os.path.exists(path):
        return ""
    with open(path, "rb") as file:
        data = base64.b64encode(file.read()).decode()
    return f'<img alt="{escape(experiment.title)}" src="data:image/svg+xml;base64,{data}">\n'


def section(experiment: Experiment, records: Results, directory: str) -> str:
    parameters = records.header["parameters"]
    return (f'<h2 id="{experiment.name}">{escape(experiment.title)}</h2>\n'
            f'<p class="faint">{escape(experiment.source)}</p>\n<p>{escape(experiment.what)}</p>\n'
            f"<p><b>As run here:</b> {escape(experiment.as_run(parameters))}</p>\n"
            + "".join(map(failure_block, records.failures())) + plot_image(experiment, directory)
            + check_table(experiment.checks, records) + facts(records) + command_block(records))


def targets_met(checks: Sequence[Target], records: Results) -> str:
    """How many of those that there are, and how many had nothing to judge by; green if all are met."""
    verdicts = [verdict for verdict in (check.verdict(records) for check in checks) if verdict.met is not None]
    if not verdicts:
        return "-"
    met = sum(verdict.met is True for verdict in verdicts)
    missing = sum(not verdict.has_number for verdict in verdicts)
    words = f"{met} of {len(verdicts)}" + (f", {missing} not measured" if missing else "")
    return f'<span class="{"met" if met == len(verdicts) else "missed"}">{words}</span>'


def overview_row(experiment: Experiment, records: Results) -> list[str]:
    """One line: how many targets are met, how many runs failed."""
    failures = len(records.failures())
    failed = f'<span class="missed">{failures} failed</span>' if failures else ""
    return [f'<a href="#{experiment.name}">{escape(experiment.name)}</a>', escape(experiment.title),
            targets_met(experiment.checks, records), failed]


def page(entries: Sequence[Entry], directory: str) -> str:
    """`entries`: (experiment, its records)."""
    overview = table(("experiment", "", "targets met", ""), [overview_row(*entry) for entry in entries],
                     "overview")
    sections = "".join(section(*entry, directory) for entry in entries)
    return (f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Isozone lab</title>'
            f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head>\n<body>\n'
            f"<h1>Isozone lab</h1>\n<p>The published experiments, on the emulated SSD of this machine. Numbers are "
            f"medians of the repeats; if there are several, the least and the greatest are in brackets. A mean or a "
            f"least of several ratios says so.</p>\n{overview}{sections}</body></html>\n")


def load_all(directory: str) -> list[Entry]:
    """(experiment, records) of every experiment whose runs are in `directory`."""
    entries = ((one, results.Results.load(os.path.join(directory, one.records_name))) for one in experiments.ALL)
    return [(experiment, records) for experiment, records in entries if records is not None]


def draw(experiment: Experiment, records: Results, directory: str) -> None:
    """The plot; if nothing was measured, an earlier one is removed."""
    if any(run["status"] == "done" for run in records.runs):
        plots.save(experiment.plot(records), directory, experiment.name)
        return
    for kind in plots.KINDS:
        device.remove(os.path.join(directory, f"{experiment.name}.{kind}"))


def write(directory: str) -> str | None:
    """Draws everything that `directory` has, and writes index.html; gives its path, or None if there is nothing."""
    entries = load_all(directory)
    for experiment, records in entries:
        draw(experiment, records, directory)
    if not entries:
        return None
    path = os.path.join(directory, "index.html")
    results.write_atomically(path, page(entries, directory))
    return path
