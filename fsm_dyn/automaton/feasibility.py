"""Geometric feasibility: contacts closed in one configuration, contacts held at once; proofs on demand."""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, field, fields, make_dataclass
from typing import Any, Final, Literal, get_type_hints

import numpy as np

from fsm_dyn.automaton.configuration_search import (
    EXACT,
    MARGIN,
    PI,
    Condition,
    ConfigurationSearch,
    Remaining,
    Subdivision,
    combine,
    common,
    middles,
    missed,
    only_turns,
    ways,
    width_of,
)
from fsm_dyn.automaton.geometric_proofs import (
    Cut,
    ExclusionProof,
    GeometricProofs,
    ProofCondition,
    Weights,
    fastest,
    held_rows,
    weighted_sum,
)
from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import InputError
from fsm_dyn.core.files import decode, encode
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.enumeration import contradiction
from fsm_dyn.programs.intervals import Contractor, Interval, enclose
from fsm_dyn.programs.program import Program

# -- Contacts with contradictory speeds cannot be held at once -----------------------------------------------
#
# The proofs are linear combinations of rows. Held contacts and constraints keep their rows ``A u + b = 0``. Rows
# without ``b`` contradict nothing, as ``u = 0`` meets them; a contradiction of speeds needs prescribed motion: belts,
# turntables, rows driven in time. Weights ``v`` with ``vᵀA = 0`` and ``vᵀb ≠ 0`` prove it; linear equations have either
# a solution or such ``v``. Over a box of configurations ``vᵀA`` and ``vᵀb`` are bounded by intervals, and speeds by a
# largest one (:mod:`fsm_dyn.automaton.geometric_proofs`).

MOST_HELD_BOXES: Final = 400
DIGITS: Final = (2, 6, 12)  # of weights with a largest one of 1, tried in turn; rounding makes equal ones exactly equal


@dataclass(frozen=True)
class HeldAnswer:
    """Whether contacts can be held at once."""

    contacts: tuple[int, ...]
    # the subdivision of a proof (argument and place of each cut, lower parts first); empty without a proof
    cuts: tuple[Cut | None, ...] = ()
    # rows and their weights for each uncut box; none if the gaps of the contacts cannot vanish
    weights: tuple[Weights, ...] = ()
    values: tuple[float, ...] = ()  # lower bound of ``vᵀb`` in each of these boxes, SI units
    state: Floats | None = None  # coordinates and speeds under which all rows hold, SI units

    @property
    def impossible(self) -> bool:
        """Whether there is a proof."""
        return bool(self.cuts)


class HeldContacts:
    """Answers on the contacts of one automaton, with the parameters of a search."""

    def __init__(self, search: ConfigurationSearch) -> None:
        self.search, self.automaton = search, search.automaton
        self.moved = frozenset(row for row, b in enumerate(self.automaton.terms.graph()[2]["b"]) if not b.is_zero)

    def questions(self, excluded: Sequence[Mapping[int, bool]]) -> Iterator[HeldAnswer]:
        """Yield answers on single contacts and pairs with prescribed motion, without those excluded by gaps."""
        contacts = [i for i, c in enumerate(self.automaton.contacts) if 1 in c.codes and held_rows(self.automaton, [i])]
        closed = {frozenset(item) for item in excluded if all(item.values())}
        impossible = {item for item in closed if len(item) == 1}
        for asked in (*((i,) for i in contacts), *itertools.combinations(contacts, 2)):
            if frozenset(asked) in closed or any(item <= set(asked) for item in impossible):
                continue
            if self.moved.isdisjoint(held_rows(self.automaton, asked)):
                continue
            answer = self.answer(asked)
            if answer.impossible:
                impossible.add(frozenset(asked))
            yield answer

    def conditions(self, contacts: Sequence[int]) -> list[Condition]:
        """Return the conditions on coordinates with some contacts closed."""
        search = self.search
        asked = [c for i in contacts if search.has_gap(i) for c in search.conditions(i, True)]
        return [*asked, *search.limits(asked)]

    def program(self, conditions: Sequence[Condition], rows: tuple[int, ...]) -> Program:
        """Return the program of conditions and rows together."""
        n_rows = len(self.automaton.rows)
        return self.automaton.terms.part({
            "residual": [c.value for c in conditions if c.value < n_rows],
            "reach": [c.value - n_rows for c in conditions if c.value >= n_rows], "A": rows, "b": rows,
        })  # fmt: skip

    def answer(self, contacts: tuple[int, ...]) -> HeldAnswer:
        """Return whether contacts can be held at once."""
        conditions, rows = self.conditions(contacts), held_rows(self.automaton, contacts)
        q = self.search.known(conditions)
        if q is not None:
            A, b = self._rows(rows, q)
            u = -np.linalg.lstsq(A, b, rcond=None)[0]
            if np.abs(A @ u + b).max(initial=0.0) <= EXACT:
                return HeldAnswer(contacts, state=np.concatenate([q, u * self.automaton.units.u]))
        return self._proof(contacts, conditions, rows)

    def _rows(self, rows: tuple[int, ...], q: Floats) -> tuple[Floats, Floats]:
        """Return A and b of rows in own units, with inputs and time zero."""
        terms, units, n_u = self.automaton.terms, self.automaton.units, len(self.automaton.terms.layout.u)
        x = np.concatenate([q, np.zeros(terms.layout.n_x - len(q))])
        found = terms.part({"A": rows, "b": rows}).evaluate(0.0, x, self.search.context)
        scale = units.rows[list(rows)] * units.speed
        return found["A"][:, :n_u] * units.u / scale[:, None], found["b"] / scale

    def _proof(self, contacts: tuple[int, ...], conditions: list[Condition], rows: tuple[int, ...]) -> HeldAnswer:
        """Cut configurations until in each box the gaps or the speeds contradict each other."""
        search, weights, values = self.search, list[Weights](), list[float]()
        cuts = list[Cut | None]()
        variables = search.variables(conditions)
        part, bounds = search.part(conditions)
        contract = Contractor(part, variables, Interval(search.low, search.high), bounds)
        scale = search.scale_of(variables)
        low, high = search.low.copy(), search.high.copy()
        whole = self.program(conditions, rows)
        turning = [i for i in variables if np.isinf(low[i]) and np.isinf(high[i]) and only_turns(whole, i)]
        low[turning], high[turning] = -PI, PI
        ahead = [(low, high)]
        while ahead:
            low, high = ahead.pop()
            kept = True
            for _ in range(8):
                smaller, there = contract(Interval(low[variables][:, None], high[variables][:, None]))
                low[variables], high[variables] = smaller.low[:, 0], smaller.high[:, 0]
                kept = kept and bool(there[0])
            found = self._combination(rows, low, high) if kept else None
            if not kept or found is not None:
                cuts.append(None)
                weights.append(() if found is None else found[0])
                values.append(0.0 if found is None else found[1])
                continue
            width = width_of(low[variables][:, None], high[variables][:, None], scale)
            if len(cuts) >= MOST_HELD_BOXES or not (width > 1e-6).any():
                return HeldAnswer(contacts)
            place, middle = middles(low[:, None], high[:, None], variables, width, scale, long_last=True)
            cuts.append((int(place[0]), float(middle[0])))
            for upper in (True, False):
                part_low, part_high = low.copy(), high.copy()
                (part_low if upper else part_high)[place[0]] = middle[0]
                ahead.append((part_low, part_high))
        return HeldAnswer(contacts, tuple(cuts), tuple(weights), tuple(values))

    def _combination(self, rows: tuple[int, ...], low: Floats, high: Floats) -> tuple[Weights, float] | None:
        """Return weights of rows that exclude all speeds in a box, and the least ``vᵀb``; None if not found."""
        here = slice(1, 1 + self.search.n_q)
        least, most = np.maximum(low[here], -1e3), np.minimum(high[here], 1e3)
        A, b = self._rows(rows, 0.5 * (least + most))
        left = b - A @ np.linalg.lstsq(A, b, rcond=1e-7)[0]
        if np.abs(left).max(initial=0.0) <= 1e-9 * max(np.abs(b).max(initial=0.0), 1e-300):
            return None
        left = left / (self.automaton.units.rows[list(rows)] * self.automaton.units.speed)
        left /= np.copysign(np.abs(left).max(), left @ b)
        for digits in DIGITS:
            weights = tuple((row, w) for row, w in zip(rows, np.round(left, digits).tolist(), strict=True) if w)
            found = enclose(weighted_sum(self.automaton, weights), Interval(low[:, None], high[:, None]))
            size = np.maximum(np.abs(found["A"].low[0]), np.abs(found["A"].high[0]))
            value = float(found["b"].low[0, 0])
            if value > float(size @ fastest(self.automaton)):
                return weights, value
        return None


# -- Geometric feasibility of contact states -----------------------------------------------------------------
#
# Contacts closed, or closed and open, in one configuration, and contacts held at once. A combination of contact states
# belongs to some configuration only if the gaps of its closed contacts vanish (of compliant contacts: are not positive)
# within the ends of their faces, gaps of its open ones are not negative, the loops are closed and the coordinates
# within their stated ranges (:mod:`fsm_dyn.automaton.configuration_search`). Held contacts, closed without sliding,
# must agree on the speeds too (:mod:`fsm_dyn.automaton.geometric_proofs`).

Verdict = Literal["impossible", "possible", "undecided"]

FIRST_BOXES: Final = 200  # of a proof before a configuration is searched for
BOUND_BOXES: Final = 20_000  # for bounds in the texts of reasons; beyond them a reason quotes the margin of the proofs
MOST_BOXES: Final = 20_000  # examined before a question stays undecided


@dataclass(frozen=True)
class ContactVerdict:
    """Whether one or two contacts can have these states in one configuration.

    Attributes
    ----------
    contacts : tuple of str
        Names of the contacts.
    closed : tuple of bool
        Whether each of them is closed (stuck, sliding, compressed) or open.
    without_sliding : bool
        Whether closed means held: closed without sliding.
    verdict : str
        ``impossible`` (proved), ``possible`` (a configuration is shown) or ``undecided``.
    reason : str
        Reason of impossibility: the coordinate with two contradictory places if there is one, else a bound on the gaps;
        of held contacts the combination of their rows without a solution for the speeds.
    configuration : mapping of str to float
        Coordinates of a configuration, for held contacts with the speeds, SI units; empty unless the verdict is
        ``possible``.
    boxes : int
        Number of boxes of the proof.
    """

    contacts: tuple[str, ...]
    closed: tuple[bool, ...]
    verdict: Verdict
    reason: str
    configuration: Mapping[str, float]
    boxes: int
    without_sliding: bool = False

    @property
    def states(self) -> str:
        """The states as text: ``string closed and rest open``, ``left held and right held``."""
        if self.without_sliding:
            return " and ".join(f"{name} held" for name in self.contacts)
        return _states_text(self.contacts, self.closed)


@dataclass(frozen=True)
class GeometricFeasibility:
    """Verdicts on contacts and pairs of them, and on combinations of all contact states.

    Attributes
    ----------
    verdicts : tuple of ContactVerdict
        Of every contact with a gap, closed; of every two closable ones: both closed, one closed and one open; and of
        minimal impossible sets of three and more.
    combinations, remaining : int
        Numbers of combinations of contact states: all, and those without anything impossible.
    modes : mapping of str to ContactVerdict
        Verdict on each mode of the graph, with all its contacts at once.
    possible, undecided : int
        Numbers of combinations with a configuration, and of those with neither a configuration nor a proof; -1 if
        combinations are too many for an examination one by one.
    contacts : tuple of str
        Contacts with a gap, in the order of ``states``.
    states : mapping of str to int
        From these contacts as closed, ``1``, or open, ``0``, to the index of a configuration in ``configurations``, -1
        for undecided; combinations with anything impossible are not listed.
    configurations : tuple of mapping of str to float
        Coordinates, SI units.
    held_contacts : tuple of ContactVerdict
        Of contacts and pairs of them with moving rows (a belt, a driven constraint): held.
    boxes : int
        Number of boxes of configurations for the whole assessment.
    """

    verdicts: tuple[ContactVerdict, ...]
    combinations: int
    remaining: int
    modes: Mapping[str, ContactVerdict] = field(default_factory=dict)
    possible: int = -1
    undecided: int = -1
    contacts: tuple[str, ...] = ()
    states: Mapping[str, int] = field(default_factory=dict)
    configurations: tuple[Mapping[str, float], ...] = ()
    held_contacts: tuple[ContactVerdict, ...] = ()
    boxes: int = 0

    def verdict_on(self, states: Mapping[str, bool]) -> ContactVerdict:
        """Return the verdict on a combination: every contact with a gap closed (True) or open, by name.

        Raises
        ------
        InputError
            A contact with a gap is missing, or there were too many combinations for an examination one by one.
        """
        missing = [name for name in self.contacts if name not in states]
        if missing:
            raise InputError("contacts without a state", found=", ".join(missing), allowed="every contact with a gap")
        closed = tuple(bool(states[name]) for name in self.contacts)
        item = _exclusion(self.verdicts, states)
        if item is not None:
            return ContactVerdict(self.contacts, closed, "impossible", item.reason, {}, item.boxes)
        if self.possible < 0:
            raise InputError("no verdicts on combinations", found=f"{self.combinations:,} combinations")
        number = self.states["".join("01"[shut] for shut in closed)]
        shown = {} if number < 0 else self.configurations[number]
        return ContactVerdict(self.contacts, closed, "undecided" if number < 0 else "possible", "", shown, 0)

    def excluded(self, states: Mapping[str, int]) -> str:
        """Return the reason of impossibility of contacts with these states; empty if unknown.

        Verdicts on single contacts, on pairs and on larger minimal sets are searched.

        Parameters
        ----------
        states : mapping of str to int
            Codes by name: 0 open, 1 held (closed without sliding), 2 and 3 sliding.
        """
        closed = {name: code > 0 for name, code in states.items()}
        found = _exclusion(self.verdicts, closed) or _exclusion(
            self.held_contacts, {name: True for name, code in states.items() if code == 1}
        )
        return "" if found is None else found.reason

    def to_bytes(self) -> bytes:
        """Return it as JSON."""
        return encode(asdict(self) | {name: str(getattr(self, name)) for name in _LARGE})

    @classmethod
    def from_bytes(cls, data: bytes) -> GeometricFeasibility:
        """Return it from JSON; raise InputError for other data."""
        stored = vars(decode(data, _stored_assessment(), "a geometric assessment"))
        return cls(**stored | {name: int(stored[name]) for name in _LARGE})


#: numbers of combinations, which may be too large for the integers of JSON and are texts there
_LARGE: Final = ("combinations", "remaining", "possible", "undecided")


@functools.cache
def _stored_assessment() -> type[Any]:
    """Return the type of the assessment as JSON has it, every field required."""
    types = get_type_hints(GeometricFeasibility)
    return make_dataclass(
        "StoredAssessment",
        [(item.name, str if item.name in _LARGE else types[item.name]) for item in fields(GeometricFeasibility)],
    )


def assess_geometry(
    automaton: Automaton, parameters: Floats, q: Floats, progress: Callable[[int, int], None] = lambda done, all_: None
) -> GeometricFeasibility:
    """Return the mutually exclusive contacts, with proofs, and the number of remaining combinations.

    Parameters
    ----------
    parameters : ndarray, shape (n_p,)
        SI units.
    q : ndarray, shape (n_q,)
        A configuration as the start of the search for others, SI units.
    progress : callable
        Called with the numbers of reached and of requested verdicts.
    """
    search = ConfigurationSearch(automaton, parameters, q)
    questions = _Questions(search)
    found = [questions.decide({i: True}) for i in range(len(automaton.contacts)) if search.has_gap(i)]
    gaps = [automaton.terms.layout.contacts.index(item.contacts[0]) for item in found if item.verdict != "impossible"]
    asked = [
        {first: closed[0], second: closed[1]}
        for first, second in itertools.combinations(gaps, 2)
        for closed in ((True, True), (True, False), (False, True))
        if search.conditions(first, closed[0]) and search.conditions(second, closed[1])
    ]
    for done, states in enumerate(asked):
        progress(done, len(asked))
        found.append(questions.decide(states))
    held = [
        questions.of_held(answer) for answer in HeldContacts(search).questions(_parts(automaton, found, "impossible"))
    ]
    within = [i for i in range(len(automaton.contacts)) if search.has_gap(i)]
    combined = combine(search, _parts(automaton, found, "impossible"), _parts(automaton, found, "undecided"))
    found += [] if combined is None else [questions.conflict(states, boxes) for states, boxes in combined.conflicts]
    modes: dict[str, ContactVerdict] = {}
    for mode in automaton.modes:
        modes[mode.name] = questions.decide_mode({i: mode.states[i] for i in within}, mode.states, found, held)
    combinations = int(np.prod([len(contact.codes) for contact in automaton.contacts], dtype=object))
    names = tuple(automaton.contacts[i].name for i in within)
    if combined is None:
        remaining = _count(automaton, [*found, *held])
        return GeometricFeasibility(
            tuple(found),
            combinations,
            remaining,
            modes,
            contacts=names,
            held_contacts=tuple(held),
            boxes=search.looked_at,
        )
    never = [frozenset(item) for item in _parts(automaton, held, "impossible")]
    possible, undecided = (ways(search, within, some, never) for some in (combined.possible, combined.undecided))
    listed = combined.possible | dict.fromkeys(combined.undecided, -1)
    return GeometricFeasibility(
        tuple(found), combinations, possible + undecided, modes, possible, undecided, names,
        {"".join("01"[shut] for shut in closed): number for closed, number in listed.items()},
        tuple(dict(zip(automaton.terms.layout.q, shown.tolist(), strict=True)) for shown in combined.configurations),
        tuple(held), search.looked_at,
    )  # fmt: skip


def _parts(automaton: Automaton, verdicts: Sequence[ContactVerdict], verdict: Verdict) -> list[dict[int, bool]]:
    """Return the contact states with this verdict, by the numbers of the contacts."""
    index = {contact.name: i for i, contact in enumerate(automaton.contacts)}
    return [
        {index[name]: shut for name, shut in zip(item.contacts, item.closed, strict=True)}
        for item in verdicts
        if item.verdict == verdict
    ]


class _Questions:
    """Verdicts on the contacts of one automaton, in the order of the requests."""

    def __init__(self, search: ConfigurationSearch) -> None:
        self.search = search
        self.spent = 0  # boxes, for bounds in the texts of reasons
        self.alone: dict[tuple[int, bool], tuple[list[Condition], Remaining]] = {}

    def decide(self, asked: Mapping[int, bool]) -> ContactVerdict:
        """Return the verdict on contacts requested closed (True) or open."""
        search, automaton = self.search, self.search.automaton
        names = tuple(automaton.contacts[i].name for i in asked)
        closed = tuple(asked.values())

        def verdict(what: Verdict, boxes: int, reason: str = "", shown: Floats | None = None) -> ContactVerdict:
            values = () if shown is None else zip(automaton.terms.layout.q, shown.tolist(), strict=True)
            return ContactVerdict(names, closed, what, reason, dict(values), boxes)

        conditions = [condition for i, shut in asked.items() for condition in search.conditions(i, shut)]
        shown = search.known(conditions)
        if shown is not None:
            return verdict("possible", 0, shown=shown)
        conditions += search.limits(conditions)
        boxes = search.remaining(conditions, FIRST_BOXES, self._start(asked))
        shown = None if boxes.empty else search.configuration(conditions, boxes)
        if shown is not None:
            return verdict("possible", boxes.count, shown=shown)
        if not boxes.empty:
            boxes = search.remaining(conditions, MOST_BOXES, boxes)
            shown = None if boxes.empty else search.configuration(conditions, boxes)
            if shown is not None:
                return verdict("possible", boxes.count, shown=shown)
        if boxes.empty:
            return verdict("impossible", boxes.count, self.reason(asked, boxes.count))
        return verdict("undecided", boxes.count)

    def conflict(self, states: Mapping[int, bool], boxes: int) -> ContactVerdict:
        """Return the verdict on a minimal impossible set of contacts."""
        names = tuple(self.search.automaton.contacts[i].name for i in states)
        return ContactVerdict(names, tuple(states.values()), "impossible", self.reason(states, boxes), {}, boxes)

    def of_held(self, answer: HeldAnswer) -> ContactVerdict:
        """Return the verdict on held contacts, with the shortest combination of rows as its proof."""
        automaton = self.search.automaton
        names = tuple(automaton.contacts[i].name for i in answer.contacts)
        closed = (True,) * len(names)
        if answer.state is not None:
            shown = dict(zip(automaton.terms.layout.x, answer.state.tolist(), strict=True))
            return ContactVerdict(names, closed, "possible", "", shown, 0, without_sliding=True)
        if not answer.impossible:
            return ContactVerdict(names, closed, "undecided", "", {}, MOST_HELD_BOXES, without_sliding=True)
        boxes = sum(cut is None for cut in answer.cuts)
        return ContactVerdict(names, closed, "impossible", self._sum_of_rows(answer), {}, boxes, without_sliding=True)

    def _sum_of_rows(self, answer: HeldAnswer) -> str:
        """Return, as text, the shortest combination of rows by which held contacts exclude each other."""
        shortest = min(range(len(answer.weights)), key=lambda k: len(answer.weights[k]) or np.inf)
        rows = [(self.search.automaton.rows[row], weight) for row, weight in answer.weights[shortest]]
        return contradiction(rows, answer.values[shortest])

    def decide_mode(
        self,
        asked: Mapping[int, int],
        codes: Sequence[int],
        known: Sequence[ContactVerdict],
        held: Sequence[ContactVerdict],
    ) -> ContactVerdict:
        """Return the verdict on the contacts of a mode: the verdict on a few of them if these exclude each other."""
        contacts = self.search.automaton.contacts
        names, closed = tuple(contacts[i].name for i in asked), tuple(code > 0 for code in asked.values())
        together = {contact.name: True for contact, code in zip(contacts, codes, strict=True) if code == 1}
        item = _exclusion(known, dict(zip(names, closed, strict=True))) or _exclusion(held, together)
        if item is not None:
            return ContactVerdict(names, closed, "impossible", item.reason, {}, item.boxes)
        return self.decide(dict(zip(asked, closed, strict=True)))

    def _start(self, asked: Mapping[int, bool]) -> Remaining | None:
        """Return the boxes common to two contacts, each closed alone; None for other questions."""
        if len(asked) != 2 or not all(asked.values()):
            return None
        (_, first), (_, second) = (self._alone(contact, True) for contact in asked)
        return common(first, second)

    def reason(self, asked: Mapping[int, bool], boxes: int) -> str:
        """Return the reason of an exclusion: two places of one coordinate, else the least violation by the gaps."""
        search = self.search
        contacts, layout = search.automaton.contacts, search.automaton.terms.layout
        parts = [self._alone(i, shut) for i, shut in asked.items()]
        texts = [_states_text([contacts[i].name], [shut]) for i, shut in asked.items()]
        for variable in range(1, 1 + len(layout.q)) if len(parts) == 2 else ():
            places = [_hull(boxes, variable) for conditions, boxes in parts if variable in search.variables(conditions)]
            if len(places) < 2:
                continue
            if places[0][1] < places[1][0] or places[1][1] < places[0][0]:
                unit = float(search.q_units[variable - 1])
                said = [f"{_between(place, unit)} with {text}" for place, text in zip(places, texts, strict=True)]
                return f"{layout.q[variable - 1]} would be {' and '.join(said)} (SI units)"
        return self._by_gaps(asked, boxes)

    def _by_gaps(self, asked: Mapping[int, bool], boxes: int) -> str:
        """Return as text the least violation of these states by gaps, proved with about the given number of boxes."""
        search, contacts = self.search, self.search.automaton.contacts
        conditions = [c for i, shut in asked.items() for c in search.conditions(i, shut)]
        normals = {i: contacts[i].normal_row for i in asked}
        if len(asked) == 1 and all(asked.values()):
            ((contact, row),) = normals.items()
            away = self._missed_by([Condition(row, -1)], boxes)
            if away > 0.0:
                least = _rounded_down(away * float(search.scales[row]))
                return f"in every configuration the gap of {contacts[contact].name} is more than {least:g} (SI units)"
        away = max(self._missed_by(conditions, boxes), MARGIN)  # the verdict has proved the margin
        near: dict[str, list[str]] = {}
        for i, row in normals.items():
            size = f"{_rounded_down(away * float(search.scales[row])):g}"
            near.setdefault(f"within {size} of zero" if asked[i] else f"above -{size}", []).append(contacts[i].name)
        gaps = [f"the gap{'s' * (len(of) > 1)} of {' and '.join(of)} {where}" for where, of in near.items()]
        faces = ", between the ends of their faces" * any(c.value >= search.n_rows for c in conditions)
        return f"no configuration has {' and '.join(gaps)}{faces} (SI units)"

    def _missed_by(self, asked: list[Condition], boxes: int) -> float:
        """Return a lower bound of the violation of conditions, in own units; zero if not found.

        The first trial is slightly below the violation in the nearest known configuration; smaller ones follow.
        """
        search, everything = self.search, [*asked, *self.search.limits(asked)]
        least = 1.0
        if len(search.known_values):
            values = search.known_values[:, [c.value for c in asked]]
            least = float(missed(values, np.array([c.sense for c in asked])).max(axis=1).min(initial=least))
        for share in (0.9, 0.3, 0.03, 0.003):
            away = share * least
            if away <= MARGIN or self.spent > BOUND_BOXES:
                break
            left = search.remaining(everything, max(2 * boxes, 3 * FIRST_BOXES), margin=away)
            self.spent += left.count
            if left.empty:
                return away
        return 0.0

    def _alone(self, contact: int, closed: bool) -> tuple[list[Condition], Remaining]:
        """Return the conditions of one contact, and the boxes that may meet them."""
        key = contact, closed
        if key not in self.alone:
            own = self.search.conditions(contact, closed)
            conditions = [*own, *self.search.limits(own)]
            self.alone[key] = own, self.search.remaining(conditions, FIRST_BOXES, shifted=False)
        return self.alone[key]


def _exclusion(verdicts: Sequence[ContactVerdict], states: Mapping[str, bool]) -> ContactVerdict | None:
    """Return the first verdict that excludes these states, closed or open."""
    for item in verdicts:
        if item.verdict == "impossible" and all(
            states.get(name) == shut for name, shut in zip(item.contacts, item.closed, strict=True)
        ):
            return item
    return None


def _hull(boxes: Remaining, variable: int) -> tuple[float, float]:
    return float(boxes.low[variable].min(initial=np.inf)), float(boxes.high[variable].max(initial=-np.inf))


def _states_text(names: Sequence[str], closed: Sequence[bool]) -> str:
    return " and ".join(f"{name} {'closed' if shut else 'open'}" for name, shut in zip(names, closed, strict=True))


def _between(hull: tuple[float, float], unit: float) -> str:
    low, high = hull
    if np.isinf(low) or np.isinf(high):
        return f"at most {high:.4g}" if np.isinf(low) else f"at least {low:.4g}"
    if high - low <= max(1e-3 * max(abs(low), abs(high)), 4.0 * MARGIN * unit):
        middle = 0.5 * (low + high)
        return f"{middle if abs(middle) > MARGIN * unit else 0.0:.4g}"
    return f"from {low:.4g} to {high:.4g}"


def _rounded_down(value: float) -> float:
    """Return a value rounded down to two digits."""
    digit = 10.0 ** (np.floor(np.log10(value)) - 1.0)
    return float(np.floor(value / digit) * digit)


def _count(automaton: Automaton, verdicts: Sequence[ContactVerdict]) -> int:
    """Return the number of combinations without anything impossible, counted contact by contact."""
    index = {contact.name: i for i, contact in enumerate(automaton.contacts)}
    banned: dict[int, list[tuple[ContactVerdict, int]]] = {}  # by the last contact, with the first
    for verdict in verdicts:
        if verdict.verdict == "impossible" and len(verdict.contacts) <= 2:
            places = sorted(index[name] for name in verdict.contacts)
            banned.setdefault(places[-1], []).append((verdict, places[0]))
    last_use = {first: j for j in sorted(banned) for _, first in banned[j] if first < j}
    counts: dict[tuple[tuple[int, int], ...], int] = {(): 1}
    for j, contact in enumerate(automaton.contacts):
        kinds = Counter(min(code, 2) for code in contact.codes)  # open, held, sliding
        following: dict[tuple[tuple[int, int], ...], int] = {}
        for known, number in counts.items():
            for kind, number_of in kinds.items():
                now = {**dict(known), j: kind}
                if any(
                    all(
                        _is(now.get(index[n], -1), c, v.without_sliding)
                        for n, c in zip(v.contacts, v.closed, strict=True)
                    )
                    for v, _ in banned.get(j, ())
                ):
                    continue
                kept = tuple((i, state) for i, state in now.items() if last_use.get(i, -1) > j)
                following[kept] = following.get(kept, 0) + number * number_of
        counts = following
    return sum(counts.values())


def _is(kind: int, closed: bool, held: bool) -> bool:
    """Whether a contact (0 open, 1 held, 2 sliding, -1 not known yet) has the state of a verdict."""
    return kind == 1 if held else kind >= 0 and (kind > 0) == closed


# -- Making of geometric proofs: the subdivisions behind the verdicts, recorded ------------------------------

WIDER: Final = 1.001  # than the claimed violation of the conditions of a proof


def prove_geometry(
    automaton: Automaton,
    parameters: Floats,
    q: Floats,
    found: GeometricFeasibility,
    progress: Callable[[int, int], None] = lambda done, all_: None,
) -> GeometricProofs:
    """Return a proof of each verdict ``impossible``.

    ``parameters``, shape (n_p,): SI units, those of the verdicts; ``q``, shape (n_q,): a configuration, SI units;
    ``progress``: called with the numbers of finished and of requested proofs.
    """
    search = ConfigurationSearch(automaton, parameters, q)
    asked, proofs, unproved = list(_impossible(found)), [], []
    for done, item in enumerate(asked):
        progress(done, len(asked))
        proof = _proof(search, item)
        if proof is None:
            unproved.append(item.states)
        else:
            proofs.append(proof)
    named = dict(zip(automaton.terms.layout.p, parameters.tolist(), strict=True))
    mechanism = automaton.mechanism
    return GeometricProofs(mechanism.name, mechanism.digest, named, MARGIN, tuple(proofs), tuple(unproved))


def _impossible(found: GeometricFeasibility) -> Iterator[ContactVerdict]:
    """Yield the verdicts ``impossible``, each once: a mode only if no other verdict excludes it."""
    known = [item for item in (*found.verdicts, *found.held_contacts) if item.verdict == "impossible"]
    yield from known
    reasons = {item.reason for item in known}
    yield from (mode for mode in found.modes.values() if mode.verdict == "impossible" and mode.reason not in reasons)


def _proof(search: ConfigurationSearch, item: ContactVerdict) -> ExclusionProof | None:
    """Return the subdivision of the space into excluded boxes; None if it needs too many."""
    automaton, layout = search.automaton, search.automaton.terms.layout
    if item.without_sliding:
        return _held_proof(search, item)
    asked = [
        condition
        for name, shut in zip(item.contacts, item.closed, strict=True)
        for condition in search.conditions(layout.contacts.index(name), shut)
    ]
    everything = [*asked, *search.limits(asked)]
    cuts = Subdivision()
    if not search.remaining(everything, 4 * MOST_BOXES, None, cuts, WIDER * MARGIN).empty:
        return None
    variables = search.variables(everything)
    number = {argument: i for i, argument in enumerate(variables)}
    shifts = search.shifts(everything, search.part(everything)[0]).values()
    return ExclusionProof(
        item.contacts, item.closed, item.reason, tuple(_named(automaton, condition) for condition in everything),
        tuple(layout.arguments[i] for i in variables),
        tuple(None if cut is None else (number[cut[0]], cut[1]) for cut in cuts.in_order()),
        shifts=tuple(tuple((layout.arguments[i], float(rate)) for i, rate in moved.items()) for moved in shifts),
    )  # fmt: skip


def _held_proof(search: ConfigurationSearch, item: ContactVerdict) -> ExclusionProof:
    """Return the proof against holding contacts at once; a repeated search gives the same one."""
    automaton, layout = search.automaton, search.automaton.terms.layout
    held = HeldContacts(search)
    answer = held.answer(tuple(layout.contacts.index(name) for name in item.contacts))
    conditions = held.conditions(answer.contacts)
    variables = search.variables(conditions)
    number = {argument: i for i, argument in enumerate(variables)}
    return ExclusionProof(
        item.contacts, item.closed, item.reason, tuple(_named(automaton, condition) for condition in conditions),
        tuple(layout.arguments[i] for i in variables),
        tuple(None if cut is None else (number[cut[0]], cut[1]) for cut in answer.cuts), True, answer.weights,
    )  # fmt: skip


def _named(automaton: Automaton, condition: Condition) -> ProofCondition:
    rows = len(automaton.rows)
    if condition.value < rows:
        return ProofCondition("residual", condition.value, automaton.rows[condition.value].name, condition.sense)
    contact = condition.value - rows
    return ProofCondition("reach", contact, automaton.contacts[contact].name, condition.sense)
