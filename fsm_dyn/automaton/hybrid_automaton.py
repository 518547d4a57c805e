"""Compiled mechanism: programs, modes and edges as frozen data, sufficient for runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, fields, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from fsm_dyn.automaton.labels import Labels
from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.assembly import PrescribedValues, assemble, curve_parameter_solver, land
from fsm_dyn.derive.embedding import ActiveSet, closed_place
from fsm_dyn.derive.enumeration import ModeName, Pattern, name_mode, named_when_open
from fsm_dyn.derive.guards import Guard, list_guards
from fsm_dyn.derive.mode_programs import ModePrograms, chart_with, derive_mode
from fsm_dyn.derive.unconstrained_system import (
    FOLLOWS,
    ContactInfo,
    RowInfo,
    TreePattern,
    UnconstrainedSystem,
    UserTransitionInfo,
    of_one_corner,
    shared_name,
)
from fsm_dyn.language.evaluate import evaluate_expression
from fsm_dyn.language.memory import parameters_of_contacts
from fsm_dyn.language.model import Mechanism, placed
from fsm_dyn.language.scales import Numbers, Units, units_of
from fsm_dyn.language.values import named_values, parameter_values
from fsm_dyn.programs.program import Program
from fsm_dyn.programs.traversal import support
from fsm_dyn.runtime.abi import Event
from fsm_dyn.runtime.library import ELEMENTARY

# -- Compiled mechanism --------------------------------------------------------------------------------------
#
# Programs, modes and edges as frozen data, sufficient for runs, without SymPy.

SAMPLES = 6  # configurations, in addition to the present one, that guide the choice of a chart
SPREAD = 0.3  # their distance from it, per coordinate (rad, m)


_ATAN2 = np.vectorize(ELEMENTARY["atan2"], otypes=[np.float64])  # NumPy's depends on the processor


def slip_angle(slips: Floats, kept: float, unit: float) -> Floats:
    """Return the angle of slips (..., 2) in the tangent plane, in (0, 2π]; without slip the angle ``kept``.

    ``slips``, shape (..., 2): components of slip velocities in the tangent plane, m/s. ``kept``: angle without slip,
    rad. ``unit``: the mechanism's own unit of speed, m/s; slips far below it have no direction.
    """
    angle = _ATAN2(slips[..., 1], slips[..., 0])
    angle = np.where(angle <= 0.0, angle + 2.0 * np.pi, angle)
    found: Floats = np.where(np.hypot(slips[..., 0], slips[..., 1]) > FOLLOWS * unit, angle, kept)
    return found


@dataclass(frozen=True)
class DerivedMode:
    """One mode, derived: its name, the pattern it falls under, and its programs in one chart."""

    name: str
    pattern: str
    programs: ModePrograms

    @property
    def states(self) -> tuple[int, ...]:
        """Contact state codes."""
        return self.programs.states

    @property
    def guards(self) -> tuple[Guard, ...]:
        """Guards of the mode, in the order of the full program's output."""
        return self.programs.guards


@dataclass(frozen=True)
class Automaton:
    """A compiled mechanism."""

    #: Whether accelerations and multipliers of modes are solved for together.
    together: ClassVar[bool] = False

    mechanism: Mechanism  # the compiled model, with its parameters, schedules and initial values
    rows: tuple[RowInfo, ...]
    contacts: tuple[ContactInfo, ...]
    user_transitions: tuple[UserTransitionInfo, ...]
    quaternions: tuple[int, ...]
    n_kinematic: int
    # terms, report, geometry: unconstrained terms; energies, powers and outputs; points and frames for drawing
    terms: Program
    report: Program
    geometry: Program
    load_names: tuple[str, ...]
    point_names: tuple[str, ...]
    frame_names: tuple[str, ...]
    resets: tuple[Program | None, ...]  # one per user-defined transition
    modes: tuple[DerivedMode, ...] = ()  # modes derived so far
    infeasible: Mapping[str, str] = field(default_factory=dict)  # infeasible modes, with the reason
    # whether ``modes`` are complete; otherwise further modes are derived when first reached
    fully_enumerated: bool = True
    # of mechanisms with many bodies: meaning of the entries of the output ``tree`` of ``terms``
    pattern: TreePattern | None = None
    sample: Program | None = None  # all memory after a sample of controllers; None without controllers

    @cached_property
    def numbers(self) -> Numbers:
        """The numbers of the model that determine its own units."""
        return Numbers.of(self.mechanism)

    @cached_property
    def units(self) -> Units:
        """The mechanism's own units with the parameters of its file."""
        scales = self.numbers.scales(parameter_values(self.mechanism))
        layout, rows = self.terms.layout, [(row.name, row.role) for row in self.rows]
        return units_of(self.mechanism, scales, layout.q, layout.u, rows)

    @cached_property
    def curve_parameters(self) -> tuple[int, ...]:
        """Indices in q of the curve parameters of contacts."""
        return tuple(self.terms.layout.q.index(name) for name in parameters_of_contacts(self.mechanism))

    @cached_property
    def system(self) -> UnconstrainedSystem:
        """The unconstrained terms as nodes; built when a mode or chart is to be derived.

        Their graph is sealed, so a derivation leaves no trace that could change the next one.
        """
        system = UnconstrainedSystem.build(
            self.terms,
            self.rows,
            self.contacts,
            self.user_transitions,
            self.quaternions,
            self.n_kinematic,
            self.pattern,
            self.units,
            self.curve_parameters,
        )
        system.graph.seal()
        return system

    @cached_property
    def moving_inputs(self) -> tuple[str, ...]:
        """Inputs in constraint rows on coordinates; they must be continuous."""
        residuals = [node for node, row in zip(self.system.nodes["residual"], self.rows, strict=True) if row.positional]
        names = {symbol.name for symbol in support(residuals)}
        return tuple(name for name in self.terms.layout.w if name in names)

    @cached_property
    def inputs_with_rates(self) -> tuple[str, ...]:
        """Inputs whose rates enter the equations; a jump of their slope is a jump of forces or speeds."""
        nodes = [node for array in self.system.nodes.values() for node in array.ravel()]
        names = {symbol.name for symbol in support(nodes)}
        return tuple(w for w in self.terms.layout.w if {f"{w}.rate", f"{w}.rate2"} & names)

    @cached_property
    def patterns(self) -> tuple[Pattern, ...]:
        """The named patterns of the model with their contact states as codes."""
        index = {contact.name: i for i, contact in enumerate(self.contacts)}
        return tuple(
            Pattern(
                mode.name,
                {index[name]: self.contacts[index[name]].states.index(state) for name, state in mode.states.items()},
            )
            for mode in self.mechanism.modes.values()
        )

    @cached_property
    def labels(self) -> Labels:
        """Labels of modes for the user, with the parameters of the model."""
        return Labels(self.mechanism, self.contacts, self.patterns)

    @cached_property
    def rows_by_name(self) -> Mapping[str, list[int]]:
        """The numbers of the rows of each contact and constraint."""
        found: dict[str, list[int]] = {}
        for number, row in enumerate(self.rows):
            found.setdefault(row.name, []).append(number)
        return found

    def name_of(self, states: Sequence[int]) -> ModeName:
        """Name a combination of contact states."""
        return name_mode(self.contacts, self.patterns, states, self._named_when_open)

    @cached_property
    def _named_when_open(self) -> frozenset[int]:
        return named_when_open(self.contacts)

    def find(self, states: Sequence[int]) -> int:
        """Index of the mode with these contact states, -1 if it is not derived yet."""
        key = tuple(int(code) for code in states)
        return next((i for i, mode in enumerate(self.modes) if mode.states == key), -1)

    def outgoing_transitions(self, name: ModeName) -> list[int]:
        """Indices of the user-defined transitions out of a mode."""
        return [
            index
            for index, item in enumerate(self.mechanism.transitions)
            if item.source in ("*", name.name, name.pattern)
        ]

    def derive(self, states: Sequence[int], t: float, x: Floats, c: Floats, first: bool = False) -> DerivedMode:
        """Derive the mode with these contact states in a chart valid at and around a state.

        The ``first`` chart has the independent speeds that the model names for the mode.
        """
        name = self.name_of(states)
        with placed(self.mechanism):
            samples = self.samples(states, t, x, c)
            wanted = self.mechanism.modes[name.pattern] if first and name.pattern in self.mechanism.modes else None
            chart = None
            if wanted is not None and wanted.independent:
                chart = chart_with(self.system, states, samples, wanted.independent, wanted.where)
            leaving = self.outgoing_transitions(name)
            programs = derive_mode(self.system, tuple(states), leaving, samples, chart, together=self.together)
        return DerivedMode(name.name, name.pattern, programs)

    def samples(
        self, states: Sequence[int], t: float, x: Floats, c: Floats, *, loops_closed: bool = True
    ) -> dict[str, Floats]:
        """The terms at a state and, beyond it, at configurations near it; the same ones every time.

        If loops have to stay closed, a model with loops is sampled at the state alone.
        """
        random = np.random.default_rng(20030818)
        n_q = len(self.terms.layout.q)
        rows = np.tile(x, (SAMPLES + 1, 1))
        rows[1:, :n_q] += SPREAD * self.units.q * random.uniform(-1.0, 1.0, (SAMPLES, n_q))
        for first in self.quaternions:
            rows[1:, first : first + 4] /= np.linalg.norm(rows[1:, first : first + 4], axis=1, keepdims=True)
        values = self.terms.evaluate(t, rows, np.tile(c, (len(rows), 1)))
        finite = np.all(np.isfinite(values["A"].reshape(len(rows), -1)), axis=1)
        finite &= np.all(np.isfinite(values["M"].reshape(len(rows), -1)), axis=1)
        finite[0] = True
        values = {name: value[finite] for name, value in values.items()}
        # magnitude of the entries of a row near this state; much smaller values are rounding
        values["A_size"] = np.tile(np.abs(values["A"]).max(axis=0), (int(finite.sum()), 1, 1))
        if loops_closed and any(row.positional and row.role == "position" for row in self.rows):
            finite, values = finite[:1], {name: value[:1] for name, value in values.items()}
        sigma = np.where(c[self.terms.layout.sigma_slice] < 0.0, -1.0, 1.0)
        values["way"] = np.zeros((int(finite.sum()), len(sigma), 2))
        values["way"][:, :, 0] = sigma
        for k, contact in enumerate(self.contacts):
            if contact.in_space:
                sigma[k] = c[self.terms.layout.sigma_slice][k]
                slips = values["A"][:, contact.tangent_rows, : len(self.terms.layout.u)] @ x[self.terms.layout.u_slice]
                angle = slip_angle(slips + values["b"][:, contact.tangent_rows], sigma[k], self.units.speed)
                values["way"][:, k] = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
        place_c = c.copy()
        place_c[self.terms.layout.sigma_slice] = sigma
        values |= {"place_t": np.array([t]), "place_x": self.touching(states, t, x, c), "place_c": place_c}
        return values

    def touching(self, states: Sequence[int], t: float, x: Floats, c: Floats) -> Floats:
        """The state with the contacts of a mode brought to touch, if possible."""
        rows = [r for r in ActiveSet.of(self.system, states).rows if self.rows[r].positional]
        if not rows:
            return x
        return closed_place(self.system.configuration, rows, t, x, c, self.units, self.quaternions)

    def with_mode(self, mode: DerivedMode) -> Automaton:
        """The same automaton with one more mode.

        A mode infeasible with the model's own parameters may be reached with others.
        """
        pruned = {name: reason for name, reason in self.infeasible.items() if name != mode.name}
        grown = replace(self, modes=(*self.modes, mode), infeasible=pruned)
        grown.__dict__["system"] = self.system
        for name in ("labels", "numbers", "units"):
            if name in self.__dict__:
                grown.__dict__[name] = self.__dict__[name]
        return grown

    def with_enumeration(self, infeasible: Mapping[str, str], fully_enumerated: bool) -> Automaton:
        """The same automaton with its infeasible modes, and whether modes may be added later."""
        known = replace(self, infeasible=dict(infeasible), fully_enumerated=fully_enumerated)
        known.__dict__["system"], known.__dict__["units"] = self.system, self.units
        return known

    def assemble(self, states: Sequence[int], given: PrescribedValues) -> Floats:
        """Find a state in the mode with these contact states; see :func:`fsm_dyn.derive.assembly.assemble`."""
        guess = self.mechanism.initial.guess
        if guess:
            values = named_values(self.mechanism, list(given.context[self.terms.layout.p_slice]))
            own = {name: evaluate_expression(text, values) for name, text in guess.items()}
            given = replace(given, guess={**own, **given.guess})
        return assemble(self.system, states, given, self._follow(given.t, given.context))

    def land(self, states: Sequence[int], t: float, x: Floats, context: Floats) -> Floats:
        """Move a start onto the rows of its mode; see :func:`fsm_dyn.derive.assembly.land`."""
        return land(self.system, states, t, x, context, self._follow(t, context))

    def _follow(self, t: float, context: Floats) -> Callable[[Floats], Floats]:
        return curve_parameter_solver(self.geometry, self.curve_parameters, t, context)


@dataclass(frozen=True)
class AutomatonByMultipliers(Automaton):
    """An automaton whose modes are derived with accelerations and multipliers solved for together."""

    together: ClassVar[bool] = True

    @classmethod
    def of(cls, automaton: Automaton) -> AutomatonByMultipliers:
        """Return the automaton of a model without derived modes."""
        return cls(**{item.name: getattr(automaton, item.name) for item in fields(automaton)} | {"modes": ()})


# -- Edges of the mode graph: target modes of each guard of a mode -------------------------------------------
#
# Event resolution decides the target of a run; an edge shows the effect of one guard alone, with its reset. If several
# contacts change together, the run takes an edge of each.


@dataclass(frozen=True)
class Edge:
    """One edge: ``priority`` 0 is a user-defined transition, 1 a contact's event; ``reset`` names the jumps."""

    source: str
    target: str
    guard: str
    event: str
    cause: str
    direction: str
    reset: str
    priority: int
    kind: str


def edges(automaton: Automaton) -> Iterator[Edge]:
    """Yield the edges between the modes derived so far; a limit of either sign of a force has one."""
    yield from dict.fromkeys(_all_edges(automaton))


def _all_edges(automaton: Automaton) -> Iterator[Edge]:
    by_states = {mode.states: mode for mode in automaton.modes}
    for mode in automaton.modes:
        for guard in mode.guards:
            for target, cause, reset, kind in _leads_to(automaton, mode.states, guard):
                found = by_states.get(target)
                if found is None:
                    continue
                written = guard.event is Event.TRANSITION
                event = "transition" if written else automaton.contacts[guard.subject].contact_law.verb(guard.event)
                yield Edge(mode.name, found.name, guard.text, event, cause, "falling", reset, 0 if written else 1, kind)
        yield from _on_events(automaton, mode)


def successors(automaton: Automaton, states: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield the contact states after each guard of a mode alone; neither mode need be derived."""
    yield from (target for target, *_ in _by_guards(automaton, states))


def outgoing(automaton: Automaton, states: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], str, str]]:
    """Yield target states, cause and kind of the edges out of a mode by guards and events; no mode need be derived."""
    yield from _by_guards(automaton, states)
    for index in automaton.outgoing_transitions(automaton.name_of(states)):
        item = automaton.mechanism.transitions[index]
        if item.on is not None:
            cause = item.because or f"{item.on[0]} {item.on[1]}"
            yield _written_target(automaton, states, index), cause, "written"


def _by_guards(automaton: Automaton, states: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], str, str]]:
    for guard in list_guards(automaton.system, states, automaton.outgoing_transitions(automaton.name_of(states))):
        for target, cause, _, kind in _leads_to(automaton, states, guard):
            if target != states:
                yield target, cause, kind


def _leads_to(
    automaton: Automaton, states: tuple[int, ...], guard: Guard
) -> Iterator[tuple[tuple[int, ...], str, str, str]]:
    if guard.event is Event.TRANSITION:
        item = automaton.mechanism.transitions[guard.subject]
        if item.range_of:
            return  # the run ends there
        yield _written_target(automaton, states, guard.subject), item.because or guard.text, _reset(item), "written"
        return
    contact = automaton.contacts[guard.subject]
    verb = contact.contact_law.verb(guard.event)
    cause = f"{contact.name} {verb}"

    def to(code: int, subject: int = guard.subject) -> tuple[int, ...]:
        return tuple(code if i == subject else s for i, s in enumerate(states))

    if guard.event is Event.CLOSES:
        jump = "impact" if contact.contact_law.has_gap else ""
        if jump:
            name = shared_name(automaton.contacts, guard.subject)
            yield states, f"{name} {automaton.labels.impact_words(guard.subject)}", jump, "impact"
        for index in of_one_corner(automaton.contacts, guard.subject):
            closing = automaton.contacts[index]
            for code in closing.codes[1:]:
                yield to(code, index), f"{closing.name} {verb}", jump, "contact"
        return
    sense = f" ({'+' if guard.direction > 0 else '-'})" if guard.event is Event.SLIDES else ""
    for code in contact.contact_law.ends_in(contact, states[guard.subject], guard.event):
        yield to(code), cause + sense, "", "contact"
    if guard.event is Event.STICKS:
        yield states, f"{contact.name} reverses its slip", "", "contact"


def _written_target(automaton: Automaton, before: tuple[int, ...], index: int) -> tuple[int, ...]:
    item = automaton.mechanism.transitions[index]
    states = list(before)
    for pattern in automaton.patterns:
        if pattern.name == item.target:
            for contact, code in pattern.states.items():
                states[contact] = code
    for other in automaton.modes:
        if other.name == item.target:
            states = list(other.states)
    for number, known in enumerate(automaton.contacts):
        if known.name in item.switches:
            states[number] = known.states.index(item.switches[known.name])
    return tuple(states)


def _reset(item: object) -> str:
    parts = {**getattr(item, "reset", {}), **getattr(item, "set", {})}
    return ", ".join(f"{name} := {text}" for name, text in parts.items())


def _on_events(automaton: Automaton, mode: DerivedMode) -> Iterator[Edge]:
    by_states = {other.states: other for other in automaton.modes}
    for index in automaton.outgoing_transitions(automaton.name_of(mode.states)):
        item = automaton.mechanism.transitions[index]
        if item.on is None:
            continue
        found = by_states.get(_written_target(automaton, mode.states, index))
        if found is not None:
            cause = f"{item.on[0]} {item.on[1]}"
            yield Edge(
                mode.name, found.name, cause, item.on[1], item.because or cause, "falling", _reset(item), 0, "written"
            )
