"""Limit cycles: fixed points of a return map, found by Newton's method."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace

import numpy as np
import numpy.typing as npt

from fsm_dyn.analysis.linearisation import jacobian
from fsm_dyn.analysis.sensitivities import admissible_variations, crossing, jump_rows, propagate_variations
from fsm_dyn.analysis.variations import AnalysisSetup, memory_of_motion
from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.core.arguments import typed
from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import InputError, RunError, did_you_mean
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.embedding import ActiveSet
from fsm_dyn.language.evaluate import ScalarAlgebra, evaluate_expression
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.laws import LAWS, WORDS
from fsm_dyn.language.values import Parameters
from fsm_dyn.programs.graph import Node
from fsm_dyn.programs.program import Layout, Program
from fsm_dyn.programs.traversal import substitute, support
from fsm_dyn.run.extremes import quartic
from fsm_dyn.run.input_signals import InputValue
from fsm_dyn.run.loop_state import RunArrays
from fsm_dyn.run.trajectory import Trajectory
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

    def _along(self, setting: AnalysisSetup, raw: RunArrays, row: int, theta: Floats) -> Floats:
        n = len(theta)

        def repeated(values: Floats) -> Floats:
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

    ``automaton``: the mechanism of its names; ``text``: ``<contact> closes | opens | sticks | slides`` or another event
    of its law, the name of a user-defined transition, or an expression of coordinates, speeds, parameters and outputs
    followed by ``rising`` or ``falling``. Raises InputError: it is none of these.
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

    matrix: Floats
    shift: Floats
    memory_shift: Floats
    contacts: tuple[int, ...]
    slips: tuple[float, ...]

    @classmethod
    def of(
        cls, automaton: Automaton, names: Mapping[str, str], growth: Mapping[str, float], x: Floats, context: Floats
    ) -> Relabelling:
        """Read ``{"qL": "qR", "qR": "qL"}``: the new value of a name is the old one of another (``-q``: its negative).

        Coordinates and memory under ``growth`` have grown by its values, and are set back by them. Speeds named
        ``<q>_dot`` follow their coordinates. Contacts follow from the geometry: their gaps are compared at states near
        ``x``; if several match, contacts may be named as well. Raises InputError: a name is unknown, two names would
        take the same value, or a contact has no counterpart.
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

    def state(self, x: Floats) -> Floats:
        """Return a state, shape (n_x,), under its new names."""
        renamed: Floats = self.matrix @ x + self.shift
        return renamed

    def states(self, states: tuple[int, ...]) -> tuple[int, ...]:
        """Return contact states under their new names."""
        return tuple(states[m] for m in self.contacts)

    def context(self, context: Floats, layout: Layout) -> Floats:
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
    matrix: Floats,
    shift: Floats,
    chosen: Mapping[int, int],
    x: Floats,
    contexts: tuple[Floats, Floats],
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Every contact's counterpart with its gap and slip after the exchange of left and right, and the slip's sign.

    ``contexts``: with the old and the new names.
    """
    random = np.random.default_rng(20030818)
    states = x + 0.3 * random.uniform(-1.0, 1.0, (6, len(x)))
    n_q = len(automaton.terms.layout.q)

    def seen(at: Floats, context: Floats) -> Floats:
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
    automaton: Automaton, matrix: Floats, states: Floats, renamed: Floats, contexts: tuple[Floats, Floats]
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


# -- The return map of a section -----------------------------------------------------------------------------
#
# From just after it to just after it again, with its derivative.

FIRST_HORIZON = 1.0  # s
TOUCHING = 1e-7  # m; a gap closed at the section stays closed during Newton's method
RANK = 1e-9
NEWTON_STEPS = 6
MOST_SHOWN = 5  # values of memory in a message


@dataclass(frozen=True)
class SectionPoint:
    """A state just after the section: ``x`` (n_x,), the context (n_c,) and the contact states of the mode."""

    x: Floats
    context: Floats
    states: tuple[int, ...]


@dataclass(frozen=True)
class Return:
    """One return: the run, the row just after the section, and the point there under its new names."""

    raw: RunArrays
    row: int
    time: float
    point: SectionPoint


class ReturnMap:
    """Returns to a section.

    ``begin``, ``end``: the section, and its name at the return (the other foot, if left and right are exchanged);
    ``longest``: longest time until a return, s; ``advancing``: coordinates and memory without effect on the motion.
    """

    def __init__(
        self,
        setting: AnalysisSetup,
        begin: Section,
        end: Section,
        relabelling: Relabelling,
        longest: float,
        advancing: Collection[str] = (),
    ) -> None:
        self.setting = setting
        self.begin, self.end = begin, end
        self.relabelling = relabelling
        self.longest = longest
        self.horizon = min(FIRST_HORIZON, longest)
        system = setting.executable.automaton.system
        self.system = system
        layout = system.layout
        first = layout.memory_slice.start
        self.kept = [first + layout.memory.index(name) for name in setting.kept]
        #: numbers in the context of the memory required to be the same after a return
        self.separate = [
            first + layout.memory.index(name)
            for name in memory_of_motion(setting.executable.automaton)
            if name not in setting.kept and name not in advancing
        ]

    def state(self, point: SectionPoint) -> Floats:
        """Return the state at a point with the varying memory, shape (n_z,)."""
        return np.concatenate([point.x, point.context[self.kept]])

    def point(self, z: Floats, base: SectionPoint) -> SectionPoint:
        """Return the point with a state, brought onto the active rows of ``base``."""
        n_x, context = len(base.x), base.context.copy()
        context[self.kept] = z[n_x:]
        there = SectionPoint(z[:n_x], context, base.states)
        return SectionPoint(self._consistent(there), context, base.states)

    def reach(self, point: SectionPoint) -> Return:
        """Run from any state to the section itself, without relabelling."""
        raw, row, time = self._run_to(self.begin, point, ())
        return Return(raw, row, time, self._point(raw, row))

    def __call__(self, point: SectionPoint, *, settled: bool = True) -> Return:
        """Run from the section to its next return.

        ``settled``: whether memory is to have its values again, else the return is the next crossing. Raises RunError:
        it does not return.
        """
        raw, row, time = self._run_to(self.end, point, self.separate if settled else ())
        there, new = self._point(raw, row), self.relabelling
        self.horizon = min(1.3 * time, self.longest)
        context = new.context(there.context, self.system.layout)
        return Return(raw, row, time, SectionPoint(new.state(there.x), context, new.states(there.states)))

    def period(self, found: Return, point: SectionPoint) -> float:
        """Return the time of a return to the cycle itself, s.

        A run from a just opened contact may need a moment to open it again. Then the time is taken between two returns
        of one run.
        """
        if not (isinstance(self.end, EventSection) and np.any(found.raw.transitions.reason == Reason.START)):
            return found.time
        raw = self.setting.run(point.x, point.context, point.states, 2.2 * found.time)
        again = self.relabelling.section(self.end)
        if not isinstance(again, EventSection):
            return found.time
        setting = self.setting
        begun = setting.context(found.raw.held[found.row])[self.separate]
        shift = self._shift[self.separate]
        rows = again.rows(raw, found.time)
        row = next((r for r in rows if np.array_equal(setting.context(raw.held[r])[self.separate] + shift, begun)), -1)
        return float(raw.t[row]) - found.time if row >= 0 else found.time

    def derivative(self, found: Return) -> tuple[Floats, Floats]:
        """Return the map's derivative (n_z, n_z), and a basis (n_z, d) of the section just after it."""
        setting, raw, row = self.setting, found.raw, found.row
        n = setting.variations
        if isinstance(self.end, EventSection):
            Y = propagate_variations(setting, raw, row, np.eye(n), on_section=True)
            met = crossing(setting, raw, jump_rows(raw)[row], row)
            if met.follows:
                raise RunError(
                    f"the section '{self.end.text}' follows another transition in the same instant\n  remedy: take that"
                    " one as the section"
                )
            onto = met.section
            before = row - 1
        else:
            Y = propagate_variations(setting, raw, row, np.eye(n))
            context = setting.context(raw.held[row])
            none = np.zeros(len(setting.kept))
            gradient = np.append(self.end.program.evaluate(raw.t[row], raw.x[row], context)["by_state"], none)
            flow = np.append(raw.x_dot[row], none)
            onto = np.eye(n) - np.outer(flow, gradient) / float(gradient @ flow)
            Y = onto @ Y
            before = row
        renamed = np.eye(n)
        renamed[: len(self.relabelling.matrix), : len(self.relabelling.matrix)] = self.relabelling.matrix
        number, context = int(raw.mode[before]), setting.context(raw.held[before])
        ways = admissible_variations(setting, number, float(raw.t[before]), raw.x[before], context)
        left, sizes, _ = np.linalg.svd(renamed @ onto @ ways)
        rank = int(np.sum(sizes > RANK * max(sizes.max(initial=0.0), 1e-300)))
        return renamed @ Y, left[:, :rank]

    @property
    def _shift(self) -> Floats:
        """Decrements of the context after a return, shape (n_c,)."""
        shift = np.zeros(self.system.layout.n_c)
        shift[self.system.layout.memory_slice] = self.relabelling.memory_shift
        return shift

    def _consistent(self, point: SectionPoint) -> Floats:
        """Return the state of a point on its active rows, and on the gap closed by the section."""
        system, context = self.system, point.context
        n_q, n_u = len(system.layout.q), len(system.layout.u)
        active = ActiveSet.of(system, point.states)
        rows = list(active.rows)
        terms = system.evaluate(0.0, point.x, context)
        if isinstance(self.begin, EventSection) and self.begin.event:
            r = system.contacts[self.begin.subject].normal_row
            if r >= 0 and r not in rows and abs(terms["residual"][r]) <= TOUCHING:
                rows.append(r)
        positional = [r for r in rows if system.rows[r].positional]
        x = point.x.copy()
        for _ in range(NEWTON_STEPS):
            terms = system.evaluate(0.0, x, context)
            residual = terms["residual"][positional]
            if not np.abs(residual).max(initial=0.0) > 1e-13:
                break
            motion = _least_motion(terms["M"][:n_u, :n_u], terms["A"][positional, :n_u], -residual)
            x[:n_q] += terms["W"][:, :n_u] @ motion
            for first in system.quaternions:
                x[first : first + 4] /= np.linalg.norm(x[first : first + 4])
        held = list(active.rows)
        terms = system.evaluate(0.0, x, context)
        A = terms["A"][held, :n_u]
        x[n_q:] += _least_motion(terms["M"][:n_u, :n_u], A, -(A @ x[n_q:] + terms["b"][held]))
        return x

    def _run_to(self, section: Section, point: SectionPoint, separate: Sequence[int]) -> tuple[RunArrays, int, float]:
        """Run to a section; entries ``separate`` of the context are to be those of the point again, set back."""
        horizon, wanted, shift = self.horizon, point.context[list(separate)], self._shift[list(separate)]
        while True:
            raw = self.setting.run(point.x, point.context, point.states, horizon)
            others: dict[tuple[float, ...], None] = {}
            for row, time in self._crossings(section, raw):
                found = self.setting.context(raw.held[row])[list(separate)] + shift
                if not np.array_equal(found, wanted):
                    others[tuple(found.tolist())] = None
                elif isinstance(section, EventSection):
                    return raw, row, time
                else:
                    raw = self._polished(section, point, time)
                    return raw, len(raw.t) - 1, float(raw.t[-1])
            if raw.t[-1] < horizon or raw.outcome.failed:
                raise RunError(
                    f"the motion does not return to '{section.text}': it ends at t = {raw.t[-1]:.6g} s"
                    f" ({raw.outcome.name})\n  remedy: start nearer to the cycle, with initial= or guess="
                )
            if horizon >= self.longest:
                raise RunError(self._never(section, wanted, list(others)))
            horizon = min(2.0 * horizon, self.longest)

    def _crossings(self, section: Section, raw: RunArrays) -> Iterator[tuple[int, float]]:
        """Yield the crossings of a section in a run: a row with the memory there, and the time, s."""
        if isinstance(section, EventSection):
            yield from ((row, float(raw.t[row])) for row in section.rows(raw))
        else:
            yield from section.times(self.setting, raw)

    def _never(self, section: Section, wanted: Floats, others: list[tuple[float, ...]]) -> str:
        """Return the reason for no return within the longest time."""
        if not others:
            return (
                f"the motion does not return to '{section.text}' within {self.longest:g} s\n  remedy: start"
                " elsewhere (initial=), look at a run of the model, or wait longer (max_return_time=)"
            )
        layout = self.system.layout
        names = [layout.c[k] for k in self.separate]
        met = [
            f"{name} was {start:g} and became {', '.join(f'{other[i]:g}' for other in others[:MOST_SHOWN])}"
            for i, (name, start) in enumerate(zip(names, wanted, strict=True))
            if any(other[i] != start for other in others)
        ]
        return (
            f"the motion does not return to '{section.text}' with the memory that it had there, within"
            f" {self.longest:g} s: {'; '.join(met)}\n  remedy: memory on which the motion does not depend goes under"
            " advancing=['NAME'], with its growth where the mechanism repeats itself, advancing={'NAME': 1}; or wait"
            " longer (max_return_time=)"
        )

    def _polished(self, section: CrossingSection, point: SectionPoint, time: float) -> RunArrays:
        """Run exactly to a crossing: the dense output locates it, steps of the method give its state."""
        for _ in range(2):
            raw = self.setting.run(point.x, point.context, point.states, time)
            values = section.program.evaluate(raw.t[-1], raw.x[-1], self.setting.context(raw.held[-1]))
            time -= float(values["value"]) / float(values["by_state"] @ raw.x_dot[-1])
        return self.setting.run(point.x, point.context, point.states, time)

    def _point(self, raw: RunArrays, row: int) -> SectionPoint:
        states = tuple(int(code) for code in raw.tables.mode_states[raw.mode[row]])
        return SectionPoint(raw.x[row].copy(), self.setting.context(raw.held[row]), states)


def _least_motion(M: Floats, A: Floats, target: Floats) -> Floats:
    """The motion v with ``A v = target``, smallest in the metric of M (docs/theory.md, (7.1))."""
    n, m = len(M), len(A)
    matrix = np.block([[M, -A.T], [A, np.zeros((m, m))]])
    motion: Floats = np.linalg.lstsq(matrix, np.concatenate([np.zeros(n), target]), rcond=1e-12)[0][:n]
    return motion


# -- Limit cycles --------------------------------------------------------------------------------------------
#
# Periodic motions, found as fixed points of a return map by Newton's method.

NEUTRAL = 1e-8  # a multiplier within this of 1 is 1, up to the errors of runs
PLAIN_RETURNS = 3  # before Newton's method begins, and if it does not converge
ITERATIONS = 40
HALVINGS = 6


@dataclass(frozen=True)
class LimitCycle:
    """A periodic motion.

    Attributes
    ----------
    period : float
        From one return to the next, s; with ``symmetry`` of a step, not of a full cycle.
    q, u : ndarray, shapes (n_q,), (n_u,)
        The state just after the section, SI.
    mode : str
        The mode there.
    memory : mapping of str to float
        The memory there.
    floquet_multipliers : ndarray of complex, shape (d,)
        Eigenvalues of the return map on its section of dimension d, the largest first: factors of deviations over one
        return.  The cycle is stable if all are below 1 in magnitude, by more than their error of 1e-8.
    states : tuple of str
        Names of coordinates, speeds and varying memory, in the order of the rows of ``monodromy``.
    monodromy : ndarray, shape (n_z, n_z)
        The derivative of the return map, saltation at all transitions included.
    residual : float
        Largest difference between the states of two successive returns, relative to 1 plus their size.
    returns : int
        Number of computed returns.
    trajectory : Trajectory
        One period.
    """

    period: float
    q: Floats
    u: Floats
    mode: str
    memory: Mapping[str, float]
    floquet_multipliers: npt.NDArray[np.complex128]
    states: tuple[str, ...]
    monodromy: Floats = field(repr=False)
    residual: float
    returns: int
    trajectory: Trajectory = field(repr=False)

    @property
    def stable(self) -> bool:
        """Whether every Floquet multiplier is below 1 in magnitude, by more than its error."""
        return bool(np.all(np.abs(self.floquet_multipliers) < 1.0 - NEUTRAL))

    @property
    def initial(self) -> dict[str, float | str]:
        """The state just after the section, to hand to ``fsm_dyn.simulate`` as ``initial``."""
        values = dict(zip(self.states, map(float, (*self.q, *self.u)), strict=False))
        return {**values, **self.memory, "mode": self.mode}


@typed
def limit_cycle(
    graph: ModeGraph,
    section: str,
    *,
    advancing: Sequence[str] | Mapping[str, float | str] = (),
    symmetry: Mapping[str, str] | None = None,
    parameters: Parameters | None = None,
    inputs: Mapping[str, InputValue] | None = None,
    initial: Mapping[str, float | str] | None = None,
    guess: Mapping[str, float | str] | None = None,
    tol: float = 1e-10,
    max_return_time: float = 100.0,
    rtol: float = 1e-11,
    atol: float = 1e-13,
) -> LimitCycle:
    """Find a periodic motion and its Floquet multipliers.

    Parameters
    ----------
    graph : ModeGraph
    section : str
        Section of the motion: ``"left_foot closes"`` (opens, sticks, slides), the name of a user-defined transition, or
        an expression with a zero crossing, ``"theta falling"``.
    advancing : sequence of str, or mapping of str to float or str
        Coordinates and memory with growth from return to return, without effect on the motion: a distance walked, an
        angle turned, a count. As a mapping, with the growth of each (SI, or an expression of parameters): ``{"wheel":
        "pitch", "tooth": 1}``, for a mechanism with this period, in which the contacts of the next tooth replace those
        of the last; one that turns out to be without effect has no multiplier either.
    symmetry : mapping of str to str, optional
        New names after each return, for cycles of symmetric halves: ``{"qL": "qR", "qR": "qL"}``.  Speeds
        ``<q>_dot`` and the contacts follow.
    parameters, inputs
        As for ``fsm_dyn.simulate``; the inputs must be constant.
    initial : mapping, optional
        Start of the search: it runs from here to the section; by default the model's own start.
    guess : mapping, optional
        A state just after the section, for an immediate begin of Newton's method.
    tol : float
        Largest residual of a return, relative to 1 plus the size of the state.
    max_return_time : float
        Longest time until a return, s.
    rtol, atol : float
        Tolerances of the runs.

    Returns
    -------
    LimitCycle

    Raises
    ------
    InputError
        The section or a name is unknown, or the model depends on time.
    RunError
        The motion does not return with its initial memory, or no cycle is found; the message has the residual.

    Notes
    -----
    Memory is part of the state: a return is the next one with equal memory, be it the first crossing of the section or
    a later one. Memory without effect on motions, like a mere count, is left out.
    """
    setting = AnalysisSetup.of(graph, parameters, inputs, rtol, atol)
    automaton = setting.executable.automaton
    layout = automaton.terms.layout
    begin = read_section(automaton, section)
    growth = _growth(advancing, setting)
    _require_autonomous(setting)
    start = setting.start(guess if guess is not None else initial)
    point = SectionPoint(start.x, start.context, start.states)
    renaming = Relabelling.of(automaton, symmetry or {}, growth, start.x, start.context)
    left_out = [name for name in advancing if name not in growth]
    returns = ReturnMap(setting, begin, renaming.section(begin), renaming, max_return_time, left_out)
    states = (*layout.x, *setting.kept)
    search = _Search(returns, [i for i, name in enumerate(states) if name not in left_out])
    if guess is None:
        point = returns.reach(point).point
        for _ in range(PLAIN_RETURNS):
            point = search.again(point, search.go(point, settled=False).point)
    point, found = search.newton(point, tol)
    derivative, basis = returns.derivative(found)
    moved = [i for i in search.kept if states[i] not in growth or not _merely_shifts(derivative, i)]
    whole = setting.run(point.x, point.context, point.states, found.time)
    return LimitCycle(
        period=returns.period(found, point),
        q=point.x[: len(layout.q)],
        u=point.x[len(layout.q) :],
        mode=setting.executable.automaton.name_of(point.states).name,
        memory=dict(zip(layout.memory, point.context[layout.memory_slice].tolist(), strict=True)),
        floquet_multipliers=_multipliers(derivative, basis, moved),
        states=states,
        monodromy=derivative,
        residual=search.size(search.residual(point, found)),
        returns=search.count,
        trajectory=setting.trajectory(whole),
    )


class _Search:
    """Newton's method on a return map, on the states of the cycle."""

    def __init__(self, returns: ReturnMap, kept: list[int]) -> None:
        self.returns = returns
        self.kept = kept
        self.count = 0
        self.scale = np.ones(len(kept))

    def go(self, point: SectionPoint, *, settled: bool = True) -> Return:
        self.count += 1
        found = self.returns(point, settled=settled)
        self.scale = 1.0 + np.abs(self.returns.state(found.point)[self.kept])
        return found

    def residual(self, point: SectionPoint, found: Return) -> Floats:
        return (self.returns.state(found.point) - self.returns.state(point))[self.kept]

    def size(self, residual: Floats) -> float:
        return float(np.abs(residual / self.scale).max(initial=0.0))

    def again(self, point: SectionPoint, new: SectionPoint) -> SectionPoint:
        """A point of return as a new start: growing quantities are set back, and memory without effect."""
        x = new.x.copy()
        held = [i for i in range(len(x)) if i not in self.kept]
        x[held] = point.x[held]
        memory = self.returns.system.layout.memory_slice
        context = new.context.copy()
        idle = [k for k in range(memory.start, memory.stop) if k not in (*self.returns.kept, *self.returns.separate)]
        context[idle] = point.context[idle]
        return SectionPoint(x, context, new.states)

    def newton(self, point: SectionPoint, tol: float) -> tuple[SectionPoint, Return]:
        """Return the fixed point, and the return as its proof."""
        found = self.go(point)
        best = self.size(self.residual(point, found))
        for _ in range(ITERATIONS):
            residual = self.residual(point, found)
            size = self.size(residual)
            best = min(best, size)
            if size <= tol:
                return point, found
            derivative, _ = self.returns.derivative(found)
            matrix = np.eye(len(self.kept)) - derivative[np.ix_(self.kept, self.kept)]
            step = np.asarray(np.linalg.lstsq(matrix, residual, rcond=1e-13)[0], dtype=np.float64)
            trial = self._damped(point, found, step, size)
            if trial is None:
                # a plain return stays on existing motions
                point = self.again(point, found.point)
                found = self.go(point)
            else:
                point, found = trial
        raise RunError(
            f"no cycle through '{self.returns.begin.text}' was found: after {self.count} returns the nearest came"
            f" within {best:.3g} of itself (relative), where {tol:g} was asked for\n  remedy: start nearer"
            " (initial= or guess=); name coordinates that grow under advancing; a motion may repeat after several"
            " returns only, or not at all"
        )

    def _damped(
        self, point: SectionPoint, found: Return, step: Floats, size: float
    ) -> tuple[SectionPoint, Return] | None:
        """Take as much of Newton's step as brings the returns nearer; None if no part of it does."""
        base = self.again(point, found.point)
        part = 1.0
        for _ in range(HALVINGS):
            z = self.returns.state(point)
            z[self.kept] += part * step
            try:
                trial = self.returns.point(z, base)
                there = self.go(trial)
            except RunError:
                part *= 0.5
                continue
            if self.size(self.residual(trial, there)) < size:
                return trial, there
            part *= 0.5
        return None


def _growth(advancing: Sequence[str] | Mapping[str, float | str], setting: AnalysisSetup) -> dict[str, float]:
    """Return the growth from return to return (SI) of the coordinates given with one; InputError for an unknown one."""
    layout = setting.executable.automaton.terms.layout
    for name in advancing:
        if name not in (*layout.q, *layout.memory):
            known = (*layout.q, *layout.memory)
            raise InputError(f"advancing: no coordinate or memory '{name}'", remedy=did_you_mean(name, known))
    if not isinstance(advancing, Mapping):
        return {}
    return {
        name: evaluate_expression(Text(value), setting.numbers) if isinstance(value, str) else float(value)
        for name, value in advancing.items()
    }


def _merely_shifts(derivative: Floats, i: int) -> bool:
    """Whether a deviation of this state returns as it was, and changes no other one."""
    return float(np.abs(derivative[:, i] - np.eye(len(derivative))[i]).max()) <= NEUTRAL


def _multipliers(derivative: Floats, basis: Floats, kept: list[int]) -> npt.NDArray[np.complex128]:
    """Return the eigenvalues of a return map within its section, the largest first.

    ``derivative`` (n_z, n_z), of the map; ``basis`` (n_z, d), of the section after it; ``kept``: states that count.
    """
    directions, lengths, _ = np.linalg.svd(basis[kept], full_matrices=False)
    reduced = directions[:, lengths > 1e-9]
    found = np.linalg.eigvals(reduced.T @ derivative[np.ix_(kept, kept)] @ reduced).astype(np.complex128)
    return found[np.argsort(-np.abs(found), kind="stable")]


def _require_autonomous(setting: AnalysisSetup) -> None:
    """Refuse a motion dependent on the time: its return is to a state and a time, not to a state."""
    arrays = setting.drive.arrays
    _, symbols, nodes = setting.executable.automaton.terms.graph()
    moving = len(arrays.kernels) > 0 or bool(np.any(arrays.pieces[:, :, 1:] != 0.0)) or len(arrays.pieces) > 1
    read = support([node for table in nodes.values() for node in table.ravel()])
    resets = (reset.graph()[2]["after"] for reset in setting.executable.automaton.resets if reset is not None)
    timed = symbols["t"] in read or any(symbol.name == "t" for after in resets for symbol in support(after))
    if timed or (moving and setting.drive.names):
        raise InputError(
            "the motion depends on the time itself, and so does any return",
            remedy="give constant inputs, or make the time a coordinate of the model: phase, with speed rate(phase)",
        )
