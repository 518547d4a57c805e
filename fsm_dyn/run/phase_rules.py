"""Phases as numbers for machines that follow them: comparisons, conditions on contact states, rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.core.arrays import FloatArray
from fsm_dyn.language.check_references import contacts_named
from fsm_dyn.language.laws import FREE
from fsm_dyn.language.node_algebra import ScalarAlgebra
from fsm_dyn.language.requirement import Conjunction, MeasuredQuantity, QuantityComparison, StateCondition
from fsm_dyn.programs import functions
from fsm_dyn.programs.graph import ExpressionGraph, Node
from fsm_dyn.programs.program import Program
from fsm_dyn.run.phase_visits import NO_PHASE
from fsm_dyn.run.pins import pin_programs

_ABOVE: Final = (">", ">=")
_STRICT: Final = ("<", ">")


@dataclass(frozen=True)
class ContactTest:
    """A condition on contact states: whether all contacts are in their states, or one suffices; or not so."""

    pairs: tuple[tuple[int, int], ...]
    one_suffices: bool
    negated: bool

    def holds(self, states: Sequence[int]) -> bool:
        """Whether it is true of the states of all contacts."""
        fits = (states[contact] == code for contact, code in self.pairs)
        return (any(fits) if self.one_suffices else all(fits)) != self.negated


@dataclass(frozen=True)
class PhaseRule:
    """A phase: those it may follow (none: all), and conjunctions of numbers of conditions that begin and end it."""

    after: tuple[int, ...]
    when: tuple[tuple[int, ...], ...]
    until: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class PhaseRules:
    """Phases of a model.  Conditions are numbered: first comparisons, then those on contact states.

    Attributes
    ----------
    names : list of str
    program : Program, optional
        Gives ``margins`` (n_compared,), above zero if a comparison is true; None without comparisons.
    reads_forces : bool
        Whether its state has rates of speeds and multipliers behind it.
    strict : ndarray of int8, shape (n_compared,)
        Whether a comparison is false at zero.
    tests : tuple of ContactTest
    order : tuple of PhaseRule
    """

    names: list[str]
    program: Program | None
    reads_forces: bool
    strict: NDArray[np.int8]
    tests: tuple[ContactTest, ...]
    order: tuple[PhaseRule, ...]

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of ``struct fsm_phases``, see exports/c99/fsm_phases.h."""
        entries = [
            [
                int(test.negated),
                int(test.one_suffices),
                len(test.pairs),
                *(code for pair in test.pairs for code in pair),
            ]
            for test in self.tests
        ]
        rules: list[int] = []
        for rule in self.order:
            rules += [len(rule.after), *rule.after]
            for parts in (rule.when, rule.until):
                rules += [len(parts), *(number for part in parts for number in (len(part), *part))]
        begin = np.cumsum([0, *map(len, entries)])[:-1]
        return {
            "strict": self.strict, "begin": begin.astype(np.int64),
            "states": np.array([code for entry in entries for code in entry], np.int64),
            "rules": np.array(rules, np.int64),
        }  # fmt: skip


class PhaseFollower:
    """Follows the phases of a run judged at successive times, such as ticks.

    Parameters
    ----------
    rules : PhaseRules

    Attributes
    ----------
    phase : int
        Number of the present one; -1 for none.
    """

    def __init__(self, rules: PhaseRules) -> None:
        self._rules = rules
        self.restart()

    def restart(self) -> None:
        """Forget what was judged."""
        self.phase = NO_PHASE
        self._found: list[tuple[bool, bool]] = []

    def judge(self, states: Sequence[int], margins: FloatArray) -> int:
        """Return the phase at the next time.

        Parameters
        ----------
        states : sequence of int
            Of all contacts.
        margins : ndarray, shape (n_compared,)
            Of the comparisons.
        """
        rules, before = self._rules, self.phase
        true = np.where(rules.strict, margins > 0.0, margins >= 0.0).tolist()
        true += [test.holds(states) for test in rules.tests]

        def one_of(parts: tuple[tuple[int, ...], ...]) -> bool:
            return any(all(true[number] for number in part) for part in parts)

        found = [(one_of(rule.when), one_of(rule.until)) for rule in rules.order]
        if found != self._found:
            self._found, self.phase = found, NO_PHASE
            for number, (rule, (begins, ends)) in enumerate(zip(rules.order, found, strict=True)):
                stays = number == before
                follows = stays or not rule.after or before in rule.after
                if follows and (not ends if stays and rule.until else begins):
                    self.phase = number
                    break
        return self.phase


def phase_rules(automaton: Automaton) -> PhaseRules | None:
    """Return the phases of a model; None without any.

    Parameters
    ----------
    automaton : Automaton
    """
    phases = tuple(automaton.mechanism.phases.values())
    if not phases:
        return None
    wanted = dict.fromkeys(item for phase in phases for part in (*phase.when, *phase.until) for item in part)
    compared = [item for item in wanted if isinstance(item, QuantityComparison)]
    states = [item for item in wanted if isinstance(item, StateCondition)]
    numbers: dict[Any, int] = {item: number for number, item in enumerate((*compared, *states))}
    names = [str(phase.name) for phase in phases]

    def numbered(parts: tuple[Conjunction, ...]) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(numbers[item] for item in part) for part in parts)

    reads_forces = any(item.quantity.part or item.quantity.connection for item in compared)
    return PhaseRules(
        names,
        _margins(automaton, compared, reads_forces) if compared else None,
        reads_forces,
        np.array([item.op in _STRICT for item in compared], np.int8),
        tuple(_contact_test(automaton, item) for item in states),
        tuple(
            PhaseRule(tuple(names.index(name) for name in phase.after), numbered(phase.when), numbered(phase.until))
            for phase in phases
        ),
    )


def _contact_test(automaton: Automaton, condition: StateCondition) -> ContactTest:
    mechanism, contacts = automaton.mechanism, automaton.contacts
    if condition.state:
        members = contacts_named(mechanism, condition.name)
        chosen = [number for number, contact in enumerate(contacts) if contact.name in members]
        code = contacts[chosen[0]].states.index(condition.state)
        return ContactTest(tuple((number, code) for number in chosen), code != FREE, condition.negated)
    pattern = next(item for item in automaton.patterns if item.name == condition.name)
    return ContactTest(tuple(pattern.states.items()), False, condition.negated)


def _margins(automaton: Automaton, compared: list[QuantityComparison], reads_forces: bool) -> Program:
    """Return the program of comparisons: quantity less bound, or the reverse, above zero where one is true."""
    graph = ExpressionGraph()
    symbols, known = automaton.report.nodes(graph)
    layout, nodes = automaton.report.layout, dict(symbols)
    nodes |= dict(zip(automaton.mechanism.outputs, known.get("outputs", ()), strict=True))
    if reads_forces:
        programs = pin_programs(automaton.mechanism, [(row.name, row.role) for row in automaton.rows])
        layout = programs.program.layout
        arguments, wrenches = programs.program.nodes(graph)
        nodes = {**arguments, **nodes}
        columns = list(dict.fromkeys(item.quantity.name for item in compared if item.quantity.connection))
        nodes |= dict(zip(columns, programs.quantities(columns, wrenches), strict=True))
    algebra = ScalarAlgebra(graph, {**{name: symbols[name] for name in layout.p}, "pi": graph.constant(np.pi)})

    def margin(item: QuantityComparison) -> Node:
        quantity, bound = item.quantity, algebra.scalar(item.bound)
        value = _contact_force(automaton, quantity, nodes) if quantity.part else nodes[quantity.name]
        value = functions.absolute(value) if quantity.magnitude else value
        return value - bound if item.op in _ABOVE else bound - value

    return Program.from_nodes(layout, {"margins": np.array([margin(item) for item in compared], dtype=object)})


def _contact_force(automaton: Automaton, quantity: MeasuredQuantity, nodes: Mapping[str, Node]) -> Node:
    """Return the force of a contact, or of all feature pairs of an entry together; of friction in space its size."""
    members = contacts_named(automaton.mechanism, quantity.name)
    parts = []
    for contact in automaton.contacts:
        if contact.name in members:
            rows = (contact.normal_row,) if quantity.part == "normal" else contact.tangent_rows
            forces = [nodes[f"lambda[{row}]"] for row in rows]
            parts.append(forces[0] if len(forces) == 1 else functions.sqrt(sum(force * force for force in forces)))
    return parts[0] if len(parts) == 1 else sum(parts[1:], parts[0])
