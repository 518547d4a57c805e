"""Mode pool: executable of a live run with kernels and tables prepared for modes embedded online.

A mode not derived in advance is reached within a tick and needed in the same tick. The slow work is done before the
loop begins: machine code for ``STOCK`` modes, room for many in the tables, the guards of every contact in every state.
Within the tick only the mode's guards are listed and its context is filled in, in about 0.2 ms. Modes that are expected
are made ready between ticks: then their entry into the tables is left. No result depends on what was expected.

When all machine code is in use, that of a mode not evaluated lately is lent to the new one. The mode that gave it
keeps its number, guards and context, with the chart chosen in it, and rests until it is reached again: no result
depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fsm_dyn.core.arrays import Codes, Floats, Integers
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.guards import Guard, list_guards
from fsm_dyn.derive.mode_programs import RunnableMode
from fsm_dyn.derive.unconstrained_system import of_one_corner
from fsm_dyn.programs.kernels import BoundKernels
from fsm_dyn.run import online as oc
from fsm_dyn.run.executable import ModeChart
from fsm_dyn.run.online import Context, OnlineExecutable, OnlineKernels, OnlineMode, routine_address
from fsm_dyn.run.structures import GuardEnclosures, guard_enclosures
from fsm_dyn.runtime.abi import NEVER, Event, OnlineKernel, Sizes
from fsm_dyn.runtime.layouts import Tables

STOCK: Final = 96  # modes in the mode pool
ROOM: Final = 2048  # in the tables: for modes from the mode pool, and for derived kernels
READY: Final = 24  # modes made ready at once, in addition to ``STOCK``


RECENT: Final = 8  # modes supplied last, whose machine code is not lent
LEAST: Final = 100  # online evaluations before a mode switches to derived kernels


@dataclass(frozen=True)
class OwnKernels:
    """Derived kernels of a mode: addresses of machine code, and the owner of its memory."""

    rhs: int
    full: int
    library: object


class _FromStock(OnlineKernels):
    """Kernels of a mode from the mode pool."""

    def __init__(self, context: Context, table: Integers, rhs: int, full: int, number: int) -> None:
        self.context = context
        table[:] = context.packed.table  # the machine code reads its context here
        self.rhs, self.full, self.number = rhs, full, number


class _KernelPool:
    """Free kernels: machine code bound to memory for the context of a mode."""

    def __init__(self, count: int) -> None:
        self._tables = np.zeros((count, oc.ONLINE.words), np.int64)
        base, stride = self._tables.ctypes.data, self._tables.strides[0]
        bound = [(base + stride * i, part) for i in range(count) for part in (OnlineKernel.RHS, OnlineKernel.FULL)]
        self._closures = BoundKernels(routine_address(), bound)
        self.free = list(range(count))

    def take(self, context: Context) -> _FromStock:
        number = self.free.pop(0)
        rhs, full = self._closures.addresses[2 * number : 2 * number + 2]
        return _FromStock(context, self._tables[number], rhs, full, number)


@dataclass(frozen=True)
class _ReadyMode:
    """A mode with kernels and columns of the tables; ``guards``: events, subjects, directions, units, codes."""

    mode: OnlineMode
    kernels: _FromStock
    flags: int
    leaving: Sequence[int]
    guards: tuple[Sequence[Any] | npt.NDArray[Any], ...]


class PooledExecutable(OnlineExecutable):
    """Executable with free kernels and room in its tables for modes not reached yet.

    The arguments are those of :class:`~fsm_dyn.run.online.OnlineExecutable`.
    """

    _shelf: _KernelPool | None = None
    _parts: dict[tuple[int, int], tuple[Guard, ...]] | None = None
    _leaving: dict[int, tuple[Guard, ...]]
    _left = 0  # room in the tables, in modes
    _pending: frozenset[tuple[int, ...]] = frozenset()  # modes with derived kernels not in the tables yet
    _ready: dict[tuple[int, ...], _ReadyMode]
    #: mode of the run under way and evaluations made in each, by their numbers; None: no run
    under_way: Callable[[], tuple[int, Integers]] | None = None

    @cached_property
    def _lent(self) -> dict[int, int]:
        """Modes with machine code of the pool, by their numbers, longest supplied first: evaluations when looked at."""
        return {}

    @cached_property
    def _resting(self) -> dict[int, Context]:
        """Contexts of modes that gave their machine code away, by their numbers."""
        return {}

    @property
    def stocked(self) -> bool:
        """Whether a requested mode is available within the tick."""
        return self._left > 0 and (self._free > 0 or self._lendable() >= 0)

    @property
    def _free(self) -> int:
        """Kernels left in the mode pool."""
        return 0 if self._shelf is None else len(self._shelf.free) + len(self._ready) - READY

    def prepare(self) -> None:
        """Fill the mode pool; slow, before the loop begins."""
        automaton = self.automaton
        if not automaton.contacts or self._shelf is not None:
            return
        self._list_parts()
        self._ready = {}
        self._shelf = _KernelPool(STOCK + READY)
        self.tables = self._build()
        first = self.charts[0].programs.states
        self.mode_of(first).full.context()
        automaton.name_of(first)

    def check_listed(self, states: Codes, t: float) -> tuple[int, ...]:
        """Return contact states as codes; raise RunError if the model lists its modes without this one."""
        if self.automaton.mechanism.only_listed:
            return super().check_listed(states, t)
        return tuple(int(code) for code in states)

    @cached_property
    def _own(self) -> dict[tuple[int, ...], OwnKernels]:
        """Derived kernels of modes embedded online before, by contact states."""
        return {}

    def take_over(self, states: tuple[int, ...], kernels: OwnKernels, spent: Integers) -> int | None:
        """Switch a mode embedded online to derived kernels, from its next step on.

        ``spent``, int64 array: evaluations made in each mode of the tables. Returns evaluations after which the run
        uses these kernels: the present number, or ``LEAST``; None if the mode was not reached, has derived kernels
        already, or the tables have no room.
        """
        number = self._numbers.get(states, -1)
        if number < 0 or states in self._own:
            return None
        if self._left > 0:
            self.wake(number)
        if self.charts[number].full not in self._online:
            return None
        if self._shelf is None or self._left <= self._free:
            return None
        self._lent.pop(number, None)  # a mode with its own kernels keeps its machine code
        self._own[states] = kernels
        self._pending |= {states}
        self._left -= 1
        return self._allow(number, max(LEAST, int(spent[number]) - 1))

    def _allow(self, number: int, evaluations: int) -> int:
        """Set and return the number of evaluations after which a run requests kernels of a mode."""
        self.charts[number] = replace(self.charts[number], allowance=evaluations)
        self.tables.mode_allowance[number] = evaluations
        return evaluations

    def kernels_needed(self, number: int, t: float, x: Floats, c: Floats) -> Tables:
        """Enter a mode's own kernels in the tables, if they are not there yet; some 10 us."""
        chart = self.charts[number]
        states = chart.programs.states
        if states in self._pending:
            self._pending -= {states}
            self._left += 1  # reserved by take_over()
            own = self._own[states]
            self.charts.append(ModeChart(chart.mode, chart.programs, own.rhs, own.full))
            self._enter(self.charts[-1])
        return self.tables

    def reset_charts(self) -> None:
        """Keep one chart of every mode; kernels of the others return to the mode pool."""
        before = dict(self._online)
        self._pending = frozenset(self._own)
        resting = {self.charts[number].programs.states: context for number, context in self._resting.items()}
        self._resting.clear()
        super().reset_charts()
        for states, context in resting.items():
            context.chosen[0] = 0
            self._resting[self._numbers[states]] = context
        lent = [n for n, chart in enumerate(self.charts) if isinstance(self._online.get(chart.full), _FromStock)]
        self._lent.clear()
        self._lent.update({n: 0 for n in lent if self.charts[n].programs.states not in self._own})
        for states in self._own:
            self._allow(self._numbers[states], LEAST)
        for full, kernels in before.items():
            if full not in self._online and isinstance(kernels, _FromStock) and self._shelf is not None:
                self._shelf.free.append(kernels.number)
                self._shelf.free.sort()

    # -- machine code, lent to one mode after another -----------------------------------------------------------

    def _lendable(self) -> int:
        """Return the number of a mode not evaluated lately that can give its machine code away, -1: none.

        A mode evaluated since it was looked at goes to the end of the line (the clock algorithm).
        """
        if self.under_way is None:
            return -1
        present, spent = self.under_way()
        for _ in range(2 * len(self._lent)):
            number = next(iter(self._lent))
            if len(self._lent) <= RECENT:
                return -1
            made = int(spent[number]) if number < len(spent) else 0
            if self._lent[number] == made and number != present:
                return number
            self._lent[number] = -1 if number == present else made
            self._lent[number] = self._lent.pop(number)
        return -1

    def _lend(self) -> None:
        """Take the machine code of a mode not evaluated lately; the mode rests."""
        number = self._lendable()
        chart = self.charts[number]
        kernels = self._online.pop(chart.full)
        assert isinstance(kernels, _FromStock)
        assert self._shelf is not None
        del self._lent[number]
        self._resting[number] = kernels.context
        self._shelf.free.append(kernels.number)
        self.charts[number] = replace(chart, rhs=0, full=0)
        self.tables.mode_rhs[number] = 0  # a run that reaches it requests the mode

    def wake(self, number: int) -> None:
        """Give a resting mode machine code again; some 10 us."""
        if number not in self._resting or self._shelf is None:
            return
        if self._free <= 0:
            self._lend()
        kernels = self._shelf.take(self._resting.pop(number))
        chart = self.charts[number] = replace(self.charts[number], rhs=kernels.rhs, full=kernels.full)
        self._online[chart.full] = kernels
        self.tables.mode_rhs[number], self.tables.mode_full[number] = chart.rhs, chart.full
        self._lent[number] = 0

    def provide_mode(self, states: Codes, t: float, x: Floats, c: Floats) -> Tables:
        """Append the mode with these contact states, or wake it; raise RunError if the model does not list it."""
        number = self._numbers.get(tuple(int(code) for code in states), -1)
        if number not in self._resting:
            return super().provide_mode(states, t, x, c)
        self.wake(number)
        return self.tables

    def _list_parts(self) -> None:
        """List the guards of each contact in each of its states, and of each user-defined transition."""
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
        """Return the same as :func:`fsm_dyn.derive.guards.list_guards`, composed of the prepared lists."""
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
        for i in self._leaving_of(states) if self._leaving else ():
            found += self._leaving[i]
        return tuple(found)

    def mode_of(self, states: tuple[int, ...]) -> OnlineMode:
        """Return the mode with these contact states, embedded online; takes a fraction of a millisecond."""
        guards = self.list_guards(states)
        # load sharing is for reports, and a live run makes none
        return OnlineMode(states, guards, self._contexts)

    def make_ready(self, states: tuple[int, ...]) -> bool:
        """Prepare a mode that may be reached soon, between ticks, in about 0.2 ms; return whether it was missing.

        ``states``: contact states.
        """
        if self._shelf is None or states in self._numbers or states in self._ready:
            return False
        if len(self._ready) >= READY:
            oldest = self._ready.pop(next(iter(self._ready)))
            self._shelf.free.append(oldest.kernels.number)
        self._ready[states] = self._made(states)
        return True

    def _made(self, states: tuple[int, ...]) -> _ReadyMode:
        mode = self.mode_of(states)
        assert self._shelf is not None
        kernels = self._shelf.take(mode.full.context())
        return _ReadyMode(mode, kernels, *self._entries(mode))

    def _append_online(self, states: tuple[int, ...], group: int) -> None:
        if self._shelf is None or not self.stocked:
            super()._append_online(states, group)
            return
        if self._free <= 0:
            self._lend()
        made = self._ready.pop(states, None) or self._made(states)
        kernels = made.kernels
        self._lent[len(self.charts)] = 0
        self._online[kernels.full] = kernels
        chart = ModeChart(group, made.mode, kernels.rhs, kernels.full)
        self.charts.append(chart)
        self._enter(chart, (made.flags, made.leaving, made.guards))

    # -- tables with room ------------------------------------------------------------------------------------

    def _most_guards(self) -> int:
        """Return the largest number of guards of a mode."""
        parts = self._parts or {}
        most = sum(
            max(len(parts[k, code]) for code in contact.codes) for k, contact in enumerate(self.automaton.contacts)
        )
        return most + sum(len(guards) for guards in self._leaving.values())

    def _enclosures(self, counts: Sequence[int]) -> GuardEnclosures:
        shared = self.guard_enclosure if self._shelf is not None else None
        if shared is None:
            return super()._enclosures(counts)
        codes = [self._columns_of(chart.programs).enclosure for chart in self.charts]
        return guard_enclosures(codes, counts, shared.code, self._most_guards())

    def _build(self) -> Tables:
        tables = super()._build()
        if self._shelf is None:
            return tables
        self._left = ROOM - len(self._pending)
        most = max(self._most_guards(), int(tables.sizes[Sizes.MAX_GUARDS]))
        tables.sizes[Sizes.MAX_GUARDS] = most

        def roomy(array: npt.NDArray[np.generic], count: int, fill: int = 0) -> npt.NDArray[np.generic]:
            more = np.full((count, *array.shape[1:]), fill, array.dtype)
            return np.ascontiguousarray(np.concatenate([array, more]))

        changed: dict[str, Any] = {
            name: roomy(getattr(tables, name), ROOM)
            for name in ("mode_rhs", "mode_full", "mode_online", "mode_flags", "mode_group", "mode_guard_start")
        }
        changed |= {
            name: roomy(getattr(tables, name), ROOM * most)
            for name in ("guard_event", "guard_contact", "guard_direction", "guard_unit")
        }
        none = -1 if self.guard_enclosure is None else 0  # the shared code stands first
        changed |= {
            "mode_enclosure": roomy(tables.mode_enclosure, ROOM, none),
            "enclosure_room": roomy(tables.enclosure_room, ROOM),
            "guard_enclosure": roomy(tables.guard_enclosure, ROOM * most, -1),
        }
        # a tick ends with all guards known: nothing would be saved
        changed |= dict.fromkeys(("mode_core", "guard_kernels", "shape_centres"), np.zeros(0, np.int64))
        changed["mode_allowance"] = roomy(tables.mode_allowance, ROOM, NEVER)
        changed["mode_states"] = roomy(tables.mode_states, ROOM, -1)  # no contact state
        leaves = tables.transition_leaves
        changed["transition_leaves"] = np.hstack([leaves, np.zeros((len(leaves), ROOM), np.int8)])
        return tables._replace(**changed)

    def _with_last(self) -> Tables:
        return super()._with_last() if self._shelf is None else self._build()  # their room is for modes of the pool

    def _entries(self, programs: RunnableMode) -> tuple[int, Sequence[int], tuple[Any, ...]]:
        """Return flags, leaving transitions and columns of the guards of a mode."""
        guards = programs.guards
        codes = None if self.guard_enclosure is None else self.guard_enclosure.outputs(guards)
        columns = (
            [guard.event for guard in guards],
            [guard.subject for guard in guards],
            [guard.direction for guard in guards],
            self.numerics.guards(guards),
            codes,
        )
        flags = self._flags(programs, np.array(programs.states, np.int8))
        return flags, self._leaving_of(programs.states), columns

    def _enter(self, chart: ModeChart, entries: tuple[int, Sequence[int], tuple[Any, ...]] | None = None) -> None:
        """Write a chart into free rows of the tables, in place."""
        tables, number = self.tables, len(self.charts) - 1
        states, guards = chart.programs.states, chart.programs.guards
        flags, leaving, (events, subjects, directions, units, codes) = entries or self._entries(chart.programs)
        first = int(tables.mode_guard_start[number])
        last = first + len(guards)
        tables.mode_rhs[number], tables.mode_full[number] = chart.rhs, chart.full
        tables.mode_states[number] = states
        tables.mode_flags[number], tables.mode_group[number] = flags, chart.mode
        tables.mode_guard_start[number + 1] = last
        tables.guard_event[first:last], tables.guard_contact[first:last] = events, subjects
        tables.guard_direction[first:last], tables.guard_unit[first:last] = directions, units
        if codes is not None:
            tables.guard_enclosure[first:last] = codes
        tables.transition_leaves[leaving, number] = 1
        tables.sizes[Sizes.N_MODES] = number + 1
        self._numbers.setdefault(states, number)
        self._left -= 1
