"""Builders of planar scenes in which shapes lie flush: bricks, tables of tiles, walls; and what is read off their runs.

Lengths are metres, masses kilograms.  Places and sizes are numbers or expressions of parameters.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

G = 9.81


@dataclass
class Body:
    """A free planar body, its outline given about its centre of mass against the clock."""

    outline: list
    start: tuple = (0, 0, 0)  # x, y, q
    speed: tuple = (0, 0, 0)
    mass: float = 1.0
    inertia: float | str | None = None

    def moment(self):
        """Return the moment of inertia about the centre of mass: as given, or that of the rectangle around it."""
        if self.inertia is not None:
            return self.inertia
        x, y = zip(*self.outline, strict=True)
        return self.mass * ((max(x) - min(x)) ** 2 + (max(y) - min(y)) ** 2) / 12


def rectangle(a, b):
    """Return the corners of a rectangle about its centre."""
    return [(-a / 2, -b / 2), (a / 2, -b / 2), (a / 2, b / 2), (-a / 2, b / 2)]


def brick(a, b, x=0.0, y=None, *, speed=(0, 0, 0), mass=1.0):
    """Return a rectangular body ``a`` by ``b`` that lies upright, on the height 0 unless told otherwise."""
    return Body(rectangle(a, b), (x, b / 2 if y is None else y, 0), speed, mass)


@dataclass
class Tiles:
    """Fixed pieces with one straight upper side each, by (x0, x1, height) from left to right."""

    pieces: list
    kind: str = "polygon"
    depth: float = 1.0
    shapes: dict = field(init=False)

    def __post_init__(self):
        self.shapes = {f"tile{i + 1}": self._piece(*piece) for i, piece in enumerate(self.pieces)}

    def _piece(self, x0, x1, y):
        if self.kind == "segment":
            return {"segment": {"points": points([(x0, y), (x1, y)])}, "side": "N.y"}
        low = -self.depth
        return {"polygon": {"points": points([(x0, low), (x1, low), (x1, y), (x0, y)])}}


def points(corners):
    """Return corners as a model file writes them."""
    return [[str(value) if isinstance(value, str) else repr(float(value)) for value in corner] for corner in corners]


def polygon(corners):
    """Return a fixed polygon."""
    return {"polygon": {"points": points(corners)}}


def scene(bodies, fixed, *, friction=0.1, restitution=0.0, gravity=f"-{G}*N.y", pairs=None, **more):
    """Return the model of free bodies and fixed shapes, all of which touch each other.

    Parameters
    ----------
    bodies : dict of str to Body
        The outline of a body bears its name; its coordinates are ``x_name``, ``y_name`` and ``q_name``.
    fixed : dict of str to mapping
        Shapes that do not move.
    pairs : sequence of tuple of str, optional
        What may touch, instead of every pair with a body in it.
    **more
        Further parts of the model; of ``shapes``, ``loads`` and ``initial`` they are added.
    """
    names, shapes, initial = list(bodies), dict(fixed), {}
    for name, body in bodies.items():
        shapes[name] = {"polygon": {"frame": f"F_{name}", "from": f"C_{name}", "points": points(body.outline)}}
        for axis, value, rate in zip("xyq", body.start, body.speed, strict=True):
            initial |= {f"{axis}_{name}": value, f"{axis}_{name}_dot": rate}
    if pairs is None:
        pairs = [(name, other) for i, name in enumerate(names) for other in [*fixed, *names[i + 1 :]]]
    law = {"friction": friction, "restitution": restitution}
    return {
        "fsm_dyn": 1,
        "name": "scene",
        "coordinates": [f"{axis}_{name}" for name in names for axis in "xyq"],
        "frames": {f"F_{name}": {"rotate": {"z": f"q_{name}"}} for name in names},
        "points": {f"C_{name}": {"from": "O", "at": f"x_{name}*N.x + y_{name}*N.y"} for name in names},
        "bodies": {
            f"body_{name}": {
                "frame": f"F_{name}",
                "center": f"C_{name}",
                "mass": body.mass,
                "inertia": {"zz": body.moment()},
            }
            for name, body in bodies.items()
        },
        "shapes": shapes | more.pop("shapes", {}),
        "contacts": {f"{one}_{other}": {"between": [one, other], **law} for one, other in pairs},
        "loads": ([{"gravity": gravity}] if gravity else []) + more.pop("loads", []),
        "initial": initial | more.pop("initial", {}),
        **more,
    }


def losses(run):
    """Return the energy that every transition of a run takes away (J).

    At a Zeno time loads work between the impacts left out, so energy gained there is not counted.
    """
    lost = [(change.energy_lost, "Zeno time" in change.cause) for change in run.transitions]
    return np.array([max(loss, 0.0) if train else loss for loss, train in lost])


def placed(outline, q):
    """Return the corners (n, corners, 2) of a body at ``q`` (n, 3)."""
    outline, q = np.asarray(outline, float), np.atleast_2d(q)
    turn = np.array([[np.cos(q[:, 2]), -np.sin(q[:, 2])], [np.sin(q[:, 2]), np.cos(q[:, 2])]])
    return np.einsum("ijt,kj->tki", turn, outline) + q[:, None, :2]


def overlap(one, other):
    """Return how deep two convex polygons (n, corners, 2) overlap: the least of their separating axes (m)."""

    def furthest(mine, theirs):
        edge = np.roll(mine, -1, axis=1) - mine
        normal = np.stack([edge[..., 1], -edge[..., 0]], axis=-1) / np.linalg.norm(edge, axis=-1)[..., None]
        away = np.einsum("nei,ncei->nec", normal, theirs[:, :, None] - mine[:, None])
        return away.min(axis=2).max(axis=1)

    return -np.maximum(furthest(one, other), furthest(other, one))
