"""Contact locations, recovered from the constraint rows.

A contact's row ``A`` of Kane's equations is the power of a unit force per unit speed.  If one and the same point P
(or pair of points P, Q of two bodies) gives ``A = d · (J_P - J_Q)`` for some direction ``d``, at several
configurations, then the force acts at P along d (and at Q against it); ``J`` are partial velocities.  A row of
relative angular velocity is a torque likewise.  If the contact point moves over shapes, the row is that of an unnamed
point: ``A = d · (J_P - J_Q) + m · Ω_P - l · Ω_Q`` with P, Q the centres of the bodies, Ω their partial
angular velocities, and the moments ``m = (C - P) × d`` determine the contact point C.  A contact without a fit
has no arrow.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from fsm_dyn import expressions
from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.contact_forces.kinematics import Kinematics
from fsm_dyn.modes.unconstrained_system import ContactInfo
from fsm_dyn.results.arrays import FloatArray
from fsm_dyn.results.scene import ORIGIN

TOLERANCE: Final = 1e-5  # of a row, against differences of 1e-10
TRIES: Final = 4  # configurations at which a location must fit
SPREAD: Final = 0.3  # m or rad, of these configurations
MOST_PAIRS: Final = 400


@dataclass(frozen=True)
class ContactLocation:
    """Location of a contact force or torque.

    ``kind`` is ``"force"``: on the point ``one``, against ``other`` (None: N); or ``"torque"``: on the frame ``one``
    against the frame ``other``, drawn at the point ``at``.  ``spins`` are the frames of the two bodies (None: N) where
    the contact point travels over them.  ``back`` is how far behind ``one``, against the normal, the bodies touch (m).
    """

    contact: int
    kind: Literal["force", "torque"]
    one: int
    other: int | None
    at: int = -1
    spins: tuple[int | None, int | None] | None = None
    back: float = 0.0


@dataclass(frozen=True)
class _Sample:
    """Partial velocities of points and frames, and the rows, at one configuration."""

    linear: FloatArray
    angular: FloatArray
    rows: FloatArray


def locate_contacts(kinematics: Kinematics, x: FloatArray, c: FloatArray) -> tuple[ContactLocation, ...]:
    """Return the locations of the contacts that have one."""
    automaton = kinematics.automaton
    samples = list(_samples(kinematics, x, c))
    found = []
    for number, contact in enumerate(automaton.contacts):
        rows = [r for r in (contact.normal_row, *contact.tangent_rows) if r >= 0]
        named, others = _points_in_order(automaton, contact)
        location = (
            _force(automaton, samples, number, rows, named)
            or _torque(automaton, samples, number, rows)
            or _force(automaton, samples, number, rows, [*named, *others])
            or _travelling(automaton, samples, number, rows)
        )
        if location is not None:
            found.append(location)
    return tuple(found)


def _samples(kinematics: Kinematics, x: FloatArray, c: FloatArray) -> Iterator[_Sample]:
    n_u = len(kinematics.layout.u)
    for there in neighbours(kinematics, x):
        rows = kinematics.terms.outputs(0.0, there, c)["A"][:, :n_u]
        linear, angular = kinematics.partial_velocities(there, c)
        if all(np.isfinite(values).all() for values in (rows, linear, angular)):
            yield _Sample(linear, angular, rows)


def neighbours(kinematics: Kinematics, x: FloatArray) -> Iterator[FloatArray]:
    """Yield the state and ``TRIES - 1`` perturbed ones, from a fixed seed."""
    random = np.random.default_rng(20030818)
    n_q = len(kinematics.layout.q)
    for k in range(TRIES):
        there = x.copy()
        if k:
            there[:n_q] += SPREAD * random.uniform(-1.0, 1.0, n_q)
            for first in kinematics.automaton.quaternions:
                there[first : first + 4] /= np.linalg.norm(there[first : first + 4])
        yield there


def _force(
    automaton: Automaton, samples: list[_Sample], number: int, rows: list[int], order: list[str]
) -> ContactLocation | None:
    names = list(automaton.point_names)
    singles: Iterator[tuple[str, str | None]] = ((one, None) for one in order)
    pairs = itertools.islice(itertools.permutations(order, 2), MOST_PAIRS)
    for one, other in itertools.chain(singles, pairs):
        i, j = names.index(one), None if other is None else names.index(other)
        if all(_fits(_between(s.linear, i, j), s.rows[r]) for s in samples for r in rows):
            return ContactLocation(number, "force", i, j)
    return None


def _travelling(automaton: Automaton, samples: list[_Sample], number: int, rows: list[int]) -> ContactLocation | None:
    """Return the location of a contact between shapes of two bodies, or of one and N."""
    points, frames = list(automaton.point_names), list(automaton.frame_names)
    bodies = [
        (points.index(body.center), frames.index(body.frame) if body.frame in frames else None)
        for body in automaton.mechanism.bodies.values()
        if body.center in points
    ]
    pairs = itertools.chain(((one, None) for one in bodies), itertools.permutations(bodies, 2))
    for one, other in itertools.islice(pairs, MOST_PAIRS):
        location = ContactLocation(
            number, "force", one[0], None if other is None else other[0],
            spins=(one[1], None if other is None else other[1]),
        )  # fmt: skip
        if all(_fits(partial_of(location, s.linear, s.angular), s.rows[r]) for s in samples for r in rows):
            return location
    return None


def partial_of(location: ContactLocation, linear: FloatArray, angular: FloatArray) -> FloatArray:
    """Return the basis of a contact's rows: relative partial velocity, and partial angular velocities of the bodies."""
    parts = [_between(linear, location.one, location.other)]
    if location.spins is not None:
        nothing = np.zeros_like(parts[0])
        one, other = location.spins
        parts += [nothing if one is None else angular[one], nothing if other is None else -angular[other]]
    return np.vstack(parts)


def contact_point(location: ContactLocation, forces: FloatArray, points: FloatArray) -> FloatArray:
    """Return the contact point, m, shape (3,), from the forces and moments of its rows, shape (k, 9).

    ``(C - P) × d = m`` for every row; of one row alone the closest point to P.
    """
    one = location.spins is not None and location.spins[0] is not None
    moments, base = (
        (forces[:, 3:6], location.one) if one or location.other is None else (forces[:, 6:9], location.other)
    )
    across = np.vstack([np.cross(np.eye(3), d).T for d in forces[:, :3]])  # (C - P) ↦ (C - P) × d
    lever = np.linalg.lstsq(across, moments.ravel(), rcond=1e-7)[0]
    return np.asarray(points[base] + lever, dtype=np.float64)


def _torque(automaton: Automaton, samples: list[_Sample], number: int, rows: list[int]) -> ContactLocation | None:
    names = list(automaton.frame_names)
    moving = [i for i, name in enumerate(names) if name != "N"]
    candidates: Iterator[tuple[int, int | None]] = itertools.chain(
        ((i, None) for i in moving), itertools.permutations(moving, 2)
    )
    for i, j in candidates:
        if all(_fits(_between(s.angular, i, j), s.rows[r]) for s in samples for r in rows):
            return ContactLocation(number, "torque", i, j, _joint(automaton, names[i], None if j is None else names[j]))
    return None


def _points_in_order(automaton: Automaton, contact: ContactInfo) -> tuple[list[str], list[str]]:
    """Return the points named in the contact's text, and the others, centres of bodies first."""
    mechanism = automaton.mechanism
    form = mechanism.contacts[contact.name]
    named: list[str] = []
    for text in (form.gap, form.slip):
        if text is not None:
            free = expressions.free_names(expressions.parse(text))
            named += [name for name in automaton.point_names if name in free]
    centres = [body.center for body in mechanism.bodies.values()]
    others = [p for p in dict.fromkeys([*centres, *automaton.point_names]) if p != ORIGIN and p not in named]
    return named, others


def _between(partial: FloatArray, one: int, other: int | None) -> FloatArray:
    return np.asarray(partial[one] if other is None else partial[one] - partial[other], dtype=np.float64)


def _fits(partial: FloatArray, row: FloatArray) -> bool:
    apart, size = np.linalg.norm(direction(partial, row) @ partial - row), float(np.linalg.norm(row))
    return bool(apart <= TOLERANCE * max(size, 1e-12))


def direction(partial: FloatArray, row: FloatArray) -> FloatArray:
    """Return the shortest ``d``, shape (3,), for which ``d @ partial`` (3, n_u) comes closest to ``row`` (n_u,)."""
    return np.asarray(np.linalg.lstsq(partial.T, row, rcond=1e-7)[0], dtype=np.float64)


def _joint(automaton: Automaton, one: str, other: str | None) -> int:
    """Return the centre of relative rotation of two frames: the origin of the points of one of them."""
    names = list(automaton.point_names)
    if other is not None and automaton.mechanism.frames[other].parent == one:
        one, other = other, one
    for frame in (one, other):
        for point in automaton.mechanism.points.values():
            if frame is not None and f"{frame}." in point.at.text and point.origin in names:
                beside = [p for p in automaton.mechanism.points.values() if p.name == point.origin]
                if not beside or f"{frame}." not in beside[0].at.text:
                    return names.index(point.origin)
    centres = [body.center for body in automaton.mechanism.bodies.values() if body.frame == one]
    return names.index(centres[0]) if centres and centres[0] in names else -1
