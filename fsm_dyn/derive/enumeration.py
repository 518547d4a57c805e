"""Mode enumeration: combinations of contact states, their names, the infeasible ones with the reason."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.elimination import RANK
from fsm_dyn.derive.embedding import ActiveSet, massless_speeds
from fsm_dyn.derive.unconstrained_system import ContactInfo, RowInfo, UnconstrainedSystem
from fsm_dyn.programs.traversal import support


@dataclass(frozen=True)
class Pattern:
    """A named pattern: state codes by contact index; contacts left out may have any state."""

    name: str
    states: Mapping[int, int]

    def fits(self, states: Sequence[int]) -> bool:
        """Whether contact states fall under this pattern."""
        return all(states[contact] == code for contact, code in self.states.items())


@dataclass(frozen=True)
class ModeName:
    """A mode before it is derived."""

    name: str
    states: tuple[int, ...]
    pattern: str = ""


def named_when_open(contacts: Sequence[ContactInfo]) -> frozenset[int]:
    """Return which contacts may have a part in the name of a mode though they are in their first state."""
    return frozenset(i for i, contact in enumerate(contacts) if contact.bilateral or not contact.states[0])


def name_mode(
    contacts: Sequence[ContactInfo],
    patterns: Sequence[Pattern],
    states: Sequence[int],
    always: frozenset[int] | None = None,
) -> ModeName:
    """Name one combination of contact states.

    ``patterns``: those of the model; ``states``: a state code for each contact; ``always``: result of
    :func:`named_when_open`, for names of many modes.
    """
    fitting = [pattern for pattern in patterns if pattern.fits(states)]
    pattern = max(fitting, key=lambda p: len(p.states), default=None)
    mentioned = pattern.states if pattern is not None else {}
    # open contacts are not mentioned
    always = named_when_open(contacts) if always is None else always
    told = [index for index, code in enumerate(states) if code or index in always]
    extras = [
        f"{contact.name}_{contact.states[code]}"
        for index, contact, code in ((index, contacts[index], states[index]) for index in told)
        if index not in mentioned and (code != contact.codes[0] or (contact.bilateral and len(contact.codes) > 1))
    ]
    if pattern is not None:
        return ModeName("+".join([pattern.name, *extras]), tuple(states), pattern.name)
    if not contacts:
        return ModeName("motion", ())
    named = extras or [
        f"{contact.name}_{contact.states[code]}"
        for contact, code in zip(contacts, states, strict=True)
        if contact.contact_law.friction_only
    ]  # all_free: without any sticking contact
    return ModeName("+".join(named) or "all_free", tuple(states))


LARGEST_ENUMERATION = 64  # beyond this, modes are derived when they are first reached
ALWAYS_TRUE = 1e-9


@dataclass(frozen=True)
class Enumeration:
    """Modes named in advance, infeasible combinations with reasons, whether these are all (``fully_enumerated``)."""

    modes: tuple[ModeName, ...]
    infeasible: Mapping[str, str]
    fully_enumerated: bool


def enumerate_modes(
    system: UnconstrainedSystem,
    patterns: Sequence[Pattern],
    only_listed: bool,
    samples: Mapping[str, Floats],
    units: Mapping[str, str],
    imposed: frozenset[str] = frozenset(),
) -> Enumeration:
    """Name all modes, or, if there are more than :data:`LARGEST_ENUMERATION`, one for each pattern.

    ``samples``, the terms at sampled states, for the test of contradictions; ``units``, units of gaps by contact, none
    in models without units; ``imposed``, names of locks that are released in these modes: those with them are embedded
    online.
    """
    contacts = system.contacts
    codes = [contact.codes[:1] if contact.name in imposed else contact.codes for contact in contacts]
    complete = math.prod(map(len, codes)) <= LARGEST_ENUMERATION
    modes: dict[str, ModeName] = {}
    pruned: dict[str, str] = {}
    for states in _combinations(contacts, codes, patterns, complete):
        mode = name_mode(contacts, patterns, states)
        reason = (
            infeasibility_reason(system, states, samples, units)
            or contradictory_speeds(system, states, samples)
            or massless_speeds(system, states, samples)
        )
        if not reason and only_listed and not mode.pattern:
            reason = "not listed, and the model says only_listed"
        if reason:
            pruned[mode.name] = reason
        else:
            modes[mode.name] = mode
    return Enumeration(tuple(modes.values()), pruned, complete and not imposed)


def _combinations(
    contacts: Sequence[ContactInfo], codes: Sequence[Sequence[int]], patterns: Sequence[Pattern], complete: bool
) -> Iterator[tuple[int, ...]]:
    if complete:
        everything = list(itertools.product(*codes))
        order = {id(p): i for i, p in enumerate(patterns)}

        def rank(states: tuple[int, ...]) -> tuple[int, int]:
            fitting = [p for p in patterns if p.fits(states)]
            best = max(fitting, key=lambda p: len(p.states), default=None)
            extras = sum(code != contact.codes[0] for contact, code in zip(contacts, states, strict=True))
            return (order[id(best)] if best is not None else len(patterns), extras)

        yield from sorted(everything, key=rank)
        return
    for pattern in patterns:
        yield tuple(pattern.states.get(index, contact.codes[0]) for index, contact in enumerate(contacts))


def infeasibility_reason(
    system: UnconstrainedSystem, states: Sequence[int], samples: Mapping[str, Floats], units: Mapping[str, str]
) -> str:
    """Return why a mode is infeasible, or an empty text; ``units`` are those of gaps, by contact.

    Rows on coordinates contradict each other if they are dependent in every sampled state and their combination of
    residuals is constant and not zero.
    """
    names, rows = [], []
    for contact, code in zip(system.contacts, states, strict=True):
        if (
            code
            and not contact.contact_law.compliant
            and contact.normal_row >= 0
            and system.rows[contact.normal_row].positional
        ):
            names.append(contact.name)
            rows.append(contact.normal_row)
    if len(rows) < 2:
        return ""
    A, residual = samples["A"][:, rows, :], samples["residual"][:, rows]
    left = np.linalg.svd(A[0])[0]
    rank = int(np.linalg.matrix_rank(A[0]))
    for combination in left[:, rank:].T:
        if np.abs(np.einsum("r,srj->sj", combination, A)).max() > ALWAYS_TRUE:
            continue
        sums = residual @ combination
        if np.ptp(sums) <= ALWAYS_TRUE * (1.0 + np.abs(sums).max()) and abs(sums[0]) > ALWAYS_TRUE:
            weights = combination / combination[np.argmax(np.abs(combination))]  # only their ratios have a meaning
            weights = weights if sums[0] * combination[np.argmax(np.abs(combination))] > 0.0 else -weights
            involved = {name: w for name, w in zip(names, weights.tolist(), strict=True) if abs(w) > ALWAYS_TRUE}
            total = f"{abs(sums[0]) / np.abs(combination).max():.6g} {_unit_of({units.get(name) for name in involved})}"
            if all(abs(weight - 1.0) <= ALWAYS_TRUE for weight in involved.values()):
                said = f"their gaps always add up to {total}"
            else:
                said = f"{_weighted_sum(involved.items())} of their gaps is always {total}"
            return f"{' and '.join(involved)} exclude each other: {said}"
    return ""


def _unit_of(units: set[str | None]) -> str:
    """Return the unit of a sum of gaps: one of them all, else SI units."""
    unit = units.pop() if len(units) == 1 else None
    return "(SI units)" if unit is None else "rad" if unit == "1" else unit


def _weighted_sum(weighted: Iterable[tuple[str, float]]) -> str:
    """Return a weighted sum of names as text."""
    terms = []
    for name, weight in weighted:
        factor = f"{weight:.4g}"
        terms.append({"1": name, "-1": f"-{name}"}.get(factor, f"{factor}*{name}"))
    return " + ".join(terms).replace("+ -", "- ")


def contradictory_speeds(system: UnconstrainedSystem, states: Sequence[int], samples: Mapping[str, Floats]) -> str:
    """Return the rows with contradictory speeds in a combination of states, or an empty text.

    Rows dependent in every sampled state have ``vᵀA = 0``; with ``vᵀb ≠ 0`` no speeds satisfy them. Only rows with a
    ``b`` of parameters alone are compared: inputs and time may bring others together.
    """
    parameters = {system.symbols[name] for name in system.layout.p}
    active = [r for r in ActiveSet.of(system, states).rows if support([system.nodes["b"][r]]) <= parameters]
    A, b = samples["A"][:, active, : system.n_speeds], samples["b"][:, active]
    if not b.any():
        return ""
    size = np.linalg.norm(A[0], axis=1)
    size = np.where(size > 0.0, size, 1.0)
    A, b = A / size[:, None], b / size
    left, sizes, _ = np.linalg.svd(A[0])
    dependent = left[:, int(np.sum(sizes > RANK * sizes.max(initial=0.0))) :]
    v = dependent @ (dependent.T @ b[0])
    largest = np.abs(v).max(initial=0.0)
    if (
        largest <= ALWAYS_TRUE * np.abs(b[0]).max()
        or np.abs(np.einsum("r,srj->sj", v / largest, A)).max() > ALWAYS_TRUE
    ):
        return ""
    weights = v / size / np.copysign(np.abs(v / size).max(), v @ b[0])
    used = [(system.rows[r], float(w)) for r, w in zip(active, weights, strict=True) if abs(w) > ALWAYS_TRUE]
    involved = dict.fromkeys(row.name for row, _ in used)
    return f"{' and '.join(involved)} exclude each other: {contradiction(used, float(weights @ (b[0] * size)))}"


def contradiction(weighted: Sequence[tuple[RowInfo, float]], value: float) -> str:
    """Return as text a weighted sum of held rows with its value (SI units) other than zero."""
    labels = ((row.name if row.contact < 0 else f"{row.name}.{row.role}", weight) for row, weight in weighted)
    total = _weighted_sum(labels)
    return f"{total} is {value:.4g} at any speeds, and each of these rows vanishes (SI units)"
