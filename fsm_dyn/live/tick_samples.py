"""Rows of a live run as samples: forces of contacts and connections, outputs and energies, outside the tick."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.core.arrays import FloatArray
from fsm_dyn.live.mode_pool import PooledExecutable
from fsm_dyn.live.tick import FIXED, TickColumns
from fsm_dyn.programs.layout import Layout
from fsm_dyn.run.record import run_model
from fsm_dyn.run.samples import Samples

_TICK, _TIME, _MODE = (FIXED.index(name) for name in ("tick", "t", "mode"))
_HARMLESS: Final = frozenset({"run", "pause", "step"})  # commands that change neither state nor laws


def parameter_changes(graph: ModeGraph, events: Sequence[Mapping[str, Any]]) -> list[tuple[float, FloatArray]]:
    """Return the ticks since which something was changed from outside, with the parameters (n_p,) from there on.

    The first are those at the start, since minus infinity. Structural parameters change at a reset.

    Parameters
    ----------
    graph : ModeGraph
        Of the run, coupled.
    events : sequence of mappings
        Of the run, in order.
    """
    names, parameters = graph.automaton.terms.layout.p, graph.parameters.copy()
    waiting: dict[str, float] = {}
    structural: set[str] = set()
    found = [(-np.inf, parameters.copy())]
    for event in events:
        if event.get("event") == "pending_reset":
            structural |= set(event["parameters"])
        if event.get("event") != "command_done" or event["command"]["do"] in _HARMLESS:
            continue
        waiting.update(event["command"]["values"] if event["command"]["do"] == "set" else {})
        due = set(waiting) if event["command"]["do"] == "reset" else set(waiting) - structural
        for name in due:
            parameters[names.index(name)] = float(waiting.pop(name))
        found.append((float(event["tick"]), parameters.copy()))
    return found


def samples_of_rows(
    graph: ModeGraph,
    executable: PooledExecutable,
    columns: TickColumns,
    rows: FloatArray,
    states_at: Callable[[float], Sequence[tuple[int, ...]]],
    events: Sequence[Mapping[str, Any]],
) -> Samples:
    """Return rows of a live run as samples, with the modes they are in by the numbers of their first appearance.

    Rates of inputs that are linear in a tick are the differences from the row before; of the first row they are zero.

    Parameters
    ----------
    graph : ModeGraph
        Of the run, coupled.
    executable : PooledExecutable
        Of its automaton; not stepped meanwhile.
    columns : TickColumns
    rows : ndarray, shape (n, columns)
        Of ticks in their order.
    states_at : callable
        Gives the contact states of the modes by their numbers in the row of a tick.
    events : sequence of mappings
        Of the run, in order.
    """
    found: dict[tuple[int, ...], int] = {}
    mode = np.array([found.setdefault(tuple(states_at(row[_TICK])[int(row[_MODE])]), len(found)) for row in rows], int)
    programs = [executable.mode_of(states) for states in found]
    names = [graph.automaton.name_of(states).name for states in found]
    changes = parameter_changes(graph, events)
    model = run_model(graph.automaton, names, programs, changes[-1][1], graph.values)
    return Samples(
        model, rows[:, _TIME], rows[:, columns.places["state"]], mode, _context(model.layout, columns, rows, changes)
    )


def _context(
    layout: Layout, columns: TickColumns, rows: FloatArray, changes: Sequence[tuple[float, FloatArray]]
) -> FloatArray:
    """Return the context of every row, shape (n, n_c)."""
    context = np.zeros((len(rows), layout.n_c))
    since = np.array([tick for tick, _ in changes])
    number = np.searchsorted(since, rows[:, _TICK], side="right") - 1
    context[:, layout.p_slice] = np.array([parameters for _, parameters in changes])[number]
    inputs, motion = rows[:, columns.places["inputs"]], rows[:, columns.places["motion"]]
    context[:, layout.w_slice] = inputs
    h = np.diff(rows[:, _TIME], prepend=np.nan)[:, None]
    rates = np.divide(np.diff(inputs, axis=0, prepend=inputs[:1]), h, out=np.zeros_like(inputs), where=h > 0.0)
    smooth = [columns.inputs.index(name) for name in columns.smooth]
    rates[:, smooth] = motion[:, : len(smooth)]
    context[:, layout.w_rate_slice] = rates
    context[:, layout.w_rate2_slice.start + np.array(smooth, int)] = motion[:, len(smooth) :]
    context[:, layout.sigma_slice.start : layout.memory_slice.stop] = rows[:, columns.places["discrete"]]
    return context
