"""Sections: the instants at which a motion is looked at once per cycle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fsm_dyn.analysis.analysis_setup import AnalysisSetup
from fsm_dyn.analysis.jacobians import Array, jacobian
from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.errors import InputError, did_you_mean
from fsm_dyn.expressions import Text
from fsm_dyn.expressions.node_algebra import ScalarAlgebra
from fsm_dyn.laws import LAWS, WORDS
from fsm_dyn.programs import Program
from fsm_dyn.renamed import warn_renamed
from fsm_dyn.results.dense import quartic
from fsm_dyn.runtime.abi import Reason
from fsm_dyn.simulation.run_arrays import RunArrays
from fsm_dyn.spec.older_spellings import EVENTS

SOONEST = 1e-7  # s; begun on the section itself, a motion has not returned to it yet
ARMED = 1e-9  # an expression must have been this far (its own unit) on the other side to cross
SAMPLES = np.linspace(0.0, 1.0, 9)  # where an expression is looked at within a step


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
    """An expression that crosses zero: ``program`` gives ``value`` () and ``by_state`` (n_x,); ``sign`` 1 is rising."""

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
    """Return what a section's text means.

    Parameters
    ----------
    automaton : Automaton
        The mechanism in which its names are looked up.
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
    if word in EVENTS:
        warn_renamed("event", word, EVENTS[word])
        word = EVENTS[word]
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
