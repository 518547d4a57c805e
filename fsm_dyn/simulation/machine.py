"""An automaton made ready to run: its kernels in memory and the tables of the compiled loop.

A machine grows while it runs: a mode that is reached for the first time, or a chart that a singular
configuration asks for, is derived from the saved terms, compiled and appended.  Numbers given out stay valid.
So that a run does not depend on the runs before it, a mode is always derived for the model's own start, and charts
are forgotten when the next run begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fsm_dyn.automaton.artefact import Automaton, Mode
from fsm_dyn.errors import RunError
from fsm_dyn.modes.programs import ModePrograms, RunnableMode
from fsm_dyn.modes.system import ContactInfo
from fsm_dyn.programs import SELDOM_RUN, Kernels, compile_programs
from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation.tables import Tables
from fsm_dyn.simulation.tolerances import Tolerances

Array = npt.NDArray[np.float64]

_LONG = 4000  # instructions of the terms: compiling them well would take longer than they ever run
_LOWER = 0.1  # where the pivot has fallen so far since a better chart was looked for in vain, it is looked for again

_KINDS = {"gap": tb.GAP, "compliant": tb.COMPLIANT, "dry_friction": tb.DRY_FRICTION, "lock": tb.LOCK}
_ROLES = {"kinematic": tb.KINEMATIC, "velocity": tb.ALWAYS, "position": tb.ALWAYS_POSITION}
_EVENTS = {"closes": tb.CLOSES, "opens": tb.OPENS, "slides": tb.SLIDES, "sticks": tb.STICKS, "leaves": tb.LEAVES}


@dataclass(frozen=True)
class Chart:
    """One entry of the mode tables: a mode (by its number) in one chart, and the addresses of its kernels."""

    mode: int
    programs: RunnableMode
    rhs: int
    full: int


class Machine:
    """The running form of an automaton.

    Parameters
    ----------
    automaton : Automaton
    home : (x, c)
        State and context for which further modes are derived: the model's own start.
    tolerances : Tolerances
    modes : sequence of Mode, optional
        The modes to compile beforehand; by default all that the automaton has.
    """

    def __init__(
        self,
        automaton: Automaton,
        home: tuple[Array, Array] | None = None,
        tolerances: Tolerances | None = None,
        modes: Sequence[Mode] | None = None,
    ) -> None:
        modes = automaton.modes if modes is None else modes
        self.automaton = automaton
        self._in_vain: dict[int, float] = {}  # per mode the pivot at which no better chart was found
        layout = automaton.terms.layout
        self.home = home if home is not None else (np.zeros(layout.n_x), np.zeros(layout.n_c))
        self.tolerances = tolerances or Tolerances()
        resets = [program for program in automaton.resets if program is not None]
        programs = [*resets, *(program for mode in modes for program in (mode.programs.rhs, mode.programs.full))]
        long = len(automaton.terms.instructions) > _LONG
        terms = compile_programs([automaton.terms], optimisation=SELDOM_RUN) if long else None
        kernels = compile_programs(programs if terms else [automaton.terms, *programs])
        self._kernels: list[Kernels] = [kernels, *([terms] if terms else [])]
        addresses = iter([kernel.address for kernel in (*(terms or ()), *kernels)])
        self._terms = next(addresses)
        self._resets = [0 if program is None else next(addresses) for program in automaton.resets]
        self.charts = [Chart(i, mode.programs, next(addresses), next(addresses)) for i, mode in enumerate(modes)]
        self.tables = self._build()

    def forget_charts(self) -> None:
        """Keep one chart of every mode, the one it was derived in."""
        self._in_vain.clear()
        known: set[int] = set()
        first = [chart for chart in self.charts if not (chart.mode in known or known.add(chart.mode))]  # type: ignore[func-returns-value]
        if len(first) < len(self.charts):
            self.charts = first
            self.tables = self._build()

    def number_of(self, states: tuple[int, ...]) -> int:
        """Number of the mode with these contact states; it is derived if need be."""
        if states not in self._numbers:
            self.mode_needed(np.array(states, np.int8), 0.0, *self.home)
        return self._numbers[states]

    def mode_needed(self, states: npt.NDArray[np.int8], t: float, x: Array, c: Array) -> Tables:
        """Derive and append the mode with these contact states.

        Raises
        ------
        RunError
            The model lists its modes and this is none of them.
        """
        codes = self.check_listed(states, t)
        mode = self.automaton.derive(codes, 0.0, *self.home)
        self.automaton = self.automaton.with_mode(mode)
        self._append(len(self.automaton.modes) - 1, mode.programs)
        return self.tables

    def check_listed(self, states: npt.NDArray[np.int8], t: float) -> tuple[int, ...]:
        """Return contact states as codes; raise RunError if the model lists its modes and this is none of them."""
        codes = tuple(int(code) for code in states)
        name = self.automaton.name_of(codes)
        if self.automaton.mechanism.only_listed and not name.pattern:
            raise RunError(
                f"at t = {t:.9g} s the motion leads to the contact states '{name.name}', which the model does not list"
                "\n  remedy: name this combination under modes, or drop only_listed"
            )
        return codes

    def chart_needed(self, number: int, t: float, x: Array, c: Array) -> Tables:
        """Append a chart of a mode that is good at the state given, unless the mode has it."""
        chart = self.charts[number]
        known = [other.programs for other in self.charts if other.mode == chart.mode]
        pivot = max(abs(float(programs.full.evaluate(t, x, c)["pivot"].ravel()[0])) for programs in known)
        if pivot > _LOWER * self._in_vain.get(chart.mode, np.inf):
            return self.tables
        derived = self.automaton.derive(chart.programs.states, t, x, c)
        if derived.programs.full in [programs.full for programs in known]:
            self._in_vain[chart.mode] = pivot
        else:
            self._append(chart.mode, derived.programs)
        return self.tables

    def _append(self, mode: int, programs: ModePrograms) -> None:
        kernels = compile_programs([programs.rhs, programs.full])
        self._kernels.append(kernels)
        self.charts.append(Chart(mode, programs, kernels[0].address, kernels[1].address))
        self.tables = self._build()

    def _build(self) -> Tables:
        automaton, charts = self.automaton, self.charts
        self.chart_names = tuple(automaton.name_of(chart.programs.states).name for chart in charts)
        self.chart_programs = tuple(chart.programs for chart in charts)
        self._numbers = {chart.programs.states: number for number, chart in reversed(list(enumerate(charts)))}
        layout = automaton.terms.layout
        transitions = automaton.mechanism.transitions
        guards = [guard for chart in charts for guard in chart.programs.guards]
        counts = [len(chart.programs.guards) for chart in charts]
        n_contacts = len(automaton.contacts)
        sizes = np.zeros(tb.SIZE_COUNT, np.int64)
        sizes[tb.N_Q], sizes[tb.N_U], sizes[tb.N_K] = len(layout.q), len(layout.u), automaton.n_kinematic
        sizes[tb.N_P], sizes[tb.N_W], sizes[tb.N_CONTACTS] = len(layout.p), len(layout.w), n_contacts
        sizes[tb.N_MEMORY], sizes[tb.N_ROWS] = len(layout.memory), len(automaton.rows)
        sizes[tb.N_MODES], sizes[tb.MAX_GUARDS] = len(charts), max(counts, default=0)
        sizes[tb.SEQUENTIAL] = automaton.mechanism.impacts == "sequential"
        sizes[tb.ON_INCONSISTENT] = automaton.mechanism.on_inconsistent == "impact"
        sizes[tb.ON_SEVERAL] = automaton.mechanism.on_several == "prefer_previous"
        sizes[tb.N_TRANSITIONS], sizes[tb.N_TERMS] = len(transitions), automaton.terms.size
        return Tables(
            sizes=sizes,
            terms=np.array([self._terms], np.int64),
            mode_rhs=np.array([chart.rhs for chart in charts], np.int64),
            mode_full=np.array([chart.full for chart in charts], np.int64),
            mode_states=np.array([chart.programs.states for chart in charts], np.int8).reshape(len(charts), n_contacts),
            mode_flags=np.array([self._flags(chart) for chart in charts], np.int64),
            mode_group=np.array([chart.mode for chart in charts], np.int64),
            mode_guard_start=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            guard_event=np.array([guard.event for guard in guards], np.int64),
            guard_contact=np.array([guard.subject for guard in guards], np.int64),
            guard_direction=np.array([guard.direction for guard in guards], np.float64),
            row_role=np.array([_ROLES.get(row.role, tb.CONTACT_ROW) for row in automaton.rows], np.int64),
            row_positional=np.array([row.positional for row in automaton.rows], np.int8),
            contact_kind=np.array([_KINDS[contact.kind] for contact in automaton.contacts], np.int64),
            contact_flags=np.array([self._contact_flags(i) for i in range(n_contacts)], np.int64),
            contact_rows=np.array(
                [(contact.normal_row, contact.tangent_row) for contact in automaton.contacts], np.int64
            ).reshape(n_contacts, 2),
            contact_outline=np.array([_outline(contact) for contact in automaton.contacts], np.int64),
            contact_ends=np.array([contact.ends for contact in automaton.contacts], np.int64).reshape(n_contacts, 3),
            transitions=self._transitions(),
            transition_states=self._transition_states(),
            transition_leaves=self._transition_leaves(),
            quaternions=np.array(automaton.quaternions, np.int64),
            tolerances=self.tolerances.as_array(),
        )

    def _flags(self, chart: Chart) -> int:
        automaton = self.automaton
        flags = tb.PROJECTS | tb.RANKS if any(row.role == "position" for row in automaton.rows) else 0
        if chart.programs.indeterminate:
            flags |= tb.REPEATS
        for contact, code in zip(automaton.contacts, chart.programs.states, strict=True):
            held = code and contact.kind != "compliant"
            if held and contact.normal_row >= 0 and automaton.rows[contact.normal_row].positional:
                flags |= tb.PROJECTS
            if contact.in_space and code == tb.SLIDING:
                flags |= tb.TURNS
            if contact.gated and not code:
                flags |= tb.WATCHES_GATES
        return flags

    def _contact_flags(self, index: int) -> int:
        contact = self.automaton.contacts[index]
        friction = tb.FRICTION if contact.kind == "gap" and contact.tangent_row >= 0 else 0
        flags = (tb.GATED if contact.gated else 0) | (tb.LIMITED if contact.limited else 0)
        flags |= (tb.POISSON if contact.poisson else 0) | (tb.TWO_SIDED if contact.two_sided else 0)
        flags |= tb.IN_SPACE if contact.in_space else 0
        flags |= tb.GROUP * self._first_of_entry(index)
        return friction | flags | (tb.STICKS_ALWAYS if contact.sticks_always else 0)

    def _first_of_entry(self, index: int) -> int:
        """Number of the first contact that the same entry of the model stands for."""
        entries = [contact.entry or name for name, contact in self.automaton.mechanism.contacts.items()]
        return entries.index(entries[index])

    def _transitions(self) -> npt.NDArray[np.int64]:
        automaton = self.automaton
        names = [contact.name for contact in automaton.contacts]
        table = np.zeros((len(automaton.whens), tb.TRANSITION_WIDTH), np.int64)
        for i, item in enumerate(automaton.mechanism.transitions):
            table[i, tb.TRANSITION_STOP] = item.stop
            table[i, tb.TRANSITION_RESET] = self._resets[i]
            if item.on is not None:
                table[i, tb.TRANSITION_EVENT] = _EVENTS[item.on[1]]
                table[i, tb.TRANSITION_CONTACT] = names.index(item.on[0])
        return table

    def _transition_states(self) -> npt.NDArray[np.int8]:
        """Contact states that each transition's target asks for, -1 where it leaves them open."""
        automaton = self.automaton
        table = np.full((len(automaton.whens), len(automaton.contacts)), -1, np.int8)
        patterns = {pattern.name: pattern.states for pattern in automaton.patterns}
        modes = {mode.name: dict(enumerate(mode.states)) for mode in automaton.modes}
        for i, item in enumerate(automaton.mechanism.transitions):
            if item.target is not None:
                for contact, code in patterns.get(item.target, modes.get(item.target, {})).items():
                    table[i, contact] = code
        return table

    def _transition_leaves(self) -> npt.NDArray[np.int8]:
        automaton = self.automaton
        table = np.zeros((len(automaton.whens), len(self.charts)), np.int8)
        for number, chart in enumerate(self.charts):
            for i in automaton.leaving(automaton.name_of(chart.programs.states)):
                table[i, number] = 1
        return table


def _outline(contact: ContactInfo) -> int:
    """Return the entry of :attr:`fsm_dyn.simulation.tables.Tables.contact_outline`."""
    return -2 - contact.outline if contact.kind == "compliant" and contact.outline >= 0 else contact.outline
