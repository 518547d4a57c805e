"""Whose a point is: found by rigid motion, where a joint moves its child by coordinates that other points do not know.

A joint with friction of its reaction, or with a clearance, moves its child across its axis or along its thread too
(docs/theory.md, "Friction of joints").  Points that are given from the child's origin follow.  Another one, such as
``{from: O, at: slide*N.x}``, belongs to the child too if it moves like a point of it where the joint does what
it would without those coordinates; so does the centre of a body, or the place of a shape, on the joint's own axis.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from fsm_dyn.errors import ModelError
from fsm_dyn.expressions import Text
from fsm_dyn.programs import Node, evaluate, substitute, support, tangent
from fsm_dyn.spec.checks.unit_usage import words_of
from fsm_dyn.spec.joint import Joint
from fsm_dyn.spec.model import Mechanism, Point
from fsm_dyn.symbolic.algebra import NodeAlgebra
from fsm_dyn.symbolic.points import Points
from fsm_dyn.symbolic.vectors import Space

Array = npt.NDArray[np.float64]

NEWTONIAN: Final = "N"
_PLACES: Final = 3  # configurations at which motions are compared
_SEED: Final = 20030818
_EQUAL: Final = 1e-9  # of lengths about 1
_NAMES: Final = re.compile(r"[A-Za-z]\w*")


def with_carried_points(
    mechanism: Mechanism, points: Points, space: Space, euler: Sequence[Sequence[Node]], algebra: NodeAlgebra
) -> Mechanism:
    """Return a mechanism in which points move with the children of joints that carry them.

    Parameters
    ----------
    mechanism : Mechanism
    points : Points
    space : Space
    euler : sequence of sequence of Node
        Symbols of each set of Euler parameters.
    algebra : NodeAlgebra
        Its geometry as it is written, in a separate graph.

    Returns
    -------
    Mechanism

    Raises
    ------
    ModelError
        A point that something acts on moves neither with a joint's child nor without it.
    """
    geometry = _Geometry(points, space, euler, algebra)
    changed = mechanism
    for joint in mechanism.joints.values():
        if joint.displacement is not None:
            changed = _carried_by(joint, joint.displacement, changed, geometry)
    return changed


def check_freed_bodies(
    mechanism: Mechanism, points: Points, space: Space, euler: Sequence[Sequence[Node]], algebra: NodeAlgebra
) -> None:
    """Check that in absolute coordinates the centre of every body moves with a child of a joint, or without it.

    Arguments are as of :func:`with_carried_points`.

    Raises
    ------
    ModelError
        A centre moves with a child but not as a point of it: the forces of joints would not be those of the body.
    """
    geometry = _Geometry(points, space, euler, algebra)
    for joint in mechanism.joints.values():
        if joint.is_freed:
            for body in mechanism.bodies.values():
                if body.center in points.names and not geometry.follows_or_rests(joint, body.center):
                    raise ModelError(
                        f"the centre {str(body.center)!r} of {str(body.name)!r} moves with {str(joint.child)!r}, but "
                        "not as a point of it, so that the forces of joints would not be those of the body",
                        body.where,
                        found=f"a point that is not given from {joint.origin}, in absolute coordinates",
                        remedy=f"give it from {joint.origin} along the axes of {joint.child}",
                    )


@dataclass(frozen=True)
class _Motions:
    """How the child of a joint and all points move with the joint alone, at some configurations.

    ``across``: whether a point moves with the coordinates that are zero; ``along``, ``rigid``: rates of points, as they
    are written and as points of the child, shape (places, 3).
    """

    across: Mapping[str, bool]
    along: Mapping[str, Array]
    rigid: Mapping[str, Array]

    def is_of_child(self, point: str) -> bool:
        """Whether a point moves with the child."""
        return _equal(self.along[point], self.rigid[point])

    def rests(self, point: str) -> bool:
        """Whether a point stays where it is."""
        return _equal(self.along[point], np.zeros_like(self.along[point]))


class _Geometry:
    """Positions and turns as numbers at some configurations."""

    def __init__(self, points: Points, space: Space, euler: Sequence[Sequence[Node]], algebra: NodeAlgebra) -> None:
        self.points, self.space, self.algebra = points, space, algebra
        self._euler = euler

    def motions(self, joint: Joint) -> _Motions:
        """Return the motions of a joint."""
        hidden = {self.algebra.graph.symbol(name): self.algebra.scalar(value) for name, value in joint.hidden}
        own = [self.algebra.graph.symbol(name) for name in joint.coordinates]
        moving = {q: q.graph.one for q in own if q not in hidden}
        names = self.points.names
        places = {name: list(self.space.resolve(self.points.position(name), NEWTONIAN)) for name in names}
        turn = [node for row in self.space.frames.rotation(NEWTONIAN, joint.child) for node in row]
        at = [node for triple in places.values() for node in triple]
        across = [tangent(at, {q: q.graph.one}) for q in hidden]
        at, turn = substitute(at, hidden), substitute(turn, hidden)
        found = self._numbers(
            [*at, *tangent(at, moving), *turn, *tangent(turn, moving), *(n for c in across for n in c)]
        )
        count = 3 * len(names)
        P, rates = (found[:, k * count : (k + 1) * count].reshape(-1, len(names), 3) for k in (0, 1))
        R, R_rate = (found[:, 2 * count + 9 * k : 2 * count + 9 * (k + 1)].reshape(-1, 3, 3) for k in (0, 1))
        beside = found[:, 2 * count + 18 :].reshape(len(found), len(hidden), len(names), 3)
        origin = names.index(joint.origin)
        spin = R_rate @ R.transpose(0, 2, 1)
        rigid = rates[:, origin, None] + np.einsum("nij,npj->npi", spin, P - P[:, origin, None])
        return _Motions(
            {name: _equal(beside[:, :, i], beside[:, :, origin]) for i, name in enumerate(names)},
            {name: rates[:, i] for i, name in enumerate(names)},
            {name: rigid[:, i] for i, name in enumerate(names)},
        )

    def follows_or_rests(self, joint: Joint, point: str) -> bool:
        """Whether a point moves as one of the child, whose absolute coordinates the joint has, or not at all.

        In space the turns of a child are compared by whether there are any: Euler parameters are not independent.
        """
        graph = self.algebra.graph
        at, origin = (list(self.space.resolve(self.points.position(name), NEWTONIAN)) for name in (point, joint.origin))
        moves = [tangent(at, {graph.symbol(q): graph.one}) for q in joint.coordinates]
        if all(node.is_zero for rates in moves for node in rates):
            return True
        plane = f"{joint.child}_turn"
        wanted: list[list[Node]] = []
        for q in joint.coordinates:
            unit = [graph.one if q == f"{joint.child}_{c}" else graph.zero for c in "xyz"]
            if q == plane:
                unit = [origin[1] - at[1], at[0] - origin[0], graph.zero]
            wanted.append(unit)
        compared = [k for k, q in enumerate(joint.coordinates) if q == plane or q[-1] in "xyz"]
        found = self._numbers([n for k in compared for n in (*moves[k], *wanted[k])]).reshape(-1, len(compared), 2, 3)
        return _equal(found[:, :, 0], found[:, :, 1])

    def _numbers(self, nodes: Sequence[Node]) -> Array:
        random = np.random.default_rng(_SEED)
        symbols = sorted(support(nodes) | {e for group in self._euler for e in group}, key=lambda node: node.name)
        values = {symbol.name: random.uniform(0.3, 1.3, _PLACES) for symbol in symbols}
        for group in self._euler:
            norm = np.sqrt(sum(values[e.name] ** 2 for e in group))
            values |= {e.name: values[e.name] / norm for e in group}
        with np.errstate(all="ignore"):
            return np.stack([np.broadcast_to(v, (_PLACES,)) for v in evaluate(list(nodes), values)], axis=-1)


def _carried_by(joint: Joint, displacement: Text, mechanism: Mechanism, geometry: _Geometry) -> Mechanism:
    """Return a mechanism in which what the child of one joint carries moves with it."""
    family = {joint.child}
    for name, frame in mechanism.frames.items():
        family |= {name} if frame.parent in family else set()
    motions, known = geometry.motions(joint), set(geometry.points.names)
    origins = {other.origin for other in mechanism.joints.values() if other.parent in family}
    points, following = dict(mechanism.points), set()
    in_order = sorted(known & points.keys(), key=lambda name: len(geometry.points.chain(name)))
    for name in in_order:
        if motions.across[name] or points[name].origin in following:
            following.add(name)
        elif motions.is_of_child(name) and (not motions.rests(name) or name in origins):
            points[name] = _moved(points[name], displacement)
            following.add(name)
        elif not motions.rests(name) and not motions.is_of_child(name) and name in _names_used(mechanism):
            raise _refused(joint, points[name])
    places: dict[str, Point] = {}

    def of_child(frame: str | None, point: str) -> str:
        """Return the point of the child where a point on the joint's axis is."""
        if frame not in family or point in following or not motions.is_of_child(point):
            return point
        name = f"{point}_of_{joint.child}"
        places[name] = _moved(Point(name, point, Text("0*N.x"), joint.where), displacement)
        return name

    bodies = {
        name: replace(
            body,
            center=of_child(body.frame, body.center),
            about=None if body.about is None else of_child(body.frame, body.about),
        )
        for name, body in mechanism.bodies.items()
        if body.center in known
    }
    shapes = {
        name: replace(shape, origin=of_child(shape.frame, shape.origin))
        for name, shape in mechanism.shapes.items()
        if shape.origin in known
    }
    return replace(
        mechanism, points={**points, **places}, bodies={**mechanism.bodies, **bodies},
        shapes={**mechanism.shapes, **shapes},
    )  # fmt: skip


def _moved(point: Point, displacement: Text) -> Point:
    return replace(point, at=Text(f"({point.at.text}) + {displacement.text}", point.at.where))


def _equal(a: Array, b: Array) -> bool:
    """Whether rates agree at all configurations at which they are known."""
    known = np.isfinite(a) & np.isfinite(b)
    return bool((np.abs(a - b)[known] <= _EQUAL * (1.0 + np.abs(b[known]))).all())


def _names_used(mechanism: Mechanism) -> set[str]:
    """Return what bodies, loads, contacts, constraints, shapes and joints name."""
    used = (mechanism.bodies, mechanism.loads, mechanism.contacts, mechanism.constraints, mechanism.shapes)
    return {name for text in words_of((*used, mechanism.joints)) for name in _NAMES.findall(str(text))}


def _refused(joint: Joint, point: Point) -> ModelError:
    return ModelError(
        f"the point {str(point.name)!r} moves with the joint {str(joint.name)!r}, but not as a point of its child "
        f"{str(joint.child)!r}: what acts there would not load the joint",
        point.where,
        found=point.at.text,
        remedy=f"give it from {joint.origin} along the axes of {joint.child}, or from a point that stays where it is",
    )
