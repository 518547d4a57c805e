"""Modes embedded online: context, evaluator and kernels of each."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.automaton.hybrid_automaton import Automaton, DerivedMode
from fsm_dyn.core.arrays import Codes, Floats, Integers
from fsm_dyn.core.errors import ModelError
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.embedding import ActiveSet
from fsm_dyn.derive.guards import Guard, ListedGuards, guard_catalogue, guards_of_state, list_guards
from fsm_dyn.derive.mode_programs import ModePrograms, RunnableMode
from fsm_dyn.derive.unconstrained_system import FOLLOWS as SLIP_FOLLOWED
from fsm_dyn.derive.unconstrained_system import UnconstrainedSystem
from fsm_dyn.programs.enclosure_code import EnclosureCode, enclosure_code
from fsm_dyn.programs.graph import gc_paused
from fsm_dyn.programs.kernels import OPTIMISATION, SELDOM_RUN, Kernels, compile_programs
from fsm_dyn.programs.program import Only, Program
from fsm_dyn.run import structures as st
from fsm_dyn.run.executable import NO_MODES, DerivedModes, Executable, ModeChart, is_long, program_memory
from fsm_dyn.run.structures import Bundle, GuardEnclosures, Packed, guard_enclosures
from fsm_dyn.run.tolerances import Numerics, Tolerances
from fsm_dyn.runtime import library
from fsm_dyn.runtime.abi import (
    NEVER,
    ONLINE_CHOICE_COUNT,
    ONLINE_LISTS,
    ArenaTop,
    ContactFlag,
    Event,
    GuardQuantity,
    OnlineChoice,
    OnlineKernel,
    OnlineLimits,
    OnlinePlace,
    RowRole,
    Sizes,
    ToleranceTable,
)
from fsm_dyn.runtime.layouts import Online, Tables

# -- Context of one mode embedded online: tables, chart, workspace -------------------------------------------
#
# Every mode has a context of its own, as a closure has; the address of the context is all that the kernels standing
# for the mode hand on (:mod:`fsm_dyn.run.kernels`).
#
# A *chart* is an array of integers: first where things begin in the workspace, which follows from the sizes of the
# automaton and is worked out once; then which rows and speeds are taken. Compiled code reads places from the array
# because passing thirty numbers from function to function costs more than a small mechanism's evaluation.


ONLINE: Final = Bundle(Online)


_SHARED: Final = (
    "sizes", "row_role", "contact_flags", "contact_rows", "contact_outline", "row_begin", "row_columns", "mass_begin",
    "mass_columns",
)  # fmt: skip


def limits_of(tables: Tables) -> Floats:
    """Return :attr:`Online.limits` with the tolerances of these tables."""
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


#: Arrays of a mode's own where modes share the others.
_OWN: Final = ("states", "guard_quantity", "guard_subject", "guard_sign", "limits", "kept")


class Context(NamedTuple):
    """The context of one mode."""

    chosen: Integers  # int64 array: what it chose, from ``OnlineChoice.CHOSEN`` on
    places: dict[str, slice]  # arrays of :class:`Online` in its block of words
    packed: Packed  # the structure for compiled code; the first of its arrays is the block
    memory: int  # of its own, bytes

    def disown(self) -> None:
        """Let no mode own the arrays shared with others."""
        common = self.packed.arrays[2]
        if common is not None:
            common.arrays[0][-1] = 0

    def use(self, tables: Tables) -> None:
        """Take over the tolerances and units of tables."""
        units = {"state_unit": tables.state_unit, "row_unit": tables.row_unit, "limits": limits_of(tables)}
        _write(self.packed.arrays[0], self.places, units)


class _Plan(NamedTuple):
    """How the context of a mode lies in one block of words, the structure behind the arrays."""

    words: int
    places: dict[str, slice]  # of the arrays
    structure: Integers
    own: Integers  # words of the structure with addresses in the block
    common: Integers  # words of the structure of arrays shared by modes: addresses, lengths
    at: dict[str, int]  # offsets of arrays in the structure
    chart: Integers  # beginning of the chart


class Contexts:
    """Makes contexts for the modes of one automaton; their common parts are described once.

    ``tables``: any of the automaton's; ``kernels``: ``rows motion watched`` (:mod:`fsm_dyn.run.online`).
    """

    def __init__(self, tables: Tables, kernels: Kernels) -> None:
        self.tables, self.kernels = tables, kernels
        self._shared = {name: getattr(tables, name) for name in _SHARED} | {"programs": kernels.addresses}
        self._plans: dict[tuple[int, int], _Plan] = {}
        self._common: tuple[int, dict[str, slice], Packed] | None = None
        self._guards = st.GuardNumbers(lambda guard: (int(guard.quantity), guard.subject, guard.sign))
        self.use(tables)

    def use(self, tables: Tables) -> None:
        """Give contexts the tolerances and units of these tables from now on."""
        self._units = {"state_unit": tables.state_unit, "row_unit": tables.row_unit, "limits": limits_of(tables)}
        if self._common is not None:
            _write(self._common[2].arrays[0], self._common[1], self._units)

    def new(self, states: Codes, guards: Sequence[Guard], alone: bool = True) -> Context:
        """Return a context of the mode with these contact states and guards, nothing chosen in it yet.

        Workspace and lists are common to the modes of a run, which keep what they chose; one evaluated ``alone``, as
        in another thread, has its own.
        """
        plan = self._plan(len(guards), -1 if alone else self._kept_length(states))
        block = np.zeros(plan.words + len(plan.structure), np.int64)
        structure = block[plan.words :]
        structure[:] = plan.structure
        structure[plan.own] += block.ctypes.data
        common: Packed | None = None
        if not alone:
            common = self._common_arrays(guards)
            structure[plan.common] = common.table[plan.common]
        first = 8 * plan.places["states"].start
        block.view(np.int8)[first : first + len(states)] = states
        if guards:
            columns = self._guards.of(guards).T
            block[plan.places["guard_quantity"]] = columns[0]
            block[plan.places["guard_subject"]] = columns[1]
            block.view(np.float64)[plan.places["guard_sign"]] = columns[2]
        _write(block, plan.places, self._units)
        if alone:
            block[plan.places["chart"]][: len(plan.chart)] = plan.chart
        chosen = block[plan.places["chart"]][OnlineChoice.CHOSEN :] if alone else block[plan.places["kept"]]
        packed = Packed(structure.ctypes.data, structure, (block, self._shared, common))
        return Context(chosen, plan.places, packed, block.nbytes)

    def _kept_length(self, states: Codes) -> int:
        """Return how many words a mode keeps of its chart, at the most."""
        sizes = self.tables.sizes
        rows = 3 * int(np.count_nonzero(states)) + int(np.count_nonzero(self.tables.row_role != RowRole.CONTACT))
        return ONLINE_CHOICE_COUNT + rows + int(sizes[Sizes.N_U])

    def _common_arrays(self, guards: Sequence[Guard]) -> Packed:
        """Return the structure of the arrays that modes share, with room for as many guards as any has."""
        most = guards.catalogue.most if isinstance(guards, ListedGuards) else len(guards)
        if self._common is None or self._common[0] < most:
            plan = self._plan(most, -1)
            block = np.zeros(plan.words + 1, np.int64)
            table = plan.structure.copy()
            table[plan.own] += block.ctypes.data
            at = plan.at["owner"]
            table[at : at + 2] = block.ctypes.data + 8 * plan.words, 1
            _write(block, plan.places, self._units)
            block[plan.places["chart"]][: len(plan.chart)] = plan.chart
            self._common = most, plan.places, Packed(0, table, (block,))
        return self._common[2]

    def _plan(self, guards: int, kept: int) -> _Plan:
        """Return the plan of a context; ``kept``: -1, all arrays are its own, or words kept of its chart."""
        if (guards, kept) not in self._plans:
            self._plans[guards, kept] = self._new_plan(guards, kept)
        return self._plans[guards, kept]

    def _new_plan(self, guards: int, kept: int) -> _Plan:
        sizes = self.tables.sizes
        lengths = array_lengths(self.tables, guards)
        room = room_lengths(sizes, guards)
        lengths |= {"room": sum(room), "owner": 0, "kept": max(kept, 0)}
        chart = np.zeros(OnlinePlace.PLACES, np.int64)
        chart[1:] = np.cumsum(room)[:-1]
        structure: list[int] = []
        own: list[int] = []
        common: list[int] = []
        at: dict[str, int] = {}
        places: dict[str, slice] = {}
        words = 0
        for name in Online._fields:
            at[name] = len(structure)
            if name in self._shared:
                structure += (self._shared[name].ctypes.data, *self._shared[name].shape)
                continue
            if kept >= 0 and name not in _OWN:
                common += (len(structure), len(structure) + 1)
                structure += (0, 0)
                continue
            own.append(len(structure))
            structure += (8 * words, lengths[name])
            places[name] = slice(words, words + lengths[name])
            words += lengths[name] if name != "states" else 1 + lengths[name] // 8
        return _Plan(words, places, np.array(structure, np.int64), np.array(own), np.array(common, np.int64), at, chart)


def _write(block: Integers, places: Mapping[str, slice], numbers: Mapping[str, Floats]) -> None:
    """Write numbers into the arrays of these names, as far as a block has them."""
    for name, values in numbers.items():
        if name in places:
            block.view(np.float64)[places[name]] = values


def room_lengths(sizes: Integers, guards: int) -> list[int]:
    """Lengths of the arrays in the workspace, in the order of the constants above."""
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
    return [*rows, *motion, *watch, *scratch, st.context_length(sizes), 2 * guards, 2 * C, 2 * U]


def array_lengths(tables: Tables, guards: int) -> dict[str, int]:
    """Lengths of the arrays of a mode."""
    sizes, masses = tables.sizes, len(tables.mass_columns)
    circles = int(((tables.contact_flags & ContactFlag.IN_SPACE) != 0).sum())  # laws of three rows in a mode, at most
    R, U, C = (int(sizes[i]) for i in (Sizes.N_ROWS, Sizes.N_U, Sizes.N_CONTACTS))
    D = min(R, U)  # independent active rows
    wide = 2 * (R + guards) + 4
    laws = guards + 2 * circles + 1 if circles else 0
    cones = laws * (3 * (R + 1) + 12) + 3 * (R + 1) * (R + 3)
    return {
        "states": C, "guard_quantity": guards, "guard_subject": guards, "guard_sign": guards,
        "state_unit": int(sizes[Sizes.N_Q]) + U, "row_unit": R, "limits": OnlineLimits.COUNT,
        "chart": ONLINE_LISTS + 2 * R + U + C,
        "held_begin": D + 1, "held_behind": D, "held_rest": D, "held_columns": D * U,
        "below_begin": D + 1, "below_rows": D * D, "tied_begin": U + 1, "tied_columns": masses,
        "moved_begin": U + 1, "moved_columns": U * U,
        "reduced_begin": U + 1, "reduced_behind": U, "reduced_columns": U * U, "place": U, "extent": 2 * R + 4 * U,
        # laws on forces with the simplex table of the widest margin, see runtime/contact_problem.c, or its cone program
        # of three rows for a circle, see runtime/complementarity.c
        "floats": max(guards * (R + 1) + (guards + 2) * wide, cones) + R, "integers": 2 * (guards + laws + R) + 4,
        "top": ArenaTop.COUNT,
    }  # fmt: skip


# -- Mode embedded online: context, evaluator and kernels ----------------------------------------------------

Place = tuple[float, Floats, Floats]

OPEN = 1e-9  # share of a row in forces without effect, above which its multiplier is not determined

_OUTPUTS = ("x_dot", "u", "pivot", "guards", "slopes", "multipliers")
_ROUTINE = ctypes.CFUNCTYPE(ctypes.c_int64, *2 * [ctypes.c_int64], ctypes.c_double, *3 * [ctypes.c_int64])


def routine_address() -> int:
    """Return the address of the routine behind all modes embedded online."""
    return library.address("fsm_online_evaluate")


@dataclass(frozen=True, eq=False)
class OnlineFull:
    """Substitutes for the full program of a mode.

    ``contexts`` makes its memory; ``states``: of its contacts, int8.
    """

    states: Codes
    guards: Sequence[Guard]
    contexts: Contexts

    def context(self, alone: bool = True) -> Context:
        """Return a context of the mode, nothing chosen in it yet; see :meth:`Contexts.new`."""
        return self.contexts.new(self.states, self.guards, alone)

    def evaluate(self, t: Any, x: Any, c: Any, only: Only | None = None) -> dict[str, Floats]:
        """Return the outputs of a full program by name, at many states, each in a chart chosen there.

        ``t``, array-like, shape (...,): times, s; ``x``, ``c``, array-like, shapes (..., n_x), (..., n_c); ``only``: if
        guards are not among them, they and their slopes, differences of some evaluations, are left out.
        """
        if only is not None and self.guards and not {"guards", "slopes"} & only.keys():
            return replace(self, guards=()).evaluate(t, x, c)
        x, c = np.asarray(x, np.float64), np.asarray(c, np.float64)
        shape = np.broadcast_shapes(np.shape(t), x.shape[:-1], c.shape[:-1])
        times = np.broadcast_to(np.asarray(t, np.float64), shape).ravel()
        states = np.ascontiguousarray(np.broadcast_to(x, (*shape, x.shape[-1]))).reshape(len(times), -1)
        contexts = np.ascontiguousarray(np.broadcast_to(c, (*shape, c.shape[-1]))).reshape(len(times), -1)
        s, n_g = self.contexts.tables.sizes, len(self.guards)
        n_u, n_x = int(s[Sizes.N_U]), int(s[Sizes.N_Q] + s[Sizes.N_U])
        out = np.zeros((len(times), n_x + n_u + 1 + 2 * n_g + int(s[Sizes.N_ROWS])))
        context = self.context()
        call = _ROUTINE(routine_address())
        at = (states.ctypes.data, contexts.ctypes.data, out.ctypes.data)
        for i, time in enumerate(times):
            context.chosen[0] = 0
            rows = (base + i * array.strides[0] for base, array in zip(at, (states, contexts, out), strict=True))
            call(context.packed.address, OnlineKernel.FULL, time, *rows)
        parts = np.split(out, np.cumsum([n_x, n_u, 1, n_g, n_g]), axis=1)
        return {name: part.reshape(*shape, -1) for name, part in zip(_OUTPUTS, parts, strict=True)}


class ModeEvaluator:
    """Evaluates a mode at one state after another in one context, as a run does, in one chart while this is valid."""

    def __init__(self, full: OnlineFull) -> None:
        s, n_g = full.contexts.tables.sizes, len(full.guards)
        n_u, n_x = int(s[Sizes.N_U]), int(s[Sizes.N_Q] + s[Sizes.N_U])
        self._context = full.context()
        self._call = _ROUTINE(routine_address())
        self._out = np.zeros(n_x + n_u + 1 + 2 * n_g + int(s[Sizes.N_ROWS]))
        self._ends = np.cumsum([n_x, n_u, 1, n_g, n_g])
        self._kept = full.contexts

    def __call__(self, t: float, x: Floats, c: Floats) -> dict[str, Floats]:
        """Return the outputs of a full program by name at a time (s), state and context."""
        x, c = np.ascontiguousarray(x, np.float64), np.ascontiguousarray(c, np.float64)
        self._call(
            self._context.packed.address, OnlineKernel.FULL, t, x.ctypes.data, c.ctypes.data, self._out.ctypes.data
        )
        return dict(zip(_OUTPUTS, np.split(self._out.copy(), self._ends), strict=True))

    @property
    def redundant(self) -> bool:
        """Whether constraint rows were redundant at the state evaluated last."""
        return bool(self._chosen(OnlineChoice.ACTIVE) > self._chosen(OnlineChoice.RANK))

    def _chosen(self, which: int) -> int:
        return int(self._context.chosen[which - OnlineChoice.CHOSEN])


class OnlineMode:
    """Mode without programs of its own: states, guards, evaluator, redundant rows.

    ``states``: contact states; ``contexts``: makes the memory of an evaluator; ``find_indeterminate``: returns
    :attr:`indeterminate`.
    """

    def __init__(
        self,
        states: tuple[int, ...],
        guards: Sequence[Guard],
        contexts: Contexts,
        find_indeterminate: Callable[[], tuple[int, ...]] = tuple,
    ) -> None:
        self.states, self.guards = states, guards
        self.full = OnlineFull(np.array(states, np.int8), guards, contexts)
        self._find_indeterminate = find_indeterminate

    @cached_property
    def indeterminate(self) -> tuple[int, ...]:
        """Rows with multipliers exchangeable for others."""
        return self._find_indeterminate()

    @classmethod
    def of(cls, automaton: Automaton, states: tuple[int, ...], contexts: Contexts, home: tuple[Floats, Floats]) -> Self:
        """Describe the mode with these contact states; ``home``: state and context near which its contacts touch."""
        transitions = automaton.mechanism.transitions
        leaving = automaton.outgoing_transitions(automaton.name_of(states)) if transitions else []

        def indeterminate() -> tuple[int, ...]:
            x, c = home
            return indeterminate_rows(automaton, states, (0.0, automaton.touching(states, 0.0, x, c), c))

        guards = guard_catalogue(automaton.system).of(np.array(states, np.int8), leaving)
        return cls(states, guards, contexts, indeterminate)


class OnlineKernels:
    """What the runtime calls for a mode, by its address."""

    def __init__(self, mode: OnlineMode) -> None:
        self.context = mode.full.context(alone=False)
        self.context.disown()  # memory of a mode before may have had this address
        self.address = self.rhs = self.full = self.context.packed.address

    @property
    def choices(self) -> int:
        """How often a chart was chosen so far."""
        return int(self.context.chosen[OnlineChoice.CHOICES - OnlineChoice.CHOSEN])

    @property
    def memory(self) -> int:
        """Memory of the mode, bytes."""
        return self.context.memory

    def use(self, tables: Tables) -> None:
        """Take over the tolerances of tables."""
        self.context.use(tables)

    def forget(self) -> None:
        """Let a chart be chosen at the next evaluation of the mode."""
        self.context.chosen[0] = 0
        self.context.disown()


def indeterminate_rows(automaton: Automaton, states: tuple[int, ...], place: Place) -> tuple[int, ...]:
    """Rows of the mode whose forces others can take over."""
    active = ActiveSet.of(automaton.system, states)
    if not active.rows:
        return ()
    terms = automaton.terms.evaluate(*place, only={"M": None, "A": list(active.rows)})
    n = len(automaton.terms.layout.u)
    inertia = np.diagonal(terms["M"])[:n]
    rows = terms["A"][:, :n] / np.sqrt(np.where(inertia > 0.0, inertia, 1.0))
    sizes = np.linalg.norm(rows, axis=1, keepdims=True)
    left, values, _ = np.linalg.svd(rows / np.where(sizes > 0.0, sizes, 1.0))
    idle = left[:, int(np.sum(values > OPEN)) :]
    return tuple(
        row for row, share in zip(active.rows, np.abs(idle).max(axis=1, initial=0.0), strict=True) if share > OPEN
    )


# -- Enclosures of the guards of modes embedded online: one program for all of them -----------------
#
# Quantities of the state alone are the same in every mode. Forces are not: the runtime solves for them, from
# enclosures of the terms common to all modes (``runtime/force_enclosure.c``).

#: Quantities of guards on forces; they are solved for from the terms of the unconstrained system, in this order.
_FORCES = (GuardQuantity.NORMAL_FORCE, GuardQuantity.FRICTION_LIMIT, GuardQuantity.FRICTION_CIRCLE,
           GuardQuantity.HOLDING_LIMIT)  # fmt: skip
# Behind these terms follow the parts of the unit slip of contacts in space.
_TERMS = ("A", "M", "f", "gamma", "elastic", "kinetic", "static")


@dataclass(frozen=True)
class OnlineEnclosure:
    """The code of enclosures of the guards of any mode, and the value for each quantity, subject and sign."""

    code: EnclosureCode
    values: dict[tuple[GuardQuantity, int, float], int]

    def outputs(self, guards: Sequence[Guard]) -> Integers:
        """Return the values of a mode's guards: numbers below -1 are codes of quantities of forces."""
        return self._known.of(guards).reshape(-1).astype(np.int64)

    @cached_property
    def _known(self) -> st.GuardNumbers:
        return st.GuardNumbers(lambda guard: (self._output(guard),))

    def _output(self, guard: Guard) -> int:
        if guard.quantity in _FORCES:
            return -2 - 2 * int(guard.quantity) - int(guard.sign > 0.0) if self.code.unknowns else -1
        return self.values.get((guard.quantity, guard.subject, guard.sign), -1)

    def of(self, guards: Sequence[Guard]) -> EnclosureCode:
        """Return the code with the outputs of a mode."""
        return self.code._replace(outputs=self.outputs(guards))


def online_enclosure(system: UnconstrainedSystem) -> OnlineEnclosure | None:
    """Return the enclosure of the guards of modes embedded online; None if there are none, or too many operations."""
    with gc_paused(), system.graph.scratch():
        found = guards_of_state(system)
        guards = {"guards": list(found.values())}
        code = enclosure_code(Program.from_nodes(system.layout, guards | _terms(system)))
        if code is None:
            code = enclosure_code(Program.from_nodes(system.layout, guards), "guards")
        elif len(system.rows):
            n, rows = len(system.layout.u), len(system.rows)
            code = code.with_terms(code.outputs[len(found) :], n + min(n, rows))
    return None if code is None else OnlineEnclosure(code, dict(zip(found, code.outputs.tolist(), strict=False)))


def _terms(system: UnconstrainedSystem) -> dict[str, NDArray[np.object_]]:
    """Return the entries of the terms from which forces are solved for."""
    n, zero = len(system.layout.u), system.graph.constant(0.0)
    nodes = {name: np.asarray(system.nodes[name], dtype=object) for name in _TERMS if name in system.nodes}
    none = np.full(len(system.contacts), zero, dtype=object)
    A, M, f = nodes["A"][:, :n], nodes["M"][:n, :n], nodes["f"][:n]
    directions = np.full((2, len(system.contacts)), zero, dtype=object)
    for k, contact in enumerate(system.contacts):
        if contact.in_space:
            directions[:, k] = [part for _, part in system.slip_directions(k)]
    return {"A": A, "M": M, "f": f} | {name: nodes.get(name, none) for name in _TERMS[3:]} | {"slip": directions}


# -- Programs of the unconstrained terms, cut into three for online embedding ---------------------
#
# ``rows`` (A, b) depends on the configuration alone and gives the dependent speeds; ``motion`` is the part for
# accelerations; ``watched`` the part for forces and guards too, evaluated at the ends of steps only.


def online_programs(terms: Program) -> tuple[Program, Program, Program]:
    """Cut the terms program into ``rows``, ``motion`` and ``watched``, in the order of ``Online.programs``.

    ``terms``: outputs of Kane's unconstrained terms.
    """
    layout = terms.layout
    n = len(layout.u)
    graph, _symbols, nodes = terms.graph()
    A, M, f = nodes["A"], nodes["M"], nodes["f"]
    rows = {"A": A[:, :n], "b": nodes["b"]}
    motion = {"q_dot": nodes["q_dot"], "M": M[:n, :n], "f": f[:n]}
    none = np.full(len(nodes["kinetic"]), graph.constant(0.0), dtype=object)
    motion |= {name: nodes.get(name, none) for name in ("gamma", "kinetic", "elastic")}
    named = ("static", "residual", "when", "reach", "reach_rate", "firm", "aspect")
    watch = {name: nodes.get(name, none) for name in named}
    watch |= {"hidden_M": M[n:, :n], "hidden_f": f[n:], "hidden_A": A[:, n:]}
    first, second, third = (Program.from_nodes(layout, outputs) for outputs in (rows, motion, motion | watch))
    return first, second, third


# -- Executable whose modes, all or those not derived, are embedded online -----------------------------------


class OnlineExecutable(Executable):
    """Executable without derivation during a run, unless a subclass grants an allowance.

    Its modes keep charts and workspace, so one run at a time may use it. ``automaton``, ``home``, ``tolerances``,
    ``known``: as for :class:`~fsm_dyn.run.executable.Executable`. ``derived``: modes with their own kernels; all others
    are embedded online.
    """

    def __init__(
        self,
        automaton: Automaton,
        home: tuple[Floats, Floats] | None = None,
        tolerances: Tolerances | None = None,
        derived: Sequence[DerivedMode] = (),
        known: DerivedModes | None = None,
    ) -> None:
        derived = [mode for mode in derived if not mode.programs.shares_in_space(automaton.contacts)]
        self._sets = [mode.states for mode in derived]
        self._online: dict[int, OnlineKernels] = {}  # by the address of the full kernel
        super().__init__(automaton, home, tolerances, derived, known)

    def reset_charts(self) -> None:
        """Keep one chart of every mode, and none of the choices made in runs before."""
        super().reset_charts()
        if not self._online:
            return
        self._online = {chart.full: self._online[chart.full] for chart in self.charts if chart.full in self._online}
        for kernels in self._online.values():
            kernels.forget()

    def use(self, numerics: Numerics) -> None:
        """Let the next run have these tolerances."""
        if numerics is not self.numerics:
            super().use(numerics)
            self._contexts.use(self.tables)
            for kernels in self._online.values():
                kernels.use(self.tables)

    def provide_mode(self, states: Codes, t: float, x: Floats, c: Floats) -> Tables:
        """Append the mode with these contact states; raise RunError if the model does not list it."""
        codes = self.check_listed(states, t)
        self._sets.append(codes)
        self._append_online(codes, len(self._sets) - 1)
        return self.tables

    def own_kernels(self) -> list[int]:
        """Return the addresses of the rates of all modes with kernels."""
        return [chart.rhs for chart in self.charts if chart.full not in self._online]

    @property
    def memory(self) -> int:
        """Memory of the modes embedded online, bytes."""
        return sum(kernels.memory for kernels in self._online.values())

    def online_modes(self) -> Integers:
        """Addresses of the modes embedded online by their numbers, 0 for those with kernels of their own."""
        if not self._online:
            return NO_MODES
        online = [self._online.get(chart.full) for chart in self.charts]
        return np.array([0 if kernels is None else kernels.address for kernels in online], np.int64)

    def _add_chart(self, number: int, t: float, x: Floats, c: Floats) -> bool:
        """Append an online chart of a mode whose own kernels degenerate at a state; there is but one."""
        group = self.charts[number].mode
        if any(chart.mode == group and chart.full in self._online for chart in self.charts):
            return False
        self._append_online(self.charts[number].programs.states, group)
        return True

    @cached_property
    def guard_enclosure(self) -> OnlineEnclosure | None:
        """Enclosures of the guards of modes embedded online."""
        return online_enclosure(self.automaton.system)

    def _enclosure(self, programs: RunnableMode) -> EnclosureCode | None:
        if isinstance(programs, OnlineMode) and self.guard_enclosure is not None:
            return self.guard_enclosure.of(programs.guards)
        return super()._enclosure(programs)

    @cached_property
    def _contexts(self) -> Contexts:
        terms = self.automaton.terms
        level = SELDOM_RUN if is_long(terms) else OPTIMISATION
        with gc_paused():
            kernels = compile_programs(online_programs(terms), keep_zeros=True, optimisation=level)
        return Contexts(self.tables, kernels)

    def _append_online(self, states: tuple[int, ...], group: int) -> None:
        """Append a mode embedded online: a chart of active set number ``group``."""
        # its home is not where this run happens to meet it: the mode stays for later runs
        mode = OnlineMode.of(self.automaton, states, self._contexts, self.home)
        own = OnlineKernels(mode)
        self._online[own.full] = own
        self.charts.append(ModeChart(group, mode, own.rhs, own.full, self.allowance(mode), online=own.address))
        self.tables = self._with_last()

    def _sizes(self, counts: Sequence[int]) -> Integers:
        sizes = super()._sizes(counts)
        if self._online:
            sizes[Sizes.MAX_GUARDS] = max(sizes[Sizes.MAX_GUARDS], guard_catalogue(self.automaton.system).most)
        return sizes

    def _enclosures(self, counts: Sequence[int]) -> GuardEnclosures:
        shared = self.guard_enclosure if self._online else None
        if shared is None:
            return super()._enclosures(counts)
        codes = [self._columns_of(chart.programs).enclosure for chart in self.charts]
        return guard_enclosures(codes, counts, shared.code, guard_catalogue(self.automaton.system).most)

    def allowance(self, mode: OnlineMode) -> int:
        """Return after how many evaluations in a run a mode embedded online has earned kernels of its own."""
        return NEVER


class CompiledExecutable(OnlineExecutable):
    """Executable whose modes have kernels, except those whose contacts share friction in space."""

    def __init__(self, automaton: Automaton, home: tuple[Floats, Floats], known: DerivedModes) -> None:
        super().__init__(automaton, home, derived=automaton.modes, known=known)

    def provide_mode(self, states: Codes, t: float, x: Floats, c: Floats) -> Tables:
        """Derive and append the mode with these contact states; raise RunError if the model does not list it."""
        codes = self.check_listed(states, t)
        mode = self.derived(codes)
        self.automaton = self.automaton.with_mode(mode)
        self._sets.append(codes)
        self._append(len(self._sets) - 1, mode.programs)
        return self.tables

    def without_online(self) -> Executable:
        """Return an executable of the modes with derived kernels, with all their charts."""
        own = [chart.programs for chart in self.charts if isinstance(chart.programs, ModePrograms)]
        order = list(dict.fromkeys(programs.states for programs in own))
        modes = {mode.states: mode for mode in self.automaton.modes}
        found = Executable(self.automaton, self.home, modes=[modes[states] for states in order], known=self.known)
        found.use(self.numerics)
        for programs in own:
            if programs is not modes[programs.states].programs:
                found._append(order.index(programs.states), programs)
        return found

    @property
    def memory(self) -> int:
        """Memory of the modes reached since the executable was made, bytes."""
        return sum(program_memory(mode.programs) for mode in self.automaton.modes[self._given :]) + super().memory

    def _add_chart(self, number: int, t: float, x: Floats, c: Floats) -> bool:
        """Append a chart of a mode; one embedded online is valid in any state."""
        group = self.charts[number].mode
        if any(chart.mode == group and chart.full in self._online for chart in self.charts):
            return False
        return Executable._add_chart(self, number, t, x, c)

    def _append(self, mode: int, programs: ModePrograms) -> None:
        if programs.shares_in_space(self.automaton.contacts):
            self._append_online(programs.states, mode)
        else:
            super()._append(mode, programs)


# -- Modes embedded online when they are reached, and derived when they are evaluated often ------------------
#
#
# Online embedding is available at once. Its evaluations cost more than those of kernels, and kernels cost a
# derivation. A mode gets kernels when its evaluations have cost as much as its share of the derivation: to rent until
# the rent equals the price, and then to buy, costs at most twice the optimum (Karlin, Manasse, Rudolph and Sleator,
# "Competitive snoopy caching", 1988). Costs are counts: evaluations made in this run, and operations of the model.
# They are independent of the clock, of caches and of earlier runs, so the same run uses the same kernels from the
# same steps.

RUNS = 10  # runs among which the cost of a derivation is divided
_FITTED = 1200  # entries of rows up to which all are counted; of more, those that can differ from zero


class EarnedExecutable(OnlineExecutable):
    """Executable whose modes get kernels of their own after a number of evaluations in a run.

    ``automaton``, ``home``, ``tolerances``, ``derived``, ``known``: as for
    :class:`~fsm_dyn.run.online.OnlineExecutable`. ``derive_after``: evaluations after which a mode embedded online is
    derived, by default :func:`usual_allowance`; or these by the names of modes, of which others are never derived.
    """

    modes_rest = True

    def __init__(
        self,
        automaton: Automaton,
        home: tuple[Floats, Floats] | None = None,
        tolerances: Tolerances | None = None,
        derived: Sequence[DerivedMode] = (),
        known: DerivedModes | None = None,
        derive_after: float | Mapping[str, float] | None = None,
    ) -> None:
        self._by_name = derive_after if isinstance(derive_after, Mapping) else None
        if isinstance(derive_after, Mapping):
            self._derive_after = NEVER
        else:
            self._derive_after = usual_allowance(automaton) if derive_after is None else int(derive_after)
        self._refused: set[tuple[int, ...]] = set()  # modes without own kernels
        super().__init__(automaton, home, tolerances, derived, known)

    def allowance(self, mode: OnlineMode) -> int:
        """Return after how many evaluations in a run a mode embedded online has earned kernels of its own."""
        if self._by_name is not None:
            return int(self._by_name.get(self.automaton.name_of(mode.states).name, NEVER))
        return self._derive_after

    def provide_mode(self, states: Codes, t: float, x: Floats, c: Floats) -> Tables:
        """Append the mode with these contact states, or wake it; raise RunError if the model does not list it."""
        number = self._numbers.get(tuple(states.tolist()), -1)
        if number < 0:
            return super().provide_mode(states, t, x, c)
        self.wake(number)
        return self.tables

    def provide_chart(self, number: int, t: float, x: Floats, c: Floats) -> Tables:
        """Append a chart for the given state, unless the mode has one embedded online, valid in any state."""
        return self.tables if self._is_on_line(number) else Executable.provide_chart(self, number, t, x, c)

    def kernels_needed(self, number: int, t: float, x: Floats, c: Floats) -> Tables:
        """Append the mode's own kernels; or, if they are not good at the state given, those of a chart there.

        There are none where they cannot be derived, or have other guards, with which no run could continue in mid-mode;
        nor where contacts share forces: kernels would list all limits of the shares, which may be thousands, while
        online the widest margin of all is one guard.
        """
        chart = self.charts[number]
        if self._by_name is None and chart.full in self._online and chart.programs.indeterminate:
            self.charts[number] = replace(chart, allowance=NEVER)
            self.tables.mode_allowance[number] = NEVER
            return self.tables
        return Executable.provide_chart(self, number, t, x, c)

    def _is_on_line(self, number: int) -> bool:
        """Whether a run reached a chart's mode."""
        group = self.charts[number].mode
        return any(chart.mode == group and chart.full in self._online for chart in self.charts)

    def _add_chart(self, number: int, t: float, x: Floats, c: Floats) -> bool:
        """Append a chart of a mode of the graph, or kernels of one reached; tell whether there are any."""
        if not self._is_on_line(number):
            derives = self._derive_after != NEVER
            return Executable._add_chart(self, number, t, x, c) if derives else super()._add_chart(number, t, x, c)
        group, states = self.charts[number].mode, self.charts[number].programs.states
        if states in self._refused:
            return False
        own = [chart.programs for chart in self.charts if chart.mode == group and chart.full not in self._online]
        if own and self._by_name is not None:
            return False
        try:
            programs = self._chart_at(states, t, x, c) if own else self.derived(states).programs
        except ModelError:
            programs = None
        if programs is None or programs.guards != self.charts[number].programs.guards:
            if not own:  # the same in every run
                self._refused.add(states)
            return False
        if programs.full in [other.full for other in own]:
            return False
        self._append(group, programs)
        return True


def own_programs(automaton: Automaton, states: tuple[int, ...], home: tuple[Floats, Floats]) -> ModePrograms | None:
    """Return the programs of a mode for kernels of its own, derived for a state and context.

    None if it runs online alone: its contacts share forces, it cannot be derived, or has other guards then.
    """
    x, c = home
    if indeterminate_rows(automaton, states, (0.0, automaton.touching(states, 0.0, x, c), c)):
        return None
    try:
        programs = automaton.derive(states, 0.0, x, c, first=True).programs
    except ModelError:
        return None
    listed = list_guards(automaton.system, states, automaton.outgoing_transitions(automaton.name_of(states)))
    return programs if programs.guards == listed else None


def usual_allowance(automaton: Automaton) -> int:
    """Return after how many evaluations in a run a mode embedded online is derived, from the size of the model alone.

    Instructions of the modes of the graph give the cost of deriving another one; instructions of the terms, rows and
    speeds give the additional cost of an evaluation online.  The coefficients were fitted to 19 models of 7 to 2043
    instructions and 1 to 24 speeds, and give the ratio of both within a factor of 3.  Rows of many bodies are mostly
    zeros, which no evaluation reads.  Stated ranges count for nothing, and a motion within them is the one of the model
    without them, to the last bit.
    """
    transitions = automaton.mechanism.transitions
    lengths = []
    for mode in automaton.modes:
        own = [k for k, guard in enumerate(mode.guards) if not _is_bound(automaton, guard)]
        lengths.append(_length(mode.programs.full, {"guards": own, "slopes": own}))
    derivation = 5000.0 + 70.0 * sum(lengths) / max(1, len(lengths))  # µs
    written = [k for k, item in enumerate(transitions) if not item.range_of]
    n_u, n_rows = len(automaton.terms.layout.u), len(automaton.rows)
    read = min(n_rows * n_u, _FITTED + int(automaton.terms.can_differ_from_zero("A")[:, :n_u].sum()))
    more = 0.1 + 0.00022 * _length(automaton.terms, {"when": written}) + 0.0015 * read + 0.00012 * n_u**3  # µs
    return round(derivation / (RUNS * more))


def _is_bound(automaton: Automaton, guard: Guard) -> bool:
    return guard.event is Event.TRANSITION and bool(automaton.mechanism.transitions[guard.subject].range_of)


def _length(program: Program, rows: Mapping[str, Sequence[int]]) -> int:
    """Return the numbers of instructions of some rows of outputs, and of all others."""
    if all(len(rows[output.name]) == output.shape[0] for output in program.results if output.name in rows):
        return len(program.instructions)
    return len(program.part({output.name: rows.get(output.name) for output in program.results}).instructions)
