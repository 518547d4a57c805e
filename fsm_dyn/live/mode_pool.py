"""The running form of an automaton in a live run: modes not derived are embedded on line, from a stock made before.

A mode that was not listed is met in the middle of a tick and has to be there in the same tick.  What takes long is done
before the loop begins: machine code for as many modes as the stock holds, room for them in the tables, the guards of
every contact in every state.  What is left, some two tenths of a millisecond, is to list the mode's guards and to fill
in its context.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fsm_dyn.laws import Event
from fsm_dyn.modes.guard_list import list_guards
from fsm_dyn.modes.guards import Guard
from fsm_dyn.modes.unconstrained_system import of_one_corner
from fsm_dyn.online import context as oc
from fsm_dyn.online.context import FULL, RHS
from fsm_dyn.online.mode import OnlineFull, OnlineKernels, OnlineMode, routine_address
from fsm_dyn.online.online_executable import OnlineExecutable
from fsm_dyn.programs import BoundKernels
from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation.executable import Array, ModeChart
from fsm_dyn.simulation.tables import Tables

STOCK: Final = 96  # modes
ROOM: Final = 2 * STOCK  # in the tables: for modes from the stock, and for kernels of their own


LEAST: Final = 100  # evaluations on line before a mode goes on by kernels of its own


@dataclass(frozen=True)
class OwnKernels:
    """Kernels of a mode's own: addresses of machine code, and what keeps it in memory."""

    rhs: int
    full: int
    library: object


class _FromStock(OnlineKernels):
    """The kernels of a mode on a shelf."""

    def __init__(self, mode: OnlineMode, table: npt.NDArray[np.int64], rhs: int, full: int, number: int) -> None:
        self.context = mode.full.context()
        table[:] = self.context.packed.table  # the machine code on the shelf reads its context here
        self.rhs, self.full, self.number = rhs, full, number


class _KernelPool:
    """Kernels that wait for a mode: code bound to places where the context of a mode will be described."""

    def __init__(self, count: int) -> None:
        self._tables = np.zeros((count, oc.ONLINE.words), np.int64)
        base, stride = self._tables.ctypes.data, self._tables.strides[0]
        bound = [(base + stride * i, part) for i in range(count) for part in (RHS, FULL)]
        self._closures = BoundKernels(routine_address(), bound)
        self.free = list(range(count))

    def take(self, mode: OnlineMode) -> _FromStock:
        number = self.free.pop(0)
        rhs, full = self._closures.addresses[2 * number : 2 * number + 2]
        return _FromStock(mode, self._tables[number], rhs, full, number)


class PooledExecutable(OnlineExecutable):
    """A machine that has room for modes, and kernels for them, before they are met.

    The arguments are those of :class:`~fsm_dyn.online.online_executable.OnlineExecutable`.
    """

    _shelf: _KernelPool | None = None
    _parts: dict[tuple[int, int], tuple[Guard, ...]] | None = None
    _leaving: dict[int, tuple[Guard, ...]]
    _left = 0  # room in the tables, modes
    _pending: frozenset[tuple[int, ...]] = frozenset()  # modes with kernels of their own that are not in the tables yet

    @property
    def stocked(self) -> bool:
        """Whether a mode that is asked for now is there at once."""
        return self._shelf is not None and bool(self._shelf.free) and self._left > 0

    def prepare(self) -> None:
        """Do what takes long before the loop begins."""
        automaton = self.automaton
        if not automaton.contacts or self._shelf is not None:
            return
        self._list_parts()
        self._shelf = _KernelPool(STOCK)
        self.tables = self._build()
        first = self.charts[0].programs.states
        self.mode_of(first).full.context()
        automaton.name_of(first)

    def check_listed(self, states: npt.NDArray[np.int8], t: float) -> tuple[int, ...]:
        """Return contact states as codes; raise RunError if the model lists its modes and this is none of them."""
        if self.automaton.mechanism.only_listed:
            return super().check_listed(states, t)
        return tuple(int(code) for code in states)

    @cached_property
    def _own(self) -> dict[tuple[int, ...], OwnKernels]:
        """Kernels of modes that were met on line, by contact states."""
        return {}

    def take_over(self, states: tuple[int, ...], kernels: OwnKernels, spent: npt.NDArray[np.int64]) -> int | None:
        """Let a mode embedded on line go on by kernels of its own from its next step on.

        Parameters
        ----------
        states : tuple of int
        kernels : OwnKernels
        spent : int64 array
            Evaluations made in each mode of the tables.

        Returns
        -------
        int or None
            Evaluations after which a run goes on by these kernels, which is now, or after ``LEAST``; None where the
            mode was not met or has kernels of its own, or the tables have no room.
        """
        number = self._numbers.get(states, -1)
        if number < 0 or states in self._own or self.charts[number].full not in self._online:
            return None
        if self._shelf is None or self._left <= len(self._shelf.free):
            return None
        self._own[states] = kernels
        self._pending |= {states}
        self._left -= 1
        return self._allow(number, max(LEAST, int(spent[number]) - 1))

    def _allow(self, number: int, evaluations: int) -> int:
        """Let a run ask for kernels of a mode after so many evaluations; return that."""
        self.charts[number] = replace(self.charts[number], allowance=evaluations)
        self.tables.mode_allowance[number] = evaluations
        return evaluations

    def kernels_needed(self, number: int, t: float, x: Array, c: Array) -> Tables:
        """Enter a mode's own kernels, if it has any that are not in the tables yet; hundredths of a millisecond."""
        chart = self.charts[number]
        states = chart.programs.states
        if states in self._pending:
            self._pending -= {states}
            self._left += 1  # which was kept for it
            own = self._own[states]
            self.charts.append(ModeChart(chart.mode, chart.programs, own.rhs, own.full))
            self._enter(self.charts[-1])
        return self.tables

    def reset_charts(self) -> None:
        """Keep one chart of every mode; kernels of the others return to the shelf."""
        before = dict(self._online)
        self._pending = frozenset(self._own)
        super().reset_charts()
        for states in self._own:
            self._allow(self._numbers[states], LEAST)
        for full, kernels in before.items():
            if full not in self._online and isinstance(kernels, _FromStock) and self._shelf is not None:
                self._shelf.free.append(kernels.number)
                self._shelf.free.sort()

    def _list_parts(self) -> None:
        """List the guards that each contact brings in each of its states, and each written transition."""
        automaton = self.automaton
        rest = [contact.codes[0] for contact in automaton.contacts]
        self._parts = {}
        for k, contact in enumerate(automaton.contacts):
            for code in contact.codes:
                states = [*rest[:k], code, *rest[k + 1 :]]
                found = list_guards(automaton.system, states, [])
                self._parts[k, code] = tuple(guard for guard in found if guard.subject == k)
        none = len(list_guards(automaton.system, rest, []))
        self._leaving = {
            i: list_guards(automaton.system, rest, [i])[none:] for i in range(len(automaton.mechanism.transitions))
        }

    def list_guards(self, states: tuple[int, ...]) -> tuple[Guard, ...]:
        """Return what :func:`fsm_dyn.modes.guard_list.list_guards` would, put together from what was listed before."""
        if self._parts is None:
            self._list_parts()
        parts = self._parts or {}
        contacts = self.automaton.contacts
        found = [
            guard
            for item in enumerate(states)
            for guard in parts[item]
            if guard.event is not Event.CLOSES or not any(states[i] for i in of_one_corner(contacts, guard.subject))
        ]
        for i in self.automaton.outgoing_transitions(self.automaton.name_of(states)) if self._leaving else ():
            found += self._leaving[i]
        return tuple(found)

    def mode_of(self, states: tuple[int, ...]) -> OnlineMode:
        """Return the mode with these contact states, embedded on line; a fraction of a millisecond."""
        guards = self.list_guards(states)
        # which forces others could take over is for reports, and a live run makes none
        return OnlineMode(states, guards, OnlineFull(states, guards, self._contexts), ())

    def _append_online(self, states: tuple[int, ...], group: int) -> None:
        if self._shelf is None or not self.stocked:
            super()._append_online(states, group)
            return
        mode = self.mode_of(states)
        kernels = self._shelf.take(mode)
        self._online[kernels.full] = kernels
        chart = ModeChart(group, mode, kernels.rhs, kernels.full)
        self.charts.append(chart)
        self._enter(chart)

    # -- tables with room ------------------------------------------------------------------------------------

    def _most_guards(self) -> int:
        """Return how many guards a mode can have."""
        parts = self._parts or {}
        most = sum(
            max(len(parts[k, code]) for code in contact.codes) for k, contact in enumerate(self.automaton.contacts)
        )
        return most + sum(len(guards) for guards in self._leaving.values())

    def _build(self) -> Tables:
        tables = super()._build()
        if self._shelf is None:
            return tables
        self._left = ROOM - len(self._pending)
        most = max(self._most_guards(), int(tables.sizes[tb.MAX_GUARDS]))
        tables.sizes[tb.MAX_GUARDS] = most

        def roomy(array: npt.NDArray[np.generic], count: int, fill: int = 0) -> npt.NDArray[np.generic]:
            more = np.full((count, *array.shape[1:]), fill, array.dtype)
            return np.ascontiguousarray(np.concatenate([array, more]))

        changed: dict[str, Any] = {
            name: roomy(getattr(tables, name), ROOM)
            for name in ("mode_rhs", "mode_full", "mode_flags", "mode_group", "mode_guard_start")
        }
        changed |= {
            name: roomy(getattr(tables, name), ROOM * most)
            for name in ("guard_event", "guard_contact", "guard_direction", "guard_unit")
        }
        changed["mode_allowance"] = roomy(tables.mode_allowance, ROOM, tb.NEVER)
        changed["mode_states"] = roomy(tables.mode_states, ROOM, -1)  # states that nobody asks for
        leaves = tables.transition_leaves
        changed["transition_leaves"] = np.hstack([leaves, np.zeros((len(leaves), ROOM), np.int8)])
        return tables._replace(**changed)

    def _enter(self, chart: ModeChart) -> None:
        """Write a chart into the room that the tables have; whoever works with them finds it there."""
        tables, number = self.tables, len(self.charts) - 1
        states, guards = chart.programs.states, chart.programs.guards
        name = self.automaton.name_of(states)
        first = int(tables.mode_guard_start[number])
        last = first + len(guards)
        tables.mode_rhs[number], tables.mode_full[number] = chart.rhs, chart.full
        tables.mode_states[number] = states
        tables.mode_flags[number], tables.mode_group[number] = self._flags(chart), chart.mode
        tables.mode_guard_start[number + 1] = last
        tables.guard_event[first:last] = [guard.event for guard in guards]
        tables.guard_contact[first:last] = [guard.subject for guard in guards]
        tables.guard_direction[first:last] = [guard.direction for guard in guards]
        tables.guard_unit[first:last] = self.numerics.guards(guards)
        tables.transition_leaves[self.automaton.outgoing_transitions(name), number] = 1
        tables.sizes[tb.N_MODES] = number + 1
        self.chart_names += (name.name,)
        self.chart_programs += (chart.programs,)
        self._numbers.setdefault(states, number)
        self._left -= 1
