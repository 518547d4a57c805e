"""Port handles: pointer positions to port axes, and port positions to drawn handles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.errors import InputError
from fsm_dyn.expressions import Text
from fsm_dyn.live.port_coupling import CoupledPort, PortAxis, coupled_ports
from fsm_dyn.live.tick_columns import FIXED, TickColumns
from fsm_dyn.results.outlines import vector_of
from fsm_dyn.results.scene import NEWTONIAN, ORIGIN
from fsm_dyn.spec.model import Port
from fsm_dyn.spec.values import evaluate
from fsm_dyn.viewer.row_evaluation import Floats, RowEvaluator
from fsm_dyn.viewer.scene_drawing import Picture

_ENGAGEMENT: Final = FIXED.index("engagement")
WIDTH: Final = 5  # numbers per handle in a display frame: position (2), device position (2), engagement


@dataclass(frozen=True)
class PortHandle:
    """Drawn handle of a port.

    Attributes
    ----------
    port : CoupledPort
    origin, frame, offset
        The handle is at ``offset`` (m, resolved in ``frame``) from the point ``origin``.
    directions : tuple of Text
        Of the port's translational axes; empty for a coordinate.
    coordinate : int
        Index of the coupled coordinate, -1: none.
    twist : bool
        Whether the last axis is rotational.
    """

    port: CoupledPort
    origin: str
    frame: str
    offset: Floats
    directions: tuple[Text, ...] = ()
    coordinate: int = -1
    twist: bool = False


class PortHandles:
    """Handles of a coupled graph.

    Parameters
    ----------
    graph : ModeGraph
    evaluator : RowEvaluator
    picture : Picture
    columns : TickColumns
    x, c : ndarrays
        Initial state and context.
    """

    def __init__(
        self, graph: ModeGraph, evaluator: RowEvaluator, picture: Picture, columns: TickColumns, x: Floats, c: Floats
    ) -> None:
        self._evaluator, self._picture, self._columns, self._values = evaluator, picture, columns, graph.values
        mechanism = graph.automaton.mechanism
        self._ports = mechanism.ports
        self.handles = tuple(
            self._coordinate(port, mechanism.ports[port.name], x, c)
            if mechanism.ports[port.name].coordinate is not None
            else _at_point(port, mechanism.ports[port.name])
            for port in coupled_ports(mechanism)
        )
        self._by_name = {handle.port.name: handle for handle in self.handles}

    def payload(self) -> list[dict[str, Any]]:
        """Return the payload of the ports."""
        return [
            {
                "name": handle.port.name, "axes": len(handle.port.axes), "twist": handle.twist,
                "press": list(self.press(handle.port.name)) if self._ports[handle.port.name].press else None,
            }
            for handle in self.handles
        ]  # fmt: skip

    def knows(self, name: str) -> bool:
        """Return whether a port of this name exists."""
        return name in self._by_name

    def port(self, name: str) -> CoupledPort:
        """Return a port by its name."""
        return self._by_name[name].port

    def press(self, name: str) -> tuple[float, float]:
        """Return the released and the pressed position along the first axis of a port, m or rad.

        Raises
        ------
        InputError
            The model does not define ``press`` for the port.
        """
        places = self._ports[name].press
        if not places:
            raise InputError(
                f"port '{name}' is not a key", remedy=f"define one in the model: {name}: {{..., press: [0 mm, -12 mm]}}"
            )
        lifted, pressed = (float(evaluate(text, self._values)) for text in places)
        return lifted, pressed

    def mapping(self, name: str, twist: bool) -> tuple[int, ...]:
        """Return the device axis for each axis of a port, -1 for an uncoupled rotation."""
        handle = self._by_name[name]
        axes = list(range(len(handle.port.axes)))
        if handle.twist and not twist:
            axes[-1] = -1
        return tuple(axes)

    def place(self, handle: PortHandle, points: Floats, frames: Floats) -> Floats:
        """Return the position of a handle in N, m, shape (3,)."""
        origin = self._picture.point(points, handle.origin)
        if handle.frame == NEWTONIAN:
            return origin + handle.offset
        turn = frames[self._picture.scene.frames.index(handle.frame)]
        return np.asarray(origin + turn @ handle.offset, dtype=np.float64)

    def drawn(self, row: Floats, x: Floats, c: Floats, points: Floats, frames: Floats) -> Floats:
        """Return position, device position (m, in the picture) and engagement of every handle, flat."""
        out = np.zeros(WIDTH * len(self.handles))
        inputs = dict(zip(self._columns.inputs, row[self._columns.places["inputs"]].tolist(), strict=True))
        for k, handle in enumerate(self.handles):
            place = self.place(handle, points, frames)
            axes = self._straight(handle)
            lead = np.array([inputs[axis.device] for axis in axes]) - self._at(row, axes)
            grip = max((inputs.get(axis.engagement, float(row[_ENGAGEMENT])) for axis in axes), default=0.0)
            there = place
            if grip > 0.0 and handle.coordinate >= 0:
                there = place + self._slope(handle, x, c) * lead[0]
            elif grip > 0.0:
                there = place + lead @ self._directions(handle, frames)
            out[WIDTH * k : WIDTH * k + 2] = self._picture.flat @ place
            out[WIDTH * k + 2 : WIDTH * k + 4] = self._picture.flat @ there
            out[WIDTH * k + 4] = grip
        return out

    def _straight(self, handle: PortHandle) -> list[PortAxis]:
        """Return the axes of a handle except a rotational last one."""
        return list(handle.port.axes[: len(handle.port.axes) - handle.twist])

    def _at(self, row: Floats, axes: list[PortAxis]) -> Floats:
        """Return the position of a port along some of its axes, in device coordinates."""
        ports, n = row[self._columns.places["ports"]], len(self._columns.ports)
        return np.array([ports[n + self._columns.ports.index(axis.name)] for axis in axes])

    def _directions(self, handle: PortHandle, frames: Floats) -> Floats:
        """Return the directions of a handle's translational axes in N, shape (k, 3)."""
        turns = dict(zip(self._picture.scene.frames, frames, strict=True))
        return np.array([vector_of(text, self._values, turns) for text in handle.directions])

    def sample(
        self, row: Floats, name: str, at: tuple[float, float], twist: float, x: Floats, c: Floats
    ) -> list[float]:
        """Return the device position for a pointer at a point of the picture, m.

        A point follows the pointer within the picture plane.  A coordinate moves until its handle is closest to the
        pointer.
        """
        handle = self._by_name[name]
        points, frames = self._evaluator.points(x, c)
        apart = np.asarray(at) - self._picture.flat @ self.place(handle, points, frames)
        axes = self._straight(handle)
        along = [self._slope(handle, x, c)] if handle.coordinate >= 0 else self._directions(handle, frames)
        shown = self._picture.flat @ np.array(along).T
        moved = np.linalg.lstsq(shown, apart, rcond=0.1)[0]  # ill-conditioned along the view direction
        position = [float(value) for value in self._at(row, axes) + moved]
        return [*position, twist] if handle.twist else position

    def _slope(self, handle: PortHandle, x: Floats, c: Floats) -> Floats:
        """Return the derivative of a handle's position by its coordinate, shape (3,)."""
        h = 1e-6 * (1.0 + abs(x[handle.coordinate]))
        ends = []
        for step in (-h, h):
            there = x.copy()
            there[handle.coordinate] += step
            ends.append(self.place(handle, *self._evaluator.points(there, c)))
        return np.asarray((ends[1] - ends[0]) / (2.0 * h), dtype=np.float64)

    def _coordinate(self, coupled: CoupledPort, port: Port, x: Floats, c: Floats) -> PortHandle:
        """Return the handle of a coordinate: the point or outline point that moves most with it."""
        number = self._evaluator.layout.q.index(port.coordinate or "")
        options = [(name, NEWTONIAN, np.zeros(3)) for name in self._evaluator.automaton.point_names]
        for shape in self._picture.scene.shapes:
            if shape.frame != NEWTONIAN and len(shape.points) > 1 and not shape.endless:
                far = shape.points[np.argmax(np.linalg.norm(shape.points, axis=1))]
                options.append((shape.origin, shape.frame, np.array([*far, 0.0])))
        best, most = PortHandle(coupled, ORIGIN, NEWTONIAN, np.zeros(3), coordinate=number), 0.0
        for origin, frame, offset in options:
            handle = PortHandle(coupled, origin, frame, offset, coordinate=number)
            moves = float(np.linalg.norm(self._slope(handle, x, c)))
            if moves > 1.001 * most:
                best, most = handle, moves
        return best


def _at_point(coupled: CoupledPort, port: Port) -> PortHandle:
    return PortHandle(coupled, port.point or ORIGIN, NEWTONIAN, np.zeros(3), port.axes, twist=port.rotation is not None)
