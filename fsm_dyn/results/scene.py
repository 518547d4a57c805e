"""Scene of a mechanism: outlines fixed in bodies, and lines between points of one body or load."""

from __future__ import annotations

from dataclasses import dataclass

from fsm_dyn.modes.programs import Evaluates
from fsm_dyn.results.arrays import FloatArray

NEWTONIAN = "N"
ORIGIN = "O"  # of N


@dataclass(frozen=True)
class SceneShape:
    """An outline fixed in ``frame``, from the point ``origin``.

    ``points`` has shape (k, 2), m, in the x-y plane, or (k, 3); with ``facing`` it turns to the viewer, as the
    silhouette of a sphere; ``closed`` tells an area from a line, ``endless`` a line that continues beyond its
    points.  A single point is drawn as a dot, with ``text`` next to it where there is one.  With ``outward`` it is a
    face of a convex body, seen from the side from which its points go round against the clock; with ``plane`` the
    points are two unit vectors, shape (2, 3), and the plane through the origin is drawn as far as the mechanism is
    wide.
    """

    body: str
    frame: str
    origin: str
    points: FloatArray
    closed: bool = False
    text: str = ""
    endless: bool = False
    facing: bool = False
    outward: bool = False
    plane: bool = False


@dataclass(frozen=True)
class Scene:
    """The drawing of a mechanism and the program that moves it.

    Attributes
    ----------
    shapes : tuple of SceneShape
    links : tuple of (str, str)
        Pairs of points that a thin line joins.
    points, frames : tuple of str
        Names in the order of the program's outputs.
    geometry : Evaluates
        Gives ``points`` (n_points, 3), m, and ``frames`` (n_frames, 3, 3), columns = the frame's unit vectors,
        both resolved in the Newtonian frame.
    """

    shapes: tuple[SceneShape, ...]
    links: tuple[tuple[str, str], ...]
    points: tuple[str, ...]
    frames: tuple[str, ...]
    geometry: Evaluates
