"""Poincaré sections of a motion, and its relabelling by symmetry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from fsm_dyn.analysis.analysis_setup import AnalysisSetup
from fsm_dyn.analysis.linearisation import jacobian
from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.core.errors import InputError, did_you_mean
from fsm_dyn.derive.elimination import Array
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.laws import LAWS, WORDS
from fsm_dyn.language.node_algebra import ScalarAlgebra
from fsm_dyn.programs.graph import Node
from fsm_dyn.programs.layout import Layout
from fsm_dyn.programs.program import Program
from fsm_dyn.programs.traversal import substitute
from fsm_dyn.run.extremes import quartic
from fsm_dyn.run.loop_state import RunArrays
from fsm_dyn.runtime.abi import Reason

# -- Sections: events or zero crossings, met once per cycle --------------------------------------------------

SOONEST = 1e-7  # s; begun on the section itself, a motion has not returned to it yet
ARMED = 1e-9  # an expression must have been this far (its own unit) on the other side to cross
SAMPLES = np.linspace(0.0, 1.0, 9)  # fractions of a step for the evaluation of an expression


@dataclass(frozen=True)
class EventSection:
    """An event of a contact (``event`` > 0), or a user-defined transition (``event`` = 0, ``subject`` its index)."""

    text: str
    event: int
    subject: int

    def rows(self, raw: RunArrays, after: float = 0.0) -> Iterator[int]:
        """Yield the rows just after such transitions of a run past a time (s)."""
        found = raw.transitions
        for number in range(len(found)):
            soon = found.time[number] <= max(after, float(raw.t[0])) + SOONEST
            if soon or found.reason[number] not in (Reason.EVENT, Reason.ZENO):
                continue
            fired = range(int(found.fired[number]))
            contact = any(
                found.event[number, k] == self.event and found.contact[number, k] == self.subject for k in fired
            )
            if contact if self.event else found.written[number] == self.subject:
                yield int(found.row[number])


@dataclass(frozen=True)
class CrossingSection:
    """Zero crossing of an expression: ``program`` gives ``value`` () and ``by_state`` (n_x,); ``sign`` 1: rising."""

    text: str
    sign: float
    program: Program

    def times(self, setting: AnalysisSetup, raw: RunArrays) -> Iterator[tuple[int, float]]:
        """Yield when a run crosses, on its dense output, with the row before.  A jump across is no crossing."""
        armed = False
        for row in range(len(raw.t) - 1):
            h = float(raw.t[row + 1] - raw.t[row])
            if h <= 0.0:
                continue
            values = self.sign * self._along(setting, raw, row, SAMPLES)
            armed = armed and values[0] < 0.0
            for k in range(len(SAMPLES)):
                if armed and values[k] >= 0.0:
                    yield row, float(raw.t[row]) + h * self._root(setting, raw, row, SAMPLES[k - 1], SAMPLES[k])
                    armed = False
                armed = armed or values[k] < -ARMED

    def _along(self, setting: AnalysisSetup, raw: RunArrays, row: int, theta: Array) -> Array:
        n = len(theta)

        def repeated(values: Array) -> Array:
            return np.repeat(values[None, :], n, axis=0)

        h = np.full(n, raw.t[row + 1] - raw.t[row])
        x = quartic(
            theta, h, repeated(raw.x[row]), repeated(raw.x_dot[row]), repeated(raw.x_mid[row + 1]),
            repeated(raw.x[row + 1]), repeated(raw.x_dot[row + 1]),
        )  # fmt: skip
        context = setting.context(repeated(raw.held[row]))
        value = self.program.evaluate(raw.t[row] + theta * h, x, context)["value"]
        return np.broadcast_to(value, (n,))

    def _root(self, setting: AnalysisSetup, raw: RunArrays, row: int, low: float, high: float) -> float:
        """Bisect: few evaluations matter here, none is lost to a kink."""
        for _ in range(60):
            middle = 0.5 * (low + high)
            if self.sign * self._along(setting, raw, row, np.array([middle]))[0] >= 0.0:
                high = middle
            else:
                low = middle
        return high


Section = EventSection | CrossingSection


def read_section(automaton: Automaton, text: str) -> Section:
    """Return the section of a text.

    Parameters
    ----------
    automaton : Automaton
        The mechanism of its names.
    text : str
        ``<contact> closes | opens | sticks | slides`` or another event of its law, the name of a user-defined
        transition, or an expression of coordinates, speeds, parameters and outputs followed by ``rising`` or
        ``falling``.

    Raises
    ------
    InputError
        It is none of these.
    """
    words = text.split()
    laws = {contact.name: contact.contact_law for contact in automaton.contacts}
    contacts, word = list(laws), " ".join(words[1:])
    transitions = {item.name: i for i, item in enumerate(automaton.mechanism.transitions)}
    transitions |= {item.because: i for i, item in enumerate(automaton.mechanism.transitions) if item.because}
    if any(word == law.word(event) for law in LAWS for event in WORDS):
        if words[0] not in contacts:
            raise InputError(
                f"no contact '{words[0]}'", allowed=", ".join(contacts), remedy=did_you_mean(words[0], contacts)
            )
        events = {laws[words[0]].word(event): event for event in WORDS}
        if word not in events:
            raise InputError(f"'{words[0]}' never {word}", allowed=", ".join(events))
        return EventSection(text, int(events[word]), contacts.index(words[0]))
    if text in transitions:
        return EventSection(text, 0, transitions[text])
    if len(words) > 1 and words[-1] in ("rising", "falling"):
        program = _expression(automaton, text.rsplit(None, 1)[0])
        return CrossingSection(text, 1.0 if words[-1] == "rising" else -1.0, program)
    raise InputError(
        "the section is not valid",
        found=f"'{text}'",
        allowed="'<contact> closes' (opens, sticks, slides), the name or reason of a user-defined transition, or"
        " '<expression> rising' or 'falling'",
        remedy=did_you_mean(words[0] if words else "", [*contacts, *transitions]),
    )


def _expression(automaton: Automaton, text: str) -> Program:
    graph, symbols, nodes = automaton.report.graph()
    layout = automaton.report.layout
    outputs = dict(zip(automaton.mechanism.outputs, nodes["outputs"], strict=True))
    names = {**outputs, **symbols, "pi": graph.constant(float(np.pi))}
    value = ScalarAlgebra(graph, names).scalar(Text(text))
    by_state = jacobian([value], [symbols[name] for name in layout.x])[0]
    return Program.from_nodes(layout, {"value": value, "by_state": by_state})


# -- Relabelling ---------------------------------------------------------------------------------------------
#
# After half a cycle of a symmetric mechanism left and right have changed places.

SAME = 1e-9


@dataclass(frozen=True)
class Relabelling:
    """Exchange of names after a return.

    ``x_new = matrix @ x + shift``, and memory changes by ``memory_shift``; contact k takes the role of ``contacts[k]``,
    its slip with the sign ``slips[k]``.
    """

    matrix: Array
    shift: Array
    memory_shift: Array
    contacts: tuple[int, ...]
    slips: tuple[float, ...]

    @classmethod
    def of(
        cls, automaton: Automaton, names: Mapping[str, str], growth: Mapping[str, float], x: Array, context: Array
    ) -> Relabelling:
        """Read ``{"qL": "qR", "qR": "qL"}``: the new value of a name is the old one of another (``-q``: its negative).

        Coordinates and memory under ``growth`` have grown by its values, and are set back by them. Speeds named
        ``<q>_dot`` follow their coordinates. Contacts follow from the geometry: their gaps are compared at states near
        ``x``; if several match, contacts may be named as well.

        Raises
        ------
        InputError
            A name is unknown, two names would take the same value, or a contact has no counterpart.
        """
        layout = automaton.terms.layout
        contacts = [contact.name for contact in automaton.contacts]
        matrix, chosen = np.eye(layout.n_x), {}
        given = dict(names)
        for new, old in names.items():
            sign, bare = ("-", old[1:].strip()) if old.startswith("-") else ("", old)
            if f"{new}_dot" in layout.u and f"{bare}_dot" in layout.u:
                given.setdefault(f"{new}_dot", f"{sign}{bare}_dot")
        for new, old in given.items():
            bare = old[1:].strip() if old.startswith("-") else old
            for name in (new, bare):
                if name not in layout.x and name not in contacts:
                    raise InputError(f"symmetry: unknown '{name}'", remedy=did_you_mean(name, (*layout.x, *contacts)))
            if (new in contacts) != (bare in contacts):
                raise InputError(f"symmetry: '{new}' and '{bare}' are not of one kind")
            if new in contacts:
                chosen[contacts.index(new)] = contacts.index(bare)
            else:
                row = layout.x.index(new)
                matrix[row] = 0.0
                matrix[row, layout.x.index(bare)] = -1.0 if old != bare else 1.0
        if np.linalg.matrix_rank(matrix) < layout.n_x:
            raise InputError("symmetry: two names take the same value", remedy="name both: {'a': 'b', 'b': 'a'}")
        shift = np.array([-growth.get(name, 0.0) for name in layout.x])
        memory_shift = np.array([-growth.get(name, 0.0) for name in layout.memory])
        if not names and not growth:
            return cls(matrix, shift, memory_shift, tuple(range(len(contacts))), (1.0,) * len(contacts))
        later = context.copy()
        later[layout.memory_slice] -= memory_shift
        found = _counterparts(automaton, matrix, shift, chosen, x, (later, context))
        return cls(matrix, shift, memory_shift, *found)

    def state(self, x: Array) -> Array:
        """Return a state, shape (n_x,), under its new names."""
        renamed: Array = self.matrix @ x + self.shift
        return renamed

    def states(self, states: tuple[int, ...]) -> tuple[int, ...]:
        """Return contact states under their new names."""
        return tuple(states[m] for m in self.contacts)

    def context(self, context: Array, layout: Layout) -> Array:
        """Return a context with the slip directions under their new names, and memory set back."""
        new, sigma = context.copy(), layout.sigma_slice
        new[sigma] = context[sigma][list(self.contacts)] * self.slips
        new[layout.memory_slice] += self.memory_shift
        return new

    def section(self, section: Section) -> Section:
        """Return the section, under the old names, at the end of a cycle from ``section``."""
        if isinstance(section, EventSection):
            return replace(section, subject=self.contacts[section.subject]) if section.event else section
        if np.array_equal(self.matrix, np.eye(len(self.matrix))) and not self.shift.any():
            return section
        graph, symbols, nodes = section.program.graph()
        x = [symbols[name] for name in section.program.layout.x]
        mixed = [
            sum((float(a) * s for a, s in zip(row, x, strict=True) if a), graph.constant(float(by)))
            for row, by in zip(self.matrix, self.shift, strict=True)
        ]
        outputs = [nodes["value"].item(), *(nodes["by_state"] @ self.matrix)]
        outputs = [n if isinstance(n, Node) else graph.constant(n) for n in outputs]
        moved = substitute(outputs, dict(zip(x, mixed, strict=True)))
        program = Program.from_nodes(section.program.layout, {"value": moved[0], "by_state": moved[1:]})
        return CrossingSection(section.text, section.sign, program)


def _counterparts(
    automaton: Automaton,
    matrix: Array,
    shift: Array,
    chosen: Mapping[int, int],
    x: Array,
    contexts: tuple[Array, Array],
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Every contact's counterpart with its gap and slip after the exchange of left and right, and the slip's sign.

    ``contexts``: with the old and the new names.
    """
    random = np.random.default_rng(20030818)
    states = x + 0.3 * random.uniform(-1.0, 1.0, (6, len(x)))
    n_q = len(automaton.terms.layout.q)

    def seen(at: Array, context: Array) -> Array:
        terms = automaton.terms.evaluate(0.0, at, np.tile(context, (len(at), 1)))
        speeds = np.einsum("trj,tj->tr", terms["A"][..., : len(x) - n_q], at[:, n_q:]) + terms["b"]
        columns = np.zeros((2, len(automaton.contacts), len(at)))
        for k, contact in enumerate(automaton.contacts):
            if contact.normal_row >= 0:
                columns[0, k] = terms["residual"][:, contact.normal_row]
            if contact.tangent_row >= 0:
                columns[1, k] = speeds[:, contact.tangent_row]
        return columns

    renamed = states @ matrix.T + shift
    _require_same_motion(automaton, matrix, states, renamed, contexts)
    old, new = (seen(at, context) for at, context in zip((states, renamed), contexts, strict=True))
    found, signs = [], []
    for k, contact in enumerate(automaton.contacts):
        fits = {
            m: sign
            for sign in (-1.0, 1.0)
            for m in range(len(automaton.contacts))
            if max(np.abs(new[0, k] - old[0, m]).max(), np.abs(new[1, k] - sign * old[1, m]).max()) <= SAME
        }
        m = chosen.get(k, k if k in fits else next(iter(fits), -1))
        if m < 0:
            raise InputError(
                f"symmetry: contact '{contact.name}' has no counterpart when the names change places",
                remedy="name all coordinates and speeds that change places, and the contacts if their forms differ",
            )
        found.append(m)
        signs.append(fits.get(m, 1.0))
    return tuple(found), tuple(signs)


def _require_same_motion(
    automaton: Automaton, matrix: Array, states: Array, renamed: Array, contexts: tuple[Array, Array]
) -> None:
    """Refuse an exchange of names that changes the mechanism: rates must follow the coordinates, energies must stay."""
    n_q = len(automaton.terms.layout.q)
    old, new = (
        automaton.terms.evaluate(0.0, at, np.tile(context, (len(states), 1)))
        for at, context in zip((states, renamed), contexts, strict=True)
    )
    for what, difference in (
        ("the rates of the coordinates do not follow", new["q_dot"] - old["q_dot"] @ matrix[:n_q, :n_q].T),
        ("the kinetic energy is another", new["energies"][..., 0] - old["energies"][..., 0]),
    ):
        if np.abs(difference).max(initial=0.0) > SAME * (1.0 + np.abs(old["q_dot"]).max()):
            raise InputError(
                f"symmetry: the mechanism is not the same under the new names: {what}",
                remedy="name the speeds that change places too; speeds <q>_dot follow by themselves",
            )
