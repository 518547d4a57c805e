"""The tree of points: where each stands, as vectors between neighbours."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fsm_dyn.errors import NOWHERE, Location, ModelError, did_you_mean
from fsm_dyn.spec.model import Point
from fsm_dyn.symbolic.frames import NEWTONIAN
from fsm_dyn.symbolic.vectors import Space, Vector

ORIGIN = "O"


class Points:
    """The points of a mechanism.

    Parameters
    ----------
    space : Space
    points : mapping of str to Point
        As the model file says; ``O`` is known without being listed.
    evaluate : callable
        Turns a point's ``at`` into a vector.
    """

    def __init__(self, space: Space, points: Mapping[str, Point], evaluate: Callable[[Point], Vector]) -> None:
        self.space = space
        self._points = points
        self._offsets = {name: evaluate(point) for name, point in points.items()}
        self._chains: dict[str, tuple[str, ...]] = {ORIGIN: (ORIGIN,)}

    @property
    def names(self) -> tuple[str, ...]:
        """All points, O first."""
        return (ORIGIN, *self._points)

    def offset(self, name: str) -> Vector:
        """Return the vector to a point from the one it is given from."""
        return self._offsets[name]

    def origin(self, name: str) -> str:
        """Return the point from which a point is given."""
        return self._points[name].origin

    def chain(self, name: str, where: Location = NOWHERE) -> tuple[str, ...]:
        """Return the points from O to `name`, both included.

        Raises
        ------
        ModelError
            There is no such point, or points are given from each other in a cycle.
        """
        chain = self._chains.get(name)
        if chain is None:
            path: list[str] = []
            current = name
            while current not in self._chains:
                self._check(current, path, where)
                path.append(current)
                current = self._points[current].origin
            chain = self._chains[current] + tuple(reversed(path))
            self._chains[name] = chain
        return chain

    def _check(self, name: str, path: list[str], where: Location) -> None:
        if name not in self._points:
            place = self._points[path[-1]].where if path else where
            raise ModelError(f"there is no point '{name}'", place, remedy=did_you_mean(name, self.names))
        if name in path:
            circle = ", ".join(path[path.index(name) :])
            raise ModelError(f"the points {circle} are given from each other in a circle", self._points[name].where)

    def position(self, name: str, origin: str = ORIGIN, where: Location = NOWHERE) -> Vector:
        """Return the vector from `origin` to `name`, by the way through their closest common ancestor."""
        to, back = list(self.chain(name, where)), list(self.chain(origin, where))
        while to and back and to[0] == back[0]:
            del to[0], back[0]
        ahead = [self._offsets[point] for point in to]
        behind = [self.space.negate(self._offsets[point]) for point in reversed(back)]
        return self.space.sum([*ahead, *behind])

    def anchor(self, frame: str) -> str | None:
        """Return a point fixed in a frame on which no body sits, or None where the file names none.

        It is found from the first point given with the frame's axes: the point from which that one is given
        if the whole vector is resolved in the frame, else that point itself.
        """
        if frame == NEWTONIAN:
            return ORIGIN
        for name, offset in self._offsets.items():
            frames = [part for part, _ in offset]
            if frame in frames:
                return self._points[name].origin if len(frames) == 1 else name
        return None
