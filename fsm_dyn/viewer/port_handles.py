"""From a pointer on the picture to the axes of a port, and from a port to where its handle is drawn."""

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
from fsm_dyn.results.scene import NEWTONIAN
from fsm_dyn.spec.model import Port
from fsm_dyn.spec.values import evaluate
from fsm_dyn.viewer.row_evaluation import Floats, RowEvaluator
from fsm_dyn.viewer.scene_drawing import ORIGIN, Picture

_GRIP: Final = FIXED.index("grip")
WIDTH: Final = 5  # of a handle in a frame: place (2), where the device is (2), grip


@dataclass(frozen=True)
class PortHandle:
    """A port as it is drawn.

    Attributes
    ----------
    port : HeldPort
    origin, frame, offset
        The handle is at ``offset`` (m, resolved in ``frame``) from the point ``origin``.
    directions : tuple of Text
        Of the port's straight axes; empty for a coordinate.
    coordinate : int
        Which coordinate is held, -1 for none.
    twist : bool
        Whether the last axis turns the body.
    """

    port: CoupledPort
    origin: str
    frame: str
    offset: Floats
    directions: tuple[Text, ...] = ()
    coordinate: int = -1
    twist: bool = False


class PortHandles:
    """The handles of a held graph.

    Parameters
    ----------
    graph : ModeGraph
    instants : Instants
    picture : Picture
    columns : Columns
    x, c
        The state that the model starts from.
    """

    def __init__(
        self, graph: ModeGraph, instants: RowEvaluator, picture: Picture, columns: TickColumns, x: Floats, c: Floats
    ) -> None:
        self._instants, self._picture, self._columns, self._values = instants, picture, columns, graph.values
        mechanism = graph.automaton.mechanism
        self._ports = mechanism.ports
        self.handles = tuple(
            self._coordinate(port, mechanism.ports[port.name], x, c)
            if mechanism.ports[port.name].coordinate is not None
            else _at_point(port, mechanism.ports[port.name])
            for port in coupled_ports(mechanism)
        )
        self._by_name = {handle.port.name: handle for handle in self.handles}

    def told(self) -> list[dict[str, Any]]:
        """Return the ports for the page."""
        return [
            {
                "name": handle.port.name, "axes": len(handle.port.axes), "twist": handle.twist,
                "press": list(self.press(handle.port.name)) if self._ports[handle.port.name].press else None,
            }
            for handle in self.handles
        ]  # fmt: skip

    def knows(self, name: str) -> bool:
        """Tell whether there is such a port."""
        return name in self._by_name

    def port(self, name: str) -> CoupledPort:
        """Return a port by its name."""
        return self._by_name[name].port

    def press(self, name: str) -> tuple[float, float]:
        """Return where a hand is along the first axis of a port when it has let up and when it presses.

        Raises
        ------
        InputError
            The model does not say so.
        """
        places = self._ports[name].press
        if not places:
            raise InputError(
                f"port '{name}' is no key", remedy=f"give it one in the model: {name}: {{..., press: [0 mm, -12 mm]}}"
            )
        lifted, pressed = (float(evaluate(text, self._values)) for text in places)
        return lifted, pressed

    def mapping(self, name: str, twist: bool) -> tuple[int, ...]:
        """Return the device's axis for each axis of a port; a twist may be left free."""
        handle = self._by_name[name]
        axes = list(range(len(handle.port.axes)))
        if handle.twist and not twist:
            axes[-1] = -1
        return tuple(axes)

    def place(self, handle: PortHandle, points: Floats, frames: Floats) -> Floats:
        """Return where a handle is, in N, shape (3,)."""
        origin = self._picture.point(points, handle.origin)
        if handle.frame == NEWTONIAN:
            return origin + handle.offset
        turn = frames[self._picture.scene.frames.index(handle.frame)]
        return np.asarray(origin + turn @ handle.offset, dtype=np.float64)

    def drawn(self, row: Floats, x: Floats, c: Floats, points: Floats, frames: Floats) -> Floats:
        """Return of every handle its place, the place of the device that holds it, and the grip."""
        out = np.zeros(WIDTH * len(self.handles))
        inputs = dict(zip(self._columns.inputs, row[self._columns.places["inputs"]].tolist(), strict=True))
        for k, handle in enumerate(self.handles):
            place = self.place(handle, points, frames)
            axes = self._straight(handle)
            lead = np.array([inputs[axis.name] for axis in axes]) - self._at(row, axes)
            grip = max((inputs.get(axis.engagement, float(row[_GRIP])) for axis in axes), default=0.0)
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
        """Return the axes of a handle that the picture shows: all but its twist."""
        return list(handle.port.axes[: len(handle.port.axes) - handle.twist])

    def _at(self, row: Floats, axes: list[PortAxis]) -> Floats:
        """Return where a port is along some of its axes, in the numbers that a device there gives."""
        ports, n = row[self._columns.places["ports"]], len(self._columns.ports)
        return np.array([ports[n + self._columns.ports.index(axis.name)] for axis in axes])

    def _directions(self, handle: PortHandle, frames: Floats) -> Floats:
        """Return the directions of a handle's straight axes in N, shape (k, 3)."""
        turns = dict(zip(self._picture.scene.frames, frames, strict=True))
        return np.array([vector_of(text, self._values, turns) for text in handle.directions])

    def sample(
        self, row: Floats, name: str, at: tuple[float, float], twist: float, x: Floats, c: Floats
    ) -> list[float]:
        """Return the device's position for a pointer at a place of the picture.

        A point follows the pointer; what the picture does not show stays.  A coordinate is moved so far as brings its
        handle closest to the pointer.
        """
        handle = self._by_name[name]
        points, frames = self._instants.points(x, c)
        apart = np.asarray(at) - self._picture.flat @ self.place(handle, points, frames)
        axes = self._straight(handle)
        along = [self._slope(handle, x, c)] if handle.coordinate >= 0 else self._directions(handle, frames)
        shown = self._picture.flat @ np.array(along).T
        moved = np.linalg.lstsq(shown, apart, rcond=0.1)[0]  # hardly along the line of sight
        position = [float(value) for value in self._at(row, axes) + moved]
        return [*position, twist] if handle.twist else position

    def _slope(self, handle: PortHandle, x: Floats, c: Floats) -> Floats:
        """Return how a handle moves with its coordinate, shape (3,)."""
        h = 1e-6 * (1.0 + abs(x[handle.coordinate]))
        ends = []
        for step in (-h, h):
            there = x.copy()
            there[handle.coordinate] += step
            ends.append(self.place(handle, *self._instants.points(there, c)))
        return np.asarray((ends[1] - ends[0]) / (2.0 * h), dtype=np.float64)

    def _coordinate(self, held: CoupledPort, port: Port, x: Floats, c: Floats) -> PortHandle:
        """Return the handle of a coordinate: the point that moves most with it, or a place on what it turns."""
        number = self._instants.layout.q.index(port.coordinate or "")
        options = [(name, NEWTONIAN, np.zeros(3)) for name in self._instants.automaton.point_names]
        for shape in self._picture.scene.shapes:
            if shape.frame != NEWTONIAN and len(shape.points) > 1 and not shape.endless:
                far = shape.points[np.argmax(np.linalg.norm(shape.points, axis=1))]
                options.append((shape.origin, shape.frame, np.array([*far, 0.0])))
        best, most = PortHandle(held, ORIGIN, NEWTONIAN, np.zeros(3), coordinate=number), 0.0
        for origin, frame, offset in options:
            handle = PortHandle(held, origin, frame, offset, coordinate=number)
            moves = float(np.linalg.norm(self._slope(handle, x, c)))
            if moves > 1.001 * most:
                best, most = handle, moves
        return best


def _at_point(held: CoupledPort, port: Port) -> PortHandle:
    return PortHandle(held, port.point or ORIGIN, NEWTONIAN, np.zeros(3), port.axes, twist=port.rotation is not None)
