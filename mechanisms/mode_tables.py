"""The modes of the gallery's mechanisms, counted: combinations, infeasible ones, those that runs reached.

``python mechanisms/mode_tables.py FOLDER`` writes the tables into the pages of the gallery, between the marks
``<!-- modes of NAME NAME ... -->`` and ``<!-- end of modes -->``.
"""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from pathlib import Path

import fsm_dyn

MARKED = re.compile(r"(<!-- modes of ([\w: ]+) -->\n).*?(<!-- end of modes -->)", re.DOTALL)
UNTIL = {"piano_action": 0.6, "piano_action_simple": 0.8}  # s; others run for the length of their drives


def reached(graph: fsm_dyn.ModeGraph) -> set[tuple[int, ...]]:
    """Contact states of all modes that the model's own schedule and its drives lead through."""
    states: set[tuple[int, ...]] = set()
    for drive in (None, *graph.automaton.mechanism.scenarios):
        until = UNTIL.get(graph.name) if drive != "slow" else None
        run = fsm_dyn.simulate(graph, until=until, scenario=drive, on_failure="return")
        names = {*run.modes, *(x.target for x in run.transitions)}
        states |= {chart.states for name, chart in zip(run.model.modes, run.model.charts, strict=True) if name in names}
    return states


def row(name: str) -> str:
    """A line of the table."""
    graph = fsm_dyn.compile(name)
    codes = [len(contact.codes) for contact in graph.automaton.contacts]
    listed, pruned, complete = len(graph.modes), dict(graph.infeasible), graph.automaton.fully_enumerated
    reasons = Counter(_kind(reason) for reason in pruned.values())
    why = "; ".join(f"{count}: {reason}" for reason, count in reasons.most_common()) or "none"
    all_of_them = math.prod(codes)
    combinations = f"{all_of_them:,}".replace(",", " ") if all_of_them < 1e7 else f"{all_of_them:.1e}"
    modes = f"{listed}, all" if complete else f"{listed} by name, others when reached"
    runs = 1 + len(graph.automaton.mechanism.scenarios)
    return f"| `{name}` | {len(codes)} | {combinations} | {why} | {modes} | {len(reached(graph))} in {runs} runs |"


def _kind(reason: str) -> str:
    """The reason without its numbers, and with the contacts it names."""
    return re.sub(r": their gaps always add up to .*", "", reason)


def table(names: list[str]) -> str:
    """The table of some models."""
    lines = [
        "| model | contacts | combinations of their states | impossible | modes | reached |",
        "|---|---|---|---|---|---|",
        *map(row, names),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the tables into the pages of the folder named."""
    for page in sorted(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/gallery").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        new = MARKED.sub(lambda found: found[1] + table(found[2].split()) + found[3], text)
        if new != text:
            page.write_text(new, encoding="utf-8")
            print(page)


if __name__ == "__main__":
    main()
