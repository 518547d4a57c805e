"""Rows of a live run as samples, with forces, outputs and energies, and their energy balance, outside the tick."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.core.arrays import Booleans, Floats, Integers
from fsm_dyn.core.records import dataclass
from fsm_dyn.live.mode_pool import PooledExecutable
from fsm_dyn.live.tick import ADVANCED, FIXED, INCOMPLETE_COLUMN, TickColumns
from fsm_dyn.programs.program import Layout
from fsm_dyn.run.energy import energy_balance, is_open
from fsm_dyn.run.record import RunModel, run_model
from fsm_dyn.run.samples import Samples, kernel_context

RunModels: TypeAlias = dict[tuple[tuple[tuple[int, ...], ...], bytes], RunModel]
"""Programs that read rows, by the contact states of their modes and the parameters."""

_MODELS: Final = 8  # kept for later rows
_HARMLESS: Final = frozenset({"run", "pause", "step"})  # commands that change neither state nor laws


def parameter_changes(graph: ModeGraph, events: Sequence[Mapping[str, Any]]) -> list[tuple[float, Floats]]:
    """Return the ticks since which something was changed from outside, with the parameters (n_p,) from there on.

    The first are those at the start, since minus infinity. Structural parameters change at a reset. ``graph``: of the
    run, coupled; ``events``: of the run, in order.
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
    rows: Floats,
    states_at: Callable[[float], Sequence[tuple[int, ...]]],
    events: Sequence[Mapping[str, Any]],
    known: RunModels,
) -> Samples:
    """Return rows of a live run as samples, with the modes they are in by the numbers of their first appearance.

    Rates of inputs that are linear in a tick are the differences from the row before; of the first row they are zero.
    ``graph``: of the run, coupled. ``executable``: of its automaton; not stepped meanwhile. ``rows``, shape (n,
    columns): of ticks in their order. ``states_at``: gives the contact states of the modes by their numbers in the row
    of a tick. ``events``: of the run, in order. ``known``: of earlier calls, which it is filled by.
    """
    found: dict[tuple[int, ...], int] = {}
    mode = np.array([found.setdefault(tuple(states_at(row[_TICK])[int(row[_MODE])]), len(found)) for row in rows], int)
    changes = parameter_changes(graph, events)
    key = tuple(found), changes[-1][1].tobytes()
    if key not in known:
        programs = [executable.mode_of(states) for states in found]
        names = [graph.automaton.name_of(states).name for states in found]
        while len(known) >= _MODELS:
            known.pop(next(iter(known)))
        known[key] = run_model(graph.automaton, names, programs, changes[-1][1], graph.values)
    model = known[key]
    return Samples(
        model, rows[:, _TIME], rows[:, columns.places["state"]], mode, _context(model.layout, columns, rows, changes)
    )


def _context(layout: Layout, columns: TickColumns, rows: Floats, changes: Sequence[tuple[float, Floats]]) -> Floats:
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


# -- Energy balance of the ticks -------------------------------------------------------------------------------


_TICK, _TIME, _MODE, _TRANSITIONS = (FIXED.index(name) for name in ("tick", "t", "mode", "transitions"))
_LEAST: Final = 20  # ticks below which nothing is claimed
_RETAKEN: Final = 400  # ticks with the largest residuals, repeated with steps shorter by this factor
_SHORTER: Final = 16


@dataclass(frozen=True)
class _Ticks:
    """Ticks as steps: the states at both ends of each, and how the inputs run between."""

    ends: Samples  # rows ``2 k`` and ``2 k + 1`` are the ends of tick ``k``, shape (2 n,)
    rates: Floats  # shape (2 n, n_q + n_u): of the states there

    def between(self, times: Floats, first: Integers) -> Samples:
        """Return samples within the ticks that begin at the rows ``first``, by cubics of states and inputs."""
        ends, layout = self.ends, self.ends.model.layout
        last = first + 1
        h = (ends.t[last] - ends.t[first])[:, None]
        s = (times - ends.t[first])[:, None] / h
        x = _cubic(s, h, ends.x[first], self.rates[first], ends.x[last], self.rates[last])
        context = ends.context[first].copy()
        a, b = context, ends.context[last]
        rate = layout.w_rate_slice
        value = _cubic(s, h, a[:, layout.w_slice], a[:, rate], b[:, layout.w_slice], b[:, rate])
        context[:, rate] += s * (b - a)[:, rate]
        context[:, layout.w_slice] = value
        return Samples(ends.model, times, x, ends.mode[first], context)


def _cubic(s: Floats, h: Floats, a: Floats, rate_a: Floats, b: Floats, rate_b: Floats) -> Floats:
    """Return the cubic with values and rates at both ends of steps ``h`` (s), at their parts ``s``."""
    rise = b - a
    found: Floats = a + s * rise + s * (1.0 - s) * ((h * rate_a - rise) * (1.0 - s) + (rise - h * rate_b) * s)
    return found


def energy_warnings(
    graph: ModeGraph,
    executable: PooledExecutable,
    columns: TickColumns,
    rows: Floats,
    states: Sequence[tuple[int, ...]],
    names: Sequence[str],
    events: Sequence[Mapping[str, Any]],
) -> tuple[str, ...]:
    """Return a sentence if the energy balance of ticks does not close, none if it does.

    Ticks with transitions, with samples of controllers, and those in which compliant contacts act are left out: what
    happens within them does not follow from their ends. ``graph``: of the run, coupled. ``executable``: of its
    automaton; not stepped meanwhile. ``rows``, shape (n, columns): of ticks in their order. ``states``, ``names``:
    contact states and names of the modes by their numbers in the latest row. ``events``: of the run: after a command
    that changes parameters, inputs or state, only later ticks count.
    """
    since, parameters = parameter_changes(graph, events)[-1]
    rows = rows[rows[:, _TICK] >= since]
    first = np.flatnonzero(_followed(columns, rows))
    if len(first) < _LEAST or not np.isfinite(rows).all():
        return ()
    modes = [executable.mode_of(tuple(codes)) for codes in states]
    model = run_model(graph.automaton, names, modes, parameters, graph.values)
    with np.errstate(all="ignore"):
        ticks = _resolved(_ticks(model, columns, rows, first))
        if len(ticks.ends) < 2 * _LEAST:
            return ()
        starts = np.arange(len(ticks.ends)) % 2 == 0
        balance = energy_balance(ticks.ends, starts, ticks.between)
        if not is_open(balance.residual, balance, 0.0):
            return ()
        gained = np.diff(balance.residual)[::2]
        worst = np.argsort(np.abs(gained))[-_RETAKEN:]
        gained[worst] = _retaken(ticks, worst)
        residual = np.cumsum(gained)
        if not is_open(residual, balance, 0.0):
            return ()
    return (
        f"the energy balance of {len(gained)} ticks without transitions does not close: "
        f"{np.abs(residual).max() / balance.exchanged:.1%} of the energy exchanged is unexplained, most of it at "
        f"t = {ticks.ends.t[2 * int(np.argmax(np.abs(gained)))]:.6g} s; use a shorter period or more substeps until it "
        "closes",
    )


def _retaken(ticks: _Ticks, chosen: Integers) -> Floats:
    """Return the energy at the end of some ticks beyond that of short steps from their start, shape (m,), J.

    Motion faster than a tick is no defect of a run with substeps, but a cubic cannot show it.
    """
    starts, ends = ticks.ends.only(2 * chosen), ticks.ends.only(2 * chosen + 1)
    h, x = (ends.t - starts.t) / _SHORTER, starts.x

    def rates(part: float, state: Floats) -> Floats:
        inner = ticks.between(starts.t + part * h, 2 * chosen)
        return _rates(Samples(inner.model, inner.t, state, inner.mode, inner.context))

    step = h[:, None]
    for k in range(_SHORTER):  # the classical method of Runge and Kutta
        a = rates(k, x)
        b = rates(k + 0.5, x + 0.5 * step * a)
        c = rates(k + 0.5, x + 0.5 * step * b)
        d = rates(k + 1.0, x + step * c)
        x = x + step * (a + 2.0 * b + 2.0 * c + d) / 6.0
    again = Samples(ends.model, ends.t, x, ends.mode, ends.context)
    found: Floats = ends.kinetic_energy + ends.potential_energy - again.kinetic_energy - again.potential_energy
    return found


def _followed(columns: TickColumns, rows: Floats) -> Booleans:
    """Return after which rows a whole tick follows, in the same mode, without a transition or a sample, (n - 1,)."""
    a, b = rows[:-1], rows[1:]
    discrete = columns.places["discrete"]
    same = (a[:, _MODE] == b[:, _MODE]) & (a[:, _TRANSITIONS] == b[:, _TRANSITIONS]) & (b[:, _TICK] == a[:, _TICK] + 1)
    same &= (b[:, ADVANCED] != 0.0) & (a[:, INCOMPLETE_COLUMN] == 0.0) & (b[:, INCOMPLETE_COLUMN] == 0.0)
    found: Booleans = same & (b[:, _TIME] > a[:, _TIME]) & (a[:, discrete] == b[:, discrete]).all(axis=1)
    return found


def _ticks(model: RunModel, columns: TickColumns, rows: Floats, first: Integers) -> _Ticks:
    """Return the ticks that follow rows: inputs are linear in a tick, or cubic where they are smooth."""
    both = np.stack([first, first + 1], axis=1).ravel()
    held, layout = np.zeros((len(both), model.layout.n_c - len(model.parameters))), model.layout
    inputs, motion = rows[both][:, columns.places["inputs"]], rows[both][:, columns.places["motion"]]
    t = rows[both, _TIME]
    slopes = np.diff(inputs, axis=0)[::2] / np.diff(t)[::2, None]
    held[:, _held(layout, layout.w_slice)] = inputs
    rates = np.repeat(slopes, 2, axis=0)
    smooth = [columns.inputs.index(name) for name in columns.smooth]
    rates[:, smooth] = motion[:, : len(smooth)]
    held[:, _held(layout, layout.w_rate_slice)] = rates
    second = held[:, _held(layout, layout.w_rate2_slice)]
    second[:, smooth] = motion[:, len(smooth) :]
    discrete = slice(layout.sigma_slice.start, layout.memory_slice.stop)
    held[:, _held(layout, discrete)] = rows[both][:, columns.places["discrete"]]
    x = rows[both][:, columns.places["state"]]
    ends = Samples(model, t, x, rows[both, _MODE].astype(np.int64), kernel_context(model, held))
    return _Ticks(ends, _rates(ends))


def _held(layout: Layout, part: slice) -> slice:
    """Return where a part of the context stands without the parameters before it."""
    return slice(part.start - len(layout.p), part.stop - len(layout.p))


def _rates(ends: Samples) -> Floats:
    """Return the rates of the states of rows, shape (n, n_q + n_u)."""
    rates = np.zeros_like(ends.x)
    for index in np.flatnonzero(np.bincount(ends.mode)).tolist():
        chosen = ends.mode == index
        out = ends.model.full[index].evaluate(ends.t[chosen], ends.x[chosen], ends.context[chosen])
        rates[chosen] = out["x_dot"]
    return rates


def _resolved(ticks: _Ticks) -> _Ticks:
    """Return the ticks at whose ends no compliant contact acts; an impact on one may be shorter than a tick."""
    columns = [row for _, row in ticks.ends.model.compliant]
    acts = ticks.ends.multiplier_table[:, columns].any(axis=1) | ticks.ends.report["stored"].any(axis=1)
    kept = np.repeat(~acts.reshape(-1, 2).any(axis=1), 2)
    return _Ticks(ticks.ends.only(np.flatnonzero(kept)), ticks.rates[kept])
