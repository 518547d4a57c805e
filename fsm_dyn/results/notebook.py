"""Notebook representation of a run: summary, timeline, table of transitions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fsm_dyn.graphics.svg import element, escaped
from fsm_dyn.graphics.timeline_svg import Strip, timeline_svg
from fsm_dyn.results.arrays import FloatArray
from fsm_dyn.results.record import RunModel, RunRecord
from fsm_dyn.results.samples import Samples
from fsm_dyn.results.transitions import Transitions, counted

Sample = Callable[[FloatArray], Samples]  # of Trajectory

MOST_ROWS = 20  # transitions in the table
_POINTS = 600  # over a run whose steps are longer
_MOST_STRIPS = 4


def run_svg(model: RunModel, record: RunRecord, sample: Sample) -> str:
    """Return the picture of a run over time: its modes, coordinates, speeds; ``sample`` gives what is between rows."""
    changed = np.flatnonzero(np.diff(record.mode)) + 1
    bands: list[tuple[float, str]] = []
    for k in (0, *changed.tolist()):
        mode = model.labels[record.mode[k]]
        if not bands or bands[-1][1] != mode:
            bands.append((float(record.t[k]), mode))
    t, x = _dense(record, sample)
    return timeline_svg(model.name, t, bands, _strips(model, x))


def run_html(model: RunModel, record: RunRecord, sample: Sample, ending: Callable[[], tuple[str, ...]]) -> str:
    """Return a run as a notebook shows it; whatever the model's text says stays text.

    ``ending`` tells the end of a run that failed, line by line.
    """
    transitions = record.transitions
    told = (
        f"{record.t[0]:g} s to {record.t[-1]:g} s, {len(record.t)} rows, {counted(transitions)}; {record.outcome.name}"
    )
    head = element("p", f"{element('b', escaped(model.name))}: {escaped(told)}")
    parts = [head, run_svg(model, record, sample)]
    if record.outcome.failed:
        parts.append(element("pre", escaped("\n".join(ending()))))
    if transitions:
        shown = Transitions(transitions[:MOST_ROWS])._repr_html_()
        more = len(transitions) - MOST_ROWS
        rest = element("p", f"and {more} more") if more > 0 else ""
        parts.append(element("details", element("summary", "Transitions") + shown + rest))
    return element("div", parts)


def _dense(record: RunRecord, sample: Sample) -> tuple[FloatArray, FloatArray]:
    """Return times and states, shapes (n,) and (n, n_x): the rows, and more where they are few."""
    if len(record.t) >= _POINTS or not record.t[-1] > record.t[0]:
        return record.t, record.x
    found = sample(np.linspace(record.t[0], record.t[-1], _POINTS))
    return found.t, found.x


def _strips(model: RunModel, x: FloatArray) -> list[Strip]:
    """Group coordinates and speeds of one unit, in declared order."""
    layout, units = model.layout, model.units
    groups: dict[tuple[int, str], list[int]] = {}
    for k, name in enumerate(layout.x):
        groups.setdefault((int(k >= len(layout.q)), units.get(name, "")), []).append(k)
    return [
        Strip(unit, tuple(layout.x[k] for k in members), x[:, members].T)
        for (_, unit), members in list(groups.items())[:_MOST_STRIPS]
    ]
