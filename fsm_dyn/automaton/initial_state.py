"""Initial state of a run: state, mode and slip directions from the values under ``initial``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fsm_dyn.automaton.hybrid_automaton import Automaton, slip_angle
from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import InputError, Location, ModelError, did_you_mean
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.assembly import PrescribedValues, has_landed
from fsm_dyn.derive.elimination import norm, product
from fsm_dyn.derive.embedding import ActiveSet
from fsm_dyn.derive.unconstrained_system import ContactInfo
from fsm_dyn.language.evaluate import ParameterValue, evaluate_expression
from fsm_dyn.language.values import named_values
from fsm_dyn.runtime.abi import SAME_ROW

# -- Contacts of corners and faces ---------------------------------------------------------------------------
#
# Active ones in the initial state (docs/theory.md, "Contact geometry"), by the rules of :mod:`fsm_dyn.run.features`.


def active_features(
    contacts: Sequence[ContactInfo],
    terms: Mapping[str, Floats],
    speeds: Floats,
    closed: Sequence[int],
    touching: float,
) -> set[int]:
    """Return the active contacts among ``closed``.

    ``terms``: the terms at the state, of the shapes stated in
    :class:`fsm_dyn.derive.unconstrained_system.UnconstrainedSystem`; ``speeds``, shape (n_rows,): ``A u + b`` of all
    rows, times the mechanism's own unit of time (m); ``closed``: numbers of the touching contacts, corners on faces
    included; ``touching``: a gap or speed below this is zero (m).
    """
    if not closed:
        return set()  # terms that corners alone need are not evaluated then
    rates = {k: float(speeds[contacts[k].normal_row]) for k in closed}
    ends = [k for k in closed if terms["margin_slope"][k] and abs(terms["reach"][k]) <= touching]
    corners = {k: _corners(contacts, terms, k, touching) for k in ends}
    active = [
        k for k in closed
        if k not in ends or all(rates[j] <= rates[k] + touching for j in ends if corners[j] == corners[k])
    ]  # fmt: skip
    rivals = {
        k: [j for j in ends if corners[j] == corners[k] and not _same_place(contacts, terms, j, k, touching)]
        for k in ends
    }
    chosen: list[int] = []
    for k in sorted(active, key=lambda k: bool(rivals.get(k))):  # contacts without rivals claim their place first
        if not any(_same_place(contacts, terms, k, j, touching) for j in chosen):
            chosen.append(k)
    for k in [k for k in chosen if k in ends]:
        others = [m for m in chosen if m != k and not (m in ends and corners[m] == corners[k])]
        if any(_same_place(contacts, terms, m, j, touching) for j in rivals[k] for m in others):
            chosen.remove(k)  # another contact already keeps one of the corners' pairs
    kept = list(chosen)
    parts = _parts(contacts, terms, chosen)
    for i in chosen:
        others = [j for j in kept if j != i and parts[j] == parts[i] and _exchangeable(contacts, i, j)]
        if any(0.0 < _between(contacts, terms, i, j, k) < 1.0 for j in others for k in others if j < k):
            kept.remove(i)
    return set(kept)


def _parts(contacts: Sequence[ContactInfo], terms: Mapping[str, Floats], chosen: Sequence[int]) -> dict[int, int]:
    """Number the parts into which contacts fall whose rows have no speed in common: no row is a sum of other parts'."""
    leader = list(range(terms["M"].shape[-1]))
    columns = {k: np.flatnonzero(terms["A"][contacts[k].normal_row, : len(leader)]).tolist() for k in chosen}

    def lead(column: int) -> int:
        while leader[column] != column:
            column = leader[column]
        return column

    for taken in columns.values():
        for column in taken[1:]:
            leader[lead(column)] = lead(taken[0])
    return {k: lead(taken[0]) if taken else -1 for k, taken in columns.items()}


def _exchangeable(contacts: Sequence[ContactInfo], j: int, k: int) -> bool:
    """Whether of two contacts one may keep the gap of the other; their friction may differ."""
    one, other = contacts[j], contacts[k]
    flags = [(c.kind, c.gated, c.poisson, c.bounded_face, c.bilateral, c.in_space) for c in (one, other)]
    return one.ends[0] >= 0 <= other.ends[0] and flags[0] == flags[1]


def _same_place(contacts: Sequence[ContactInfo], terms: Mapping[str, Floats], j: int, k: int, touching: float) -> bool:
    """Whether two contacts keep the same gap at the same place: of one corner, or of coincident corners."""
    meets = _corners(contacts, terms, j, touching) & _corners(contacts, terms, k, touching)
    return bool(meets) and _exchangeable(contacts, j, k) and _between(contacts, terms, j, k, k) == 0.0


def _corners(contacts: Sequence[ContactInfo], terms: Mapping[str, Floats], k: int, touching: float) -> frozenset[int]:
    """The corner of a contact, and at an end of its face also the corner there."""
    corner, ahead, behind = contacts[k].ends
    if not terms["margin_slope"][k] or abs(terms["reach"][k]) > touching:
        return frozenset((corner,))
    return frozenset((corner, ahead if terms["margin_slope"][k] > 0.0 else behind))


def _between(contacts: Sequence[ContactInfo], terms: Mapping[str, Floats], i: int, j: int, k: int) -> float:
    """Return the place of contact ``i`` between ``j`` (0) and ``k`` (1) on one line, NaN if it is on none."""
    n_u = terms["M"].shape[-1]
    mass = np.diagonal(terms["M"])
    scale = np.where(mass > 0.0, 1.0 / np.sqrt(np.where(mass > 0.0, mass, 1.0)), 1.0)
    a, b, c = (terms["A"][contacts[m].normal_row, :n_u] * scale for m in (i, j, k))
    step = c - b
    apart, size = float((step * step).sum()), float((a * a).sum())
    s = float((step * (a - b)).sum()) / apart if apart > SAME_ROW**2 * size else 0.0
    off = a - (1.0 - s) * b - s * c
    return s if float((off * off).sum()) <= SAME_ROW**2 * size else float("nan")


# -- Initial state of a run: state, mode and slip directions from the values under ``initial`` ---------------

_MOST_SIDES = 8  # sides of kinks tried in turn for a configuration
TOUCHING = 1e-9  # a gap or speed below this, in the mechanism's own units, is zero at the start


@dataclass(frozen=True)
class InitialState:
    """A state ``x`` (n_q + n_u,) in the mode with these contact states, and its context, slip directions set."""

    x: Floats
    states: tuple[int, ...]
    context: Floats


def find_initial_state(
    automaton: Automaton,
    values: Mapping[str, float],
    mode: str | None,
    t: float,
    context: Floats,
    places: Mapping[str, Location] | None = None,
) -> InitialState:
    """Find the state a run begins in.

    ``values``: given coordinates and speeds, SI units; the others follow (see :mod:`fsm_dyn.derive.assembly`).
    ``mode``: a mode or pattern of the model; its closed contacts hold. None: deduced from the values. ``context``,
    shape (n_c,): parameters and inputs at the start. ``places``: places of the values in the model file, for messages.
    Raises InputError: a name is unknown. Raises ModelError: the values contradict the mode.
    """
    layout = automaton.terms.layout
    check_names(automaton, values)
    fixed = fixed_codes(automaton, mode)
    states = assembled_states(automaton, fixed)
    given = PrescribedValues(
        {name: values[name] for name in layout.q if name in values},
        {name: values[name] for name in layout.u if name in values},
        t,
        context,
        places=places or {},
    )
    sides_of_kinks(automaton, values, t, context)
    for _ in range(_MOST_SIDES):
        x = automaton.assemble(states, given)
        if not sides_of_kinks(automaton, dict(zip(layout.q, x, strict=False)), t, context):
            break
    else:
        raise ModelError(
            "no configuration satisfies the rows on the side of their kinks on which it is",
            automaton.mechanism.initial.where,
            found=", ".join(automaton.mechanism.kinks),
            remedy="begin away from the kinks, or give more coordinates under initial",
        )
    terms = automaton.terms.evaluate(t, x, context)
    _check_rows(automaton, terms)
    return _deduced(automaton, fixed, states, terms, t, x, context)


def sides_of_kinks(automaton: Automaton, coordinates: Mapping[str, float], t: float, context: Floats) -> bool:
    """Write the memory of kinks of held rows into a context (n_c,); return whether it changed.

    Other coordinates are at the guess of the model, or zero.
    """
    mechanism, layout = automaton.mechanism, automaton.terms.layout
    if not mechanism.kinks:
        return False
    known: dict[str, ParameterValue] = {**named_values(mechanism, list(context[layout.p_slice])), "t": t}
    known |= dict(zip(layout.w, map(float, context[layout.w_slice]), strict=True))
    guessed = {name: evaluate_expression(text, known) for name, text in mechanism.initial.guess.items()}
    known |= {name: float(coordinates.get(name, guessed.get(name, 0.0))) for name in layout.q}
    before = context.copy()
    for name, text in mechanism.kinks.items():
        known[name] = context[layout.memory_slice.start + layout.memory.index(name)] = evaluate_expression(text, known)
    return bool(np.any(context != before))


def _check_rows(automaton: Automaton, terms: Mapping[str, Floats]) -> None:
    """Refuse a start with an infinite or undefined value of a constraint, a contact or its law."""
    finite = np.isfinite(np.column_stack([terms["residual"], terms["b"], terms["A"]])).all(axis=1)
    wrong = [automaton.rows[number].name for number in np.flatnonzero(~finite)]
    laws = np.column_stack([terms[law] for law in ("static", "kinetic", "restitution", "tangential_restitution")])
    wrong += [
        contact.name
        for contact, numbers in zip(automaton.contacts, laws, strict=True)
        if not (contact.sticks_always or np.isfinite(numbers).all())
    ]
    if not wrong:
        return
    name, mechanism = wrong[0], automaton.mechanism
    entry = mechanism.contacts.get(name) or mechanism.constraints.get(name)
    raise ModelError(
        f"'{name}' is not finite where the motion begins",
        entry.where if entry is not None else mechanism.initial.where,
        remedy="look for a division by zero or a root of a negative number in it, or begin elsewhere",
    )


def _deduced(
    automaton: Automaton,
    fixed: Mapping[int, int],
    states: list[int],
    terms: Mapping[str, Floats],
    t: float,
    x: Floats,
    context: Floats,
) -> InitialState:
    """Return the start in a state ``x``: contact states not fixed by the mode follow from the terms there."""
    layout = automaton.terms.layout
    speeds = product(terms["A"][:, : len(layout.u)], x[layout.u_slice]) + terms["b"]
    sigma = np.zeros(len(automaton.contacts))
    for i, contact in enumerate(automaton.contacts):
        slips = speeds[list(contact.tangent_rows)]
        if i not in fixed:
            states[i] = _deduce(automaton, i, terms, speeds, norm(slips))
    corners = [i for i, code in enumerate(states) if code and automaton.contacts[i].ends[0] >= 0]
    for i in {i for i in corners if i not in fixed and automaton.contacts[i].contact_law.rigid} - active_features(
        automaton.contacts,
        terms,
        speeds * automaton.units.scales.time,
        corners,
        TOUCHING * automaton.units.scales.length,
    ):
        states[i] = 0
    for i, contact in enumerate(automaton.contacts):
        slips = speeds[list(contact.tangent_rows)]
        if states[i] >= 2:
            sigma[i] = slip_angle(slips, 2.0 * np.pi, automaton.units.speed) if contact.in_space else np.sign(slips[0])
    context[layout.sigma_slice] = sigma
    if not has_landed(automaton.system, states, terms["residual"]):
        x = automaton.land(states, t, x, context)
    return InitialState(x, tuple(states), context)


def assembled_states(automaton: Automaton, fixed: Mapping[int, int]) -> list[int]:
    """Return the contact states for the assembly of a start."""
    # a contact without an open state begins sliding unless its state is given
    return [
        fixed.get(i, contact.codes[min(1, len(contact.codes) - 1)] if 0 not in contact.codes else 0)
        for i, contact in enumerate(automaton.contacts)
    ]


def find_free_starts(
    automaton: Automaton, values: Sequence[Mapping[str, float]], mode: str | None, t: float, contexts: Floats
) -> list[InitialState]:
    """Find the initial states of several runs if nothing has to be solved (:func:`is_free`).

    ``values``: of each run, as for :func:`find_initial_state`; ``contexts``, shape (n, n_c). Raises InputError: a name
    is unknown.
    """
    layout = automaton.terms.layout
    fixed = fixed_codes(automaton, mode)
    check_names(automaton, {name: value for given in values for name, value in given.items()})
    x = np.array([[given.get(name, 0.0) for name in layout.x] for given in values])
    found = automaton.terms.evaluate(t, x, contexts, dict.fromkeys(deduced_from(automaton)))
    return [
        _deduced(
            automaton, fixed, assembled_states(automaton, fixed), {name: part[k] for name, part in found.items()},
            t, x[k], contexts[k].copy(),
        )
        for k in range(len(values))
    ]  # fmt: skip


def deduced_from(automaton: Automaton) -> tuple[str, ...]:
    """Return the terms for the deduction of the contact states of a start."""
    found = ("A", "b", "residual", "firm", "closes_if", "reach", "reach_rate", "aspect")
    corners = any(contact.ends[0] >= 0 for contact in automaton.contacts)
    return (*found, "margin_slope", "M") if corners else found


def is_free(automaton: Automaton, mode: str | None) -> bool:
    """Return whether a start in a mode has no rows to satisfy and no coordinates to normalise."""
    system, states = automaton.system, assembled_states(automaton, fixed_codes(automaton, mode))
    return not (
        ActiveSet.of(system, states).rows
        or system.quaternions
        or automaton.curve_parameters
        or automaton.mechanism.initial.guess
        or automaton.mechanism.kinks
    )


def check_names(automaton: Automaton, values: Mapping[str, float]) -> None:
    """Refuse initial values of unknown coordinates or speeds."""
    layout = automaton.terms.layout
    for name in values:
        if name not in layout.x:
            raise InputError(
                f"'{name}' is no coordinate or speed of '{automaton.mechanism.name}'",
                allowed=", ".join(layout.x),
                remedy=did_you_mean(name, layout.x),
            )


def fixed_codes(automaton: Automaton, mode: str | None) -> dict[int, int]:
    """Contact codes fixed by the initial mode, by contact index. Raises InputError: there is no such mode."""
    if mode is None:
        return {}
    for pattern in automaton.patterns:
        if pattern.name == mode:
            return dict(pattern.states)
    for known in automaton.modes:
        if known.name == mode:
            return dict(enumerate(known.states))
    names = [pattern.name for pattern in automaton.patterns] + [known.name for known in automaton.modes]
    names = list(dict.fromkeys(names))
    raise InputError(
        f"no mode '{mode}' in '{automaton.mechanism.name}'", allowed=", ".join(names), remedy=did_you_mean(mode, names)
    )


def _deduce(automaton: Automaton, index: int, terms: Mapping[str, Floats], speeds: Floats, slip: float) -> int:
    """State of a contact not fixed by the mode: closed if it touches without separating, or is pressed in."""
    contact, units = automaton.contacts[index], automaton.units
    small, still = TOUCHING * units.scales.length, TOUCHING * units.speed
    if contact.contact_law.switched:
        return 0
    if not contact.contact_law.friction_only and not contact.bilateral:
        gap, rate = terms["residual"][contact.normal_row], speeds[contact.normal_row]
        unit = units.rows[contact.normal_row]
        touches = abs(gap) <= small * unit and rate <= still * unit
        if contact.contact_law.compliant:
            # a point behind a face with ends is not pressed into it, unless the mode says so
            deep = gap < -small * unit and terms["firm"][index] > 0.0 and not contact.bounded_face
            touches = deep or (touches and rate < -still * unit)
        if not touches or not terms["closes_if"][index]:
            return 0
        reach, outward = terms["reach"][index], -terms["reach_rate"][index]
        if reach < -small or (reach <= small and outward > still) or terms["aspect"][index] < -small:
            return 0
    if contact.tangent_row >= 0 and not contact.sticks_always and abs(slip) > still * units.rows[contact.tangent_row]:
        return 2
    return 1
