"""Verdicts on the contact states of all shipped models, checked by runs, and a figure of those of the piano action.

``python mechanisms/feasibility.py docs`` writes the table of ``how_to/feasibility.md``, between the marks
``<!-- verdicts -->`` and ``<!-- end of verdicts -->``, and the picture ``pictures/piano_action_combinations.png``.
"""

from __future__ import annotations

import itertools
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

import fsm_dyn
from fsm_dyn import plot
from fsm_dyn.analysis.exploration import Exploration
from fsm_dyn.automaton.feasibility import GeometricFeasibility, assess_geometry
from fsm_dyn.automaton.mode_graph import group_of
from fsm_dyn.derive.unconstrained_system import ContactInfo
from fsm_dyn.draw import svg as palette
from fsm_dyn.language import models
from fsm_dyn.plot import style

MARKED = re.compile(r"(<!-- verdicts -->\n).*?(<!-- end of verdicts -->)", re.DOTALL)
MOST_CONTACTS = 12
EXACT = 1e-9  # in the mechanism's own units: gaps of a configuration that is shown
PIANO = "piano_action"


def assessed(graph: fsm_dyn.ModeGraph) -> tuple[GeometricFeasibility, float]:
    """Return the verdicts, found again, and their processor time, s."""
    automaton, begin = graph.automaton, time.process_time()
    n_q = len(automaton.terms.layout.q)
    start = np.zeros(n_q) if graph.start is None else graph.start.x[:n_q]
    return assess_geometry(automaton, graph.parameters, start), time.process_time() - begin


def explored(graph: fsm_dyn.ModeGraph, depth: int = 1, samples: int = 6, duration: float | None = None) -> Exploration:
    """Return what runs of a model meet: its own schedules, and random states and inputs."""
    return fsm_dyn.explore(graph, depth=depth, samples=samples, duration=duration)


def contradicted(found: GeometricFeasibility, met: Exploration) -> list[str]:
    """Return the modes that runs reached although their contact states are listed as infeasible; there must be none."""
    names = [contact.name for contact in met.graph.automaton.contacts]
    return [mode.name for mode in met.modes.values() if found.excluded(dict(zip(names, mode.states, strict=True)))]


def false_configurations(graph: fsm_dyn.ModeGraph, found: GeometricFeasibility) -> list[str]:
    """Return combinations whose configuration has gaps that its contact states deny; there must be none.

    Gaps of closed contacts vanish (of compliant ones: are not positive), those of open ones are not negative.
    """
    automaton = graph.automaton
    layout, units = automaton.terms.layout, automaton.units.rows * automaton.units.scales.length
    x, context = np.zeros(layout.n_x), np.zeros(layout.n_c)
    context[layout.p_slice] = graph.parameters
    gaps = []
    for configuration in found.configurations:
        x[: len(layout.q)] = [configuration[name] for name in layout.q]
        gaps.append(automaton.terms.evaluate(0.0, x, context)["residual"].reshape(-1) / units)
    contacts = [next(c for c in automaton.contacts if c.name == name) for name in found.contacts]
    return [
        states
        for states, number in found.states.items()
        if number >= 0
        and not all(
            _agrees(contact, shut == "1", gaps[number][contact.normal_row])
            for contact, shut in zip(contacts, states, strict=True)
        )
    ]


def _agrees(contact: ContactInfo, closed: bool, gap: float) -> bool:
    """Whether a gap, in own units, is one of a contact in this state.

    Beyond the ends of faces gaps have no meaning; where a surface with dissipation lags behind, it is open inside.
    """
    if closed:
        return bool(gap <= EXACT if contact.contact_law.compliant else abs(gap) <= EXACT)
    ends = contact.gated or contact.bounded_face or contact.outlined or contact.ends[0] >= 0
    return bool(ends or contact.lossy or contact.contact_law.switched or gap >= -EXACT)


def small_models() -> Iterator[fsm_dyn.ModeGraph]:
    """Yield the shipped models with up to twelve contacts."""
    for name in models.names():
        graph = fsm_dyn.compile(name)
        if 1 <= len(graph.automaton.contacts) <= MOST_CONTACTS:
            yield graph


def table(depth: int = 1) -> str:
    """Return the table of all models with up to twelve contacts, and what stays undecided."""
    lines = [
        "| model | contacts | combinations | infeasible | feasible | undecided | processor time | modes reached |",
        "|---|---|---|---|---|---|---|---|",
    ]
    questions, combinations, undecided, shares = Counter[str](), 0, 0, []
    for graph in small_models():
        found, seconds = assessed(graph)
        met = explored(graph, depth)
        wrong = contradicted(found, met) + false_configurations(graph, found)
        if wrong:
            raise SystemExit(f"{graph.name}: {', '.join(wrong)}")
        questions.update(item.verdict for item in found.verdicts)
        combinations, undecided = combinations + found.combinations, undecided + found.undecided
        shares.append(found.undecided / found.combinations)
        lines.append(row(graph, found, seconds, met))
        print(lines[-1], flush=True)
    asked = questions.total()
    lines += [
        "",
        f"Of all {combinations:,} combinations {undecided / combinations:.2%} stay undecided, of a model "
        f"{np.mean(shares):.2%} on average; of the {asked} questions on one, two or more contacts "
        f"{questions['undecided'] / asked:.1%} ({questions['undecided']}).",
    ]
    return "\n".join(lines) + "\n"


def row(graph: fsm_dyn.ModeGraph, found: GeometricFeasibility, seconds: float, met: Exploration) -> str:
    """Return a line of the table."""
    impossible = found.combinations - found.remaining
    numbers = (found.combinations, impossible, found.possible, found.undecided)
    share = f" ({found.undecided / found.combinations:.1%})" * bool(found.undecided)
    counts = " | ".join(f"{number:,}" for number in numbers) + share
    contacts = len(graph.automaton.contacts)
    return f"| `{graph.name}` | {contacts} | {counts} | {seconds:.1f} s | {len(met.modes)} in {met.runs} runs |"


def groups(graph: fsm_dyn.ModeGraph, found: GeometricFeasibility, met: Exploration) -> dict[str, Counter[str]]:
    """Return how many combinations are possible, undecided and met, by the named modes of the model."""
    automaton, counted = graph.automaton, dict[str, Counter[str]]()
    numbers = [next(i for i, c in enumerate(automaton.contacts) if c.name == name) for name in found.contacts]
    reached = {mode.states for mode in met.modes.values()}
    for states, shown in found.states.items():
        shut = dict(zip(numbers, states, strict=True))
        codes = [
            [code for code in contact.codes if i not in shut or (code > 0) == (shut[i] == "1")]
            for i, contact in enumerate(automaton.contacts)
        ]
        for combination in itertools.product(*codes):
            group = counted.setdefault(group_of(automaton, combination), Counter())
            group["possible" if shown >= 0 else "undecided"] += 1
            group["met"] += combination in reached
    return counted


def figure(graph: fsm_dyn.ModeGraph, found: GeometricFeasibility, met: Exploration) -> Figure:
    """Return bars of the possible combinations and of those that runs met, a line for each named mode."""
    counted = sorted(groups(graph, found, met).items(), key=lambda item: item[1]["possible"])
    names, places = [name for name, _ in counted], np.arange(len(counted))
    colors = {"undecided": palette.FAINT, "possible": palette.LINES[0], "met": palette.LINES[1]}
    texts = {"undecided": "undecided", "possible": "possible, with a configuration", "met": "met by exploring"}
    with style.settings():
        picture = style.new_figure(9.0, 1.4 + 0.46 * len(counted))
        axes = picture.add_axes((0.15, 0.11, 0.82, 0.76))
        for offset, kind in ((-0.27, "met"), (0.0, "possible"), (0.27, "undecided")):
            widths = [group[kind] for _, group in counted]
            axes.barh(places + offset, widths, 0.25, color=colors[kind], label=texts[kind])
            for place, width in zip(places, widths, strict=True):
                axes.text(max(width, 0.8) * 1.06, place + offset, f"{width:,}", va="center", fontsize=7.5)
        axes.set_xscale("log")
        axes.set_xlim(0.7, 3.0 * max(max(group.values()) for _, group in counted))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.set_ylim(-0.6, len(counted) - 0.4)
        axes.set_yticks(places, names)
        axes.set_xlabel("combinations of contact states")
        picture.legend(*axes.get_legend_handles_labels(), loc="upper left", ncols=3, bbox_to_anchor=(0.14, 0.94))
        excluded = found.combinations - found.remaining
        picture.text(
            0.15, 0.955,
            f"{graph.name}: of {found.combinations:,} combinations {excluded:,} are proved impossible",
            fontsize=10.0,
        )  # fmt: skip
    return picture


def main(folder: Path) -> None:
    """Write the table and the picture."""
    graph = fsm_dyn.compile(PIANO)
    begin = time.process_time()
    found = graph.assess_geometry()
    seconds = time.process_time() - begin
    met = explored(graph, depth=1, samples=3, duration=0.1)
    numbers = f"{found.possible:,} possible, {found.undecided:,} undecided, {len(met.modes)} met in {met.runs} runs"
    print(f"{graph.name}: {numbers}; {seconds:.1f} s")
    if contradicted(found, met) or false_configurations(graph, found):
        raise SystemExit(f"{graph.name}: {contradicted(found, met)}, {false_configurations(graph, found)}")
    plot.save(figure(graph, found, met), folder / "pictures" / "piano_action_combinations.png")
    page = folder / "how_to" / "feasibility.md"
    text = page.read_text(encoding="utf-8")
    page.write_text(MARKED.sub(lambda mark: mark[1] + table() + mark[2], text), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"))
