"""From a pointer on the picture to the axes of a port, and from a port to where its handle is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from fsm_dyn import expressions
from fsm_dyn.automaton.graph import ModeGraph
from fsm_dyn.expressions import FloatAlgebra
from fsm_dyn.live.holding import HeldPort, held_ports
from fsm_dyn.live.rows import Columns
from fsm_dyn.recording.scene import NEWTONIAN
from fsm_dyn.spec.model import Port
from fsm_dyn.viewer.instant import Floats, Instants
from fsm_dyn.viewer.picture import ORIGIN, Picture

WIDTH: Final = 5  # of a handle in a frame: place (2), where the device is (2), grip


@dataclass(frozen=True)
class Handle:
    """A port as it is drawn.

    Attributes
    ----------
    port : HeldPort
    origin, frame, offset
        The handle is at ``offset`` (m, resolved in ``frame``) from the point ``origin``.
    directions : ndarray, shape (k, 3)
        Of the port's axes in N; empty for a coordinate.
    coordinate : int
        Which coordinate is held, -1 for none.
    twist : bool
        Whether the last axis turns the body.
    """

    port: HeldPort
    origin: str
    frame: str
    offset: Floats
    directions: Floats
    coordinate: int = -1
    twist: bool = False


class Hands:
    """The handles of a held graph.

    Parameters
    ----------
    graph : ModeGraph
    instants : Instants
    picture : Picture
    x, c
        The state that the model starts from.
    """

    def __init__(self, graph: ModeGraph, instants: Instants, picture: Picture, x: Floats, c: Floats) -> None:
        self._instants, self._picture = instants, picture
        mechanism = graph.automaton.mechanism
        algebra = _Directions(graph.values)
        self.handles = tuple(
            self._coordinate(port, mechanism.ports[port.name], x, c)
            if mechanism.ports[port.name].coordinate is not None
            else _at_point(port, mechanism.ports[port.name], algebra)
            for port in held_ports(mechanism)
        )
        self._by_name = {handle.port.name: handle for handle in self.handles}
        self._axes = [axis.name for handle in self.handles for axis in handle.port.axes]

    def told(self) -> list[dict[str, Any]]:
        """Return the ports for the page."""
        return [
            {"name": handle.port.name, "axes": len(handle.port.axes), "twist": handle.twist} for handle in self.handles
        ]

    def knows(self, name: str) -> bool:
        """Tell whether there is such a port."""
        return name in self._by_name

    def mapping(self, name: str, twist: bool) -> tuple[int, ...]:
        """Return the device's axis for each axis of a port; a twist may be left free."""
        handle = self._by_name[name]
        axes = list(range(len(handle.port.axes)))
        if handle.twist and not twist:
            axes[-1] = -1
        return tuple(axes)

    def place(self, handle: Handle, points: Floats, frames: Floats) -> Floats:
        """Return where a handle is, in N, shape (3,)."""
        origin = self._picture.point(points, handle.origin)
        if handle.frame == NEWTONIAN:
            return origin + handle.offset
        turn = frames[self._picture.scene.frames.index(handle.frame)]
        return np.asarray(origin + turn @ handle.offset, dtype=np.float64)

    def drawn(self, row: Floats, columns: Columns, x: Floats, c: Floats, points: Floats, frames: Floats) -> Floats:
        """Return of every handle its place, the place of the device that holds it, and the grip."""
        out = np.zeros(WIDTH * len(self.handles))
        ports = row[columns.places["ports"]]
        inputs = dict(zip(columns.inputs, row[columns.places["inputs"]].tolist(), strict=True))
        n = len(columns.ports)
        for k, handle in enumerate(self.handles):
            place = self.place(handle, points, frames)
            axes = [axis for axis in handle.port.axes if not axis.turns or handle.coordinate >= 0]
            lead = np.array([inputs[axis.name] - ports[n + columns.ports.index(axis.name)] for axis in axes])
            grip = max((inputs[axis.grip] for axis in axes), default=0.0)
            there = place
            if grip > 0.0 and handle.coordinate >= 0:
                there = place + self._slope(handle, x, c) * lead[0]
            elif grip > 0.0:
                there = place + lead @ handle.directions
            out[WIDTH * k : WIDTH * k + 2] = self._picture.flat @ place
            out[WIDTH * k + 2 : WIDTH * k + 4] = self._picture.flat @ there
            out[WIDTH * k + 4] = grip
        return out

    def sample(self, name: str, at: tuple[float, float], twist: float, x: Floats, c: Floats) -> list[float]:
        """Return the device's position for a pointer at a place of the picture.

        A point follows the pointer; what the picture does not show stays.  A coordinate is moved so far as brings its
        handle closest to the pointer.
        """
        handle = self._by_name[name]
        points, frames = self._instants.points(x, c)
        place = self.place(handle, points, frames)
        apart = np.asarray(at) - self._picture.flat @ place
        if handle.coordinate >= 0:
            seen = self._picture.flat @ self._slope(handle, x, c)
            length = float(seen @ seen)
            return [float(x[handle.coordinate] + (seen @ apart / length if length > 0.0 else 0.0))]
        shown = self._picture.flat @ handle.directions.T
        moved = np.linalg.lstsq(shown, apart, rcond=None)[0]
        position = handle.directions @ place + moved
        return [*position.tolist(), twist] if handle.twist else position.tolist()

    def _slope(self, handle: Handle, x: Floats, c: Floats) -> Floats:
        """Return how a handle moves with its coordinate, shape (3,)."""
        h = 1e-6 * (1.0 + abs(x[handle.coordinate]))
        ends = []
        for step in (-h, h):
            there = x.copy()
            there[handle.coordinate] += step
            ends.append(self.place(handle, *self._instants.points(there, c)))
        return np.asarray((ends[1] - ends[0]) / (2.0 * h), dtype=np.float64)

    def _coordinate(self, held: HeldPort, port: Port, x: Floats, c: Floats) -> Handle:
        """Return the handle of a coordinate: the point that moves most with it, or a place on what it turns."""
        number = self._instants.layout.q.index(port.coordinate or "")
        options = [(name, NEWTONIAN, np.zeros(3)) for name in self._instants.automaton.point_names]
        for shape in self._picture.scene.shapes:
            if shape.frame != NEWTONIAN and len(shape.points) > 1 and not shape.endless:
                far = shape.points[np.argmax(np.linalg.norm(shape.points, axis=1))]
                options.append((shape.origin, shape.frame, np.array([*far, 0.0])))
        best, most = Handle(held, ORIGIN, NEWTONIAN, np.zeros(3), np.zeros((0, 3)), number), 0.0
        for origin, frame, offset in options:
            handle = Handle(held, origin, frame, offset, np.zeros((0, 3)), number)
            moves = float(np.linalg.norm(self._slope(handle, x, c)))
            if moves > 1.001 * most:
                best, most = handle, moves
        return best


def _at_point(held: HeldPort, port: Port, algebra: _Directions) -> Handle:
    directions = np.array([expressions.fold(expressions.parse(text), algebra) for text in port.axes])
    return Handle(held, port.point or ORIGIN, NEWTONIAN, np.zeros(3), directions, twist=port.twist is not None)


class _Directions(FloatAlgebra):
    """Axes of N and numbers."""

    def axis(self, frame: str, axis: Any, /) -> Any:
        return np.eye(3)["xyz".index(axis)]

    def unary(self, op: str, operand: Any, /) -> Any:
        return -operand if op == "-" else operand

    def binary(self, op: str, left: Any, right: Any, /) -> Any:
        if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
            return {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}[op](left, right)
        return super().binary(op, left, right)
