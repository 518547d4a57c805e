"""A run as a timeline: its modes, transitions and columns, dense enough for smooth lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from fsm_dyn.graphics import palette
from fsm_dyn.graphics.timeline import Strip, Timeline
from fsm_dyn.results.arrays import FloatArray
from fsm_dyn.results.record import RunModel, RunRecord
from fsm_dyn.results.samples import Samples

_POINTS = 600  # over a run, where steps are longer


def timeline_of(
    model: RunModel, record: RunRecord, rows: Samples | None = None, groups: Iterable[tuple[str, Sequence[str]]] = ()
) -> Timeline:
    """Return a run as a timeline.

    Parameters
    ----------
    model : RunModel
    record : RunRecord
        Of the run.
    rows : Samples, optional
        Where the columns are read.
    groups : iterable of (str, sequence of str)
        The columns: a unit and their names, for each strip.
    """
    labels, mode = np.array(model.labels), np.asarray(record.mode)
    edges = [0, *(np.flatnonzero(labels[mode[1:]] != labels[mode[:-1]]) + 1).tolist()]
    times = [float(record.t[k]) for k in edges] + [float(record.t[-1])]
    bands = tuple((times[i], times[i + 1], str(labels[mode[k]])) for i, k in enumerate(edges))
    strips = () if rows is None else tuple(
        Strip(unit, tuple(names), np.array([rows[name] for name in names])) for unit, names in groups
    )  # fmt: skip
    transitions = tuple(item.time for item in record.transitions)
    t = record.t if rows is None else rows.t
    return Timeline(model.name, bands, palette.mode_colours(model.labels), transitions, t, strips)


def columns_by_unit(model: RunModel, kinds: Iterable[Sequence[str]]) -> list[tuple[str, list[str]]]:
    """Return columns of one unit together, in the order of the kinds, which stay apart."""
    groups: dict[tuple[int, str], list[str]] = {}
    for number, names in enumerate(kinds):
        for name in names:
            groups.setdefault((number, model.units.get(name, "")), []).append(name)
    return [(unit, names) for (_, unit), names in groups.items()]


def dense_rows(rows: Samples, sample: Callable[[FloatArray], Samples]) -> Samples:
    """Return the rows of a run with points of the dense output between them; ``sample`` gives what is between rows."""
    t = rows.t
    pieces = np.minimum(np.ceil(np.diff(t) / max((t[-1] - t[0]) / _POINTS, 1e-300)).astype(int), _POINTS)
    long = np.flatnonzero(pieces > 1)
    if not len(long):
        return rows
    extra = sample(np.concatenate([np.linspace(t[i], t[i + 1], pieces[i] + 1)[1:-1] for i in long]))
    order = np.argsort(np.concatenate([t, extra.t]), kind="stable")

    def merged(one: Any, other: Any) -> Any:
        return np.concatenate([one, other])[order]

    return Samples(
        rows.model,
        merged(t, extra.t),
        merged(rows.x, extra.x),
        merged(rows.mode, extra.mode),
        merged(rows.context, extra.context),
    )
