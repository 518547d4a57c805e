"""Notebook representation of a run: summary, timeline, table of transitions."""

from __future__ import annotations

from collections.abc import Callable

from fsm_dyn.graphics.svg import element, escaped
from fsm_dyn.graphics.timeline_svg import timeline_svg
from fsm_dyn.results.arrays import FloatArray
from fsm_dyn.results.record import RunModel, RunRecord
from fsm_dyn.results.run_timeline import columns_by_unit, dense_rows, timeline_of
from fsm_dyn.results.samples import Samples
from fsm_dyn.results.transitions import Transitions, counted

Sample = Callable[[FloatArray], Samples]  # of Trajectory

MOST_ROWS = 20  # transitions in the table
_MOST_STRIPS = 4


def run_svg(model: RunModel, record: RunRecord, rows: Samples, sample: Sample) -> str:
    """Return the picture of a run over time: its modes, coordinates, speeds; ``sample`` gives what is between rows."""
    groups = columns_by_unit(model, (model.layout.q, model.layout.u))[:_MOST_STRIPS]
    return timeline_svg(timeline_of(model, record, dense_rows(rows, sample), groups))


def run_html(
    model: RunModel, record: RunRecord, rows: Samples, sample: Sample, ending: Callable[[], tuple[str, ...]]
) -> str:
    """Return a run as a notebook shows it; whatever the model's text says stays text.

    ``ending`` tells the end of a run that failed, line by line.
    """
    transitions = record.transitions
    told = (
        f"{record.t[0]:g} s to {record.t[-1]:g} s, {len(record.t)} rows, {counted(transitions)}; {record.outcome.name}"
    )
    head = element("p", f"{element('b', escaped(model.name))}: {escaped(told)}")
    parts = [head, run_svg(model, record, rows, sample)]
    if record.outcome.failed:
        parts.append(element("pre", escaped("\n".join(ending()))))
    if transitions:
        shown = Transitions(transitions[:MOST_ROWS])._repr_html_()
        more = len(transitions) - MOST_ROWS
        rest = element("p", f"and {more} more") if more > 0 else ""
        parts.append(element("details", element("summary", "Transitions") + shown + rest))
    return element("div", parts)
