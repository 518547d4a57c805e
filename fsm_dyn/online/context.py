"""Context of one mode embedded online: tables, chart, workspace.

Every mode has a context of its own, as a closure has; the address of the context is all that the kernels standing for
the mode hand on (:mod:`fsm_dyn.online.kernels`).

A *chart* is an array of integers: first where things begin in the workspace, which follows from the sizes of the
automaton and is worked out once; then which rows and speeds are taken.  Compiled code reads places from the array
because passing thirty numbers from function to function costs more than a small mechanism's evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.modes.guards import Guard
from fsm_dyn.modes.unconstrained_system import FOLLOWS as SLIP_FOLLOWED
from fsm_dyn.programs import Kernels
from fsm_dyn.runtime.abi import ONLINE_LISTS, ArenaTop, OnlineLimits, OnlinePlace, Sizes, ToleranceTable
from fsm_dyn.runtime.layouts import Online, Tables
from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation.array_structs import Bundle, Packed

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


ONLINE: Final = Bundle(Online)


_SHARED: Final = (
    "sizes", "row_role", "contact_flags", "contact_rows", "contact_outline", "row_begin", "row_columns", "mass_begin",
    "mass_columns",
)  # fmt: skip


def limits_of(tables: Tables) -> Floats:
    """Return what :attr:`Online.limits` are with the tolerances of these tables."""
    given = tables.tolerances
    limits = np.zeros(OnlineLimits.COUNT)
    limits[OnlineLimits.FLOOR], limits[OnlineLimits.KEPT] = (
        given[ToleranceTable.PIVOT],
        1.0 / given[ToleranceTable.HYSTERESIS],
    )
    limits[OnlineLimits.FOLLOWS] = SLIP_FOLLOWED * given[ToleranceTable.LENGTH_SCALE] / given[ToleranceTable.TIME_SCALE]
    limits[OnlineLimits.REDUNDANCY] = given[ToleranceTable.REDUNDANCY]
    limits[OnlineLimits.LENGTH_SCALE], limits[OnlineLimits.TIME_SCALE] = (
        given[ToleranceTable.LENGTH_SCALE],
        given[ToleranceTable.TIME_SCALE],
    )
    return limits


class Context(NamedTuple):
    """The context of one mode: arrays of :class:`Online` by name, the structure that compiled code reads, bytes."""

    chart: Integers
    state_unit: Floats
    row_unit: Floats
    limits: Floats
    packed: Packed
    memory: int


class _Plan(NamedTuple):
    """How the context of a mode with so many guards lies in one block of words, the structure behind the arrays."""

    words: int
    places: dict[str, slice]  # of the arrays
    structure: Integers
    own: Integers  # words of the structure that are addresses in the block
    chart: Integers


class Contexts:
    """Makes contexts for the modes of one automaton; what they have in common is described once.

    Parameters
    ----------
    tables : Tables
        Any of the automaton's.
    kernels : Kernels
        ``rows motion watched`` (:mod:`fsm_dyn.online.term_programs`).
    """

    def __init__(self, tables: Tables, kernels: Kernels) -> None:
        self.tables, self.kernels = tables, kernels
        self._shared = {name: getattr(tables, name) for name in _SHARED} | {"programs": kernels.addresses}
        self._plans: dict[int, _Plan] = {}
        self.use(tables)

    def use(self, tables: Tables) -> None:
        """Give contexts the tolerances and units of these tables from now on."""
        self._units, self._row_units, self._limits = tables.state_unit, tables.row_unit, limits_of(tables)

    def new(self, states: Sequence[int], guards: Sequence[Guard]) -> Context:
        """Return a context of the mode with these contact states and guards, nothing chosen in it yet."""
        plan = self._plan(len(guards))
        block = np.zeros(plan.words + len(plan.structure), np.int64)
        structure = block[plan.words :]
        structure[:] = plan.structure
        structure[plan.own] += block.ctypes.data
        floats = block.view(np.float64)
        first = 8 * plan.places["states"].start
        block.view(np.int8)[first : first + len(states)] = states
        if guards:
            block[plan.places["guard_quantity"]] = [guard.quantity for guard in guards]
            block[plan.places["guard_subject"]] = [guard.subject for guard in guards]
            floats[plan.places["guard_sign"]] = [guard.sign for guard in guards]
        units, row_units, limits = (floats[plan.places[name]] for name in ("state_unit", "row_unit", "limits"))
        units[:], row_units[:], limits[:] = self._units, self._row_units, self._limits
        chart = block[plan.places["chart"]]
        chart[:] = plan.chart
        packed = Packed(structure.ctypes.data, structure, (block, self._shared))
        return Context(chart, units, row_units, limits, packed, block.nbytes)

    def _plan(self, guards: int) -> _Plan:
        if guards not in self._plans:
            self._plans[guards] = self._new_plan(guards)
        return self._plans[guards]

    def _new_plan(self, guards: int) -> _Plan:
        sizes = self.tables.sizes
        lengths = array_lengths(sizes, len(self.tables.mass_columns), guards)
        room = room_lengths(sizes, guards)
        lengths |= {"room": sum(room)}
        chart = np.zeros(lengths["chart"], np.int64)
        chart[1 : OnlinePlace.PLACES] = np.cumsum(room)[:-1]
        structure: list[int] = []
        own: list[int] = []
        places: dict[str, slice] = {}
        words = 0
        for name in Online._fields:
            if name in self._shared:
                structure += (self._shared[name].ctypes.data, *self._shared[name].shape)
                continue
            own.append(len(structure))
            structure += (8 * words, lengths[name])
            places[name] = slice(words, words + lengths[name])
            words += lengths[name] if name != "states" else 1 + lengths[name] // 8
        return _Plan(words, places, np.array(structure, np.int64), np.array(own), chart)


def room_lengths(sizes: Integers, guards: int) -> list[int]:
    """Lengths of what the workspace holds, in the order of the constants above."""
    n_q, U, K, R, C, W = (
        int(sizes[i])
        for i in (
            Sizes.N_Q,
            Sizes.N_U,
            Sizes.N_K,
            Sizes.N_ROWS,
            Sizes.N_CONTACTS,
            Sizes.N_TRANSITIONS,
        )
    )
    rows = [R * U, R]
    motion = [n_q, U * U, U, R, C, C]
    watch = [C, R, W, C, C, C, C, K * U, K, R * K]
    scratch = [n_q + U, R * (U + 2), R * U, R * U, U * U, U * U, U, U, U, U, R, 2 * R * R, n_q + U]
    return [*rows, *motion, *watch, *scratch, tb.context_length(sizes), 2 * guards, 2 * C, 2 * U]


def array_lengths(sizes: Integers, masses: int, guards: int) -> dict[str, int]:
    """Lengths of the arrays of a mode; ``masses``: entries of the mass matrix that can differ from zero."""
    R, U, C = (int(sizes[i]) for i in (Sizes.N_ROWS, Sizes.N_U, Sizes.N_CONTACTS))
    D = min(R, U)  # rows held that are independent
    wide = 2 * (R + guards) + 4
    return {
        "states": C, "guard_quantity": guards, "guard_subject": guards, "guard_sign": guards,
        "state_unit": int(sizes[Sizes.N_Q]) + U, "row_unit": R, "limits": OnlineLimits.COUNT,
        "chart": ONLINE_LISTS + 2 * R + U + C,
        "held_begin": D + 1, "held_behind": D, "held_rest": D, "held_columns": D * U,
        "below_begin": D + 1, "below_rows": D * D, "tied_begin": U + 1, "tied_columns": masses,
        "moved_begin": U + 1, "moved_columns": U * U,
        "reduced_begin": U + 1, "reduced_behind": U, "reduced_columns": U * U, "place": U, "extent": 2 * R + 4 * U,
        # the laws on forces and the simplex table of the widest margin, see runtime/feasibility.c
        "floats": guards * (R + 1) + (guards + 2) * wide + R, "integers": guards + 1, "top": ArenaTop.COUNT,
    }  # fmt: skip
