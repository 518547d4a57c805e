"""Forces as arrows: of contacts with their friction cones, of inputs at the places of their arrows in a drawing."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal

import numpy as np

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.unconstrained_system import ContactInfo
from fsm_dyn.language import expressions
from fsm_dyn.language.elements import ForceLoad, LawLoad
from fsm_dyn.language.evaluate import ParameterValue
from fsm_dyn.language.expression_tree import Text, free_names
from fsm_dyn.language.model import Mechanism
from fsm_dyn.language.values import named_values
from fsm_dyn.programs.kernels import compile_programs
from fsm_dyn.run.scene import NEWTONIAN, ORIGIN, Outlines, PlacedFeature, Scene, Symbol, vector_of

# -- Positions, partial velocities and constraint rows of a mechanism at one state, from compiled ------------
#
# Positions, partial velocities and constraint rows of a mechanism at one state, from compiled programs.


@dataclass(frozen=True)
class Configuration:
    """A mechanism at one state."""

    # points, frames: as of :meth:`Kinematics.points`
    points: Floats
    frames: Floats
    # linear, angular: as of :meth:`Kinematics.partial_velocities`
    linear: Floats
    angular: Floats
    rows: Floats  # shape (n_rows, n_u): constraint rows
    terms: Mapping[str, Floats]  # all unconstrained terms

    @property
    def finite(self) -> bool:
        """Whether rows and partial velocities are numbers."""
        return all(np.isfinite(values).all() for values in (self.rows, self.linear, self.angular))


class Kinematics:
    """Evaluator of the programs of a mechanism common to all modes; microseconds per evaluation."""

    def __init__(self, automaton: Automaton) -> None:
        self.automaton = automaton
        self.layout = automaton.terms.layout
        self.geometry, self.report, self.terms = compile_programs(
            [automaton.geometry, automaton.report, automaton.terms]
        )

    def points(self, x: Floats, c: Floats) -> tuple[Floats, Floats]:
        """Return positions of points, m, shape (n, 3), and rotation matrices of frames, shape (k, 3, 3)."""
        out = self.geometry.outputs(0.0, x, c)
        return out["points"], out["frames"]

    def partial_velocities(self, x: Floats, c: Floats) -> tuple[Floats, Floats]:
        """Return partial velocities of points and partial angular velocities of frames.

        Returns ``linear``, shape (n_points, 3, n_u): velocity of every point per speed, resolved in N; ``angular``,
        shape (n_frames, 3, n_u): angular velocity of every frame per speed, resolved in N.
        """
        layout = self.layout
        n_q = len(layout.q)
        points, frames = self.points(x, c)
        by_q = np.zeros((*points.shape, n_q))
        turn = np.zeros((len(frames), 3, n_q))
        for j in range(n_q):
            h = 1e-6 * (1.0 + abs(x[j]))
            ahead, behind = x.copy(), x.copy()
            ahead[j] += h
            behind[j] -= h
            (p1, f1), (p0, f0) = self.points(ahead, c), self.points(behind, c)
            by_q[..., j] = (p1 - p0) / (2.0 * h)
            spin = np.einsum("fij,fkj->fik", (f1 - f0) / (2.0 * h), frames)  # Ṙ Rᵀ
            turn[..., j] = np.stack([spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]], axis=-1)
        w = self.terms.outputs(0.0, x, c)["W"][:n_q, : len(layout.u)]
        return by_q @ w, turn @ w

    def configuration(self, x: Floats, c: Floats) -> Configuration:
        """Return the mechanism at a state (n_x,) and context (n_c,), SI."""
        terms = self.terms.outputs(0.0, x, c)
        rows = terms["A"][:, : len(self.layout.u)]
        return Configuration(*self.points(x, c), *self.partial_velocities(x, c), rows, terms)


# -- Contact locations ---------------------------------------------------------------------------------------
#
# Contact locations: of planar shapes from their features, of all others from the constraint rows.
#
# Two planar features with straight or circular outlines determine the contact point and the normal. The rows confirm
# them and give their signs.
#
# Of all other contacts the location is recovered from the rows. A contact's row ``A`` of Kane's equations is the
# power of a unit force per unit speed. If one and the same point P (or pair of points P, Q of two bodies) gives ``A =
# d · (J_P - J_Q)`` for some direction ``d``, at several configurations, then the force acts at P along d (and at Q
# against it); ``J`` are partial velocities. A row of relative angular velocity is a torque likewise. If the contact
# point moves over shapes, the row is that of an unnamed point: ``A = d · (J_P - J_Q) + m · Ω_P - l · Ω_Q`` with P, Q
# the centres of the bodies, Ω their partial angular velocities, and the moments ``m = (C - P) × d`` determine the
# contact point C. A contact without a fit has no arrow.

TOLERANCE: Final = 1e-5  # of a row, against differences of 1e-10
TRIES: Final = 4  # configurations at which a location must fit
SPREAD: Final = 0.3  # m or rad, of these configurations
MOST_PAIRS: Final = 400


@dataclass(frozen=True)
class _LocatedFeature:
    """A feature with the numbers of its point and frame."""

    point: int
    frame: int
    placed: PlacedFeature

    def position(self, at: Configuration) -> Floats:
        """Return its centre, or a point of its face, m, shape (3,)."""
        return np.asarray(at.points[self.point] + at.frames[self.frame] @ self.placed.offset)


@dataclass(frozen=True)
class ContactLocation:
    """Location of a contact force or torque.

    ``kind`` is ``"force"``: on the point ``one``, against ``other`` (None: N); or ``"torque"``: on the frame ``one``
    against the frame ``other``, drawn at the point ``at``.  ``spins`` are the frames of the two bodies (None: N) if
    the contact point travels over them.  ``back`` is how far behind ``one``, against the normal, the bodies touch (m).
    ``features`` are those of the two bodies, if they determine the point.  ``on`` are the centre and the frame of the
    body that the point ``one`` of a translating body rides on.
    """

    contact: int
    kind: Literal["force", "torque"]
    one: int
    other: int | None
    at: int = -1
    spins: tuple[int | None, int | None] | None = None
    back: float = 0.0
    features: tuple[_LocatedFeature, _LocatedFeature] | None = None
    on: tuple[int, int] | None = None


def locate_contacts(kinematics: Kinematics, x: Floats, c: Floats) -> tuple[ContactLocation, ...]:
    """Return the locations of contacts, if known."""
    automaton = kinematics.automaton
    samples = [at for at in (kinematics.configuration(there, c) for there in neighbours(kinematics, x)) if at.finite]
    if not samples:
        return ()
    parameters = c[kinematics.layout.p_slice]
    outlines = Outlines(automaton, parameters, named_values(automaton.mechanism, parameters.tolist()))
    found = []
    for number, contact in enumerate(automaton.contacts):
        rows = [r for r in (contact.normal_row, *contact.tangent_rows) if r >= 0]
        named, others = _points_in_order(automaton, contact)
        location = (
            _between_features(automaton, samples, number, rows, outlines)
            or _force(automaton, samples, number, rows, named)
            or _torque(automaton, samples, number, rows)
            or _force(automaton, samples, number, rows, [*named, *others])
            or _riding(automaton, samples, number, rows)
            or _travelling(automaton, samples, number, rows)
        )
        if location is not None:
            found.append(location)
    return tuple(found)


def neighbours(kinematics: Kinematics, x: Floats) -> Iterator[Floats]:
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
    automaton: Automaton, samples: list[Configuration], number: int, rows: list[int], order: list[str]
) -> ContactLocation | None:
    names = list(automaton.point_names)
    singles: Iterator[tuple[str, str | None]] = ((one, None) for one in order)
    pairs = itertools.islice(itertools.permutations(order, 2), MOST_PAIRS)
    for one, other in itertools.chain(singles, pairs):
        i, j = names.index(one), None if other is None else names.index(other)
        if all(_fits(_between(s.linear, i, j), s.rows[r]) for s in samples for r in rows):
            return ContactLocation(number, "force", i, j)
    return None


def _between_features(
    automaton: Automaton, samples: list[Configuration], number: int, rows: list[int], outlines: Outlines
) -> ContactLocation | None:
    """Return the location of a contact of two planar features, None if it has others."""
    contact = automaton.mechanism.contacts[automaton.contacts[number].name]
    points, frames = list(automaton.point_names), list(automaton.frame_names)
    found = []
    for feature in getattr(contact, "features", ()):
        placed = outlines.feature(feature)
        if placed is None:
            return None
        found.append(_LocatedFeature(points.index(placed.origin), frames.index(placed.frame), placed))
    for one, other in itertools.permutations(found, 2):
        moving = [any(s.linear[i.point].any() or s.angular[i.frame].any() for s in samples) for i in (one, other)]
        location = ContactLocation(
            number, "force", one.point, other.point if moving[1] else None, spins=(one.frame, other.frame),
            features=(one, other),
        )  # fmt: skip
        if moving[0] and all(_agree(location, s, rows) for s in samples):
            return location
    return None


def _agree(location: ContactLocation, at: Configuration, rows: list[int]) -> bool:
    """Return whether the features give the rows."""
    found, wanted = _on_features(location, at, rows)[1] @ partial_of(location, at), at.rows[rows]
    return bool(np.linalg.norm(found - wanted) <= TOLERANCE * max(float(np.linalg.norm(wanted)), 1e-12))


def _riding(automaton: Automaton, samples: list[Configuration], number: int, rows: list[int]) -> ContactLocation | None:
    """Return the location of a contact at the centre of a translating body that rides on a turning one.

    The row is that of the centre against the point of the other body there, in an inclined direction.
    """
    points, frames = list(automaton.point_names), list(automaton.frame_names)
    bodies = [body for body in automaton.mechanism.bodies.values() if body.center in points]
    for one, other in itertools.permutations(bodies, 2):
        if one.frame in frames or other.frame not in frames or len(rows) != 1:
            continue
        on = (points.index(other.center), frames.index(other.frame))
        location = ContactLocation(number, "force", points.index(one.center), None, on=on)
        parts = [(partial_of(location, at), at) for at in samples]
        both = all(at.linear[location.one].any() and at.angular[on[1]].any() for _, at in parts)
        if both and all(_fits(partial, at.rows[rows[0]]) for partial, at in parts):
            return location
    return None


def _travelling(
    automaton: Automaton, samples: list[Configuration], number: int, rows: list[int]
) -> ContactLocation | None:
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
        if all(_fits(partial_of(location, s), s.rows[r]) for s in samples for r in rows):
            return location
    return None


def partial_of(location: ContactLocation, at: Configuration) -> Floats:
    """Return the basis of a contact's rows: relative partial velocity, and partial angular velocities of the bodies."""
    parts = [_between(at.linear, location.one, location.other)]
    if location.on is not None:
        base, frame = location.on
        arm = at.points[location.one] - at.points[base]
        parts[0] = parts[0] - at.linear[base] - np.cross(at.angular[frame], arm, axis=0)
    if location.spins is not None:
        nothing = np.zeros_like(parts[0])
        one, other = location.spins
        parts += [nothing if one is None else at.angular[one], nothing if other is None else -at.angular[other]]
    return np.vstack(parts)


def contact_at(location: ContactLocation, at: Configuration, rows: Sequence[int]) -> tuple[Floats, Floats]:
    """Return the contact point, m, shape (3,), and the forces on the first body of unit multipliers of its rows (k, 3).

    Of a contact without features, whose point travels: ``(C - P) × d = m`` for every row; of one row alone the closest
    point to P.
    """
    if location.features is not None:
        point, wrenches = _on_features(location, at, rows)
        return point, wrenches[:, :3]
    partial = partial_of(location, at)
    wrenches = np.array([direction(partial, at.rows[row]) for row in rows])
    directions = wrenches[:, :3]
    if location.spins is None:
        return at.points[location.one], directions
    one = location.spins[0] is not None or location.other is None
    moments, base = (wrenches[:, 3:6], location.one) if one else (wrenches[:, 6:9], location.other)
    across = np.vstack([np.cross(np.eye(3), d).T for d in directions])  # (C - P) ↦ (C - P) × d
    lever = np.linalg.lstsq(across, moments.ravel(), rcond=1e-7)[0]
    return np.asarray(at.points[base] + lever, dtype=np.float64), directions


def _on_features(location: ContactLocation, at: Configuration, rows: Sequence[int]) -> tuple[Floats, Floats]:
    """Return the contact point, m, shape (3,), and the wrenches of a normal row and one tangential row (k, 9).

    The normal of the face, or along the line of centres; the signs are those of the rows.
    """
    assert location.features is not None
    one, other = location.features
    second = one.placed.along is not None or one.placed.hollow  # the second touches with a centre
    touching, base = (other, one) if second else (one, other)
    partial, axis, centre = partial_of(location, at), at.frames[base.frame][:, 2], touching.position(at)

    def wrench(line: Floats, point: Floats, row: int) -> Floats:
        unit = line / max(float(np.linalg.norm(line)), 1e-12)
        moments = [np.cross(point - at.points[item.point], unit) for item in (one, other)]
        found = np.concatenate([unit, *moments])
        return -found if found @ partial @ at.rows[row] < 0.0 else found

    along = base.placed.along
    line = centre - base.position(at) if along is None else np.cross(axis, at.frames[base.frame] @ along)
    wrenches = [wrench(line, centre, rows[0])]
    normal = wrenches[0][:3]
    point = centre + (normal if second else -normal) * touching.placed.radius
    wrenches += [wrench(np.cross(axis, normal), point, row) for row in rows[1:]]
    return point, np.array(wrenches)


def _torque(automaton: Automaton, samples: list[Configuration], number: int, rows: list[int]) -> ContactLocation | None:
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
            free = free_names(expressions.parse(text))
            named += [name for name in automaton.point_names if name in free]
    centres = [body.center for body in mechanism.bodies.values()]
    others = [p for p in dict.fromkeys([*centres, *automaton.point_names]) if p != ORIGIN and p not in named]
    return named, others


def _between(partial: Floats, one: int, other: int | None) -> Floats:
    return np.asarray(partial[one] if other is None else partial[one] - partial[other], dtype=np.float64)


def _fits(partial: Floats, row: Floats) -> bool:
    apart, size = np.linalg.norm(direction(partial, row) @ partial - row), float(np.linalg.norm(row))
    return bool(apart <= TOLERANCE * max(size, 1e-12))


def direction(partial: Floats, row: Floats) -> Floats:
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


# -- Offsets of contact locations from body points to the drawn outline of the gap -------------

AGREE: Final = 0.05  # of a distance


def with_surface_offsets(
    kinematics: Kinematics, scene: Scene, locations: Iterable[ContactLocation], x: Floats, c: Floats
) -> tuple[ContactLocation, ...]:
    """Return the locations with ``back``, m: distance of the contact point behind their first point.

    The gap of two points is their distance along the normal less the extents of the bodies towards each other; the
    outlines determine the share of each body. ``kinematics``: evaluates rows of the model; ``scene``: the outlines;
    ``x``, shape (n_x,): a state, SI; ``c``, shape (n_c,): its context, SI.
    """
    at = kinematics.configuration(x, c)
    found = []
    for location in locations:
        row = kinematics.automaton.contacts[location.contact].normal_row
        back = 0.0
        two = location.other is not None or location.spins is not None or location.on is not None
        if location.kind == "force" and location.features is None and row >= 0 and two:
            across = direction(partial_of(location, at), at.rows[row])[:3]
            length = max(float(np.linalg.norm(across)), 1e-12)
            normal = across / length
            mine = _reach(scene, at, location.one, -normal)
            if location.other is None:
                back = mine
            else:
                apart = float(normal @ (at.points[location.one] - at.points[location.other]))
                theirs = _reach(scene, at, location.other, normal)
                back = _share(apart - float(at.terms["residual"][row]) / length, mine, theirs)
        found.append(replace(location, back=back))
    return tuple(found)


def _share(taken: float, mine: float, theirs: float) -> float:
    """Return the first body's share of the extents between two bodies, m."""
    for total, part in ((mine, mine), (theirs, 0.0), (mine + theirs, mine)):
        if total > 0.0 and abs(taken - total) < AGREE * total:
            return part
    return taken if theirs == 0.0 else 0.5 * taken


def _reach(scene: Scene, at: Configuration, point: int, toward: Floats) -> float:
    """Return the extent, m, of the outlines with this origin in a direction."""
    name = scene.points[point]
    reach = 0.0
    for shape in scene.shapes:
        if shape.origin == name and not shape.endless:
            turn = np.eye(3) if shape.frame == NEWTONIAN else at.frames[scene.frames.index(shape.frame)]
            reach = max(reach, float((shape.points @ (turn[:, :2].T @ toward)).max()))
    return reach


# -- Contact forces as arrows with their friction cones, friction torques with their limits ------------------

WIDTH: Final = 9  # numbers per contact in a display frame: active, location (2), normal (2), tangent (2), limit (2)


class Forces:
    """Forces of contacts with a location.

    ``scene``: whose outlines the contacts are on. ``flat``, shape (2, 3): projection from N to the plane of the
    drawing; read at each call, as the view can turn. ``x``, ``c``, shapes (n_x,) and (n_c,): state and context near
    which the contacts are located, SI.
    """

    def __init__(self, kinematics: Kinematics, scene: Scene, flat: Floats, x: Floats, c: Floats) -> None:
        self._kinematics, self._flat = kinematics, flat
        self.locations = with_surface_offsets(kinematics, scene, locate_contacts(kinematics, x, c), x, c)

    def drawn(self, x: Floats, c: Floats, states: Sequence[int], multipliers: Floats) -> Floats:
        """Return the forces at a state, projected on the plane of the drawing, shape (WIDTH * locations,).

        Of a force: location, normal and tangential parts, N, and the friction limit along the tangent, N.  Of a torque:
        location, torque and limit, N m, each in the first number of its pair.
        """
        out = np.zeros(WIDTH * len(self.locations))
        if not any(states[location.contact] > 0 for location in self.locations):
            return out
        at = self._kinematics.configuration(x, c)
        if not at.finite:
            return out
        for k, location in enumerate(self.locations):
            code = int(states[location.contact])
            if code <= 0:
                continue
            contact = self._kinematics.automaton.contacts[location.contact]
            bound = float(at.terms["static" if code == 1 else "kinetic"][location.contact])
            if contact.contact_law.loaded:
                bound *= float(np.linalg.norm(multipliers[list(contact.load_rows)]))
            entry = out[WIDTH * k : WIDTH * (k + 1)]
            entry[0] = 1.0
            draw = self._torque if location.kind == "torque" else self._force
            draw(entry, contact, location, multipliers, bound, at)
        return out

    def place(self, location: ContactLocation, contact: ContactInfo, at: Configuration) -> tuple[Floats, Floats]:
        """Return where a contact is, in the plane of the drawing, m, (2,), and the directions of its rows (k, 3)."""
        acting = [row for row in (contact.normal_row, *contact.tangent_rows) if row >= 0]
        point, directions = contact_at(location, at, acting)
        if contact.normal_row >= 0 and (location.spins is None or not contact.tangent_rows):
            point = point - location.back * directions[0] / max(float(np.linalg.norm(directions[0])), 1e-12)
        return np.asarray(self._flat @ point), directions

    def _force(
        self,
        entry: Floats,
        contact: ContactInfo,
        location: ContactLocation,
        multipliers: Floats,
        bound: float,
        at: Configuration,
    ) -> None:
        flat = self._flat
        entry[1:3], directions = self.place(location, contact, at)
        normal = 0.0
        if contact.normal_row >= 0:
            normal = float(multipliers[contact.normal_row])
            entry[3:5] = flat @ directions[0] * normal
        if contact.tangent_rows:
            alongs = directions[-len(contact.tangent_rows) :]
            along, friction = alongs[0], multipliers[list(contact.tangent_rows)] @ alongs
            size = float(np.linalg.norm(friction))
            if contact.in_space and size > 0.0:  # of the cone the section that the force is in
                along = friction / size
            limit = bound * (abs(normal) if contact.normal_row >= 0 else 1.0)
            entry[5:7] = flat @ friction
            if np.isfinite(limit):
                entry[7:9] = flat @ along * limit

    def _torque(
        self,
        entry: Floats,
        contact: ContactInfo,
        location: ContactLocation,
        multipliers: Floats,
        bound: float,
        at: Configuration,
    ) -> None:
        row = contact.tangent_row if contact.tangent_row >= 0 else contact.normal_row
        entry[1:3] = self._flat @ (at.points[location.at] if location.at >= 0 else np.zeros(3))
        entry[3] = multipliers[row]
        entry[7] = bound if contact.contact_law.friction_only else 0.0


# -- Forces set by inputs, at the places where a drawing has arrows for them ---------------------------------

SHORTEST, LONGER = 5.0, 8.0  # units of a scene: the shortest arrow, and the rest of the longest
LEAST: Final = 0.02  # of the largest force: smaller ones have no arrow


class InputPushes:
    """The forces of inputs at the symbols of a scene.

    ``scene``: with symbols; those of kind ``input`` are the places. ``inputs``: in the order of their values.
    ``values``: parameters by name, SI.
    """

    def __init__(
        self, scene: Scene, mechanism: Mechanism, inputs: tuple[str, ...], values: Mapping[str, ParameterValue]
    ) -> None:
        self.symbols: tuple[Symbol, ...] = tuple(symbol for symbol in scene.symbols if symbol.kind == "input")
        self._frames, self._inputs, self._values = scene.frames, inputs, values
        loads = {load.name: load for load in mechanism.loads if isinstance(load, ForceLoad | LawLoad)}
        known = {*values, *inputs, "t", NEWTONIAN, *scene.frames}
        self._texts: list[tuple[Text | None, bool]] = []
        for symbol in self.symbols:
            load = loads[symbol.name]
            depends = not free_names(expressions.parse(load.value)) <= known
            self._texts.append((None if depends else load.value, isinstance(load, ForceLoad)))

    def forces(self, t: float, inputs: Floats, rotations: Floats) -> list[Floats]:
        """Return the force of each place: (3,), N, resolved in N; of a law its value (1,). Zero if the state sets it.

        ``t``: s; ``inputs``, shape (n_inputs,): SI; ``rotations``, shape (n_frames, 3, 3): of the frames of the scene.
        """
        values = {**self._values, **dict(zip(self._inputs, inputs.tolist(), strict=True)), "t": t}
        turns = dict(zip(self._frames, rotations, strict=True))
        return [
            np.zeros(3 if is_force else 1) if text is None else np.atleast_1d(vector_of(text, values, turns))
            for text, is_force in self._texts
        ]

    def arrows(self, forces: list[Floats], anchors: Floats, flat: Floats) -> Floats:
        """Return the head of each arrow, m, and its direction times the force, N, in a picture, shape (k, 4).

        ``forces``: of :meth:`forces`; ``anchors``, shape (n_anchors, 2): of the scene, in the picture, m; ``flat``,
        shape (2, 3): the projection.
        """
        found = np.zeros((len(self.symbols), 4))
        for row, symbol, force in zip(found, self.symbols, forces, strict=True):
            ends = anchors[list(symbol.anchors)]
            along = flat @ force if len(force) == 3 else force * (ends[-1] - ends[0])
            size = float(np.linalg.norm(along))
            row[:2] = ends[-1] if force[0] < 0.0 else ends[0]
            row[2:] = along * (float(np.linalg.norm(force)) / size if size > 0.0 else 0.0)
        return found
