"""What of a mechanism is drawn: outlines fixed in bodies, and lines between points that belong together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fsm_dyn import expressions
from fsm_dyn.expressions import Text
from fsm_dyn.recording.record import Evaluates, FloatArray
from fsm_dyn.recording.samples import Samples
from fsm_dyn.spec.forms.view import ShapeForm
from fsm_dyn.spec.model import Body, Mechanism

_CIRCLE = np.linspace(0.0, 2.0 * np.pi, 61)
NEWTONIAN = "N"


@dataclass(frozen=True)
class Shape:
    """An outline in the x-y plane of ``frame``, from the point ``origin``.

    ``points`` has shape (k, 2), m; ``closed`` tells an area from a line.  A single point is drawn as a dot, with
    ``text`` beside it where there is one.
    """

    body: str
    frame: str
    origin: str
    points: FloatArray
    closed: bool = False
    text: str = ""


@dataclass(frozen=True)
class Scene:
    """The drawing of a mechanism and the program that moves it.

    Attributes
    ----------
    shapes : tuple of Shape
    links : tuple of (str, str)
        Pairs of points that a thin line joins.
    points, frames : tuple of str
        Names in the order of the program's outputs.
    geometry : Evaluates
        Gives ``points`` (n_points, 3), m, and ``frames`` (n_frames, 3, 3), columns = the frame's unit vectors,
        both resolved in the Newtonian frame.
    """

    shapes: tuple[Shape, ...]
    links: tuple[tuple[str, str], ...]
    points: tuple[str, ...]
    frames: tuple[str, ...]
    geometry: Evaluates

    def place(self, samples: Samples) -> Placed:
        """Return where everything is at the times of ``samples``."""
        out = self.geometry.evaluate(samples.t, samples.x, samples.context)
        n = len(samples)
        points = np.broadcast_to(out["points"], (n, len(self.points), 3)) if self.points else np.zeros((n, 0, 3))
        frames = np.broadcast_to(out["frames"], (n, len(self.frames), 3, 3)) if self.frames else np.zeros((n, 0, 3, 3))
        return Placed(self, points, frames)


@dataclass(frozen=True)
class Placed:
    """A scene at n instants: ``positions`` (n, n_points, 3), m, and ``rotations`` (n, n_frames, 3, 3)."""

    scene: Scene
    positions: FloatArray
    rotations: FloatArray

    def point(self, name: str) -> FloatArray:
        """Return the path of a point, shape (n, 3); the Newtonian origin rests."""
        if name == "O":
            return np.zeros((len(self.positions), 3))
        path: FloatArray = self.positions[:, self.scene.points.index(name)]
        return path

    def outline(self, shape: Shape) -> FloatArray:
        """Return a shape's points in the Newtonian frame, shape (n, k, 3)."""
        origin = self.point(shape.origin)[:, None, :]
        flat = np.hstack([shape.points, np.zeros((len(shape.points), 1))])
        if shape.frame == NEWTONIAN:
            return origin + flat
        rotation = self.rotations[:, self.scene.frames.index(shape.frame)]
        placed: FloatArray = origin + np.einsum("nij,kj->nki", rotation, flat)
        return placed

    def is_planar(self) -> bool:
        """Tell whether everything moves in planes across N.z."""
        level = np.ptp(self.positions[..., 2]) if self.positions.size else 0.0
        turned = np.abs(self.rotations[..., 2, 2] - 1.0).max(initial=0.0)
        return bool(level < 1e-9 and turned < 1e-9)


def shapes_of(mechanism: Mechanism, number: Callable[[Text], float]) -> tuple[Shape, ...]:
    """Return the outlines a model asks for under ``view``, and a dot at the centre of every other body.

    Parameters
    ----------
    mechanism : Mechanism
    number : callable
        Turns a length as the file has it, an expression of parameters, into metres.
    """
    shapes: list[Shape] = []
    for name, body in mechanism.bodies.items():
        forms = mechanism.view.get(name, ())
        shapes.extend([_shape(body, form, number) for form in forms] or [_dot(body)])
    return tuple(shapes)


def links_of(mechanism: Mechanism) -> tuple[tuple[str, str], ...]:
    """Return the pairs of points that lie at a fixed distance from each other, as the points are written."""
    coordinates = set(mechanism.coordinates)
    links = []
    for name, point in mechanism.points.items():
        names = expressions.free_names(expressions.parse(point.at))
        if not names & coordinates:
            links.append((point.origin, name))
    return tuple(links)


def _dot(body: Body) -> Shape:
    return Shape(body.name, NEWTONIAN, body.center, np.zeros((1, 2)))


def _shape(body: Body, form: ShapeForm, number: Callable[[Text], float]) -> Shape:
    points = np.array([[number(value) for value in point[:2]] for point in form.points] or [[0.0, 0.0]])
    if form.kind == "circle" and form.radius is not None:
        points = points + number(form.radius) * np.stack([np.cos(_CIRCLE), np.sin(_CIRCLE)], axis=-1)
    closed = form.kind in ("polygon", "circle")
    return Shape(body.name, body.frame or NEWTONIAN, body.center, points, closed, form.text)
