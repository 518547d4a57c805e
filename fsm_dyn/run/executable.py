"""Executable form of an automaton: kernels in memory and tables of the runtime; saved states."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from fsm_dyn.automaton.hybrid_automaton import Automaton, DerivedMode
from fsm_dyn.core.arrays import Codes, Floats, Integers
from fsm_dyn.core.errors import InputError, RunError
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.enumeration import ModeName
from fsm_dyn.derive.guards import Guard, ListedGuards
from fsm_dyn.derive.mode_programs import ModePrograms, RunnableMode
from fsm_dyn.derive.unconstrained_system import ContactInfo
from fsm_dyn.language.values import parameter_values
from fsm_dyn.programs.enclosure_code import EnclosureCode
from fsm_dyn.programs.kernels import OPTIMISATION, SELDOM_RUN, compile_programs
from fsm_dyn.programs.program import Program
from fsm_dyn.run import structures as st
from fsm_dyn.run.structures import GuardEnclosures, far_guards, far_tables, guard_enclosures
from fsm_dyn.run.tolerances import Numerics, Tolerances, numerics_of
from fsm_dyn.runtime import library
from fsm_dyn.runtime.abi import NEVER, ContactFlag, ContactState, ModeFlag, Restored, RowRole, Sizes, TransitionColumn
from fsm_dyn.runtime.layouts import Tables

# -- Cache of derived modes, bounded, shared by the runs of a simulator --------------------------------------

INSTRUCTION_BYTES: Final = 200  # of a program in memory: 177 to 205 in three models


def program_memory(programs: ModePrograms) -> int:
    """Return about how much memory the programs of a mode take, bytes."""
    return INSTRUCTION_BYTES * (len(programs.rhs.instructions) + len(programs.full.instructions))


class DerivedModes:
    """Modes by their contact states; those used longest ago are dropped.

    A dropped mode is derived again when a run needs it.  It has the same programs then, as modes are derived for the
    model's own start: what is kept decides how long a run takes, and nothing else. ``most``: bytes, see
    :func:`program_memory`; the mode used last stays, however large it is.
    """

    def __init__(self, most: float = math.inf) -> None:
        self.memory = 0
        self._most = most
        self._modes: OrderedDict[tuple[int, ...], DerivedMode] = OrderedDict()  # the one used last comes last

    def __len__(self) -> int:
        return len(self._modes)

    def __iter__(self) -> Iterator[DerivedMode]:
        return iter(self._modes.values())

    def get(self, states: tuple[int, ...], derive: Callable[[], DerivedMode]) -> DerivedMode:
        """Return the mode with these contact states, derived if need be."""
        found = self._modes.get(states)
        if found is None:
            found = self._modes[states] = derive()
            self.memory += program_memory(found.programs)
            while self.memory > self._most and len(self._modes) > 1:
                self.memory -= program_memory(self._modes.popitem(last=False)[1].programs)
        else:
            self._modes.move_to_end(states)
        return found


# -- Saved state of a run, from which it can be continued ----------------------------------------------------

Words = NDArray[np.uint64]


Place = tuple[tuple[int, ...], float, Floats, Floats]  # contact states, time (s), state and context


@dataclass(frozen=True)
class KnownCharts:
    """Which charts a run has asked for, in addition to the first of every mode, and where; and where it did so in vain.

    ``places``: in the order in which they came.  ``in_vain``: contact states, and the pivot there.
    """

    places: tuple[Place, ...] = ()
    in_vain: tuple[tuple[tuple[int, ...], float], ...] = ()


@dataclass  # not frozen: a frozen one takes six times as long to fill
class SavedState:
    """State from which a run can be continued."""

    words: Words  # uint64 array: saved by the runtime (``runtime/saved_state.h``)
    # rows, transitions, passages: how many were recorded before; those after it are made again
    rows: int
    transitions: int
    passages: int
    charts: KnownCharts = field(default_factory=KnownCharts)  # charts requested by the run
    charted: int = -1  # number of steps made when a chart was asked for last
    solver: Mapping[str, Any] | None = None  # state of an implicit method (:mod:`fsm_dyn.run.implicit_methods`)


@dataclass(frozen=True)
class FirstRow:
    """The last row recorded before a state was saved: t, x, x_dot, state at mid-step, context after the parameters.

    ``begins``: it is the first of an interval, as the later of two rows at an event.
    """

    values: Floats
    mode: int
    begins: bool = False


def check(result: int) -> None:
    """Raise InputError if a state was not restored.

    ``result``: the status returned by the runtime. Raises InputError: it is not the one of success.
    """
    if result != Restored.RESTORED:
        raise InputError("the run cannot be continued", found=library.restored_sentence(result), remedy="run it again")


# -- Executable form of an automaton: its kernels in memory and the tables of the runtime --------------------
#
# An executable grows during runs: a mode reached for the first time, or a chart required near a singular
# configuration, is derived from the saved terms, compiled and appended. Numbers given out stay valid. So that a run
# does not depend on the runs before it, a mode is always derived for the model's own start, and charts are forgotten
# when the next run begins.


# Instructions or results of a program from which on compiling it well would take longer than it ever runs: the time for
# stores, which the code generator orders all at once, grows with the square of their number.
_LONG = 4000
# Instructions of a mode's kernel from which on it is compiled without optimisation, in a sixth of the time, and
# the kernel, which consists of many parts anyway, runs 1.2 to 1.5 times as long.
_LONG_MODE = 2000
_LOWER = 0.1  # where the pivot has fallen so far since a better chart was looked for in vain, it is looked for again

_MOST_CHARTS = 16  # derived for states of runs, kept for the next runs, most of which come there again

_NO_CHARTS = KnownCharts()
NO_MODES = np.zeros(0, np.int64)
_ROLES = {"kinematic": RowRole.KINEMATIC, "velocity": RowRole.ALWAYS, "position": RowRole.ALWAYS_POSITION}


@dataclass(frozen=True)
class ModeChart:
    """One entry of the mode tables: a mode (by its number) in one chart, and the addresses of its kernels.

    ``allowance``, ``core``, ``online``, ``guard_kernels``: see :class:`fsm_dyn.runtime.layouts.Tables`.  ``code`` keeps
    the kernels in memory, if nothing else does.
    """

    mode: int
    programs: RunnableMode
    rhs: int
    full: int
    allowance: int = NEVER
    code: object = None
    core: int = 0
    online: int = 0  # address of what embeds the mode online, 0 where its kernels are machine code
    guard_kernels: tuple[int, ...] = ()  # of the guards, 0 for those in the core; empty without a core


@dataclass(frozen=True, slots=True)
class ModeColumns:
    """The entries of a mode's chart in the tables, kept from one mode reached to the next.

    ``guards``: event and subject of each; ``measures``: direction and unit of each; ``states``: of its contacts;
    ``leaving``: its outgoing user-defined transitions.
    """

    programs: RunnableMode
    guards: Integers
    measures: Floats
    states: Codes
    enclosure: EnclosureCode | None
    flags: int
    leaving: list[int]


class KnownTables(NamedTuple):
    """Tables of some charts, kept for the runs that come to them again; ``places``: see :class:`GuardEnclosures`."""

    charts: tuple[ModeChart, ...]
    tables: Tables
    places: dict[int, tuple[int, int]]


class Executable:
    """The running form of an automaton.

    ``home``, (x, c): state and context for which further modes are derived: the model's own start. ``tolerances``:
    until other ones are given for a run, see :meth:`use`. ``modes``: the modes to compile beforehand; by default all of
    the automaton. ``known``: modes derived by other executables of this automaton; those derived here are added.
    """

    modes_rest: ClassVar[bool] = False  # whether modes have no machine code until a run comes to them

    def __init__(
        self,
        automaton: Automaton,
        home: tuple[Floats, Floats] | None = None,
        tolerances: Tolerances | None = None,
        modes: Sequence[DerivedMode] | None = None,
        known: DerivedModes | None = None,
    ) -> None:
        self.known = DerivedModes() if known is None else known
        modes = automaton.modes if modes is None else modes
        self.automaton = automaton
        self._given = len(automaton.modes)
        self._derived_charts: dict[tuple[tuple[int, ...], float, bytes, bytes], ModePrograms] = {}  # last used last
        self._in_vain: dict[int, float] = {}  # per mode the pivot at which no better chart was found
        self._asked: list[Place] = []  # where the charts after the first ones were asked for
        layout = automaton.terms.layout
        self.home = home if home is not None else (np.zeros(layout.n_x), np.zeros(layout.n_c))
        self.numerics = numerics_of(automaton, parameter_values(automaton.mechanism), tolerances)
        seldom = [program for program in (automaton.sample, *automaton.resets) if program is not None]
        self._far = far_guards(automaton)
        self._woken: dict[int, tuple[int, int, object]] = {}  # machine code of modes that rested, by their numbers
        rest = self.modes_rest and self._far is None
        compiled = [mode.programs for mode in modes if not rest]
        programs = [*seldom, *(program for mode in compiled for program in (mode.rhs, mode.full))]
        terms = None
        if is_long(automaton.terms):  # rows of many bodies are mostly zeros: the memory they are written to begins so
            terms = compile_programs([automaton.terms], optimisation=SELDOM_RUN, keep_zeros=True)
        level = SELDOM_RUN if any(is_long(program) for program in programs) else OPTIMISATION
        kernels = compile_programs(programs if terms else [automaton.terms, *programs], optimisation=level)
        self._kernels = kernels, terms  # as long as their addresses are in use
        addresses = iter([kernel.address for kernel in (*(terms or ()), *kernels)])
        self._terms = next(addresses)
        self._sample = 0 if automaton.sample is None else next(addresses)
        self._resets = [0 if program is None else next(addresses) for program in automaton.resets]
        self.charts = [
            self._with_core(ModeChart(i, mode.programs, next(addresses, 0), next(addresses, 0)))
            for i, mode in enumerate(modes)
        ]
        self._fixed = self._tables_of_the_model()
        self._columns: dict[int, ModeColumns] = {}  # by the identity of the programs, which they keep
        self._guard_rows = st.GuardNumbers(self._guard_row)
        self._gated = [i for i, contact in enumerate(automaton.contacts) if contact.gated]
        self._closes_loops = any(row.role == "position" for row in automaton.rows)
        self._numbers: dict[tuple[int, ...], int] = {}  # the first chart with these contact states
        self._numbered = 0  # charts among them
        self._names: dict[tuple[int, ...], ModeName] = {}
        self._growing: st.GrowingTables | None = None  # of all charts, while modes are appended
        self._places: dict[int, tuple[int, int]] = {}  # of the code of enclosures by its identity, see GuardEnclosures
        self._first: KnownTables | None = None  # before a chart after the first ones was appended
        self._appended: dict[tuple[int, int, int], tuple[Tables, KnownTables]] = {}  # by tables, mode and programs
        self._contact_flags_of_modes = _flags_of_modes(automaton, self._gated)
        self.tables = self._build()

    def reset_charts(self) -> None:
        """Keep one chart of every mode, the one it was derived in."""
        self._in_vain.clear()
        self._asked.clear()
        if len(self.charts) == len(self._numbers):
            return
        known: set[int] = set()
        first = [chart for chart in self.charts if not (chart.mode in known or known.add(chart.mode))]  # type: ignore[func-returns-value]
        if self._first is not None and [*map(id, first)] == [*map(id, self._first.charts)]:
            self._take(self._first)
            self._numbered = len(first)
        elif len(first) < len(self.charts):
            self.charts = first
            self._forget_tables()
            self._numbers, self._numbered = {}, 0
            kept = {id(chart.programs) for chart in first}
            self._columns = {key: columns for key, columns in self._columns.items() if key in kept}
            self._guard_rows.forget()
            self.tables = self._build()

    def use(self, numerics: Numerics) -> None:
        """Let the next run have these tolerances."""
        known, self.numerics = self.numerics, numerics
        if not numerics.same(known):
            self._columns.clear()
            self._guard_rows.clear()
            self._forget_tables()
            self.tables = self._build()

    def _take(self, known: KnownTables) -> None:
        """Have these charts and their tables."""
        self.charts, self.tables, self._places = list(known.charts), known.tables, known.places

    def _forget_tables(self) -> None:
        """Forget tables of runs before."""
        self._first = None
        self._appended.clear()

    def charts_known(self) -> KnownCharts:
        """Charts requested by the run so far, with which :meth:`restore_charts` makes the same charts again."""
        if not self._asked and not self._in_vain:
            return _NO_CHARTS
        states = {chart.mode: chart.programs.states for chart in self.charts}
        return KnownCharts(tuple(self._asked), tuple((states[mode], pivot) for mode, pivot in self._in_vain.items()))

    def restore_charts(self, known: KnownCharts) -> None:
        """Have the charts requested by a run, and no others.

        Raises RunError: the model lists its modes, and one of those is not among them.
        """
        self.reset_charts()
        for states, t, x, c in known.places:
            self._add_chart(self.mode_index(states), t, x, c)
        self._asked.extend(known.places)
        for states, pivot in known.in_vain:
            self._in_vain[self.charts[self.mode_index(states)].mode] = pivot

    def chart_of(self, states: tuple[int, ...], chart: int) -> int:
        """Number of one of the charts with these contact states; the mode is derived if need be.

        Raises InputError: the mode has fewer charts.
        """
        self.mode_index(states)
        numbers = [number for number, each in enumerate(self.charts) if each.programs.states == states]
        if chart >= len(numbers):
            raise InputError("the run cannot be continued", found="a chart is missing", remedy="run it again")
        return numbers[chart]

    @property
    def memory(self) -> int:
        """Memory of the modes reached since the executable was made, bytes."""
        return sum(program_memory(mode.programs) for mode in self.automaton.modes[self._given :])

    def online_modes(self) -> Integers:
        """Addresses of the modes embedded online by their numbers, 0 for others, which may be missing at the end."""
        return NO_MODES

    def mode_index(self, states: tuple[int, ...]) -> int:
        """Number of the mode with these contact states; it is derived if need be."""
        if states not in self._numbers:
            self.provide_mode(np.array(states, np.int8), 0.0, *self.home)
        self.wake(self._numbers[states])
        return self._numbers[states]

    def wake(self, number: int) -> None:
        """Have the machine code of a mode that rests."""
        chart = self.charts[number]
        if chart.online or self.tables.mode_rhs[number] != 0:
            return
        if number not in self._woken:
            self._woken[number] = self._compiled(chart.programs)
        rhs, full, code = self._woken[number]
        self.charts[number] = replace(chart, rhs=rhs, full=full, code=code)
        self.tables.mode_rhs[number], self.tables.mode_full[number] = rhs, full

    def modes_ready(self) -> int:
        """Return how many charts there are that do not rest."""
        return int(np.count_nonzero((self.tables.mode_rhs != 0) | (self.tables.mode_online != 0)))

    def _compiled(self, programs: RunnableMode) -> tuple[int, int, object]:
        """Return the addresses of the kernels of a mode, and what keeps them."""
        assert isinstance(programs, ModePrograms)
        kernels = [compile_programs(part, optimisation=level) for part, level in compiled_together(programs)]
        rhs, full = (kernel.address for each in kernels for kernel in each)
        return rhs, full, kernels

    def provide_mode(self, states: Codes, t: float, x: Floats, c: Floats) -> Tables:
        """Derive and append the mode with these contact states.

        Raises RunError: the model lists its modes and this is none of them.
        """
        mode = self.derived(self.check_listed(states, t))
        self.automaton = self.automaton.with_mode(mode)
        self._append(len(self.automaton.modes) - 1, mode.programs)
        return self.tables

    def kernels_needed(self, number: int, t: float, x: Floats, c: Floats) -> Tables:
        """Return the tables as they are: all modes have kernels of their own."""
        return self.tables

    def derived(self, codes: tuple[int, ...]) -> DerivedMode:
        """Return the mode with these contact states, derived if need be."""
        return self.known.get(codes, lambda: self.automaton.derive(codes, 0.0, *self.home, first=True))

    def check_listed(self, states: Codes, t: float) -> tuple[int, ...]:
        """Return contact states as codes; raise RunError if the model lists its modes and this is none of them."""
        codes: tuple[int, ...] = tuple(states.tolist())
        if not self.automaton.mechanism.only_listed:
            return codes
        name = self.mode_name(codes)
        if not name.pattern:
            raise RunError(
                f"at t = {t:.9g} s the motion leads to the contact states '{name.name}', which the model does not list"
                "\n  remedy: name this combination under modes, or drop only_listed"
            )
        return codes

    def provide_chart(self, number: int, t: float, x: Floats, c: Floats) -> Tables:
        """Append a chart of a mode for the given state, unless the mode has it."""
        if self._add_chart(number, t, x, c):
            self._asked.append((self.charts[number].programs.states, t, x, c))
        return self.tables

    def _add_chart(self, number: int, t: float, x: Floats, c: Floats) -> bool:
        """Append a chart as :meth:`provide_chart` does; tell whether there is one."""
        chart = self.charts[number]
        known = [other.programs for other in self.charts if other.mode == chart.mode]
        pivot = max(abs(float(programs.full.evaluate(t, x, c)["pivot"].ravel()[0])) for programs in known)
        if pivot > _LOWER * self._in_vain.get(chart.mode, np.inf):
            return False
        programs = self._chart_at(chart.programs.states, t, x, c)
        if programs.full in [other.full for other in known]:
            self._in_vain[chart.mode] = pivot
            return False
        self._append(chart.mode, programs)
        return True

    def _chart_at(self, states: tuple[int, ...], t: float, x: Floats, c: Floats) -> ModePrograms:
        """Return the programs of a mode in a chart for the given state, which a run before may have asked for."""
        place = states, t, x.tobytes(), c.tobytes()
        programs = self._derived_charts.pop(place, None) or self.automaton.derive(states, t, x, c).programs
        self._derived_charts[place] = programs
        if len(self._derived_charts) > _MOST_CHARTS:
            del self._derived_charts[next(iter(self._derived_charts))]
        return programs

    def _append(self, mode: int, programs: ModePrograms) -> None:
        before, key = self.tables, (id(self.tables), mode, id(programs))
        if len(self.charts) == len(self._numbers):
            self._first = KnownTables(tuple(self.charts), before, self._places)
        if key in self._appended:  # by a run before
            self._take(self._appended[key][1])
            self._number_charts()
            return
        rhs, full, code = self._compiled(programs)
        self.charts.append(self._with_core(ModeChart(mode, programs, rhs, full, code=code)))
        self.tables = self._with_last()
        self._appended[key] = before, KnownTables(tuple(self.charts), self.tables, self._places)

    def _with_core(self, chart: ModeChart) -> ModeChart:
        """Return a chart with the kernels for steps without some guards, if there are any."""
        parts = None if self._far is None else self._far.compiled(chart.programs)
        if parts is None:
            return chart
        return replace(chart, core=parts.core, guard_kernels=parts.guards, code=(chart.code, parts.code))

    def _enclosures(self, counts: Sequence[int]) -> GuardEnclosures:
        """Return the tables of the enclosures of guards, given their number in each mode."""
        return guard_enclosures([self._columns_of(chart.programs).enclosure for chart in self.charts], counts)

    def _enclosure(self, programs: RunnableMode) -> EnclosureCode | None:
        """Return the enclosure of the guards of a mode, or None."""
        return programs.enclosure if isinstance(programs, ModePrograms) else None

    def _columns_of(self, programs: RunnableMode) -> ModeColumns:
        known = self._columns.get(id(programs))
        if isinstance(programs.guards, ListedGuards):
            return self._new_columns(programs)  # put together faster than kept
        if known is None:
            known = self._columns[id(programs)] = self._new_columns(programs)
        return known

    def _new_columns(self, programs: RunnableMode) -> ModeColumns:
        rows = self._guard_rows.of(programs.guards).reshape(-1, 4)
        states = np.array(programs.states, np.int8)
        return ModeColumns(
            programs,
            rows[:, :2].T.astype(np.int64),
            rows[:, 2:].T.copy(),
            states,
            self._enclosure(programs),
            self._flags(programs, states),
            self._leaving_of(programs.states),
        )

    def _guard_row(self, guard: Guard) -> tuple[float, ...]:
        """Return event, subject, direction and unit."""
        return float(guard.event), float(guard.subject), guard.direction, float(self.numerics.guards([guard])[0])

    def _build(self) -> Tables:
        automaton, charts = self.automaton, self.charts
        columns = [self._columns_of(chart.programs) for chart in charts]
        self._number_charts()
        guards = np.concatenate([np.zeros((2, 0), np.int64), *(column.guards for column in columns)], axis=1)
        measures = np.concatenate([np.zeros((2, 0)), *(column.measures for column in columns)], axis=1)
        counts = [column.guards.shape[1] for column in columns]
        sizes = self._sizes(counts)
        self._growing = None
        enclosures = self._enclosures(counts)._asdict()
        self._places = enclosures.pop("places")
        for place, size in enclosures.pop("sizes").items():
            sizes[place] = size
        leaves = np.zeros((len(automaton.user_transitions), len(charts)), np.int8)
        for number, column in enumerate(columns):
            leaves[column.leaving, number] = 1
        return Tables(
            sizes=sizes,
            **far_tables(self._far, [chart.core for chart in charts], [c.guard_kernels for c in charts], counts),
            **enclosures,
            mode_rhs=np.array([0 if chart.online else chart.rhs for chart in charts], np.int64),
            mode_full=np.array([0 if chart.online else chart.full for chart in charts], np.int64),
            mode_online=np.array([chart.online for chart in charts], np.int64),
            online_routine=np.array([library.address("fsm_online_evaluate")], np.int64),
            mode_states=np.concatenate([np.zeros(0, np.int8), *(column.states for column in columns)]).reshape(
                len(charts), len(automaton.contacts)
            ),
            mode_flags=np.array([column.flags for column in columns], np.int64),
            mode_group=np.array([chart.mode for chart in charts], np.int64),
            mode_allowance=np.array([chart.allowance for chart in charts], np.int64),
            mode_guard_start=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            guard_event=guards[0],
            guard_contact=guards[1],
            guard_direction=measures[0],
            transition_states=self._transition_states(),
            transition_leaves=leaves,
            state_unit=self.numerics.states,
            row_unit=self.numerics.rows,
            guard_unit=measures[1],
            tolerances=self.numerics.tolerances.as_array(),
            **self._fixed,
        )

    def _with_last(self) -> Tables:
        """Return the tables with the chart appended last, at a cost that does not grow with their number."""
        chart = self.charts[-1]
        column = self._columns_of(chart.programs)
        sizes, count = self.tables.sizes.copy(), column.guards.shape[1]
        code = column.enclosure
        if count > sizes[Sizes.MAX_GUARDS]:
            return self._build()
        if self._growing is None or self._growing.tables is not self.tables:
            self._growing = st.GrowingTables(self.tables)
        enclosures: dict[str, npt.NDArray[Any]] = {}
        if code is not None and id(code.words) not in self._places:
            place = len(self.tables.enclosure_code), int(sizes[Sizes.PROOF_WORDS])
            self._places = self._places | {id(code.words): place}
            enclosures, larger = st.further_enclosure(self.tables, code, count)
            sizes[list(larger)] = list(larger.values())
        begin, room = (-1, 0) if code is None else self._places[id(code.words)]
        leaves = np.zeros((len(self.automaton.user_transitions), 1), np.int8)
        leaves[column.leaving] = 1
        sizes[Sizes.N_MODES] += 1
        self._number_charts()
        far = far_tables(self._far, [chart.core], [chart.guard_kernels], [count]) if self._far is not None else {}
        far.pop("shape_centres", None)
        return self._growing.append(
            far | enclosures | {
                "mode_rhs": np.array([0 if chart.online else chart.rhs]),
                "mode_full": np.array([0 if chart.online else chart.full]),
                "mode_online": np.array([chart.online]),
                "mode_states": column.states[None],
                "mode_flags": np.array([column.flags]),
                "mode_group": np.array([chart.mode]),
                "mode_allowance": np.array([chart.allowance]),
                "mode_guard_start": self.tables.mode_guard_start[-1:] + count,
                "guard_event": column.guards[0], "guard_contact": column.guards[1],
                "guard_direction": column.measures[0], "guard_unit": column.measures[1],
                "mode_enclosure": np.array([begin]), "enclosure_room": np.array([room]),
                "guard_enclosure": np.full(count, -1) if code is None else code.outputs,
            },
            sizes=sizes,
            transition_leaves=np.hstack([self.tables.transition_leaves, leaves]),
        )  # fmt: skip

    def _number_charts(self) -> None:
        """Give every mode the number of its first chart."""
        if self._numbered > len(self.charts):
            self._numbers, self._numbered = {}, 0
        for number in range(self._numbered, len(self.charts)):
            self._numbers.setdefault(self.charts[number].programs.states, number)
        self._numbered = len(self.charts)

    def _sizes(self, counts: Sequence[int]) -> Integers:
        """Return the sizes, shape (Sizes.COUNT,), for charts with these numbers of guards."""
        automaton, mechanism, layout = self.automaton, self.automaton.mechanism, self.automaton.terms.layout
        sizes = np.zeros(Sizes.COUNT, np.int64)
        sizes[Sizes.N_Q], sizes[Sizes.N_U], sizes[Sizes.N_K] = len(layout.q), len(layout.u), automaton.n_kinematic
        sizes[Sizes.N_P], sizes[Sizes.N_W], sizes[Sizes.N_MEMORY] = len(layout.p), len(layout.w), len(layout.memory)
        sizes[Sizes.N_CONTACTS], sizes[Sizes.N_ROWS] = len(automaton.contacts), len(automaton.rows)
        sizes[Sizes.N_CONTROLLERS] = len(mechanism.controllers)
        sizes[Sizes.N_MODES], sizes[Sizes.MAX_GUARDS] = len(counts), max(counts, default=0)
        sizes[Sizes.SEQUENTIAL] = mechanism.impacts == "sequential"
        sizes[Sizes.ON_INCONSISTENT] = mechanism.on_inconsistent == "impact"
        sizes[Sizes.ON_SEVERAL] = mechanism.on_nonunique == "prefer_previous"
        sizes[Sizes.N_SHAPES] = 0 if self._far is None else self._far.shapes
        sizes[Sizes.N_TRANSITIONS], sizes[Sizes.N_TERMS] = len(mechanism.transitions), automaton.terms.size
        return sizes

    def _tables_of_the_model(self) -> dict[str, npt.NDArray[Any]]:
        """Return the entries of the tables independent of further modes."""
        automaton = self.automaton
        contacts, n_contacts = automaton.contacts, len(automaton.contacts)
        return {
            "terms": np.array([self._terms], np.int64),
            "sample": np.array([self._sample], np.int64),
            "row_role": np.array([_ROLES.get(row.role, RowRole.CONTACT) for row in automaton.rows], np.int64),
            "row_positional": np.array([row.positional for row in automaton.rows], np.int8),
            "contact_flags": np.array([self._contact_flags(i) for i in range(n_contacts)], np.int64),
            "contact_rows": np.array(
                [(c.normal_row, c.tangent_row, *(*c.load_rows, -1, -1)[:2]) for c in contacts], np.int64
            ).reshape(n_contacts, 4),
            "contact_outline": np.array([_outline(contact) for contact in contacts], np.int64),
            "contact_ends": np.array([contact.ends for contact in contacts], np.int64).reshape(n_contacts, 3),
            **self._nonzero(),
            "transitions": self._transitions(),
            "quaternions": np.array(automaton.quaternions, np.int64),
        }

    def mode_name(self, states: tuple[int, ...]) -> ModeName:
        """Return the name of the mode with these contact states."""
        if states not in self._names:
            self._names[states] = self.automaton.name_of(states)
        return self._names[states]

    @property
    def chart_names(self) -> tuple[str, ...]:
        """The name of the mode of each chart."""
        return tuple(self.mode_name(chart.programs.states).name for chart in self.charts)

    @property
    def chart_programs(self) -> tuple[RunnableMode, ...]:
        """The programs of each chart."""
        return tuple(chart.programs for chart in self.charts)

    def _leaving_of(self, states: tuple[int, ...]) -> list[int]:
        """Return the outgoing user-defined transitions of a mode."""
        transitions = self.automaton.mechanism.transitions
        return self.automaton.outgoing_transitions(self.mode_name(states)) if transitions else []

    def _nonzero(self) -> dict[str, Integers]:
        """Which entries of the rows and of the mass matrix can differ from zero, as the tables have it."""
        terms, n = self.automaton.terms, len(self.automaton.terms.layout.u)
        rows = st.nonzero_columns(terms.can_differ_from_zero("A")[:, :n])
        mass = st.nonzero_columns(terms.can_differ_from_zero("M")[:n, :n])
        return {"row_begin": rows[0], "row_columns": rows[1], "mass_begin": mass[0], "mass_columns": mass[1]}

    def _flags(self, programs: RunnableMode, states: Codes) -> int:
        """Return the flags of a mode with these contact states."""
        flags = ModeFlag.PROJECTS | ModeFlag.RANKS if self._closes_loops else 0
        if isinstance(programs, ModePrograms) and programs.indeterminate:  # of others the runtime knows their charts
            flags |= ModeFlag.REPEATS
        each = self._contact_flags_of_modes
        return flags | int(np.bitwise_or.reduce(each[np.arange(len(each)), states], initial=0))

    def _contact_flags(self, index: int) -> int:
        contact = self.automaton.contacts[index]
        friction = ContactFlag.FRICTION if contact.contact_law.rigid and contact.frictional else 0
        flags = (ContactFlag.GATED if contact.gated else 0) | (ContactFlag.LIMITED if contact.bounded_face else 0)
        flags |= (ContactFlag.POISSON if contact.poisson else 0) | (ContactFlag.TWO_SIDED if contact.bilateral else 0)
        flags |= (ContactFlag.IN_SPACE if contact.in_space else 0) | st.law_flags(contact.contact_law)
        flags |= ContactFlag.GROUP * self._first_of_entry[index] + (
            ContactFlag.WHOLE_CIRCLE if contact.whole_circle else 0
        )
        return friction | flags | (ContactFlag.STICKS_ALWAYS if contact.sticks_always else 0)

    @cached_property
    def _first_of_entry(self) -> list[int]:
        """Number of the first contact of the same entry of the model, for each contact."""
        first: dict[str, int] = {}
        contacts = self.automaton.mechanism.contacts.items()
        return [first.setdefault(contact.entry or name, number) for number, (name, contact) in enumerate(contacts)]

    def _transitions(self) -> Integers:
        automaton = self.automaton
        names = [contact.name for contact in automaton.contacts]
        table = np.zeros((len(automaton.user_transitions), TransitionColumn.WIDTH), np.int64)
        for i, item in enumerate(automaton.mechanism.transitions):
            table[i, TransitionColumn.STOP] = 2 if item.range_of else 3 if item.kink is not None else item.stop
            table[i, TransitionColumn.RESET] = self._resets[i]
            table[i, TransitionColumn.IMPULSE] = bool(item.impulses)
            table[i, TransitionColumn.WHEN] = automaton.user_transitions[i].condition
            table[i, TransitionColumn.FALLS] = automaton.user_transitions[i].crossing == "falling"
            if item.on is not None:
                table[i, TransitionColumn.CONTACT] = subject = names.index(item.on[0])
                table[i, TransitionColumn.EVENT] = automaton.contacts[subject].contact_law.event_named(item.on[1])
        return table

    def _transition_states(self) -> Codes:
        """Contact states required by each transition's target, -1: any."""
        automaton = self.automaton
        table = np.full((len(automaton.user_transitions), len(automaton.contacts)), -1, np.int8)
        names = [contact.name for contact in automaton.contacts]
        patterns = {pattern.name: pattern.states for pattern in automaton.patterns}
        modes = {mode.name: dict(enumerate(mode.states)) for mode in automaton.modes}
        for i, item in enumerate(automaton.mechanism.transitions):
            if item.target is not None:
                for contact, code in patterns.get(item.target, modes.get(item.target, {})).items():
                    table[i, contact] = code
            for contact, name in enumerate(names):
                if name in item.switches:
                    table[i, contact] = automaton.contacts[contact].states.index(item.switches[name])
        return table


def is_long(program: Program) -> bool:
    """Whether compiling a program well would take longer than it ever runs.

    ``program``: evaluated at events, or online.
    """
    return len(program.instructions) > _LONG or program.size > _LONG


def compiled_together(programs: ModePrograms) -> list[tuple[list[Program], int]]:
    """Return ``rhs`` and ``full`` of a mode as they are compiled, in one part or two, each with its optimisation."""
    both = [programs.rhs, programs.full]
    if len(programs.full.instructions) <= _LONG_MODE:
        return [(both, OPTIMISATION)]
    return [([item], SELDOM_RUN if len(item.instructions) > _LONG_MODE else OPTIMISATION) for item in both]


def _flags_of_modes(automaton: Automaton, gated: Sequence[int]) -> Integers:
    """Return the flags that a mode has from each contact in each of its states, shape (n_contacts, codes)."""
    contacts = automaton.contacts
    flags = np.zeros((len(contacts), 1 + max((code for item in contacts for code in item.codes), default=0)), np.int64)
    flags[list(gated), 0] |= ModeFlag.WATCHES_GATES
    for index, contact in enumerate(contacts):
        held = not contact.contact_law.compliant
        if held and contact.normal_row >= 0 and automaton.rows[contact.normal_row].positional:
            flags[index, 1:] |= ModeFlag.PROJECTS
        if contact.in_space and ContactState.SLIDING in contact.codes:
            flags[index, ContactState.SLIDING] |= ModeFlag.TURNS
    return flags


def _outline(contact: ContactInfo) -> int:
    """Return the entry of :attr:`fsm_dyn.runtime.layouts.Tables.contact_outline`."""
    return -2 - contact.outline if contact.contact_law.compliant and contact.outlined else contact.outline
