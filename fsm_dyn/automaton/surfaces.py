"""Surfaces: straight faces of one body that continue each other, and the corners at their ends."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from fsm_dyn.spec.evaluate import ParameterValue, evaluate
from fsm_dyn.spec.shape import Feature, PolygonShape, SegmentShape, Shape

FLUSH = 1e-9  # own units: the tolerance of gaps; a smaller step between two faces is none

Key = tuple[str, int, int]  # a face or corner: shape, copy, index
End = tuple[tuple[float, float], Key]  # where a face ends (m), and the corner there
Ends = tuple[End, End]
T = TypeVar("T", bound=Hashable)


def key_of(feature: Feature) -> Key:
    """Return what a face or corner is known by.

    Parameters
    ----------
    feature : Feature
        A face or a corner.
    """
    return feature.shape, feature.copy, feature.index


class Sets(Generic[T]):
    """Disjoint sets of members that are known beforehand, in order; each set is known by its first member."""

    def __init__(self, members: Iterable[T]) -> None:
        self._next = {member: member for member in members}
        self._rank = {member: i for i, member in enumerate(self._next)}

    def __iter__(self) -> Iterator[T]:
        return iter(self._next)

    def of(self, member: T) -> T:
        """Return the first member of a set; what is not known is a set by itself."""
        while self._next.get(member, member) != member:
            member = self._next[member]
        return member

    def join(self, one: T, other: T) -> None:
        """Make the sets of two members one."""
        first, second = sorted((self.of(one), self.of(other)), key=self._rank.__getitem__)
        self._next[second] = first


class Surfaces:
    """The straight faces of a model's shapes in sets of those that continue each other.

    Parameters
    ----------
    shapes : mapping of str to Shape
    values : mapping
        Parameters by name, SI units.
    length : float
        The mechanism's own unit of length, m.
    """

    def __init__(self, shapes: Mapping[str, Shape], values: Mapping[str, ParameterValue], length: float) -> None:
        self._shapes = shapes
        self._flush = FLUSH * length
        faces = [
            (face, ends)
            for shape in shapes.values()
            if isinstance(shape, PolygonShape | SegmentShape) and shape.points and shape.repeat is None
            for face, ends in _ends(shape, values)
        ]
        self._faces: Sets[Key] = Sets(face for face, _ in faces)
        self._corners: Sets[Key] = Sets(corner for _, ends in faces for _, corner in ends)
        for i, (one, first) in enumerate(faces):
            for other, second in faces[:i]:
                if self._fixed(one[0]) == self._fixed(other[0]):
                    self._join(one, first, other, second)

    def of(self, face: Key) -> Key:
        """Return the first face of the surface that a face belongs to."""
        return self._faces.of(face)

    def corner(self, corner: Key) -> Key:
        """Return the first of the corners at the place of this one where surfaces continue."""
        return self._corners.of(corner)

    def corners(self, corner: Key) -> list[Key]:
        """Return the corners at the place of one, see :meth:`corner`, in declared order."""
        return [other for other in self._corners if self.corner(other) == self.corner(corner)] or [corner]

    def faces(self, surface: Key) -> list[Key]:
        """Return the faces of a surface in declared order."""
        return [face for face in self._faces if self.of(face) == surface] or [surface]

    def beside(self, corner: Feature) -> list[Key]:
        """Return the straight faces that end in a corner."""
        shape = self._shapes.get(corner.shape)
        if corner.part != "corner" or shape is None:
            return []
        beside = (0,) if isinstance(shape, SegmentShape) else (corner.index - 1, corner.index)
        count = shape.straight_faces
        return [(corner.shape, corner.copy, index % count) for index in beside if count]

    def _fixed(self, name: str) -> tuple[str, str]:
        return self._shapes[name].frame, self._shapes[name].origin

    def _join(self, one: Key, first: Ends, other: Key, second: Ends) -> None:
        """Join two faces where one ends in a place in which the other begins, on one line and facing one way."""
        shapes = self._shapes[one[0]], self._shapes[other[0]]
        match shapes:
            case SegmentShape(side=side), SegmentShape(side=other_side) if str(side) == str(other_side):
                if _along(first, second) < 0.0:
                    second = second[1], second[0]  # the side is given by itself: the sense of a segment means nothing
            case PolygonShape(), PolygonShape():
                pass
            case _:
                return
        for before, after in ((first, second), (second, first)):
            if math.dist(before[1][0], after[0][0]) <= self._flush and _straight(before, after, self._flush):
                self._faces.join(other, one)
                self._corners.join(after[0][1], before[1][1])
                return


def _ends(shape: PolygonShape | SegmentShape, values: Mapping[str, ParameterValue]) -> list[tuple[Key, Ends]]:
    """Return the ends of all faces of a shape, those of a polygon with the solid on their left."""
    points = [(evaluate(x, values), evaluate(y, values)) for x, y in shape.points]
    corners = [(place, (shape.name, 0, i)) for i, place in enumerate(points)]
    if isinstance(shape, SegmentShape):
        return [((shape.name, 0, 0), (corners[0], corners[1]))]
    forward = shape.turn * (-1 if shape.inside else 1) > 0
    following = [*corners[1:], corners[0]]
    return [
        ((shape.name, 0, i), (start, end) if forward else (end, start))
        for i, (start, end) in enumerate(zip(corners, following, strict=True))
    ]


def _along(first: Ends, second: Ends) -> float:
    (a, b), (c, d) = [(start[0], end[0]) for start, end in (first, second)]
    return (b[0] - a[0]) * (d[0] - c[0]) + (b[1] - a[1]) * (d[1] - c[1])


def _straight(before: Ends, after: Ends, flush: float) -> bool:
    """Whether a face continues the one before it: its end is on the line of that, ahead."""
    (a, b), (c, d) = [(start[0], end[0]) for start, end in (before, after)]
    x, y = b[0] - a[0], b[1] - a[1]
    across = x * (d[1] - c[1]) - y * (d[0] - c[0])
    return abs(across) <= flush * math.hypot(x, y) and _along(before, after) > 0.0
